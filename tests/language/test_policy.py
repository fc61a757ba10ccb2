"""The model as a policy of replies: where one is cut, what is greedy, how sure it is; on a model whose odds are a table."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from envtuning.trainees.language.policy import ReplyPolicy
from tests.lazily import Lazy, needed

needed("torch", "transformers", extra="grpo")
torch = Lazy("torch")

END, A, B, C = range(4)
ALONG = [[0.97, 0.01, 0.01, 0.01], [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7], [0.7, 0.1, 0.1, 0.1]]  # a, b, c, end


class Chain:
    """A model whose next token depends on the last one alone. It writes on after an end, which its caller must cut off."""

    device = "cpu"

    def __init__(self, odds, ends=None):
        self.training = True
        self.logs = torch.tensor(odds).log()
        self.generation_config = SimpleNamespace(eos_token_id=ends)
        self.asked, self.drawn = [], []  # of each call the ids and the mask, and how tokens are drawn

    def modules(self):
        return [self]

    def eval(self):
        self.training = False

    def __call__(self, input_ids, logits_to_keep):
        return SimpleNamespace(logits=self.logs[input_ids][:, -logits_to_keep:])

    def generate(self, input_ids, attention_mask, generation_config):
        assert not self.training, "as in evaluation"
        self.asked.append((input_ids.tolist(), attention_mask.tolist()))
        self.drawn.append((generation_config.do_sample, generation_config.temperature, generation_config.top_k))
        rows = input_ids
        for _ in range(generation_config.max_new_tokens):
            logs = self.logs[rows[:, -1]]
            if generation_config.do_sample:
                token = torch.multinomial(torch.softmax(logs / generation_config.temperature, dim=-1), 1)
            else:
                token = logs.argmax(dim=-1, keepdim=True)
            rows = torch.cat([rows, token], dim=1)
        return rows


class Letters:
    """A tokenizer of three letters; blanks are none of them."""

    chat_template, eos_token_id, pad_token_id = "contents", END, END

    def apply_chat_template(self, talk, **_):
        return "".join(turn["content"] for turn in talk)

    def __call__(self, text, add_special_tokens):
        return SimpleNamespace(input_ids=[".abc".index(letter) for letter in text if letter in "abc"])

    def decode(self, ids, skip_special_tokens):
        return "".join(".abc"[index] for index in ids if index != END or not skip_special_tokens)


def policy(odds=ALONG, ends=None, **options):
    return ReplyPolicy(Chain(odds, ends), Letters(), **options)


def talks(*texts):
    return [[{"role": "user", "content": text}] for text in texts]


@pytest.mark.parametrize(
    ("limit", "text", "tokens", "cut"),
    [(1, "b", 1, True), (2, "bc", 2, True), (3, "bc", 3, False), (9, "bc", 3, False)],
)
def test_a_reply_ends_with_its_end_or_is_cut_at_the_limit_and_its_tokens_are_counted(limit, text, tokens, cut):
    [reply] = policy(max_tokens=limit).reply(talks("aa"))
    assert (reply.text, reply.tokens, reply.truncated) == (text, 2 + tokens, cut)


@pytest.mark.parametrize("ends", [C, [C], [B, C]])
def test_a_token_that_the_model_names_ends_a_reply_as_the_tokenizers_does(ends):
    [reply] = policy(ends=ends).reply(talks("a"))
    assert not reply.truncated
    assert reply.tokens == 1 + (2 if B not in policy(ends=ends).eos else 1)
    assert policy(ends=ends).eos[0] == END


def test_certainty_is_the_probability_of_the_whole_and_the_mean_of_the_entropies_where_its_tokens_were_chosen():
    from benchmarks.introspection import certainty

    odds = [[0.97, 0.01, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25], [0.5, 0.3, 0.1, 0.1], [0.7, 0.1, 0.1, 0.1]]
    log_probability, entropy = certainty(policy(odds).model, [C, A], [B, A, END])
    entropies = [-sum(p * math.log(p) for p in odds[last]) for last in (A, B, A)]
    assert log_probability == pytest.approx(math.log(0.25 * 0.3 * 0.25), abs=1e-5)
    assert entropy == pytest.approx(sum(entropies) / 3, abs=1e-5)


def test_replies_are_a_function_of_the_seed_and_leave_mode_and_random_state_alone():
    one, many = policy(temperature=1.0, max_tokens=5), talks(*["a"] * 10)
    before = torch.random.get_rng_state()
    assert one.reply(many, seed=1) == one.reply(many, seed=1) != one.reply(many, seed=2)
    assert one.reply(many) == one.reply(many, seed=0) != one.reply(many, seed=1)
    assert one.model.training
    assert torch.equal(torch.random.get_rng_state(), before)


def test_samples_for_training_go_on_with_the_process_s_random_state():
    one = policy(temperature=1.0, max_tokens=5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = one.sample([[A]] * 5), one.sample([[A]] * 5)
        torch.manual_seed(0)
        assert one.sample([[A]] * 5) == first != second


def test_a_call_of_generation_takes_a_whole_batch_padded_on_the_left_and_masked():
    one = policy(batch=2)
    replies = one.reply(talks("a", "aab", "c"))
    assert [ids for ids, _ in one.model.asked] == [[[END, END, A], [A, A, B]], [[C]]]
    assert [mask for _, mask in one.model.asked] == [[[0, 0, 1], [1, 1, 1]], [[1]]]
    assert [reply.text for reply in replies] == ["bc", "c", ""]
    one.reply(talks("a", "aab", "c"))
    one.sample([[A], [B], [C]])
    assert [len(ids) for ids, _ in one.model.asked] == [2, 1] * 3


def test_a_greedy_reply_draws_nothing_and_a_sampled_one_from_all_tokens():
    """transformers would draw from the 50 likeliest unless it is told otherwise."""
    for one, drawn in ((policy(), (False, None, None)), (policy(temperature=0.5), (True, 0.5, 0))):
        one.reply(talks("a"))
        assert one.model.drawn == [drawn]


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_the_model_s_own_generation_config_says_of_drawing_touches_no_reply(wrapped):
    """transformers fills from it whatever a call leaves open."""
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import small_tokenizer

    tokenizer = small_tokenizer()
    model = small_model(tokenizer, width=8, layers=1, heads=1)
    if wrapped:
        model = pytest.importorskip("peft").get_peft_model(
            model, pytest.importorskip("peft").LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
        )
    habits = model.generation_config
    plain = [
        ReplyPolicy(model, tokenizer, max_tokens=6, temperature=temperature).reply(talks(*["a"] * 8))
        for temperature in (0.0, 1.0)
    ]
    for name, value in {"repetition_penalty": 9.0, "top_p": 0.01, "min_p": 0.9, "suppress_tokens": [5, 6]}.items():
        setattr(habits, name, value)
    for temperature, expected in zip((0.0, 1.0), plain, strict=True):
        one = ReplyPolicy(model, tokenizer, max_tokens=6, temperature=temperature)
        assert one.reply(talks(*["a"] * 8)) == expected
    assert len({reply.text for reply in plain[1]}) > 1
    assert model.generation_config is habits


def test_samples_for_training_are_drawn_as_their_settings_say():
    from transformers import GenerationConfig

    drawn = GenerationConfig(max_new_tokens=2, do_sample=True, temperature=0.5, top_k=7)
    one = policy(sampling=drawn, max_tokens=5)
    assert len(one.sample([[A]])[0]) <= 2
    one.reply(talks("a"))
    assert one.model.drawn == [(True, 0.5, 7), (False, None, None)]


def test_everything_is_computed_where_the_model_is(monkeypatch):
    made, tensor = [], torch.tensor
    one = policy()
    monkeypatch.setattr("torch.tensor", lambda data, device=None: made.append(device) or tensor(data))
    one.reply(talks("a"))
    assert made == [one.model.device] * 2


def test_a_policy_is_greedy_unless_told_otherwise_and_hands_the_template_its_switches():
    one = policy()
    assert (one.max_tokens, one.temperature, one.batch, one.template) == (512, 0.0, 256, {})
    assert policy(template={"enable_thinking": False}).template == {"enable_thinking": False}
