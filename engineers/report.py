"""``StageReport``: the report of a stage that an engineer reads. Typed, versioned JSON; any environment can fill it."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

REPORT_VERSION: Final = 2
EXAMPLE_REPORT = Path(__file__).with_name("example_report.json")
TRAINING = "Training itself, per slice: first visits to a question, summed over the stage; repeats, where a slice has no others. Empty if the trainee gives no outcomes."
PROBE = "A probe: cases drawn from the stage's own config and played after the stage, per slice in use."


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """``help`` shows every field with its description, which Python alone would leave out."""
        told = [f"{cls.__doc__ or cls.__name__}\n\n    Fields:\n"]
        for name, kind in cls.__annotations__.items():
            if field := cls.model_fields.get(name):
                told.append(f"    {name}: {kind}" + (f"\n        {field.description}" if field.description else ""))
        cls.__doc__ = "\n".join(told)


FEW = 20  # first visits; with fewer in a stage, or fewer than half as many in its last half, repeats are read, too
_OF_TRAINING = ("halves", "repeats", "all_repeats", "questions")


class Split(_Section):
    """The trainee's results on some of a slice's episodes: those that have something in common."""

    episodes: int = Field(ge=1)
    succeeded: int = Field(ge=0)
    score: float | None = Field(None, description="Mean score, 0 to 1; null where episodes have none.")


class SliceResult(_Section):
    """The trainee's results on one slice: in training, on the validation suite or on a probe."""

    name: str = Field(description="The slice, by the key it has in the config: '6' for 6×6 lakes.")
    episodes: int = Field(ge=0)
    metrics: dict[str, float] = Field(default_factory=dict, description="Rates and means, e.g. success_rate.")
    failures: dict[str, int] = Field(default_factory=dict, description="Failed episodes by failure kind.")
    halves: list[Split | None] = Field(
        default_factory=list,
        description="In training: the two halves of the stage; null for one without episodes of this slice.",
    )
    repeats: Split | None = Field(
        None,
        description="In training: episodes on questions that were trained on before; `episodes` does not count them.",
    )
    all_repeats: bool = Field(
        False,
        description="In training: whether all `episodes` are on questions that were trained on before; `repeats` is then null.",
    )
    questions: int | None = Field(
        None,
        ge=1,
        description="In training: how many questions these episodes answer, where some are replies to the same one; null where each has one of its own.",
    )

    @model_serializer(mode="wrap")
    def _in_short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Only rows of training have these fields."""
        told: dict[str, Any] = handler(self)
        return {name: value for name, value in told.items() if value or name not in _OF_TRAINING}

    @property
    def observations(self) -> int:
        """What an interval may count: questions, where one has several replies. These resemble each other, and as observations of their
        own they would make it far too narrow; as one it is rather too wide.
        """
        return self.episodes if self.questions is None else self.questions

    @property
    def played(self) -> int:
        """All episodes, repeats too."""
        return self.episodes + (self.repeats.episodes if self.repeats is not None else 0)

    @property
    def asked(self) -> float:
        """How many questions all episodes answer, repeats too. Repeats keep no count of questions, so each is taken to have as many replies."""
        return self.played * self.observations / self.episodes if self.episodes else float(self.played)

    @property
    def score(self) -> float | None:
        """The mean score, 0 to 1; None if the episodes have none."""
        value = self.metrics.get("score")
        return value if self.episodes and value is not None and 0 <= value <= 1 else None

    def rate(self, objective: str) -> float | None:
        """Success, 0 to 1 (a probe may have it only as ``success_rate``); None if nothing was played or measured."""
        value = self.metrics.get(objective, self.metrics.get("success_rate"))
        if not self.episodes or value is None or not math.isfinite(value):
            return None
        return min(max(value, 0.0), 1.0)

    def with_repeats(self) -> SliceResult:
        """The row over all episodes, repeats too. Their halves are not kept."""
        if self.repeats is None:
            return self
        first, again = self.episodes / self.played, self.repeats.episodes / self.played
        success = self.repeats.succeeded / self.repeats.episodes
        score = success if self.repeats.score is None else self.repeats.score
        metrics = {
            name: first * value + again * (score if name == "score" else success)
            for name, value in self.metrics.items()
        }
        part: dict[str, Any] = {"episodes": self.played, "metrics": metrics, "halves": [], "repeats": None}
        return self.model_copy(update=part | {"questions": None if self.questions is None else round(self.asked)})

    def interval(self, metric: str, z: float = 1.96) -> tuple[float, float]:
        """Wilson interval of a rate over this slice's observations."""
        return wilson(self.metrics[metric], self.observations, z)


def wilson(rate: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate observed over n trials; (0, 1) when nothing was tried."""
    if n == 0:
        return 0.0, 1.0
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


class FailureCase(_Section):
    """One failed episode, drawn so that a reader can see what went wrong."""

    slice: str
    kind: str
    picture: str = Field(description="The instance as text.")
    explanation: str = Field(description="What went wrong, in one or two sentences.")
    case_id: str = Field("", description="The id under which this episode can be found again.")


class StageRecord(_Section):
    """An earlier stage: its config and its results."""

    stage: int
    config: dict[str, JsonValue]
    results: list[SliceResult]
    engineer: str = Field("", description="Who wrote the config; 'default' for the first.")
    training: dict[str, float] = Field(default_factory=dict)
    training_results: list[SliceResult] = Field(default_factory=list, description=TRAINING)
    own_config_results: list[SliceResult] = Field(default_factory=list, description=PROBE)
    cost: dict[str, float] = Field(
        default_factory=dict,
        description="What the stage spent, by the units that training counts: env_steps, tokens, …",
    )


IncidentKind = Literal[
    "refused_proposal",
    "engineer_failed",
    "diverged",
    "collapsed",
    "worker_lost",
    "generation_failed",
    "trainee_failed",
    "policy_failed",
    "odd_metrics",
    "not_trained",
    "other",
]


class Incident(_Section):
    """Something that went wrong and was survived: a refused proposal, a time-out, a diverged stage, a dead worker."""

    kind: IncidentKind
    message: str
    stage: int


class StageReport(_Section):
    """Everything an engineer may read between two stages."""

    version: Literal[2] = REPORT_VERSION
    run: str = Field("", description="The run's name.")
    stage: int = Field(ge=0, description="The stage that was just finished, 0-based.")
    environment: str = Field("", description="What the environment is and what its agents must do, in a few sentences.")
    objective: str = Field("success_rate", description="The metric the run wants to raise on the validation suite.")
    aside: list[str] = Field(
        default_factory=list, description="Metrics that are kept for the record and say nothing about what to train on."
    )
    failure_meanings: dict[str, str] = Field(
        default_factory=dict, description="What each kind of failure means, in a sentence."
    )
    config: dict[str, JsonValue] = Field(description="The config the stage was trained on.")
    target: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="The config of the target distribution, which validation and test are drawn from.",
    )
    target_words: str = Field("", description="The target written out, where `target` only names it.")
    trainee: str = Field("", description="What is trained: its kind, its algorithm, what it is rewarded for.")
    rounds_left: int | None = Field(
        None, ge=0, description="Number of stages left, the proposed one included; None where it is unknown."
    )
    budget_left: float | None = Field(None, description="Budget of all remaining stages together, in `unit`.")
    unit: str = Field("env_steps", description="The unit of the budget: env_steps, episodes, samples or tokens.")
    cost: dict[str, float] = Field(
        default_factory=dict, description="What the stage spent, by the units that training counts."
    )
    results: list[SliceResult] = Field(default_factory=list, description="Validation, per slice.")
    training_results: list[SliceResult] = Field(default_factory=list, description=TRAINING)
    own_config_results: list[SliceResult] = Field(default_factory=list, description=PROBE)
    score_in_words: str = Field("", description="What a score is; empty where episodes have only success.")
    blind_scores: dict[str, float] = Field(
        default_factory=dict,
        description="Per slice: the score of the best answer that ignores the question, where known.",
    )
    outcomes_in_words: str = Field(
        "", description="How the policy played in training: whether it sampled its actions or replies."
    )
    failure_cases: list[FailureCase] = Field(default_factory=list)
    behaviour: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="Per slice: idle steps per episode, episode length, collisions avoided, …"
    )
    splits: dict[str, dict[str, Split]] = Field(
        default_factory=dict,
        description="Per slice: success on parts of its episodes, by what these have in common: a wait is needed, goals are far, …",
    )
    environment_stats: dict[str, dict[str, float]] = Field(
        default_factory=dict, description="What the generator drew for each slice."
    )
    history: list[StageRecord] = Field(default_factory=list, description="Earlier stages, oldest first.")
    training: dict[str, JsonValue] = Field(
        default_factory=dict, description="Details of the training: the round's index, steps, gradient norms, …"
    )
    incidents: list[Incident] = Field(default_factory=list)
    config_class: str = Field(
        "", description="The config's class as module:Class, so that a report file can be read by itself."
    )

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, told: Any) -> Any:
        """In version 1, ``training_results`` were those of a probe. Its first reports have a list of probes, which nothing filled."""
        if not isinstance(told, dict) or told.get("version") != 1:
            return told
        warnings.warn("a report of version 1: its training_results are read as own_config_results", stacklevel=2)
        if told.get("probes") == []:
            told = {name: value for name, value in told.items() if name != "probes"}
        history = told.get("history", [])
        if isinstance(history, list):
            history = [_with_probe_renamed(record) for record in history]
        return _with_probe_renamed(told) | {"version": REPORT_VERSION, "history": history}

    @classmethod
    def example(cls) -> StageReport:
        """The report of a small run on lakes, for trying out an engineer."""
        return cls.model_validate_json(EXAMPLE_REPORT.read_bytes())

    def records(self) -> list[StageRecord]:
        """The history with the stage just finished as its last entry."""
        numbers = {name: float(v) for name, v in self.training.items() if isinstance(v, int | float)}
        this = StageRecord(
            stage=self.stage,
            config=self.config,
            results=self.results,
            training=numbers,
            training_results=self.training_results,
            own_config_results=self.own_config_results,
            cost=self.cost,
        )
        return [*self.history, this]


def trained_on(stage: StageReport | StageRecord) -> list[SliceResult]:
    """Results on the stage's own config: those of training's last half, or else of the probe. Of a slice with few first visits, all its episodes."""
    return [_late(enough(row)) for row in stage.training_results] or stage.own_config_results


def enough(row: SliceResult) -> SliceResult:
    """First visits, and repeats if these are few: they measure memory, but a handful of episodes measures nothing."""
    late = row.episodes
    if row.halves:
        late = 0 if row.halves[-1] is None else row.halves[-1].episodes
    return row.with_repeats() if min(row.episodes, 2 * late) < FEW else row


def _late(row: SliceResult) -> SliceResult:
    """The row over the last half of its stage, if it has that: the first half shows an earlier policy. Failures are those of the whole."""
    half = row.halves[-1] if row.halves else None
    if half is None:
        return row
    success = half.succeeded / half.episodes
    metrics = {name: half.score if name == "score" and half.score is not None else success for name in row.metrics}
    # A half keeps no count of questions: its part of them is taken to be its part of the episodes.
    questions = None if row.questions is None else max(1, round(row.questions * half.episodes / row.episodes))
    part: dict[str, Any] = {
        "episodes": half.episodes,
        "questions": questions,
        "metrics": metrics,
        "halves": [],
        "repeats": None,
    }
    return row.model_copy(update=part)


def read_first(stage: StageReport | StageRecord, objective: str) -> list[SliceResult]:
    """For each slice what training showed last; for slices without outcomes, validation, or else the probe."""
    tables = (stage.own_config_results, stage.results, trained_on(stage) if stage.training_results else [])
    return list({row.name: row for table in tables for row in table if row.rate(objective) is not None}.values())


def _with_probe_renamed(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    return {"own_config_results" if name == "training_results" else name: value for name, value in told.items()}
