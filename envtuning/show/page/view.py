"""A run's data for its page, from its log. No markup."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from engineers.knobs import dump, leaves
from engineers.model.transcript import Exchange
from engineers.report import SliceResult, wilson
from engineers.roles import natural_key
from engineers.shared.counts import in_words
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec
from envtuning.runs.state import Choice, Stage, TestRecord
from envtuning.runs.tasks import is_planned
from envtuning.show.console import author_of
from envtuning.worlds.episodes import pooled
from envtuning.worlds.world import About

Rated = tuple[float, float, float]  # a rate with its Wilson interval


@dataclass(frozen=True)
class KnobCell:
    """One knob in one stage; ``changed`` compares with the stage before."""

    value: Any
    changed: bool


@dataclass(frozen=True)
class KnobRow:
    path: str
    cells: list[KnobCell]

    @property
    def varies(self) -> bool:
        return any(cell.changed for cell in self.cells)


@dataclass(frozen=True)
class StageView(Stage):
    """A stage that reads its metrics file once."""

    author: str = ""
    listed: str = ""  # its name in the run's file
    answer: Choice | None = None  # by the engineer, to the report of this stage

    @property
    def name(self) -> str:
        return self.listed or f"stage {self.number}"

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        return self.metrics()

    def exchanges(self) -> list[Exchange]:
        return [Exchange.model_validate(line) for line in self.transcript()]

    @property
    def results(self) -> list[SliceResult]:
        return self.report.results if self.report else []

    def rate(self, metric: str) -> Rated | None:
        """A metric pooled over the slices; None before the stage's validation."""
        return _rated(self.results, metric)

    def slice_rate(self, name: str, metric: str) -> float | None:
        """A metric of one slice; None if the slice was not validated."""
        return next((result.metrics.get(metric) for result in self.results if result.name == name), None)


@dataclass
class RunView:
    log: RunLog
    name: str
    stages: list[StageView]

    @property
    def spec(self) -> RunSpec:
        return self.log.plan.spec

    @property
    def about(self) -> About:
        return self.log.plan.world.about

    @property
    def unit(self) -> str:
        return self.log.plan.unit

    @property
    def test(self) -> TestRecord | None:
        return self.log.state.test

    @property
    def planned_stages(self) -> int:
        begun = len(self.stages)
        return max(len(self.spec.stages), begun + is_planned(self.log.plan, self.log.state, begun))

    @property
    def but_for_its_seed(self) -> str:
        """Equal for runs that differ only in their seed."""
        return self.spec.model_dump_json(exclude={"seed", "description"})

    def shares(self, stage: Stage) -> dict[str, float]:
        """The slices' parts of this stage's data."""
        return self.log.plan.world.slices(stage.config)

    def tested(self, metric: str, after: Literal["first", "last"] = "last") -> Rated | None:
        """A metric on the test suite after this stage; None before the test was opened."""
        return _rated(getattr(self.test, after), metric) if self.test else None

    @property
    def done(self) -> list[StageView]:
        return [stage for stage in self.stages if stage.report]

    @property
    def unit_in_words(self) -> str:
        return in_words(self.unit)

    @property
    def finished(self) -> bool:
        return len(self.done) == self.planned_stages

    @property
    def slices(self) -> list[str]:
        names = {result.name for stage in self.done for result in stage.results}
        return sorted(names, key=natural_key)

    @property
    def learning(self) -> list[str]:
        """The training metrics to draw, if the trainee reports them: success, and the gradient norm or else the loss."""
        told = {
            metric
            for stage in self.stages
            for line in stage.lines
            if line.get("kind") == "iteration"
            for metric in line
        }
        steady = next((metric for metric in ("grad_norm", "loss") if metric in told), None)
        return [metric for metric in ("success_rate", steady) if metric in told]

    def knobs(self) -> list[KnobRow]:
        """Every knob of the configs, with one cell per stage."""
        flat = [leaves(dump(stage.chosen.config)) for stage in self.stages]
        paths = sorted(
            {path for one in flat for path in one}, key=lambda path: [natural_key(part) for part in path.split(".")]
        )
        rows = []
        for path in paths:
            values = [one.get(path) for one in flat]
            changed = [number > 0 and value != values[number - 1] for number, value in enumerate(values)]
            rows.append(KnobRow(path, [KnobCell(value, change) for value, change in zip(values, changed)]))
        return rows


def view_run(run: RunLog) -> RunView:
    """Everything the page shows of the run, finished or not."""
    chosen = [stage.chosen if stage.chosen.by_asking else None for stage in run.state.stages]
    stages = [
        StageView(
            **{one.name: getattr(stage, one.name) for one in fields(stage)},
            author=author_of(run.state, stage.number),
            listed=run.plan.spec.stage(stage.number).name,
            answer=answer,
        )
        for stage, answer in zip(run.state.stages, [*chosen[1:], None])
    ]
    return RunView(run, run.name, stages)


def _rated(rows: list[SliceResult], metric: str) -> Rated | None:
    if not (episodes := sum(row.episodes for row in rows)):
        return None
    rate = pooled(rows, metric)
    return rate, *wilson(rate, episodes)
