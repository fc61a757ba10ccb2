"""A report about another config is refused: silence would be a wrong proposal."""

from __future__ import annotations

import pytest

import engineers
from engineers.model.engineer import ModelEngineer
from engineers.report import SliceResult, StageReport
from engineers.report_check import ReportUnclear
from mapf_frozenlake import LakeConfig

CURRENT = LakeConfig(slices={3: {}, 4: {}})
TARGET = LakeConfig(slices={4: {}, 6: {}})


def report(*names: str, objective: str = "valid_rate", where: str = "results") -> StageReport:
    rows = [SliceResult(name=name, episodes=20, metrics={"valid_rate": 0.5, "score": 0.6}) for name in names]
    told = {"config": CURRENT.model_dump(mode="json"), "target": TARGET.model_dump(mode="json"), where: rows}
    return StageReport(stage=0, objective=objective, **told)


class NotAsked:
    model = "local/none"

    def complete(self, messages, schema, *, max_tokens):
        raise AssertionError("a report that is unclear is not asked about")


@pytest.fixture(params=["rules", "reader", "learnability", "model"])
def engineer(request):
    return ModelEngineer(NotAsked()) if request.param == "model" else engineers.make(request.param)


@pytest.mark.parametrize("where", ["results", "training_results", "own_config_results"])
@pytest.mark.parametrize("stranger", ["banana", "all"])
def test_a_row_of_no_slice_is_refused(engineer, stranger, where):
    with pytest.raises(
        ReportUnclear, match=f"has a row of the slice '{stranger}', and the config has 3, 4, 6: name each row"
    ):
        engineer.propose(report("3", "4", stranger, where=where), CURRENT)


def test_an_objective_that_no_result_has_is_refused(engineer):
    with pytest.raises(ReportUnclear, match="no result has the objective 'valid_rat': they have score, valid_rate"):
        engineer.propose(report("3", "4", objective="valid_rat"), CURRENT)


@pytest.mark.parametrize("name", ["rules", "reader", "learnability"])
def test_rows_of_the_config_or_the_target_are_read_and_none_is_no_fault(name):
    for told in (report("3", "4", "6"), report("3"), report()):
        assert engineers.make(name).propose(told, CURRENT).config.slices.keys() == {3, 4}
