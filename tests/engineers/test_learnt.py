"""``learnt``: what it decides by, that names and order count for nothing, and that training saw the dynamics that it is asked about."""

from __future__ import annotations

import json

import numpy as np
import pytest

import engineers
from engineers.plain.learnt import HIDDEN, MEMORY, SHAPES, TWINS, features, stage, stored
from engineers.tiers import Tier
from envtuning.dynamics.families import DEVELOPMENT, FAMILIES, HELD_OUT, NULL, draw
from envtuning.dynamics.learners import step, value
from envtuning.dynamics.reports import Run, play


def drawn(slices, seed=0):
    rng = np.random.default_rng(seed)
    seen = features(*(rng.random((1, slices)) + 0.5 for _ in range(7)))
    return seen, rng.normal(size=(1, slices, MEMORY)), np.ones((1, slices))


@pytest.mark.parametrize("twin", TWINS)
def test_slices_are_a_set_of_any_size(twin):
    """In another order the same shares in that order; slices that are not there change nothing."""
    for slices in (2, 4, 48):
        seen, memory, present = drawn(slices)
        shares, after = stage(stored(twin), seen, memory, present)
        assert shares.sum() == pytest.approx(1)
        assert (shares > 0).all()
        order = np.random.default_rng(1).permutation(slices)
        other, _ = stage(stored(twin), seen[:, order], memory[:, order], present)
        assert other == pytest.approx(shares[:, order])
        padded = [np.concatenate([one, one], axis=1) for one in (seen, memory)]
        more, _ = stage(stored(twin), *padded, np.concatenate([present, 0 * present], axis=1))
        assert more[:, :slices] == pytest.approx(shares)
        assert not more[:, slices:].any()
        assert after.shape == memory.shape


def test_the_weights_are_those_of_the_network():
    for twin in TWINS:
        assert {name: value.shape for name, value in stored(twin).items()} == SHAPES
    assert sum(int(np.prod(shape)) for shape in SHAPES.values()) < 4000
    assert SHAPES["act"][0] == HIDDEN
    with pytest.raises(ValueError, match="give one of learnt, blind, memoryless"):
        engineers.make("learnt", twin="nobody")


def test_the_blind_twin_is_told_nothing_and_the_memoryless_one_nothing_of_before():
    run = Run(draw("ceilings", 3, 1).alone(1), np.random.default_rng(0))
    for _ in range(2):
        run.train(engineers.make("learnt").propose(run.reports[-1], run.config).config)
    report = run.reports[-1]

    def with_others(report, results, history):
        def opposite(rows):
            metric = lambda row: {"success_rate": 1 - row.metrics["success_rate"]}  # noqa: E731
            return [row.model_copy(update={"metrics": metric(row)}) for row in rows]

        changed = {}
        if results:
            changed |= {"results": opposite(report.results), "training_results": opposite(report.training_results)}
        if history:
            changed["history"] = [
                record.model_copy(
                    update={"results": opposite(record.results), "training_results": opposite(record.training_results)}
                )
                for record in report.history
            ]
        return report.model_copy(update=changed)

    def answer(twin, told):
        return engineers.make("learnt", twin=twin).propose(told, run.config).config

    other = {(now, before): with_others(report, now, before) for now in (0, 1) for before in (0, 1)}
    assert answer("blind", other[1, 1]) == answer("blind", report)
    assert answer("memoryless", other[0, 1]) == answer("memoryless", report)
    assert answer("memoryless", other[1, 0]) != answer("memoryless", report)
    assert answer("learnt", other[0, 1]) != answer("learnt", report)
    assert engineers.make("learnt", twin="blind").tier is Tier.FAMILY
    assert engineers.make("learnt").tier.reads


@pytest.mark.parametrize("family", DEVELOPMENT)
def test_it_gains_on_fresh_learners_of_the_families_that_it_was_trained_on(family):
    learners = draw(family, 12, 77)
    ends = {
        name: np.mean([run.success for run in play(engineers.make(name), learners, 0)]) for name in ("fixed", "learnt")
    }
    assert ends["learnt"] > ends["fixed"] + 0.02


@pytest.mark.parametrize("family", FAMILIES)
def test_training_steps_through_the_same_dynamics(family):
    torch = pytest.importorskip("torch")
    from benchmarks.learnt import Batch

    learners, rng = draw(family, 4, 3), np.random.default_rng(0)
    batch, practice = Batch([learners]), learners.start + rng.random(learners.start.shape)
    shares = rng.random(practice.shape) * learners.present
    shares /= shares.sum(1, keepdims=True)
    found = batch.step(torch.tensor(practice).float(), torch.tensor(shares).float())
    assert found.numpy() == pytest.approx(step(learners, practice, shares), abs=1e-5)
    ended = batch.value(torch.tensor(practice).float())
    assert ended.numpy() == pytest.approx(value(learners, practice), abs=1e-5)
    told, cases = batch.seen(torch.tensor(practice).float(), torch.Generator().manual_seed(0))
    counted = (told * cases).numpy()
    assert counted == pytest.approx(np.round(counted), abs=1e-2), "what is told is counted"


def test_the_network_is_the_same_in_training():
    torch = pytest.importorskip("torch")
    seen, memory, present = drawn(6)
    weights = stored("learnt")
    shares, after = stage(weights, seen, memory, present)
    as_tensors = [torch.tensor(one) for one in (seen, memory, present)]
    theirs, left = stage({name: torch.tensor(one).double() for name, one in weights.items()}, *as_tensors, xp=torch)
    assert theirs.numpy() == pytest.approx(shares, abs=1e-6)
    assert left.numpy() == pytest.approx(after, abs=1e-6)


def test_a_little_training_learns_something():
    pytest.importorskip("torch")
    from benchmarks import learnt as training

    said = []
    training.trained("learnt", 40, lambda line, flush: said.append(float(line.split()[2].rstrip(","))))
    assert said[1] > said[0] + 0.01


@pytest.mark.prove
@pytest.mark.parametrize("family", [*HELD_OUT, NULL])
def test_the_recorded_comparison_is_that_of_the_engineers_of_today(family):
    from benchmarks import learnt as training
    from benchmarks._record import RESULTS

    studies = json.loads((RESULTS / "learnt.json").read_text(encoding="utf-8"))["figures"]["studies"]
    [recorded] = [study for study in studies if study["family"] == family]
    found = training.study(family, recorded["roots"])
    assert found["best"] == recorded["best"]
    assert found["open_loop"] == pytest.approx(recorded["open_loop"])
    for name, row in recorded["rows"].items():
        assert found["rows"][name]["success"] == pytest.approx(row["success"]), name
