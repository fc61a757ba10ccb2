"""A run folder as what the page shows of it: plain values, no files, no markup."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engineers.knobs import dump, leaves
from engineers.model.transcript import Exchange
from engineers.proposal import Usage
from engineers.report import SliceResult, StageReport, wilson
from engineers.roles import natural_key
from envtuning.runs.log import RunLog
from envtuning.runs.state import Answer, Done, StageConfig
from envtuning.runs.tasks import is_planned
from envtuning.show.console import author_of
from envtuning.worlds.episodes import Episode, pooled
from envtuning.worlds.world import About


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


@dataclass
class StageView:
    number: int
    chosen: StageConfig[Any]
    done: Done | None
    report: StageReport | None
    answer: Answer[Any] | None
    lines: list[dict[str, Any]]  # metrics.jsonl
    exchanges: list[Exchange]
    episodes: list[Episode]
    author: str = ""

    @property
    def name(self) -> str:
        return self.chosen.name or f"stage {self.number}"

    @cached_property
    def results(self) -> list[SliceResult]:
        return self.report.results if self.report else []

    def rate(self, metric: str) -> tuple[float, float, float] | None:
        """A metric pooled over the slices, with Wilson's interval; None before the stage's validation."""
        episodes = sum(result.episodes for result in self.results)
        if not episodes:
            return None
        rate = pooled(self.results, metric)
        return rate, *wilson(rate, episodes)

    def slice_rate(self, name: str, metric: str) -> float | None:
        """A metric of one slice; None where it was not validated."""
        return next((result.metrics.get(metric) for result in self.results if result.name == name), None)

    def spent(self, unit: str) -> int:
        return self.done.spent.get(unit, 0) if self.done else 0


@dataclass
class RunView:
    run: RunLog
    name: str
    description: str
    engineer: str
    seed: int
    versions: dict[str, str]
    about: About
    unit: str
    budget: int
    spent: int
    usage: Usage
    stages: list[StageView]
    planned_stages: int
    test: dict[str, list[SliceResult]] = field(default_factory=dict)
    incidents: list[Any] = field(default_factory=list)
    but_for_its_seed: str = ""  # equal for runs that differ in their seed alone

    def tested(self, metric: str) -> tuple[float, float, float] | None:
        """A metric on the test suite after the last stage, with Wilson's interval; None before the test was opened."""
        rows = self.test.get("last", [])
        return (rate := pooled(rows, metric), *wilson(rate, sum(row.episodes for row in rows))) if rows else None

    @property
    def done(self) -> list[StageView]:
        return [stage for stage in self.stages if stage.report]

    @property
    def unit_in_words(self) -> str:
        return self.unit.replace("_", " ")

    @property
    def finished(self) -> bool:
        return len(self.done) == self.planned_stages

    @property
    def slices(self) -> list[str]:
        names = {result.name for stage in self.done for result in stage.results}
        return sorted(names, key=natural_key)

    @property
    def learning(self) -> list[str]:
        """The training metrics to draw: success, and the gradient's norm or else the loss, where the trainee tells them."""
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
        """Every knob of the configs, one cell a stage; rows that no stage has are absent."""
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
    plan, state = run.plan, run.state
    stages = [
        StageView(
            stage.number,
            stage.chosen,
            stage.done,
            stage.report,
            stage.answer,
            stage.metrics(),
            [Exchange.model_validate(line) for line in stage.transcript()],
            stage.episodes(),
            author_of(state, stage.number),
        )
        for stage in state.stages
    ]
    return RunView(
        run=run,
        name=run.name,
        description=plan.spec.description,
        engineer=plan.spec.engineer.name,
        seed=plan.spec.seed,
        versions=run.record.versions,
        about=plan.world.about,
        unit=plan.unit,
        budget=plan.spec.budget,
        spent=state.spent.get(plan.unit, 0),
        usage=state.usage(),
        stages=stages,
        planned_stages=max(len(plan.spec.stages), len(stages) + is_planned(plan, state, len(stages))),
        test={"first": state.test.first, "last": state.test.last} if state.test else {},
        incidents=state.incidents(),
        but_for_its_seed=plan.spec.model_dump_json(exclude={"seed", "description"}),
    )
