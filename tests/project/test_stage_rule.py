"""The presets with room for their rules: nothing else is changed, and what ended a stage is told apart."""

import pytest

from benchmarks.stage_rule import PRESETS, TIMES, by_its_rule, done_by, rows, spec_of, table
from envtuning.runs.spec import load_spec
from tests.envtuning.counting_runs import spec_of as counting


@pytest.mark.parametrize("name", PRESETS)
def test_only_the_budgets_of_stages_with_a_rule_grow(name):
    usual, roomy = load_spec(PRESETS[name]), spec_of(name)
    ruled = [stage.advance_when is not None for stage in usual.stages]
    assert ruled == [True, True, True, False]  # the last stage has none that could follow
    assert [stage.budget for stage in roomy.stages] == [
        stage.budget * (TIMES if rule else 1) for stage, rule in zip(usual.stages, ruled)
    ]
    back = {f"stages.{number}.budget": stage.budget for number, stage in enumerate(usual.stages)}
    assert load_spec(PRESETS[name], changes=back) == usual


def test_a_stage_ended_by_its_rule_is_told_from_one_whose_budget_ended_and_the_last_is_not_run(tmp_path):
    early, never = {"rule": "reached", "value": 0.1}, {"rule": "reached", "value": 2.0}
    spec = counting({"advance_when": early}, {"advance_when": never}, {}, validate_every=250)
    for _ in range(2):  # a run that is there is continued, which changes nothing
        found = rows(done_by(tmp_path / "run", spec))
    assert [by_its_rule(row) for row in found] == [True, False]
    assert [len(row["validations"]) for row in found] == [2, 4]
    assert found[0]["spent"] < found[0]["budget"]
    assert [line.split()[-1] for line in table({"stages": found}).splitlines()[1:]] == ["yes", "no"]
