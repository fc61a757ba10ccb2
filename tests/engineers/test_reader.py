"""``reader``: what it believes of slices, how it shares out data by that, and that names and order say nothing to it."""

from __future__ import annotations

import random
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field, create_model

import engineers
from engineers import SliceResult, StageRecord, StageReport, check
from engineers.knobs import dump, find_knobs
from engineers.plain.growth import Evidence, believed
from engineers.plain.reader import planned
from engineers.roles import are_ordered, find_slices
from mapf_frozenlake import LakeConfig

KINDS = ("late", "crashes", "lost way")


def believed_of(*rates: tuple[float, ...], doses: float = 1.0, stages: int = 8):
    """Slices that succeeded at these rates, stage by stage, on 100 cases."""
    won = 100 * np.array(rates).T
    return believed(Evidence(np.full(won.shape, doses), won, np.full(won.shape, 100.0)), stages)


def test_a_slice_that_never_moves_is_given_up_the_sooner_the_more_data_it_had():
    after_one, after_six = (believed_of((0.0,) * stages, (0.5,) * stages).hopeless()[0] for stages in (1, 6))
    much = believed_of((0.0,), (0.5,), doses=6.0).hopeless()[0]
    assert after_one < min(after_six, much)
    assert after_one < 0.3 < after_six


def test_success_is_believed_as_counted_and_expected_to_grow_with_data():
    belief = believed_of((0.05, 0.2, 0.4), (1.0, 1.0, 1.0))
    assert belief.now() == pytest.approx([0.4, 1.0], abs=0.08)
    none, even, double = belief.ends(np.array([0.0, 1.0, 2.0]), 3)[0]
    assert none < even < double
    assert even - none > 0.2


def test_what_fades_without_data_is_expected_to_fade():
    rates = ((0.9, 0.9), (0.9, 0.5))  # the second stage gave no data
    doses = np.array([[1.0, 1.0], [0.0, 0.0]])
    belief = believed(Evidence(doses, 100 * np.array(rates).T, np.full((2, 2), 100.0)), 6)
    lasting, fading = belief.now() - belief.ends(np.zeros(1), 4)[:, 0]
    assert fading > lasting + 0.05


def test_data_goes_where_it_brings_most_and_all_of_it_is_given():
    belief = believed_of((1.0,) * 6, (0.0, 0.05, 0.1, 0.2, 0.3, 0.45), (0.0,) * 6, stages=9)
    plan = planned(belief, np.full(3, 1 / 3), 3, floor=0.0)
    assert plan.doses.sum() == pytest.approx(3.0)
    assert plan.parts[1] == plan.parts.max()
    floored = planned(belief, np.full(3, 1 / 3), 3, floor=0.3)
    assert floored.parts.min() >= 0.1 - 1e-9


def test_a_slice_that_weighs_more_in_the_target_gets_no_less():
    belief = believed_of((0.1, 0.2), (0.1, 0.2), (0.1, 0.2), (0.1, 0.2))
    light, heavy = (planned(belief, np.array([w, *[(1 - w) / 3] * 3]), 3, 0.0).parts[0] for w in (0.1, 0.6))
    assert heavy > light


def test_an_order_is_declared_by_numbers_or_by_the_share():
    def slices_of(names, **extra):
        part = create_model("P", share=(float, Field(1.0, ge=0, le=1, description="W.", json_schema_extra=extra)))
        whole = create_model("W", slices=(dict[str, part], Field(description="S.")))
        return find_slices(find_knobs(whole(slices={name: part() for name in names})))

    assert are_ordered(slices_of("345"))
    assert not are_ordered(slices_of(("level-1", "level-2")))
    assert are_ordered(slices_of(("level-1", "level-2"), order=True))


def test_where_an_order_is_declared_data_goes_the_way_of_rules(example_report):
    lakes = LakeConfig.model_validate(example_report.config)
    ours, theirs = (engineers.make(name).propose(example_report, lakes).config for name in ("reader", "rules"))
    assert ours == theirs != lakes


def end_of(engineer: str, hopeless: int, seed: int) -> float:
    """The mean success of twelve simulated skills after six stages under an engineer, the first of them with even draws.

    Three are mastered, some are hopeless, and the others succeed after a wait, which is about as long as a run of even draws.
    """
    rng, stages, names = np.random.default_rng(seed), 6, [f"skill-{number}" for number in range(12)]
    part = create_model("Skill", share=(float, Field(1.0, ge=0, le=1, description="Weight of this skill.")))
    whole = create_model("Skills", slices=(dict[str, part], Field(description="The skills.")))
    config = whole(slices={name: part() for name in names})
    target, order, report = dump(config), rng.permutation(len(names)), None
    wait, practice = rng.uniform(0.4, 1.0, len(names)), np.zeros(len(names))
    practice[order[:3]] = wait[order[:3]] + 2
    wait[order[3 : 3 + hopeless]] = np.inf
    for stage in range(stages):
        shares = np.array([config.slices[name].share for name in names])
        practice += len(names) * shares / shares.sum() / stages
        success = 1 - np.exp(-(np.maximum(practice - wait, 0) ** 2))
        rates = (rng.binomial(100, success) / 100).tolist()
        rows = [SliceResult(name=name, episodes=100, metrics={"valid_rate": rate}) for name, rate in zip(names, rates)]
        report = StageReport(
            objective="valid_rate", stage=stage, config=dump(config), target=target, results=rows,
            rounds_left=stages - 1 - stage, history=report.records() if report else [],
        )  # fmt: skip
        config = engineers.make(engineer).propose(report, config).config
    return float(success.mean())


@pytest.mark.parametrize("hopeless", [0, 4])
def test_learners_end_higher_than_under_even_draws_and_failure_share(hopeless):
    ends = {
        name: np.mean([end_of(name, hopeless, seed) for seed in range(4)])
        for name in ("fixed", "failure-share", "reader")
    }
    assert ends["reader"] > max(ends["fixed"], ends["failure-share"]) + 0.02


class Case:
    """A config class, a config and a report of a run, by chance: slices, knobs and counts of any kind."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        knobs: dict[str, Any] = {"share": self._share()}
        if rng.random() < 0.4:
            knobs["hardness"] = (float, Field(0.3, ge=0, le=1, description="How hard."))
        if rng.random() < 0.3:
            knobs["length"] = (int | None, Field(3, ge=1, le=20, description="How long."))
        if rng.random() < 0.4:
            knobs["against"] = (Literal["all", "late", "crash"], Field("all", description="What it works against."))
        part = create_model("Part", **knobs)
        beside = {"wind": (float, Field(0.1, ge=0, le=2, description="W."))} if rng.random() < 0.3 else {}
        self.whole = create_model("Whole", parts=(dict[str, part], Field(description="The parts.")), **beside)
        self.names = [f"{rng.choice('abcxyz')}{number}" for number in range(rng.randint(2, 9))]
        self.config, self.target = self._config(), self._config() if rng.random() < 0.8 else {}
        stages = rng.randint(1, 6)
        unit = rng.choice(["env_steps", "samples"])
        records = [
            StageRecord(
                stage=stage,
                config=rng.choice([self.config, self._config(), {}]),
                results=self._rows(),
                training_results=self._rows(),
                cost={unit: rng.uniform(0, 9)} if rng.random() < 0.5 else {},
            )
            for stage in range(stages)
        ]
        last = records.pop()
        self.report = StageReport(
            objective="valid_rate",
            stage=stages - 1,
            config=self.config,
            target=self.target,
            unit=unit,
            cost=last.cost,
            results=last.results,
            training_results=last.training_results,
            history=records,
            rounds_left=rng.choice([None, 0, 1, 5]),
        )

    def _share(self) -> Any:
        low, high = self.rng.choice([(0, 1), (0.01, 1), (0, 10)])
        if self.rng.random() < 0.2:
            return int, Field(1, ge=0, le=100, description="Weight.")
        return float, Field(0.5, ge=low, le=high, description="Weight.")

    def _config(self) -> dict[str, Any]:
        fields = self.whole.model_fields["parts"].annotation.__args__[1].model_fields
        whole = fields["share"].annotation is int
        made: dict[str, Any] = {"share": lambda: self.rng.randint(1, 100) if whole else self.rng.uniform(0.02, 1)}
        made |= {"hardness": self.rng.random, "length": lambda: self.rng.choice([None, 1, 9])}
        made |= {"against": lambda: self.rng.choice(["all", "late", "crash"])}
        parts = {name: {knob: made[knob]() for knob in fields} for name in self.names}
        beside = {"wind": self.rng.uniform(0, 2)} if "wind" in self.whole.model_fields else {}
        return {"parts": parts, **beside}

    def _rows(self) -> list[SliceResult]:
        rows = []
        for name in self.names:
            if self.rng.random() < 0.15:
                continue
            episodes, rate = self.rng.randint(0, 99), self.rng.choice([0.0, 1.0, self.rng.random()])
            failures = {kind: self.rng.randint(0, 30) for kind in KINDS if self.rng.random() < 0.6}
            metrics = {} if self.rng.random() < 0.1 else {"valid_rate": rate}
            rows.append(SliceResult(name=name, episodes=episodes, metrics=metrics, failures=failures))
        return rows

    def renamed(self, other: dict[str, str]) -> tuple[StageReport, BaseModel]:
        """The same with other names, in the same order."""

        def row(told: SliceResult) -> SliceResult:
            return told.model_copy(update={"name": other[told.name]})

        return self._rewritten(lambda parts: {other[name]: part for name, part in parts.items()}, row)

    def reordered(self) -> tuple[StageReport, BaseModel]:
        """The same in another order of everything."""
        names = self.rng.sample(self.names, len(self.names))
        return self._rewritten(lambda parts: {name: parts[name] for name in names}, lambda row: row, shuffle=True)

    def _rewritten(self, of_parts: Any, of_row: Any, shuffle: bool = False) -> tuple[StageReport, BaseModel]:
        def config(told: dict[str, Any]) -> dict[str, Any]:
            return {**told, "parts": of_parts(told["parts"])} if told else {}

        def rows(told: list[SliceResult]) -> list[SliceResult]:
            return [of_row(row) for row in (self.rng.sample(told, len(told)) if shuffle else told)]

        def tables(record: Any) -> dict[str, Any]:
            return {
                "config": config(record.config),
                "results": rows(record.results),
                "training_results": rows(record.training_results),
            }

        history = [record.model_copy(update=tables(record)) for record in self.report.history]
        changed = {**tables(self.report), "target": config(self.report.target), "history": history}
        return self.report.model_copy(update=changed), self.whole.model_validate(config(self.config))


def flat(parts: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(name, knob): value for name, part in parts.items() for knob, value in part.items()}


def same(left: dict[Any, Any], right: dict[Any, Any]) -> None:
    assert left.keys() == right.keys()
    for key, value in left.items():
        assert right[key] == (pytest.approx(value, abs=2e-4) if isinstance(value, float) else value), key


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.prove)])
def test_any_config_and_report_give_a_config_in_bounds_whatever_the_names_and_their_order(count):
    engineer = engineers.make("reader")
    for seed in range(count):
        case = Case(random.Random(seed))
        config = case.whole.model_validate(case.config)
        proposal = engineer.propose(case.report, config)
        assert proposal == engineers.make("reader").propose(case.report, config)
        assert check(proposal, config, case.report.records()) == []
        assert not proposal.fallback
        assert all(change.reason for change in proposal.reasons)
        answer = dump(proposal.config)["parts"]
        other = dict(zip(case.names, random.Random(seed + 1).sample([f"n-{i}" for i in range(99)], len(case.names))))
        renamed = dump(engineer.propose(*case.renamed(other)).config)["parts"]
        same({(other[name], knob): value for (name, knob), value in flat(answer).items()}, flat(renamed))
        same(flat(answer), flat(dump(engineer.propose(*case.reordered()).config)["parts"]))
