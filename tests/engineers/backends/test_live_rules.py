"""What a model in this process is asked, token by token: a model that writes what it is told stands for the weights."""

from __future__ import annotations

import copy
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from engineers.backends import live, local
from engineers.backends.weights import WEIGHTS
from engineers.model.chat import Completion, Message, Rejected, TooLong
from tests.lazily import Lazy, needed

needed("torch", "transformers", "llguidance", extra="local")
torch, structured = Lazy("torch"), Lazy("engineers.model.structured")

QUESTION: list[Message] = [{"role": "user", "content": "How?"}]
PROMPT = "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
THINKS = "<|im_start|>user\nHow?<|im_end|>\n<|im_start|>assistant\n"
EOS = "<|im_end|>"


def scripted(tokenizer: Any, *texts: str, context: int | None = None, eos: Any = None) -> Any:
    """A model that writes these texts, one at each question, and keeps what it was asked."""

    class Scripted(torch.nn.Module):
        device = "cpu"

        def __init__(self) -> None:
            super().__init__()
            self.part = torch.nn.Dropout()
            self.config = SimpleNamespace() if context is None else SimpleNamespace(max_position_embeddings=context)
            self.generation_config = SimpleNamespace(eos_token_id=eos)
            self.asked: list[SimpleNamespace] = []
            self.texts = list(texts)

        def generate(self, input_ids: Any, generation_config: Any, **more: Any) -> Any:
            said = tokenizer.decode(input_ids[0])
            modes = [self.training, self.part.training, torch.is_grad_enabled()]
            chance = torch.rand(1).item()
            self.asked.append(SimpleNamespace(said=said, options=generation_config, modes=modes, chance=chance, **more))
            return torch.cat([input_ids, torch.tensor([tokenizer.encode(self.texts.pop(0))], dtype=torch.int64)], dim=1)

        def get_output_embeddings(self) -> Any:
            return torch.nn.Linear(4, len(tokenizer) + 27)

    return Scripted()


def length(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(text))


def test_a_reply_is_what_is_written_after_the_prompt_without_its_end(byte_tokens: Any) -> None:
    model = scripted(byte_tokens, "So." + EOS)
    reply = live.LiveChat(model, byte_tokens).complete(QUESTION, None, max_tokens=50)
    assert reply == Completion("So.", length(byte_tokens, PROMPT), 4, cost=0.0)
    (asked,) = model.asked
    assert asked.said == PROMPT
    assert asked.attention_mask.tolist() == [[1] * length(byte_tokens, PROMPT)]
    assert (asked.logits_processor, asked.tokenizer) == ([], None)
    assert asked.options.use_cache  # without it each token costs as much as all before it


@pytest.mark.parametrize(
    ("temperature", "samples", "at"), [(0.0, False, None), (0.25, True, 0.25), (1.0, True, 1.0), (1.5, True, 1.5)]
)
def test_a_temperature_of_nothing_takes_the_likeliest_token(
    byte_tokens: Any, temperature: float, samples: bool, at: float | None
) -> None:
    model = scripted(byte_tokens, EOS)
    live.LiveChat(model, byte_tokens, temperature=temperature, time_limit=9.5).complete(QUESTION, None, max_tokens=7)
    options = model.asked[0].options
    assert (options.do_sample, options.temperature) == (samples, at)
    assert (options.max_new_tokens, options.max_time, options.stop_strings) == (7, 9.5, None)


@pytest.mark.parametrize(
    ("limit", "context", "allowed"), [(9, None, 9), (9, 1000, 9), (9, 3, 3), (9, 1, 1), (9, 0, None), (9, -1, None)]
)
def test_a_reply_fits_the_context_after_the_prompt(
    byte_tokens: Any, limit: int, context: int | None, allowed: int | None
) -> None:
    """``context`` is what is left of it after the prompt."""
    prompt = length(byte_tokens, PROMPT)
    model = scripted(byte_tokens, "x", context=None if context is None else prompt + context)
    said = "tokens, the model reads at most" if allowed is None else f"^the reply was cut after {allowed} tokens: write"
    with pytest.raises(TooLong, match=said) as caught:
        live.LiveChat(model, byte_tokens).complete(QUESTION, None, max_tokens=limit)
    if allowed is not None:
        assert model.asked[0].options.max_new_tokens == allowed
        assert caught.value.spent == Completion("x", prompt, 1, cost=0.0)


@pytest.mark.parametrize(
    ("written", "limit", "kind"),
    [("x", None, TooLong), ("x", 2.5, TooLong), ("x", 2.0, Rejected), ("x", 1.5, Rejected), ("x" + EOS, 1.5, None)],
)
def test_a_reply_without_an_end_was_cut_by_the_clock_or_by_its_tokens(
    byte_tokens: Any, monkeypatch: pytest.MonkeyPatch, written: str, limit: float | None, kind: Any
) -> None:
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    chat = live.LiveChat(scripted(byte_tokens, written), byte_tokens, time_limit=limit)
    if kind is None:
        assert chat.complete(QUESTION, None, max_tokens=9).text == "x"
        return
    with pytest.raises(kind) as caught:
        chat.complete(QUESTION, None, max_tokens=9)
    if kind is Rejected:
        assert str(caught.value) == f"no whole reply within time_limit={limit:g} s: allow more time"
    assert caught.value.spent.text == "x"


@pytest.mark.parametrize(
    ("thought", "seen"),
    [
        ("Hm.", "Hm.\n</think>\n\n"),
        ("Hm." + EOS, "Hm.\n</think>\n\n"),
        ("Hm.</think>", "Hm.</think>\n\n"),
        ("Hm.</think>" + EOS, "Hm.</think>\n\n"),
        ("Hm.</think>\n", "Hm.</think>\n\n\n"),
    ],
)
def test_thoughts_end_before_the_answer_begins(byte_tokens: Any, thought: str, seen: str) -> None:
    model = scripted(byte_tokens, thought, "So." + EOS)
    reply = live.LiveChat(model, byte_tokens, thinking=9).complete(QUESTION, None, max_tokens=99)
    first, second = model.asked
    assert first.said == THINKS
    assert (first.options.stop_strings, first.tokenizer) == (live.THOUGHT_END, byte_tokens)
    assert second.said == THINKS + seen
    assert (second.options.stop_strings, second.tokenizer) == (None, None)
    assert second.options.max_new_tokens == 99 - length(byte_tokens, seen)
    assert reply == Completion(seen + "So.", length(byte_tokens, THINKS), length(byte_tokens, seen) + 4, cost=0.0)


@pytest.mark.parametrize(("thinking", "limit", "allowed"), [(1, 80, 1), (9, 80, 9), (50, 80, 40), (50, 81, 40)])
def test_thoughts_take_at_most_half_of_a_reply(byte_tokens: Any, thinking: int, limit: int, allowed: int) -> None:
    model = scripted(byte_tokens, "", EOS)
    chat = live.LiveChat(model, byte_tokens, thinking=thinking)
    chat.complete(QUESTION, None, max_tokens=limit)
    assert model.asked[0].options.max_new_tokens == allowed
    assert model.asked[0].said == THINKS


def test_a_thought_without_a_token_takes_none_of_the_prompt(byte_tokens: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_tokens, "chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}" + EOS)
    model = scripted(byte_tokens, "", EOS)
    live.LiveChat(model, byte_tokens, thinking=9).complete(QUESTION, None, max_tokens=99)
    assert model.asked[1].said == "How?" + EOS + "\n</think>\n\n"


def test_the_schema_holds_for_what_is_written_after_the_thoughts_unless_it_is_switched_off(byte_tokens: Any) -> None:
    schema = {"type": "string"}
    model = scripted(byte_tokens, "Hm.", EOS, "Hm.", EOS, EOS)
    chat = live.LiveChat(model, byte_tokens, thinking=9, longest_string=5)
    chat.complete(QUESTION, schema, max_tokens=99)
    start = length(byte_tokens, THINKS + "Hm.\n</think>\n\n")
    ((processor,), (free,)) = (model.asked[1].logits_processor, [model.asked[0].logits_processor])
    assert free == []  # thoughts are words
    assert processor.seen == start
    bounded = structured.finite(schema, 5)
    left = 99 - length(byte_tokens, "Hm.\n</think>\n\n")
    assert processor.wind_up_at == start + left - structured.room(bounded) - 1
    assert chat._tokens.tokens.vocab_size == len(byte_tokens) + 27  # as wide as the model's logits
    chat.constrained = False
    chat.complete(QUESTION, schema, max_tokens=99)
    assert model.asked[3].logits_processor == []
    chat.thinking, chat.constrained = 0, True
    chat.complete(QUESTION, None, max_tokens=99)
    assert model.asked[4].logits_processor == []


@pytest.mark.parametrize(
    ("tokenizers", "models", "ends"), [(5, None, [5]), (5, 5, [5]), (5, [7, 5], [5, 7]), (None, 7, [7]), (0, [0], [0])]
)
def test_a_reply_ends_with_the_tokenizers_token_or_one_of_the_models(tokenizers: Any, models: Any, ends: Any) -> None:
    model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=models))
    assert live.LiveChat(model, SimpleNamespace(eos_token_id=tokenizers))._eos == ends


def test_a_padded_batch_of_one_is_padded_with_an_end_and_a_tokenizer_without_one_is_refused(byte_tokens: Any) -> None:
    model = scripted(byte_tokens, EOS, eos=[3, 4])
    live.LiveChat(model, byte_tokens).complete(QUESTION, None, max_tokens=9)
    options, end = model.asked[0].options, byte_tokens.eos_token_id
    assert (options.eos_token_id, options.pad_token_id) == ([end, 3, 4], end)
    chat = live.LiveChat(SimpleNamespace(generation_config=None), SimpleNamespace(eos_token_id=None))
    with pytest.raises(ValueError, match=r"the tokenizer has no end-of-sequence token: set tokenizer.eos_token"):
        chat._eos  # noqa: B018


@pytest.mark.parametrize("begins", [False, True])
def test_a_base_model_reads_the_contents_alone_begun_as_its_tokenizer_begins_every_text(
    byte_tokens: Any, begins: bool
) -> None:
    from tokenizers.processors import TemplateProcessing

    tokenizer = copy.deepcopy(byte_tokens)
    tokenizer.chat_template, tokenizer.bos_token = None, EOS
    if begins:
        mark = TemplateProcessing(single=f"{EOS} $A", special_tokens=[(EOS, tokenizer.bos_token_id)])
        tokenizer.backend_tokenizer.post_processor = mark
    answered: list[Message] = [*QUESTION, {"role": "assistant", "content": "So."}, *QUESTION]
    ids = live.LiveChat(SimpleNamespace(device="cpu"), tokenizer)._prompt(answered)
    assert tokenizer.decode(ids[0]) == begins * EOS + f"How?\n\nSo.{EOS}\n\nHow?\n\n"


def test_a_template_that_knows_no_system_turn_gets_all_its_words_at_the_start_of_the_users() -> None:
    talk: list[Message] = [
        {"role": "system", "content": "A"},
        {"role": "user", "content": "B"},
        {"role": "assistant", "content": "C"},
        {"role": "system", "content": "D"},
    ]
    merged = [{"role": "user", "content": "A\n\nD\n\nB"}, {"role": "assistant", "content": "C"}]
    assert live._without_system(talk) == merged


def test_the_models_modes_and_the_random_state_are_its_own_while_it_answers(byte_tokens: Any) -> None:
    model = scripted(byte_tokens, EOS, EOS, EOS)
    model.part.eval()  # a frozen part of a model under training
    model.forward = wrapped = lambda: None  # as a trainer wraps it
    state = torch.get_rng_state()
    chat = live.LiveChat(model, byte_tokens)
    for question in (QUESTION, QUESTION, [*QUESTION, *QUESTION]):
        chat.complete(question, None, max_tokens=9)
    assert all(asked.modes == [False, False, False] for asked in model.asked)
    assert torch.equal(torch.get_rng_state(), state)
    assert (model.training, model.part.training, model.forward) == (True, False, wrapped)
    first, again, other = (asked.chance for asked in model.asked)
    assert first == again != other


def test_questions_from_several_threads_are_answered_as_they_are_from_one(byte_tokens: Any) -> None:
    """The random state is the whole process's."""

    def chances(threads: int) -> list[tuple[str, float]]:
        model = scripted(byte_tokens, *[EOS] * 6)
        generate = model.generate
        model.generate = lambda *given, **more: (time.sleep(0.005), generate(*given, **more))[1]
        chat = live.LiveChat(model, byte_tokens)
        with ThreadPoolExecutor(threads) as pool:
            questions: list[Any] = [[{"role": "user", "content": str(number)}] for number in range(6)]
            list(pool.map(lambda question: chat.complete(question, None, max_tokens=9), questions))
        return sorted((asked.said, asked.chance) for asked in model.asked)

    assert chances(3) == chances(1)


def test_the_same_question_has_the_same_seed_in_every_version() -> None:
    turned: list[Any] = [{"content": "How?", "role": "user"}]
    assert live._seed(0, QUESTION) == live._seed(0, turned) == 11687309502210980
    assert len({live._seed(0, QUESTION), live._seed(1, QUESTION), live._seed(0, [])}) == 3


def test_random_states_of_gpus_are_kept_where_gpus_are_in_use_and_none_is_woken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[Any] = []
    fork = torch.random.fork_rng
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices=None: kept.append(devices) or fork(devices=[]))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for used in (True, False):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda used=used: used)
        with live.as_found(torch.nn.Linear(1, 1), 0):
            pass
    assert kept == [[0, 1], []]


def test_what_an_engineer_prints_holds_no_weights() -> None:
    assert repr(live.LiveChat("WEIGHTS", "TOKENS")).startswith("LiveChat(model='live/model', temperature=0.7, seed=0,")


def test_live_needs_a_model_and_its_tokenizer() -> None:
    for model, tokenizer in (("a name", object()), (object(), None)):
        with pytest.raises(ValueError, match="live takes objects, not names"):
            live.make(model, tokenizer)
    engineer: Any = live.make(object(), object(), called="live/mine", thinking=7, max_tokens=99)
    assert (engineer.chat.model, engineer.chat.thinking, engineer.max_tokens) == ("live/mine", 7, 99)


# --- weights from a folder or the hub


def test_a_local_model_answers_as_a_live_one_does_unless_told_otherwise() -> None:
    shared = {field.name: field.default for field in fields(local.LocalChat)}
    lives = {field.name: field.default for field in fields(live.LiveChat) if field.name in shared}
    assert lives == {name: shared[name] for name in lives}
    assert lives.keys() >= {"temperature", "seed", "thinking", "constrained", "longest_string"}


def test_a_local_model_is_loaded_as_its_options_say_and_asked_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    loaded: list[Any] = []
    weights = SimpleNamespace(device=SimpleNamespace(type="cuda"))

    def model_from(name: str, **options: Any) -> Any:
        loaded.append((name, options))
        return SimpleNamespace(to=lambda device: loaded.append(device) or weights)

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", model_from)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name, **options: f"tokenizer of {name}")
    told = {"temperature": 0.1, "seed": 3, "thinking": 5, "constrained": False, "longest_string": 77}
    chat = local.LocalChat("some/model", device="gpu:1", dtype="half", arguments={"revision": "r"}, **told)  # type: ignore[arg-type]
    chat.load_now()
    assert loaded == [("some/model", {"dtype": "half", "revision": "r"} | WEIGHTS), "gpu:1"]
    assert chat._live == live.LiveChat(weights, "tokenizer of some/model", model="local/some/model", **told)  # type: ignore[arg-type]
    asked: list[Any] = []
    monkeypatch.setattr(live.LiveChat, "complete", lambda _, *question, **limit: asked.append((question, limit)))
    chat.complete(QUESTION, {"type": "string"}, max_tokens=9)
    assert asked == [((QUESTION, {"type": "string"}), {"max_tokens": 9})]
    assert len(loaded) == 2


@pytest.mark.parametrize(
    ("asked", "cuda", "mps", "device"),
    [
        ("auto", True, True, "cuda"),
        ("auto", True, False, "cuda"),
        ("auto", False, True, "mps"),
        ("auto", False, False, "cpu"),
        ("cpu", True, True, "cpu"),
    ],
)
def test_a_gpu_is_taken_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, asked: str, cuda: bool, mps: bool, device: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert local.LocalChat("x", device=asked)._device() == device
