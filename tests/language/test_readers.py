"""Merits of a proposal, by what the paper says of good ones."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace

import pytest

import mapf_frozenlake as mfl
from benchmarks.readers import means, merits, read, readers_of
from engineers.backends.local import LocalChat
from engineers.model.chat import Completion
from engineers.report import SliceResult, StageReport
from envtuning.errors import RunError

SHARES = {3: 0.4, 5: 0.4, 8: 0.2}
RATES = {"3": 0.9, "5": 0.4, "8": 0.0}


def config(shares):
    return mfl.LakeConfig(slices={size: {"share": share} for size, share in shares.items()})


def measured(shares):
    results = [SliceResult(name=name, episodes=10, metrics={"valid_rate": rate}) for name, rate in RATES.items()]
    report = StageReport(
        objective="valid_rate", stage=0, config=config(SHARES).model_dump(mode="json"), results=results
    )
    return merits(report, config(SHARES), config(shares))


def test_standing_still_keeps_everything():
    found = measured(SHARES)
    assert (found.kept, found.frontier, found.large) == (1.0, 0.4, True)


def test_what_works_is_dropped_or_large_maps_are_abandoned():
    assert measured({3: 0.0, 5: 0.8, 8: 0.2}).kept == 0.0
    assert measured({3: 0.5, 5: 0.5, 8: 0.0}).large is False


def test_concentrating_just_under_the_frontier_shows():
    assert measured({3: 0.2, 5: 0.7, 8: 0.1}).frontier == pytest.approx(0.7)


def test_without_such_slices_there_is_nothing_to_measure():
    report = StageReport(objective="valid_rate", stage=0, config={}, results=[])
    found = merits(report, config(SHARES), config(SHARES))
    assert (found.kept, found.frontier) == (None, None)


@pytest.mark.parametrize("kept", ["config.json", "adapter_config.json", None])
def test_checkpoints_are_asked_those_of_adapters_too(tmp_path, kept):
    if kept:
        (tmp_path / kept).touch()
    trainee = SimpleNamespace(options={"model": "models/tiny"})
    state = SimpleNamespace(done=[SimpleNamespace(checkpoint=tmp_path)])
    run = SimpleNamespace(plan=SimpleNamespace(spec=SimpleNamespace(trainee=trainee)), state=state)
    if kept:
        assert readers_of({"A": run}) == {"base": "local/models/tiny", "checkpoint A": f"local/{tmp_path}"}
    else:
        with pytest.raises(RunError, match="is not the folder of a language model"):
            readers_of({"A": run})


class Loaded:
    """Stands for weights in memory: notes which were loaded, and which seed asked them."""

    def __init__(self, place, log):
        self.place, self.log, self.seed = place, log, None
        log.append(("loaded", place))

    def complete(self, messages, schema, *, max_tokens):
        self.log.append((self.place, self.seed))
        return Completion("no config", 1, 1, cost=0.0)


def test_every_reader_is_loaded_once_and_asked_of_every_report_with_every_seed(tmp_path, monkeypatch):
    log = []
    monkeypatch.setattr(LocalChat, "_live", cached_property(lambda chat: Loaded(chat.model_id, log)))
    LocalChat.__dict__["_live"].__set_name__(LocalChat, "_live")
    monkeypatch.setattr("engineers.backends.local.require", lambda *_, **__: None)
    results = [SliceResult(name=name, episodes=10, metrics={"valid_rate": rate}) for name, rate in RATES.items()]
    report = StageReport(
        objective="valid_rate", stage=0, config=config(SHARES).model_dump(mode="json"), results=results
    )
    runs = {}
    for name in "AB":
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
        stage = SimpleNamespace(checkpoint=tmp_path / name, report=report)
        spec = SimpleNamespace(
            trainee=SimpleNamespace(options={"model": "base"}),
            engineer=SimpleNamespace(common_options={"max_attempts": 1}),
            editable=None,
        )
        world = SimpleNamespace(config_type=mfl.LakeConfig, check=lambda config: None)
        runs[name] = SimpleNamespace(plan=SimpleNamespace(spec=spec, world=world), state=SimpleNamespace(done=[stage]))
    rows = read(runs, (3, 4))
    places = ["base", str(tmp_path / "A"), str(tmp_path / "B")]
    assert log == [event for place in places for event in [("loaded", place), *[(place, 3), (place, 4)] * 2]]
    assert [(row["reader"], row["report"], row["seed"], row["fallback"]) for row in rows[:3]] == [
        ("base", "A", 3, True), ("base", "A", 4, True), ("base", "B", 3, True)]  # fmt: skip
    assert len(means(rows)) == 6
    first = means(rows)[0]
    assert (first["reader"], first["report"], first["answers"], first["kept"]) == ("base", "A", 2, 1.0)
    assert (first["frontier"], first["large"], first["fallback"]) == (pytest.approx(0.4), 1.0, 1.0)


def test_a_measure_that_no_answer_has_has_no_mean():
    row = {"reader": "base", "report": "A", "seed": 0, "kept": None, "frontier": 0.5, "large": None, "fallback": False}
    rows = [row, row | {"seed": 1, "kept": 0.5, "frontier": 1.0}]
    assert means(rows) == [
        {"reader": "base", "report": "A", "answers": 2, "kept": 0.5, "frontier": 0.75, "large": None, "fallback": 0.0}
    ]
