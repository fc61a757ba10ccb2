"""``GRPOTrainee`` between the loop and a learner, or a group of workers: what is handed on, what is refused, what is reported."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.base import TrainingDiverged
from envtuning.trainees.language import trainee as module
from envtuning.trainees.language.pretrain import HELD_OUT, raise_unless_unseen
from envtuning.trainees.language.trainee import GRPOTrainee, summary
from envtuning.worlds.lakes.world import LakeWorld
from mapf_frozenlake.generator.symmetry import canonical_keys
from tests.lazily import needed

needed("torch", "trl", extra="grpo")

LAKES = LakeWorld(mode="plan", style="short")
WORDS = SimpleNamespace(about=SimpleNamespace(name="words"))


class Recorded:
    """Stands for a learner, for tasks or for a group: notes what it is asked, and answers with its name."""

    def __init__(self, told=()):
        self.asked, self.told = [], told

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *given, **named: self.asked.append((name, *given, named)) or f"its {name}"

    def train(self, rows, seed, watch, *, budget):
        self.asked.append(("train", rows, seed, budget))
        for step in self.told:
            watch(step)


def alone(told=()):
    """A trainee in this process, without its model."""
    made = GRPOTrainee.__new__(GRPOTrainee)
    made.options, made.group, made.excluded = module.LanguageOptions(model="m"), None, ()
    made.learner, made.tasks = Recorded(told), Recorded()
    return made


def in_a_group():
    made = GRPOTrainee.__new__(GRPOTrainee)
    made.options, made.group = module.LanguageOptions(model="m", processes=2), Recorded()
    return made


def test_what_it_declares():
    assert (GRPOTrainee.form, GRPOTrainee.units) == ("replies", ("samples", "tokens"))
    assert GRPOTrainee.checkpoints_inside is True


def test_a_stretch_is_drawn_for_its_budget_and_every_step_is_told():
    steps, told = [{"samples": 16.0, "loss": 1.0}, {"samples": 0.0, "grad_norm": 2.0}], []
    one = alone(steps)
    assert one.train("config", 30, seed=2**32 + 5, on_iteration=told.append) == {
        "samples": 16.0,
        "loss": 1.0,
        "grad_norm": 2.0,
    }
    assert told == steps
    assert one.learner.asked == [("prompts_for", 30, {}), ("train", "its rows", 5, 30)]
    assert one.tasks.asked == [("rows", "config", "its prompts_for", 2**32 + 5, {})]
    assert alone(steps).train("config", 30, seed=1)["samples"] == 16.0


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"loss": math.nan, "grad_norm": 1.0}, "loss"),
        ({"loss": 1.0, "grad_norm": math.inf}, "grad_norm"),
        ({"loss": -math.inf, "grad_norm": math.nan}, "loss, grad_norm"),
    ],
)
def test_numbers_that_are_not_finite_end_a_stretch_after_they_were_told(step, said):
    told = []
    with pytest.raises(TrainingDiverged, match=rf"^{said} not .* learning_rate \(1e-06\).* beta \(0.1\)"):
        alone([{"loss": -3.0, "grad_norm": 0.0}, {"entropy": 1.0}, step]).train(
            "config", 1, seed=0, on_iteration=told.append
        )
    assert told[-1] == step
    assert len(told) == 3


def test_a_call_reports_sums_of_what_it_spent_and_means_of_its_last_ten_iterations():
    history = [{"samples": 16.0, "tokens": 5.0, "loss": float(number)} for number in range(12)]
    history[0]["early"], history[1]["early"], history[3]["rate"], history[11]["rate"] = 1.0, 4.0, 0.25, 0.75
    del history[11]["tokens"]
    assert summary(history) == {"samples": 192.0, "tokens": 55.0, "loss": 6.5, "early": 2.5, "rate": 0.5}
    assert summary([]) == {}


@pytest.mark.parametrize("method", ["save", "load"])
def test_weights_are_kept_where_they_are_held(method):
    for made, holder in ((one := alone(), one.learner), (two := in_a_group(), two.group)):
        getattr(made, method)("folder")
        assert holder.asked == [(method, "folder", {}) if made is one else ("call", method, "folder", {})]


def test_a_checkpoint_has_not_seen_what_neither_its_first_model_nor_its_run_was_shown(tmp_path):
    """So a run that begins with it refuses boards of which nobody knows that."""
    import numpy as np

    config = mfl.LakeConfig.single(3, 2, hole_ratio=0.2)
    own, others = mfl.generate(config, n=5, seed=1), mfl.generate(config, n=5, seed=2)
    first, checkpoint = tmp_path / "first", tmp_path / "checkpoint"
    for folder in (first, checkpoint):
        folder.mkdir()
    one = alone()
    one.options, one.excluded = module.LanguageOptions(model=str(first)), (own,)
    one.save(checkpoint)
    raise_unless_unseen(checkpoint, own)
    with pytest.raises(mfl.LakeError, match=r"\d+ of \d+ held-out boards"):
        raise_unless_unseen(checkpoint, others)  # the run may have trained on them, wherever its first model is from
    raise_unless_unseen(first, others)  # … of which itself nobody knows what it has seen
    one.excluded = ()
    (checkpoint / HELD_OUT).unlink()
    one.save(checkpoint)
    assert list(checkpoint.iterdir()) == []  # a run in another world holds no boards out
    one.excluded = (own,)
    np.save(first / HELD_OUT, np.unique(np.concatenate([canonical_keys(own), canonical_keys(others)])))
    one.save(checkpoint)
    raise_unless_unseen(checkpoint, own)
    with pytest.raises(mfl.LakeError, match=r"\d+ of \d+ held-out boards"):
        raise_unless_unseen(checkpoint, others)


def test_a_group_is_asked_for_everything_else_too(monkeypatch):
    one = in_a_group()
    assert one.train("config", 7, seed=3, on_iteration=print) == "its call"
    one.close()
    assert one.group.asked == [
        ("call", "train", "config", 7, {"seed": 3, "told": print}), ("close", {}),
    ]  # fmt: skip
    assert one.policy().group is one.group


def test_a_learner_answers_and_is_closed():
    one = alone()
    assert one.policy() == "its policy"
    one.close()
    assert one.learner.asked == [("policy", {}), ("close", {})]


def test_an_older_checkpoint_loses_its_moments_alone(tmp_path):
    for name in ("optimizer.pt", "model.safetensors"):
        (tmp_path / name).touch()
    alone().slim(tmp_path)
    alone().slim(tmp_path)  # nothing to lose
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.fixture
def making(monkeypatch):
    """What a trainee is made of, noted in place of a model and of processes."""
    made = {"unseen": []}
    monkeypatch.setattr(
        module, "raise_unless_unseen", lambda folder, cases: made["unseen"].append((str(folder), cases))
    )
    monkeypatch.setattr("envtuning.trainees.language.learner.Learner", lambda *given: made.update(learner=given))
    monkeypatch.setattr(
        "envtuning.trainees.language.tasks.tasks_of", lambda *given: made.update(tasks=given) or "tasks"
    )
    monkeypatch.setattr(
        "envtuning.trainees.language.workers.WorkerGroup",
        lambda kind, options, **named: made.update(group=named) or "group",
    )
    return made


def test_one_process_trains_here(making):
    a, b = (mfl.generate(mfl.LakeConfig.single(3), n=1, seed=seed) for seed in (1, 2))
    one = GRPOTrainee(world=LAKES, capacity={"size": 3}, exclude=(a, b), seed=2**32 + 5, unit="tokens", model="m")
    assert making["unseen"] == [("m", a), ("m", b)]
    assert making["tasks"] == (LAKES, {"size": 3}, (a, b))
    assert making["learner"] == (one.options, 5, "tasks", "tokens")
    assert one.group is None
    GRPOTrainee(world=WORDS, exclude=("a",), model="m")
    assert making["learner"][1:] == (0, "tasks", "samples")
    assert making["tasks"] == (WORDS, {}, ("a",))
    assert len(making["unseen"]) == 2  # other worlds' cases have no symmetry keys


def test_several_processes_train_in_a_group_and_each_of_them_alone(making):
    one = GRPOTrainee(world=LAKES, capacity={"size": 3}, exclude=["a"], seed=4, unit="tokens", model="m", processes=2)
    assert one.group == "group"
    assert making["group"] == {"world": LAKES, "capacity": {"size": 3}, "exclude": ("a",), "seed": 4, "unit": "tokens"}
    GRPOTrainee(world=WORDS, model="m", processes=2)
    assert making["group"] == {"world": WORDS, "capacity": {}, "exclude": (), "seed": 0, "unit": "samples"}
    assert "learner" not in making
    assert GRPOTrainee(world=WORDS, model="m", processes=2, within_group=True).group is None
    assert "learner" in making


def test_options_are_checked_before_anything_is_loaded(monkeypatch, tmp_path):
    required = []
    monkeypatch.setattr("engineers.shared.extras.require", lambda *modules, extra: required.append((*modules, extra)))
    (tmp_path / "config.json").touch()
    base = ("torch", "transformers", "trl", "datasets", "peft", "grpo")
    GRPOTrainee.check_options(model=str(tmp_path), lora={"r": 4})
    assert required == [base]
    required.clear()
    GRPOTrainee.check_options(model="Qwen/Qwen3-4B")  # on the hub: nobody looks for it here
    assert required == [base]
    for place in (str(tmp_path / "none"), "./none", "~/no-such-model"):
        with pytest.raises(ValueError, match=f"no model in {place}: .*`envtuning pretrain {place} --for RUN`"):
            GRPOTrainee.check_options(model=place)
