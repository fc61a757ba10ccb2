"""Refill: groups that were paid alike give way to groups of other prompts, and every reply is counted and charged."""

from __future__ import annotations

import pytest

from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.rollouts import refilled
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld
from tests.language.conftest import QUICK
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, trl, learning, tasks = (
    Lazy(name) for name in ("torch", "trl", "envtuning.trainees.language.learner", "envtuning.trainees.language.tasks")
)


class Player:
    """Pays a prompt's replies as it is told, and remembers what was played."""

    def __init__(self, pays):
        self.pays, self.calls = pays, []

    def __call__(self, prompts):
        self.calls.append(prompts)
        seen: dict = {}
        paid = []
        for prompt in prompts:
            at = seen[prompt] = seen.get(prompt, -1) + 1
            paid.append(self.pays[prompt][at])
        return {"paid": paid, "completion_ids": [f"{prompt}{at}" for at, prompt in enumerate(prompts)]}


def doubled(*prompts):
    return [prompt for prompt in prompts for _ in range(2)]


def test_groups_with_a_signal_stay_in_their_places_and_the_others_are_replaced():
    play = Player({"a": (0, 0), "b": (0, 1), "c": (1, 1), "d": (1, 0), "e": (1, 1), "f": (0, 1), "g": (0, 1)})
    spare = ["d", "e", "f", "g"]
    kept, dropped = refilled(play, doubled("a", "b", "c"), spare, 2)
    assert play.calls == [doubled("a", "b", "c"), doubled("d", "e"), doubled("f")]
    assert kept["paid"] == [1, 0, 0, 1, 0, 1]  # d, b, f
    assert [ids[0] for ids in kept["completion_ids"]] == doubled("d", "b", "f")
    assert sorted(ids[0] for ids in dropped["completion_ids"]) == doubled("a", "c", "e")
    assert spare == ["g"]


def test_without_spare_prompts_a_batch_stays_as_it_is():
    kept, dropped = refilled(Player({"a": (0, 0), "b": (0, 1)}), doubled("a", "b"), [], 2)
    assert (kept["paid"], dropped["paid"]) == ([0, 0, 0, 1], [])


def test_a_batch_that_cannot_be_filled_keeps_what_was_paid_alike():
    play = Player({"a": (0, 0), "b": (1, 1), "c": (0, 0), "d": (0, 1)})
    kept, dropped = refilled(play, doubled("a", "b"), ["c", "d"], 2)
    assert kept["paid"] == [0, 1, 1, 1]
    assert len(dropped["paid"]) == 4


def by_length(answer, asked):
    """Pays replies of an odd length, except on questions that pay nothing at all."""
    return float(asked.answer == "some" and len(answer) % 2)


WORLD = TextWorld(
    "half-dull",
    {
        "dull": Task(TaskKnobs, lambda rng, _: (f"dull {rng.integers(1000)}", "none"), by_length),
        "some": Task(TaskKnobs, lambda rng, _: (f"some {rng.integers(1000)}", "some"), by_length),
    },
    "Half of the questions never pay.",
)


def trained(tiny, refill, **options):
    given = LanguageOptions(
        model=str(tiny),
        grpo=QUICK | {"beta": 0.0, "max_completion_length": 6},
        torch_threads=1,
        refill=refill,
        **options,
    )
    questions = tasks.EnvTurns(WORLD, {}, [])
    one = learning.Learner(given, seed=0, tasks=questions)
    config = WORLD.config_type.model_validate({"tasks": {"dull": {}, "some": {}}})
    rows = questions.rows(config, 16 * (1 + refill), seed=0)
    return one, rows


@pytest.fixture(scope="module")
def histories(tiny):
    found = []
    for refill in (0, 3):
        one, rows = trained(tiny, refill)
        tallies: list = []
        history = one.train(rows, seed=1, on_iteration=lambda step, tallies=tallies: tallies.append(step["outcomes"]))
        found.append((history, tallies))
        one.close()
    return found


def test_more_groups_have_a_signal_and_every_reply_is_charged(histories):
    (without, counted), (filled, played) = histories
    assert sum(step.get("equal_groups", 0) for step in without) > 0.1 * len(without)
    assert sum(step.get("equal_groups", 0) for step in filled) < 0.5 * sum(
        step.get("equal_groups", 0) for step in without
    )
    assert sum(step["samples"] for step in without) == 64 == sum(tally.episodes for tally in counted)
    assert sum(step["samples"] for step in filled) == sum(tally.episodes for tally in played) > 64
    assert sum(step["tokens"] for step in filled) > sum(step["tokens"] for step in without)
    for step in [*without, *filled]:
        assert 0 <= step["trained_tokens"] <= QUICK["per_device_train_batch_size"] * 6
    assert sum(step["generated_tokens"] for step in filled) > sum(step["trained_tokens"] for step in filled)


def test_the_gradient_is_that_of_trls_loss_on_the_same_groups(tiny, monkeypatch):
    one, rows = trained(tiny, 3)
    seen, compute = [], one.trainer._compute_loss

    def look(model, inputs):
        if not seen:
            stock = trl.GRPOTrainer._compute_loss(one.trainer, model, inputs)
            seen.append((compute(model, inputs), stock))
            grads = [torch.autograd.grad(loss, list(model.parameters()), retain_graph=True) for loss in seen[0]]
            for ours, theirs in zip(*grads, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-7)
            advantages = inputs["advantages"].reshape(-1, 4)
            assert (advantages.abs().sum(1) > 0).all()
        return compute(model, inputs)

    monkeypatch.setattr(one.trainer, "_compute_loss", look)
    one.train(rows, seed=1)
    assert seen
    one.close()


def test_refill_is_refused_where_it_cannot_be_done(tiny):
    with pytest.raises(ValueError, match=r"refill=2: whole plans are generated by TRL.*mode to turns"):
        learning.Learner(LanguageOptions(model=str(tiny), grpo=QUICK, refill=2), seed=0)
    with pytest.raises(ValueError, match="refill=2 looks at what the world pays, and reward='math:sqrt'"):
        LanguageOptions(model="m", refill=2, reward="math:sqrt")
