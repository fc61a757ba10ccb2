"""Reports about a learner in closed form, and runs with them: ``play`` asks any engineer, unchanged.

The first stage has even draws, so that no config reveals a lack. After each stage the engineer reads the report and writes the next
config.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, Field

from benchmarks.closed_form.learners import KINDS, Array, Counts, Learners, step, validate, value
from engineers.engineer import Engineer
from engineers.knobs import dump
from engineers.report import SliceResult, StageReport

OBJECTIVE = "success_rate"
DOSE = 100  # samples that even draws give to a slice in a stage
ENVIRONMENT = (
    "A policy learns several skills, each a slice of the data. A stage has a fixed number of samples, drawn by the slices' "
    "shares. Names and order say nothing. Skills may differ in how fast they are learnt and how far, may need, help or harm "
    "each other, and may be forgotten."
)
MEANINGS = {kind: f"The policy goes wrong in the {kind} way; data with this focus works against it." for kind in KINDS}


class Skill(BaseModel):
    """The data of one slice."""

    share: float = Field(1.0, ge=0, le=1, description="Weight of this skill in the data.")
    focus: Literal["all", "first", "second", "third"] = Field(
        "all", description="The kind of failure that this skill's data works against, or all alike."
    )


class SkillsConfig(BaseModel):
    """The data of one stage."""

    editable: ClassVar[tuple[str, ...]] = ("slices.*.share", "slices.*.focus")
    slices: dict[str, Skill] = Field(description="The skills.")


class Telling:
    """Writes the reports of one learner's stages."""

    def __init__(self, learner: Learners) -> None:
        """``learner``: a single one, without slices that it lacks."""
        self.learner, self.stages = learner, int(learner.stages[0])
        self.names = [f"skill-{number}" for number in range(learner.weight.shape[1])]
        weights = learner.weight[0]
        shares = np.round(weights / weights.max(), 4)
        target = {name: Skill(share=share) for name, share in zip(self.names, shares.tolist(), strict=True)}
        self.target = dump(SkillsConfig(slices=target))

    def even(self) -> SkillsConfig:
        """The config of the first stage."""
        return SkillsConfig(slices={name: Skill() for name in self.names})

    def report(self, config: SkillsConfig, validated: Counts, probed: Counts, last: StageReport | None) -> StageReport:
        """Of a stage on this config, after the one that ``last`` reports; slices without data have no probe."""
        stage = 0 if last is None else last.stage + 1
        in_use = np.flatnonzero(as_arrays(config, self.names, self.learner)[0][0])
        spent = float(DOSE * len(self.names))
        return StageReport(
            stage=stage,
            environment=ENVIRONMENT,
            objective=OBJECTIVE,
            failure_meanings=MEANINGS,
            config=dump(config),
            target=self.target,
            rounds_left=self.stages - 1 - stage,
            budget_left=spent * (self.stages - 1 - stage),
            unit="samples",
            cost={"samples": spent},
            results=self._rows(validated, range(len(self.names))),
            own_config_results=self._rows(probed, in_use.tolist()),
            history=last.records() if last else [],
            training={"round": stage, "rounds": self.stages},
        )

    def _rows(self, counts: Counts, slices: list[int] | range) -> list[SliceResult]:
        cases, succeeded, failed = int(self.learner.cases[0]), counts.succeeded[0].tolist(), counts.failed[0].tolist()
        return [
            SliceResult(
                name=self.names[i],
                episodes=cases,
                metrics={OBJECTIVE: succeeded[i] / cases},
                failures={kind: count for kind, count in zip(KINDS, failed[i], strict=True) if count},
            )
            for i in slices
        ]


@dataclass
class Run:
    """One learner between two stages."""

    learner: Learners  # a single one, without slices that it lacks
    rng: np.random.Generator
    config: SkillsConfig = field(init=False)
    practice: Array = field(init=False)
    reports: list[StageReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.telling = Telling(self.learner)
        self.practice, self.stages = self.learner.start, self.telling.stages
        self.train(self.telling.even())

    @property
    def success(self) -> float:
        """On the target, without the noise of cases."""
        return float(value(self.learner, self.practice)[0])

    def train(self, config: SkillsConfig) -> None:
        """One stage, and its report."""
        shares, focus = as_arrays(config, self.telling.names, self.learner)
        self.config, self.practice = config, step(self.learner, self.practice, shares, focus)
        validated, probed = (validate(self.learner, self.practice, self.rng) for _ in range(2))
        last = self.reports[-1] if self.reports else None
        self.reports.append(self.telling.report(config, validated, probed, last))


def as_arrays(config: SkillsConfig, names: list[str], learner: Learners) -> tuple[Array, Array]:
    """Shares and focus of one run, as ``step`` takes them. A config without any data draws evenly."""
    shares, focus = np.zeros_like(learner.weight), learner.unfocused()
    for i, name in enumerate(names):
        skill = config.slices[name]
        shares[0, i] = skill.share
        if skill.focus != "all":
            focus[0, i] = np.eye(len(KINDS))[KINDS.index(skill.focus)]
    return (shares if shares.any() else learner.even()), focus


def play(engineer: Engineer, learners: Learners, seed: int) -> list[Run]:
    """All runs to their ends, each under this engineer. Run i's cases depend on seed and i alone."""
    return [_played(engineer, Run(learners.alone(i), np.random.default_rng([seed, i]))) for i in range(len(learners))]


def _played(engineer: Engineer, run: Run) -> Run:
    while len(run.reports) < run.stages:
        run.train(engineer.propose(run.reports[-1], run.config).config)
    return run
