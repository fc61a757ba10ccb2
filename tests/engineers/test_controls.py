"""Controls change what came of the stages and nothing else."""

from __future__ import annotations

import pytest

import engineers
from benchmarks.average_self import mean_run, save_run
from engineers import ChatError, Engineer, SliceResult, StageRecord, StageReport
from engineers.controls import average, permuted, under_other_names, with_outcomes_of
from engineers.knobs import KnobError, find_knobs
from mapf_frozenlake import LakeConfig

OUTCOMES = {"results", "training_results", "own_config_results", "failure_cases", "behaviour", "training", "history"}
EASY = LakeConfig(slices={4: {"share": 1.0}, 5: {"share": 0.0}, 6: {"share": 0.0}})
TARGET = LakeConfig(slices={5: {"share": 1.0, "hole_ratio": 0.5}, 6: {"share": 1.0, "hole_ratio": 0.5}})


def rows(episodes=100, **rates):
    return [SliceResult(name=k[1:], episodes=episodes, metrics={"valid_rate": v}, failures={"hole": round(100 * (1 - v))}) for k, v in rates.items()]  # fmt: skip


def run_of(*stages, hole=0.1):
    """A run's reports: of each stage its validation rates and its probe's."""
    config = EASY.model_dump(mode="json")
    config["slices"]["4"]["hole_ratio"] = hole
    reports: list[StageReport] = []
    for number, (validated, probed) in enumerate(stages):
        report = StageReport(
        objective="valid_rate",
            stage=number,
            config=config,
            target=TARGET.model_dump(mode="json"),
            rounds_left=len(stages) - number - 1,
            results=rows(**validated),
            training_results=rows(20, **probed),
            behaviour={name[1:]: {"waits": value} for name, value in validated.items()},
            training={"round": number, "trained_env_steps": 1000, "grad_norm": 1 + number, "curve": [0.0, number]},
            history=[StageRecord(stage=r.stage, config=r.config, results=r.results, training=r.records()[-1].training,
                                 training_results=r.training_results) for r in reports],
        )  # fmt: skip
        reports.append(report)
    return reports


OWN = run_of(({"s5": 0.1, "s6": 0.0}, {"s4": 0.9}), ({"s5": 0.5, "s6": 0.2}, {"s4": 0.95}))
OTHER = run_of(({"s5": 0.7, "s6": 0.6}, {"s4": 0.3}), ({"s5": 0.8, "s6": 0.9}, {"s4": 0.4}), hole=0.3)


def told_rates(table):
    return {row.name: row.metrics["valid_rate"] for row in table}


def test_another_run_gives_its_outcomes_and_nothing_else():
    told = with_outcomes_of(OTHER, OWN[1])
    assert told_rates(told.results) == {"5": 0.8, "6": 0.9}
    assert told_rates(told.training_results) == {"4": 0.4}
    assert told_rates(told.history[0].results) == {"5": 0.7, "6": 0.6}
    assert told.history[0].config == OWN[0].config
    assert told.training == {"round": 1, "trained_env_steps": 1000, "grad_norm": 2, "curve": [0.0, 1]}
    assert set(told.model_dump(exclude=OUTCOMES)) == set(OWN[1].model_dump(exclude=OUTCOMES))
    assert told.model_dump(exclude=OUTCOMES) == OWN[1].model_dump(exclude=OUTCOMES)


def test_an_engineer_told_of_another_run_answers_as_if_its_outcomes_were_its_own():
    rules = engineers.make("rules")
    editable = ("slices.*.share", "slices.*.hole_ratio")
    answer = average(rules, OTHER).propose(OWN[1], EASY, editable).config
    assert answer == rules.propose(with_outcomes_of(OTHER, OWN[1]), EASY, editable).config
    assert answer != rules.propose(OWN[1], EASY, editable).config


def test_the_outcomes_of_its_own_run_change_nothing():
    assert with_outcomes_of(OWN, OWN[1]) == OWN[1]


def test_slices_that_the_other_run_did_not_play_have_no_row():
    other = run_of(({"s5": 0.7}, {"s3": 0.3}))
    told = with_outcomes_of(other, OWN[0])
    assert told_rates(told.results) == {"5": 0.7}
    assert told.training_results == []


def test_another_run_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="1 stages"):
        with_outcomes_of(OTHER[:1], OWN[1])


def test_the_average_is_the_mean_of_the_development_runs():
    mean = mean_run([OWN, OTHER])
    assert told_rates(mean[1].results) == {"5": pytest.approx(0.65), "6": pytest.approx(0.55)}
    assert mean[1].results[0].failures == {"hole": 35}
    assert mean[1].training["curve"] == [0.0, 1.0]
    told = average(engineers.make("fixed"), mean).told(OWN[0])
    assert told_rates(told.results) == {"5": pytest.approx(0.4), "6": pytest.approx(0.3)}
    assert told.failure_cases == []


@pytest.mark.parametrize("seed", range(5))
def test_permuting_moves_every_row_and_keeps_the_values(seed):
    many = OWN[1].model_copy(update={"results": rows(s4=0.4, s5=0.5, s6=0.6, s7=0.7, s10=1.0)})
    told = under_other_names(many, seed)
    before, after = told_rates(many.results), told_rates(told.results)
    assert list(before) == list(after)
    assert sorted(before.values()) == sorted(after.values())
    assert all(before[name] != after[name] for name in before)
    assert told.model_dump(exclude=OUTCOMES) == many.model_dump(exclude=OUTCOMES)


def test_one_permutation_holds_for_results_cases_behaviour_and_history():
    told = permuted(engineers.make("fixed"), seed=3).told(OWN[1])
    assert told_rates(told.results) == {"5": 0.2, "6": 0.5}
    assert told_rates(told.history[0].results) == {"5": 0.0, "6": 0.1}
    assert told.behaviour == {"5": {"waits": 0.2}, "6": {"waits": 0.5}}


def test_the_name_says_which_control_it_is():
    rules = engineers.make("rules")
    names = [made.name for made in (average(rules, OTHER), permuted(rules, 0))]
    assert names == ["rules (average)", "rules (permuted)"]
    assert all(isinstance(made, engineers.Engineer) for made in (average(rules, OTHER), permuted(rules, 0)))


def test_a_control_is_made_by_its_name_with_all_that_a_loop_gives(tmp_path):
    reports = tmp_path / "runs.json"
    save_run(reports, mean_run([OWN, OTHER]), seeds=[1, 2])
    given = {"seed": 3, "max_drop": 0.5, "transcript": tmp_path / "t.jsonl"}
    rules = engineers.make("rules", **given)
    editable = ("slices.*.share", "slices.*.hole_ratio")
    made = engineers.make("average/rules", reports=reports, **given)
    assert (
        made.propose(OWN[1], EASY, editable).config
        == average(rules, mean_run([OWN, OTHER])).propose(OWN[1], EASY, editable).config
    )
    turned = engineers.make("permuted/rules", permutation=3, **given)
    assert turned.told(OWN[1]) == permuted(rules, 3).told(OWN[1])


class Choosy(Engineer):
    """Turns shares alone, and remembers what it was asked."""

    name = "choosy"

    def __init__(self):
        self.asked = []

    def can_turn(self, knobs):
        return all(knob.field == "share" for knob in knobs)

    def check_able(self, current, editable=None):
        self.asked.append(("able", current, editable))
        raise KnobError("nothing to turn")

    def check_askable(self):
        self.asked.append("askable")
        raise ChatError("no key")

    def recall(self, exchanges):
        self.asked.append(exchanges)

    def propose(self, report, current, editable=None):
        return engineers.Proposal(config=current)


def test_a_control_answers_for_the_engineer_in_it():
    control = permuted(Choosy(), 0)
    knobs = find_knobs(EASY)
    assert control.can_turn([knob for knob in knobs if knob.field == "share"])
    assert not control.can_turn(knobs)
    with pytest.raises(KnobError):
        control.check_able(EASY, ["slices.*.share"])
    with pytest.raises(ChatError):
        control.check_askable()
    control.recall([{"reply": "{}"}])
    assert control.engineer.asked == [("able", EASY, ["slices.*.share"]), "askable", [{"reply": "{}"}]]


@pytest.mark.parametrize("written", [None, "", "[]", '"x"', "{}", '{"reports": []}', '{"reports": [{"stage": -5}]}'])
def test_reports_that_are_not_there_are_refused_with_the_name_of_their_file(tmp_path, written):
    if written is not None:
        (tmp_path / "reports.json").write_text(written)
    with pytest.raises(ValueError, match=r"reports\.json"):
        engineers.make("average/rules", reports=tmp_path / "reports.json")
