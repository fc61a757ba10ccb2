"""Turn-based rollouts: TRL is given the very tokens of the conversation, and learns from the model's own alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language import rollouts
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.policy import ReplyPolicy
from envtuning.trainees.language.rollouts import Judged, Recorder, rollout
from envtuning.trainees.language.tasks import EnvTurns, LakeTurns
from envtuning.trainees.language.tokenizer import CHAT_TEMPLATE, begun_thought, prompt_ids, small_tokenizer, turn_markup
from envtuning.worlds.lakes.play import play_lakes
from mapf_frozenlake.instance_set import InstanceSet
from tests.language.conftest import QUICK
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, learning = Lazy("torch"), Lazy("envtuning.trainees.language.learner")

CONFIG = mfl.LakeConfig.single(3, 2, hole_ratio=0.0, reward="shaped", horizon=3)


class Scripted(ReplyPolicy):
    """A policy that writes given replies, in place of a model."""

    template: ClassVar[dict] = {}
    eos: ClassVar[list] = []  # set on each

    def __init__(self, tokenizer, replies):
        self.tokenizer, self.replies, self.eos = tokenizer, list(replies), [tokenizer.eos_token_id]

    def prompt(self, messages):
        talk = [{"role": turn["role"], "content": turn["content"]} for turn in messages]
        return prompt_ids(self.tokenizer, talk, **self.template)

    def sample(self, prompts):
        text = self.replies.pop(0)
        return [
            [*self.tokenizer(text, add_special_tokens=False).input_ids, self.tokenizer.eos_token_id] for _ in prompts
        ]


@pytest.mark.parametrize("feedback", [True, False])
def test_the_tokens_are_those_of_the_conversation_and_the_mask_says_whose(feedback):
    tokenizer = small_tokenizer()
    tasks = LakeTurns("short", [])
    rows = tasks.rows(CONFIG.model_copy(update={"feedback": feedback}), 2, seed=0)
    said = ["Agent 0: UP\nAgent 1: UP", "no idea", "Agent 0: WAIT\nAgent 1: WAIT"]
    played = rollout(Scripted(tokenizer, said), [row["prompt"] for row in rows], tasks.begin, tasks.judge)
    for case, (prompt, ids, mask) in enumerate(
        zip(played["prompt_ids"], played["completion_ids"], played["env_mask"], strict=True)
    ):
        env, _, options = tasks.begin(case)
        question, _ = env.reset(options=options)
        talk = [{"role": "user", "content": question}]
        for reply in said:
            talk.append({"role": "assistant", "content": reply})
            talk.append({"role": "user", "content": env.step(reply)[0]})
        whole = prompt_ids(tokenizer, talk[:1])
        assert prompt == whole
        text = tokenizer.apply_chat_template(talk[:-1], tokenize=False)
        assert prompt + ids == tokenizer(text, add_special_tokens=False).input_ids
        own = tokenizer.decode([token for token, mine in zip(ids, mask, strict=True) if mine])
        assert own == "".join(f"{reply}{tokenizer.eos_token}" for reply in said)
        others = tokenizer.decode([token for token, mine in zip(ids, mask, strict=True) if not mine])
        assert ("No moves could be read" in others) == feedback
    assert played["failure"] == ["parse_error", "parse_error"]


@pytest.mark.parametrize(
    ("ending", "begun"),
    [("", ""), ("<think>\n", "<think>\n"), ("<think>\n\n</think>\n\n", "")],
)
def test_a_thought_that_the_prompt_begins_is_told_with_the_reply(ending, begun):
    tokenizer = small_tokenizer()
    tokenizer.chat_template = CHAT_TEMPLATE.replace("<|assistant|>{% endif", f"<|assistant|>{ending}{{% endif")
    assert begun_thought(tokenizer) == begun
    [reply] = Recorder(Scripted(tokenizer, ["UP"])).reply([[{"role": "user", "content": "Lake <think>"}]], seed=0)
    policy = ReplyPolicy(SimpleNamespace(generation_config=None), tokenizer)
    written = tokenizer("UP", add_special_tokens=False).input_ids
    assert reply.text == policy.told([1], written).text == f"{begun}UP"


# As Qwen3's: thoughts of earlier turns are taken out, and an empty one is put in front of an answer without thinking.
FORGETFUL = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}"
    "{{ m.content.split('</think>')[-1].lstrip() if m.role == 'assistant' else m.content }}"
    "{% if m.role == 'assistant' %}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% if not thinks %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "switches"),
    [(CHAT_TEMPLATE, {}), (None, {}), (FORGETFUL, {"thinks": False}), (FORGETFUL, {"thinks": True})],
)
def test_a_model_is_validated_on_the_conversation_that_it_is_trained_on(template, switches):
    """Token by token: what was said before stands as it was written, whatever the template would make of it."""
    tokenizer, tasks = small_tokenizer(), LakeTurns("short", [])
    tokenizer.chat_template = template
    said = ["<think>Up?</think>Agent 0: UP\nAgent 1: UP", "no idea", "Agent 0: WAIT\nAgent 1: WAIT"]
    [row] = tasks.rows(CONFIG, 1, seed=0)
    asked = []

    class Seen(Scripted):
        def sample(self, prompts):
            asked.extend(prompts)
            return super().sample(prompts)

    trained = Seen(tokenizer, said)
    trained.template = switches
    rollout(trained, [row["prompt"]], tasks.begin, tasks.judge)
    in_training, asked[:] = list(asked), []

    class Validated(Seen):
        def reply(self, conversations, *, seed=0):
            prompts = [self.prompt(talk) for talk in conversations]
            return [self.told(*told) for told in zip(prompts, self.sample(prompts), strict=True)]

    validated = Validated(tokenizer, said)
    validated.template = switches
    boards = InstanceSet.from_instances(tasks.boards)
    play_lakes(validated, boards, CONFIG, seed=0, mode="turns", style="short")
    assert len(asked) == 3
    assert asked == in_training


def test_a_conversation_costs_in_validation_what_it_costs_in_training():
    said = ["Agent 0: UP\nAgent 1: UP", "no idea", "Agent 0: WAIT\nAgent 1: WAIT"]
    tokenizer, tasks = small_tokenizer(), LakeTurns("short", [])
    prompts = [row["prompt"] for row in tasks.rows(CONFIG, 1, seed=0)]
    trained = rollout(Scripted(tokenizer, said), prompts, tasks.begin, tasks.judge)

    class Validated(ReplyPolicy):
        def reply(self, conversations, *, seed=0):
            prompts = [self.prompt(talk) for talk in conversations]
            return [self.told(*told) for told in zip(prompts, written.sample(prompts), strict=True)]

    written = Scripted(tokenizer, said)
    policy = Validated(SimpleNamespace(generation_config=None), tokenizer)
    boards = InstanceSet.from_instances(tasks.boards)
    [episode] = play_lakes(policy, boards, CONFIG, seed=0, mode="turns", style="short")
    # TRL counts a prompt and the tokens of the model's own
    assert episode.cost["tokens"] == len(trained["prompt_ids"][0]) + sum(trained["env_mask"][0])
    assert episode.cost["samples"] == 1


@pytest.mark.parametrize("at", [1, 2])
def test_what_sampling_raises_ends_the_rollout_and_nobody_is_asked_again(at):
    class OutOfMemory(Scripted):
        asked = 0

        def sample(self, prompts):
            self.asked += 1
            if self.asked >= at:
                raise MemoryError("no room for 2 conversations")
            return super().sample(prompts)

    tasks = LakeTurns("short", [])
    prompts = [row["prompt"] for row in tasks.rows(CONFIG, 2, seed=0)]
    policy = OutOfMemory(small_tokenizer(), ["Agent 0: WAIT\nAgent 1: WAIT"])
    with pytest.raises(MemoryError, match="no room for 2 conversations"):
        rollout(policy, prompts, tasks.begin, tasks.judge)
    assert policy.asked == at


class Letters:
    """A tokenizer of letters, which begins every text with a mark unless it is told not to."""

    chat_template, eos_token_id = "contents", 0

    def apply_chat_template(self, talk, **_):
        return "".join(turn["content"] + ("." if turn["role"] == "assistant" else "") for turn in talk)

    def __call__(self, text, add_special_tokens=True):
        ids = [ord(letter) for letter in text if letter != "\n"]
        return SimpleNamespace(input_ids=[1, *ids] if add_special_tokens else ids)

    def decode(self, ids, skip_special_tokens=False):
        return "".join(chr(token) if token > 1 else "." for token in ids if token > 1 or not skip_special_tokens)


def test_a_tape_has_every_token_with_its_writer_and_a_reply_counts_all_that_was_read():
    policy = Scripted(Letters(), [])
    policy.eos, policy.prompt = [0], lambda messages: [ord("q")] * 3
    policy.sample = lambda prompts: (
        written.append([list(prompt) for prompt in prompts]) or [replies.pop(0) for _ in prompts]
    )
    replies, written = [[65, 66, 0], [67], [68, 0, 69]], []
    recorder, talk = Recorder(policy), [{"role": "user", "content": "qqq"}]
    [first] = recorder.reply([talk], seed=0)
    assert (first.text, first.tokens, first.truncated) == ("AB", 6, False)
    talk += [{"role": "assistant", "content": "AB"}, {"role": "user", "content": "xy"}]
    [second] = recorder.reply([talk], seed=0)
    assert (second.text, second.tokens, second.truncated) == ("C", 9, True)
    [third] = recorder.reply([[{"role": "user", "content": "qqq"}]], seed=0)
    assert third.truncated
    tape = recorder.tapes[id(talk)]
    assert (tape.prompt, tape.written, tape.mine) == ([113] * 3, [65, 66, 0, 120, 121, 67], [1, 1, 1, 0, 0, 1])
    assert written == [[[113] * 3], [[113] * 3 + [65, 66, 0, 120, 121]], [[113] * 3]]


@pytest.mark.parametrize(("mine", "last"), [([], 0), ([0, 0], 0), ([1], 1), ([0, 1, 1, 0], 3)])
def test_training_reads_a_conversation_up_to_the_models_last_token(mine, last):
    assert rollouts._last(mine) == last


def test_the_markup_between_turns_is_the_templates():
    assert turn_markup(small_tokenizer()) == ("<|end|><|user|>", "<|assistant|>")


@pytest.mark.parametrize("eos", ["<|end|>", "<|system|>"])
@pytest.mark.parametrize("cut", [False, True])
def test_every_answer_ends_once_as_the_template_ends_it_whatever_the_tokenizers_end_is(eos, cut):
    tokenizer = small_tokenizer()
    tokenizer.eos_token, end = eos, tokenizer.convert_tokens_to_ids("<|end|>")
    policy = Scripted(tokenizer, [])
    policy.eos = [tokenizer.eos_token_id, end]
    policy.sample = lambda prompts: [
        tokenizer("UP", add_special_tokens=False).input_ids + [end] * (not cut) for _ in prompts
    ]
    recorder, talk = Recorder(policy), [{"role": "user", "content": "Lake"}]
    recorder.reply([talk], seed=0)
    talk += [{"role": "assistant", "content": "UP"}, {"role": "user", "content": "Step"}]
    recorder.reply([talk], seed=0)
    tape = recorder.tapes[id(talk)]
    assert tokenizer.decode(tape.prompt + tape.written[: -2 if not cut else -1]) == tokenizer.apply_chat_template(
        talk, tokenize=False, add_generation_prompt=True
    )
    assert tape.mine[: 3 - cut] == [1] * (2 - cut) + [0]


class PaidByLength(LakeTurns):
    """The model is too small to solve a board each time; the length of its replies differs within every group."""

    def judge(self, case, talk):
        written = sum(len(turn["content"]) for turn in talk.messages if turn["role"] == "assistant")
        return Judged(written / 100, "goal_missed", 0.0)


@pytest.mark.parametrize("unit", ["tokens", pytest.param("samples", marks=pytest.mark.prove)])
def test_a_model_learns_turn_by_turn(tiny, unit):
    tasks = PaidByLength("short", [])
    options = LanguageOptions(model=str(tiny), grpo=dict(QUICK), torch_threads=1)
    learner = learning.Learner(options, 0, tasks, unit)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    rows = tasks.rows(CONFIG, learner.prompts_for(32 if unit == "samples" else 400), seed=0)
    steps = learner.train(rows, seed=0, budget=32 if unit == "samples" else 400)
    spent = sum(step[unit] for step in steps)
    assert spent == 32 if unit == "samples" else 400 <= spent < sum(step["tokens"] for step in steps[:-2]) + 8_000
    assert len(steps) % 2 == 0
    assert any(not torch.equal(value, before[name]) for name, value in learner.model.state_dict().items())
    learner.close()


class Counting:
    """A text environment of somebody else's: say the number that was asked for."""

    def close(self):
        pass

    def reset(self, *, seed=None, options=None):
        self.wanted = str(seed % 10)
        return f"Say {self.wanted}", {"slice": "odd" if seed % 2 else "even"}

    def step(self, reply):
        right = reply.strip() == self.wanted
        return "Right" if right else "Wrong", float(right), True, False, {"success": right, "failure": "wrong"}


def test_another_world_needs_only_a_text_environment():
    world = SimpleNamespace(
        about=SimpleNamespace(name="counting"), make_env=lambda config, *, exclude, capacity, seed: Counting()
    )
    tasks = EnvTurns(world, {}, ())
    rows = tasks.rows(None, 4, seed=3)
    assert {row["metadata"]["slice"] for row in rows} <= {"odd", "even"}
    wanted = rows[0]["prompt"][0]["content"].removeprefix("Say ")
    tokenizer = small_tokenizer()
    [right] = rollout(Scripted(tokenizer, [wanted]), [rows[0]["prompt"]], tasks.begin, tasks.judge)["paid"]
    played = rollout(Scripted(tokenizer, ["hm"]), [rows[0]["prompt"]], tasks.begin, tasks.judge)
    assert (right, played["paid"], played["failure"]) == (1.0, [0.0], ["wrong"])


def test_a_world_without_words_is_refused_in_a_sentence():
    class Silent(Counting):
        def reset(self, **_):
            return 0, {}

    world = SimpleNamespace(about=SimpleNamespace(name="silent"), make_env=lambda config, **_: Silent())
    with pytest.raises(mfl.LakeError, match="'silent' trains on int observations, but a language model reads strings"):
        EnvTurns(world, {}, ()).rows(None, 1, seed=0)
