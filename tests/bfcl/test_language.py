"""A language model on tool use: what it is taught, which tokens it learns from, and two steps of GRPO in each of the four stages."""

from __future__ import annotations

import json
import math
import random

import pytest

from envtuning.cli.pretraining import pretrain_for
from envtuning.loop.run import start
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError, load_spec
from envtuning.trainees.base import Trainee
from envtuning.trainees.language.rollouts import rollout
from envtuning.trainees.language.tasks import EnvTurns
from envtuning.trainees.language.tokenizer import prompt_ids, small_tokenizer
from envtuning.trainees.language.tool_lessons import encoded, lesson, stumble, teach
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.package import TOOL_CLASSES
from envtuning.worlds.bfcl.pool import fitting
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.splits import by_scenario
from envtuning.worlds.bfcl.tasks import find_task
from envtuning.worlds.registry import make_world
from tests.language.test_rollouts import Scripted
from tests.lazily import needed

needed("trl", extra="grpo")

PRESET = "tools-in-miniature"
FILES = Plan.of(load_spec(PRESET)).configs[0]


@pytest.fixture(scope="module")
def tokenizer():
    return small_tokenizer()


def test_only_what_the_assistant_says_is_taught(v4, tokenizer):
    task = fitting(v4, by_scenario(), "train", FILES)[0]
    messages = lesson(v4, task, "short")
    assert [message["role"] for message in messages[:2]] == ["user", "assistant"]
    assert messages[-1]["content"] == DONE
    ids, labels = encoded(tokenizer, messages)
    assert len(ids) == len(labels)
    taught = tokenizer.decode([label for label in labels if label >= 0])
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    assert taught.replace(tokenizer.eos_token, "") == "".join(said)


def test_of_a_stumble_only_the_end_of_the_turn_is_taught(v4, tokenizer):
    task = fitting(v4, by_scenario(), "train", FILES)[0]
    messages = stumble(v4, task, "none", random.Random(3))
    errors = [message["content"] for message in messages if message["content"].startswith("Error: ")]
    assert len(errors) == task.checked_turns
    ids, labels = encoded(tokenizer, messages)
    assert tokenizer.decode([label for label in labels if label >= 0]) == f"{DONE}{tokenizer.eos_token}" * task.turns
    asked = prompt_ids(tokenizer, messages[:-1])
    assert ids[: len(asked)] == asked


def test_a_lesson_is_written_as_the_model_will_be_asked(v4, tokenizer):
    """The same tokens in front of each answer, or the model would be asked in a language that it was not taught."""
    messages = lesson(v4, fitting(v4, by_scenario(), "train", FILES)[0], "none")
    ids, _ = encoded(tokenizer, messages)
    for place in range(1, len(messages), 2):
        asked = prompt_ids(tokenizer, messages[:place])
        assert ids[: len(asked)] == asked


@pytest.mark.parametrize("feedback", ["standard", "augmented"])
def test_the_mask_says_which_tokens_of_a_conversation_are_the_model_s(v4, tokenizer, feedback):
    tasks = EnvTurns(make_world("tools"), {}, ())
    rows = tasks.rows(BFCLConfig(**FILES.model_dump() | {"feedback": feedback}), 3, seed=0)
    said = ["[cd(folder='nowhere'), pwd()]", "[cd(folder=", *[DONE] * 10]
    played = rollout(Scripted(tokenizer, said), [row["prompt"] for row in rows], tasks.begin, tasks.judge)
    for case, (prompt, ids, mask) in enumerate(
        zip(played["prompt_ids"], played["completion_ids"], played["env_mask"], strict=True)
    ):
        env, seed, options = tasks.begin(case)
        talk = [{"role": "user", "content": env.reset(seed=seed, options=options)[0]}]
        over, paid = False, 0.0
        for reply in said:
            heard, reward, terminated, truncated, _ = env.step(reply)
            talk += [{"role": "assistant", "content": reply}, {"role": "user", "content": heard}]
            over, paid = terminated or truncated, paid + reward
            if over:
                break
        assert over
        text = tokenizer.apply_chat_template(talk[:-1], tokenize=False)
        assert prompt + ids == tokenizer(text, add_special_tokens=False).input_ids
        own = tokenizer.decode([token for token, mine in zip(ids, mask, strict=True) if mine])
        assert own == "".join(f"{turn['content']}{tokenizer.eos_token}" for turn in talk if turn["role"] == "assistant")
        others = tokenizer.decode([token for token, mine in zip(ids, mask, strict=True) if not mine])
        assert ("Hint:" in others) == (feedback == "augmented")
        assert "Hint:" not in own
        assert played["paid"][case] == paid


def learns_in_each_stage(run) -> None:
    """At least two steps a stage, in one of them a group that was not paid alike, every gradient finite, one that is not 0."""
    for number in range(4):
        lines = [
            json.loads(line) for line in (run.state.stages[number].path / "metrics.jsonl").read_text().splitlines()
        ]
        steps = [line for line in lines if line["kind"] == "iteration"]
        assert len(steps) >= 2
        assert min(step["equal_groups"] for step in steps) < 1
        assert all(math.isfinite(step["grad_norm"]) and math.isfinite(step["loss"]) for step in steps)
        assert any(step["grad_norm"] > 0 for step in steps)
    reports = [run.state.stages[number].report for number in range(4)]
    assert [report.config["reward"] for report in reports] == ["syntax", "progress", "progress", "progress"]
    assert [report.config["feedback"] for report in reports] == ["standard", "augmented", "augmented", "standard"]


# A million parameters and files take minutes (below); here a hundred thousand and two short requests about shares, of which one comes
# later in the last two stages.
SHARES = {
    "tool_style": "none",
    "max_turns": 2,
    "tools": {name: float(name in ("TradingBot", "TwitterAPI")) for name in TOOL_CLASSES},
}
STAGES = [
    SHARES | {"slices": {"base": {}}, "reward": "syntax"},
    SHARES | {"slices": {"base": {}}, "feedback": "augmented"},
    SHARES | {"slices": {"miss_param": {}}, "max_turns": 3, "feedback": "augmented"},
    SHARES | {"slices": {"miss_param": {}}, "max_turns": 3},
]
GRPO = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "steps_per_generation": 1,
    "num_generations": 4,
    "max_completion_length": 32,
    "learning_rate": 1e-4,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_steps_of_grpo_in_each_of_the_four_stages(v4, tmp_path):
    taught = [find_task(v4, f"multi_turn_{split}_139") for split in ("base", "miss_param")]
    model = teach(tmp_path / "model", v4, taught, tool_style="none", passes=80, width=64, layers=1)
    spec = {
        "name": "tools-grpo",
        "world": "tools",
        "unit": "samples",
        "target": SHARES | {"max_turns": 4, "slices": {"base": {}}},
        "trainee": {"kind": "grpo", "options": {"model": str(model), "torch_threads": 1, "grpo": GRPO}},
        "engineer": {"name": "fixed"},
        "suites": {"validation_per_slice": 1, "probe_per_slice": 0},
        "stages": [{"budget": 16, "config": config} for config in STAGES],
    }
    learns_in_each_stage(start(RunSpec.model_validate(spec), tmp_path / "run"))


class WholeBatches(Trainee):
    """Counts as a trainee under GRPO does: in whole batches of replies, the last of them beyond the budget."""

    form = "replies"
    units = ("samples",)

    def __init__(self, *, grpo, **_):
        self.batch = grpo["per_device_train_batch_size"] * grpo["gradient_accumulation_steps"]

    def train(self, config, budget, *, seed, on_iteration):
        steps = math.ceil(budget / self.batch)
        for _ in range(steps):
            outcomes = {str(next(iter(config.slices))): {"episodes": self.batch}}
            on_iteration({"samples": self.batch, "loss": 0.0, "grad_norm": 1.0, "outcomes": outcomes})
        return {"samples": steps * self.batch}

    def policy(self):
        return lambda text: DONE

    def save(self, folder):
        (folder / "weights").touch()

    def load(self, folder):
        assert (folder / "weights").exists()

    def close(self):
        pass


def test_the_presets_budgets_are_two_steps_in_each_stage(v4, tmp_path, monkeypatch):
    from envtuning.trainees import KINDS, Known

    monkeypatch.setitem(KINDS, "grpo", Known(f"{__name__}:WholeBatches", "replies"))
    run = start(load_spec(PRESET), tmp_path / "run")
    assert [stage.done.trained["samples"] for stage in run.state.stages] == [32] * 4


@pytest.mark.prove
@pytest.mark.timeout(3_600)
def test_the_page_s_commands_make_a_model_and_take_it_through_the_four_stages(v4, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from envtuning.cli import app
    from envtuning.runs.log import RunLog

    monkeypatch.chdir(tmp_path)
    for command in ("pretrain models/tools --for tools-in-miniature", "run tools-in-miniature"):
        done = CliRunner().invoke(app, command.split(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    learns_in_each_stage(RunLog.open("runs/tools-in-miniature-seed0"))


def test_the_longest_right_reply_fits_into_the_presets_limit(v4, tokenizer):
    spec = load_spec(PRESET)
    tasks = {task.id: task for config in Plan.of(spec).written for task in fitting(v4, by_scenario(), "train", config)}
    assert 4 <= len(tasks) <= 12
    said = [turn["content"] for t in tasks.values() for turn in lesson(v4, t, "none") if turn["role"] == "assistant"]
    longest = max(len(tokenizer(reply, add_special_tokens=False).input_ids) + 1 for reply in said)
    assert longest <= spec.trainee.options["grpo"]["max_completion_length"]


def test_models_are_made_for_the_worlds_that_there_are_lessons_for(tmp_path):
    spec = load_spec(PRESET)
    with pytest.raises(SpecError, match="in the world 'lakes'"):
        pretrain_for(spec, tmp_path / "model", also=[load_spec("paper-in-miniature")])
    (tmp_path / "there").mkdir()
    with pytest.raises(SpecError, match="exists already"):
        pretrain_for(spec, tmp_path / "there")
