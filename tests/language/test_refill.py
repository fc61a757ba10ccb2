"""Refill: groups that were paid alike give way to groups of other prompts, and every reply is counted and charged."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.rollouts import refilled, rollout
from tests.language.conftest import QUICK
from tests.language.half_dull import CONFIG, WORLD
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
torch, trl, learning, tasks = (
    Lazy(name) for name in ("torch", "trl", "envtuning.trainees.language.learner", "envtuning.trainees.language.tasks")
)


LONGEST = 6  # tokens of a reply


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


def scripted(batches, refill, seed=0):
    """Batches of 8 prompts × 4 replies of 1 to 9 tokens. Half of the prompts never pay, the others pay a reply with chance 1/2.

    Returns the part of groups with a signal, and the tokens of all replies for each of these groups.
    """
    rng = np.random.default_rng(seed)
    pays: dict[int, bool] = {}

    def play(prompts):
        for prompt in prompts:
            pays.setdefault(prompt, bool(rng.integers(2)))
        paid = [float(pays[prompt] and rng.random() < 0.5) for prompt in prompts]
        return {"paid": paid, "completion_ids": [[0] * int(rng.integers(1, 10)) for _ in prompts], "logprobs": None}

    informative = tokens = 0
    for batch in range(batches):
        numbers = range(100 * batch, 100 * batch + 8 * (1 + refill))
        prompts = [number for number in numbers[:8] for _ in range(4)]
        kept, dropped = refilled(play, prompts, list(numbers[8:]), 4)
        assert len(kept["paid"]) == 32
        informative += sum(len(set(kept["paid"][at : at + 4])) > 1 for at in range(0, 32, 4))
        assert all(len(set(dropped["paid"][at : at + 4])) == 1 for at in range(0, len(dropped["paid"]), 4))
        tokens += sum(map(len, kept["completion_ids"] + dropped["completion_ids"]))
    return informative / (8 * batches), tokens / informative


def test_refill_fills_the_batch_with_groups_that_have_a_signal_at_the_same_tokens_for_each():
    """A group has a signal with chance 1/2 · (1 - 2 / 2⁴) = 7/16, and costs 4 · 5 tokens."""
    part, tokens = scripted(1_000, refill=0)
    assert part == pytest.approx(7 / 16, abs=0.02)
    assert tokens == pytest.approx(20 * 16 / 7, rel=0.05)
    filled, still = scripted(1_000, refill=3)
    assert filled > 0.98
    assert still == pytest.approx(20 * 16 / 7, rel=0.05)  # no group with a signal is dropped, and none comes for free
    little, _ = scripted(1_000, refill=1)
    assert part < little < filled


def trained(tiny, refill, grpo=None, **options):
    given = LanguageOptions(
        model=str(tiny),
        grpo=QUICK | {"beta": 0.0, "max_completion_length": LONGEST} | (grpo or {}),
        torch_threads=1,
        refill=refill,
        **options,
    )
    questions = tasks.EnvTurns(WORLD, {}, [])
    one = learning.Learner(given, seed=0, tasks=questions)
    rows = questions.rows(CONFIG, 16 * (1 + refill), seed=0)
    return one, rows


@pytest.fixture(scope="module")
def histories(tiny):
    """By refill: the metrics of each step, its tally, and all conversations that were played until its end."""
    found = {}
    for refill in (0, 1, 3):
        one, rows = trained(tiny, refill)
        played: list = []
        told: list = []

        def watched(policy, prompts, *others, played=played):
            replies = rollout(policy, prompts, *others)
            played += zip(prompts, replies["prompt_ids"], replies["completion_ids"], strict=True)
            return replies

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("envtuning.trainees.language.learner.rollout", watched)
            history = one.train(
                rows,
                seed=1,
                on_iteration=lambda step, played=played, told=told: told.append((step["outcomes"], list(played))),
            )
        found[refill] = (history, [tally for tally, _ in told], [conversations for _, conversations in told])
        one.close()
    return found


def test_more_groups_have_a_signal_and_every_reply_is_charged(histories):
    (without, counted, _), (filled, played, _) = histories[0], histories[3]
    assert sum(step.get("equal_groups", 0) for step in without) > 0.1 * len(without)
    assert sum(step.get("equal_groups", 0) for step in filled) < 0.5 * sum(
        step.get("equal_groups", 0) for step in without
    )
    assert sum(step["samples"] for step in without) == 64 == sum(tally.episodes for tally in counted)
    assert sum(step["samples"] for step in filled) == sum(tally.episodes for tally in played) > 64
    assert sum(step["tokens"] for step in filled) > sum(step["tokens"] for step in without)
    for step in [*without, *filled]:
        assert 0 <= step["trained_tokens"] <= QUICK["per_device_train_batch_size"] * LONGEST
    assert sum(step["generated_tokens"] for step in filled) > sum(step["trained_tokens"] for step in filled)


def test_tokens_are_those_of_all_that_was_played(histories):
    for history, _, played in histories.values():
        tokens = sum(len(prompt) + len(reply) for _, prompt, reply in played[-1])
        assert sum(step["tokens"] for step in history) == tokens


def test_each_reply_is_counted_for_the_task_of_its_question(histories):
    for _, tallies, played in histories.values():
        for at, tally in enumerate(tallies):
            before = len(played[at - 1]) if at else 0
            asked = Counter(messages[-1]["content"].split()[0] for messages, *_ in played[at][before:])
            counted = Counter()
            for counts in (tally.first, tally.repeats):
                counted.update({task: one.episodes for task, one in counts.items()})
            assert counted == asked
            assert all(not counts.successes for task, counts in tally.first.items() if task == "dull")
    assert sum(tally.first["some"].successes for tally in histories[3][1] if "some" in tally.first) > 0


def test_no_batch_plays_more_than_its_own_share_of_further_prompts(histories):
    prompts, group = 4, QUICK["num_generations"]
    for refill, (history, *_) in histories.items():
        assert all(step["samples"] <= (1 + refill) * prompts * group for step in history)
    at_the_cap = [step for step in histories[1][0] if step["samples"] == 2 * prompts * group]
    assert any(step["equal_groups"] > 0 for step in at_the_cap)  # it would have gone on


def test_the_log_tells_the_tokens_for_each_group_with_a_signal(histories):
    """From what a run logs: ``generated_tokens``, and the part of groups without a signal of each batch."""
    for history, *_ in histories.values():
        batches = [step for step in history if "equal_groups" in step]
        informative = sum(4 * (1 - step["equal_groups"]) for step in batches)
        assert informative == round(informative) > 0
        sums = {name: sum(step[name] for step in history) for name in ("generated_tokens", "trained_tokens", "samples")}
        assert 4 * informative <= sums["trained_tokens"] <= 4 * informative * LONGEST
        assert sums["trained_tokens"] < sums["generated_tokens"] <= sums["samples"] * LONGEST


WHOLE = {"per_device_train_batch_size": 16, "steps_per_generation": 1}  # one step takes a whole batch, in any order


def gradients_of(trainer):
    """A list that gets the gradients of each optimiser step."""
    from transformers import TrainerCallback

    found: list = []

    class Look(TrainerCallback):
        def on_pre_optimizer_step(self, *given, model, **_):
            found.append({name: value.grad.clone() for name, value in model.named_parameters()})

    trainer.add_callback(Look())
    return found


@pytest.mark.parametrize("skip", [False, True])
def test_the_gradient_is_that_of_stock_trl_on_the_same_groups(tiny, skip, tmp_path, monkeypatch):
    """Stock TRL gets the groups that refill has left in the batch, and what they were paid, and knows nothing else."""
    one, rows = trained(tiny, 1, WHOLE, skip_equal_groups=skip)
    batch, play = [], one._play
    monkeypatch.setattr(one.trainer, "rollout_func", lambda *given: batch.append(play(*given)) or batch[-1])
    ours = gradients_of(one.trainer)
    settings = one.trainer.args.to_dict() | {"output_dir": str(tmp_path), "max_steps": 1}
    one.train(rows[:8], seed=1)
    [kept] = batch
    groups = [kept["paid"][at : at + 4] for at in range(0, 16, 4)]
    assert any(len(set(group)) > 1 for group in groups)

    played = {name: kept[name] for name in ("prompt_ids", "completion_ids", "env_mask", "paid")}
    stock = trl.GRPOTrainer(
        str(tiny),
        reward_funcs=lambda completions, paid, **_: paid,
        args=trl.GRPOConfig(
            **{name: settings[name] for name in (*one.options.settings(), "output_dir", "max_steps", "use_cpu", "bf16")}
        ),
        train_dataset=learning.Dataset.from_list(rows[:4]),
        rollout_func=lambda prompts, trainer: played | {"logprobs": None},
    )
    theirs = gradients_of(stock)
    stock.train()
    assert ours[0].keys() == theirs[0].keys()
    assert any(value.abs().max() > 1e-4 for value in theirs[0].values())
    for name, value in theirs[0].items():
        torch.testing.assert_close(
            ours[0][name], value, rtol=1e-3, atol=1e-6, msg=lambda said, name=name: f"{name}: {said}"
        )
    one.close()


def test_refill_is_refused_where_it_cannot_be_done(tiny):
    with pytest.raises(ValueError, match=r"refill=2: whole plans are generated by TRL.*mode to turns"):
        learning.Learner(LanguageOptions(model=str(tiny), grpo=QUICK, refill=2), seed=0)
    with pytest.raises(ValueError, match="refill=2 looks at what the world pays, and reward='math:sqrt'"):
        LanguageOptions(model="m", refill=2, reward="math:sqrt")
