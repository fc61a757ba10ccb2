"""Merits of a proposal, by what the paper says of good ones."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import mapf_frozenlake as mfl
from engineers.report import SliceResult, StageReport
from envtuning.runs.folder import RunError
from envtuning.studies.readers import merits, readers_of

SHARES = {3: 0.4, 5: 0.4, 8: 0.2}
RATES = {"3": 0.9, "5": 0.4, "8": 0.0}


def config(shares):
    return mfl.LakeConfig(slices={size: {"share": share} for size, share in shares.items()})


def measured(shares):
    results = [SliceResult(name=name, episodes=10, metrics={"valid_rate": rate}) for name, rate in RATES.items()]
    report = StageReport(stage=0, config=config(SHARES).model_dump(mode="json"), results=results)
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
    report = StageReport(stage=0, config={}, results=[])
    found = merits(report, config(SHARES), config(SHARES))
    assert (found.kept, found.frontier) == (None, None)


@pytest.mark.parametrize("kept", ["config.json", "adapter_config.json", None])
def test_checkpoints_are_asked_those_of_adapters_too(tmp_path, kept):
    if kept:
        (tmp_path / kept).touch()
    trainee = SimpleNamespace(options={"model": "models/tiny"})
    run = SimpleNamespace(spec=SimpleNamespace(trainee=trainee), done_stages=[SimpleNamespace(checkpoint=tmp_path)])
    if kept:
        assert readers_of({"A": run}) == {"base": "local/models/tiny", "checkpoint A": f"local/{tmp_path}"}
    else:
        with pytest.raises(RunError, match="is not the folder of a language model"):
            readers_of({"A": run})
