"""``rules``: the strong engineer without a model. It moves from a config that works to the target, as fast as success allows.

A stage's step is a fraction of the remaining distance to the target. On its training data the trainee succeeds at the rate p,
on the target at the rate v, which counts as 0 where nobody tested it; between them, success is assumed to change linearly from p to v.
A step goes

- to where ``frontier`` of the episodes would succeed, because there most is learnt;
- further if the remaining rounds are too few for even steps that reach the target with rounds to spare;
- but never to where fewer than ``alive`` would succeed, because there nothing is learnt.

If nothing succeeds any more, or success on the target falls clearly, half of the last step is undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.from_file import DATA, reads
from engineers.knobs import Knob, dump
from engineers.plain.base import Design
from engineers.plain.signals import Rates, Signals, learnability, rates, signals
from engineers.plain.way import ALIVE, Walker, Way, fraction_with, shares_ahead
from engineers.report import StageRecord, StageReport, read_first, wilson
from engineers.roles import WHOLE, SliceKnobs, find_slices, with_beside
from engineers.shared.counts import counted
from engineers.shared.sentences import in_sentences
from engineers.tiers import Tier

Part = Annotated[float, Field(ge=0, le=1)]


class Thresholds(BaseModel):
    """Thresholds of learnable and of dead, and the division of the rounds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    frontier: Part = Field(0.5, description="Success that a step aims at: p(1 - p) is greatest there.")
    alive: Part = Field(ALIVE, description="No step goes to where less success is expected.")
    dead: Part = Field(0.08, description="Success below which there is next to nothing to learn from.")
    begun: Part = Field(
        0.1,
        description="Part of the way from a blind guess to right answers; a score beyond it is being learnt, though nothing succeeds.",
    )
    settled: Part = Field(0.5, description="Fraction of the rounds that is spent on the target itself.")
    easing: Part = Field(
        0.25,
        description="Part of a knob's range by which it is eased if nothing succeeds and no earlier stage was better.",
    )
    floor: Part = Field(
        0.25, description="Least weight of a slice of the target; a slice at the frontier has 1 + floor."
    )

    @classmethod
    def read(cls, given: Thresholds | Mapping[str, float] | None) -> Thresholds:
        """Raises ``ValueError`` for an unknown name or a value outside of 0 to 1."""
        try:
            return cls.model_validate(given or {})
        except ValidationError as error:
            raise ValueError(
                f"{in_sentences(error, 'thresholds')}: "
                f"the thresholds are {', '.join(cls.model_fields)}, each from 0 to 1"
            ) from error

    def dead_below(self, here: Rates) -> float:
        """The rate that counts as dead; no success at all does, however few the episodes."""
        return max(self.dead, here.nothing)


@reads({"thresholds": DATA})
class RulesEngineer(Walker):
    """Moves to the target step by step, as fast as success allows. It is generic over configs with slices and without (see ``engineers.roles``). Without a target, it moves towards the hard
    end of every difficulty's range, by half of the difference between success in training and in validation. ``thresholds`` are
    those of ``Thresholds`` that differ from the defaults."""

    name = "rules"
    tier = Tier.SLICE_SUCCESS

    def __init__(self, *, thresholds: Thresholds | Mapping[str, float] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.thresholds = Thresholds.read(thresholds)

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        slices, design = find_slices(knobs), Design()
        seen = signals(report, report.objective, slices)
        if not slices or seen.here is None:
            return design
        better = better_stage(report, slices, self.thresholds)
        if better is not None:
            self._go_back_half_way(design, knobs, current, *better)
            return design
        way = Way(slices, dump(current), report.target, self.range_of)
        flat = [slice_.name for slice_ in slices] == [WHOLE]
        known = rates(read_first(report, report.objective), report.objective, flat=flat)
        assert known is not None, "something was measured here"
        wanted = self._wanted_shares(way, slices, seen, known)
        fraction, why = self.step(report, seen, way)
        ahead = shares_ahead(fraction, seen.there()) if way.is_known else max(fraction, 0.5)
        way.turn_shares(design, wanted, fraction if fraction < 0 else ahead, why)
        for slice_ in with_beside(slices, knobs):
            way.turn_dials(design, slice_, *self.step(report, seen, way, slice_.name))
        return design

    def step(self, report: StageReport, seen: Signals, way: Way, name: str | None = None) -> tuple[float, str]:
        """The fraction of the way that is left to go now, and why: for one slice's dials, or for all the data together."""
        limits, here = self.thresholds, seen.here
        assert here is not None, "a step is taken from where something was measured"
        p = here.pooled if name is None else here[name]
        v = seen.there(name)
        if max(p, v) <= limits.dead_below(here):
            standing = seen.standing(name)
            return (0.0, begun(p, standing)) if standing >= limits.begun else (-limits.easing, eased(p))
        if way.is_known:
            fraction = max(fraction_with(limits.frontier, p, v), even_pace(report, limits.settled))
            fraction = min(fraction, fraction_with(limits.alive, p, v))
        else:
            # how far the target is, nobody knows
            fraction = min(fraction_with(limits.frontier, p, v), max(p - v, 0.0)) / 2
        left = "" if report.rounds_left is None else f", {counted(report.rounds_left, 'round')} left"
        goal = "it" if way.is_known or seen.validated else "the hard end, as there is no target"
        return fraction, f"{seen.told(p, name)}{left}: {fraction:.0%} of the way to {goal}"

    def _wanted_shares(self, way: Way, slices: Sequence[SliceKnobs], seen: Signals, known: Rates) -> dict[str, float]:
        """The target's slices, those near the frontier first; without a target, the measured ones.

        Of a slice where nothing succeeds, the score says how near it is.
        """
        dead = self.thresholds.dead_below(known)
        names = [slice_.name for slice_ in slices]
        default = [name for name in names if name in known.per_slice] or names
        base = way.wanted or dict.fromkeys(default, 1.0)
        return {
            name: share
            * (
                self.thresholds.floor
                + 4 * learnability(known[name] if known[name] > dead else max(known[name], seen.standing(name)))
            )
            for name, share in base.items()
            if share
        }

    def _go_back_half_way(
        self, design: Design, knobs: Sequence[Knob], current: BaseModel, record: StageRecord, why: str
    ) -> None:
        """Half of the way back to the config of a stage that did better."""
        slices = find_slices(knobs)
        back = Way(slices, dump(current), record.config, self.range_of, goal=f"stage {record.stage}")
        if back.wanted is None:
            return
        back.turn_shares(design, back.wanted, 0.5, why)
        for slice_ in with_beside(slices, knobs):
            back.turn_dials(design, slice_, 0.5, why)


def begun(success: float, standing: float) -> str:
    return f"estimated success {success:.2f}, but the score is {standing:.0%} of the way from a blind guess: it is being learnt"


def eased(success: float) -> str:
    return f"estimated success {success:.2f}: too hard to learn from, eased"


def even_pace(report: StageReport, settled: float) -> float:
    """The fraction that reaches the target in even steps with the last ``settled`` fraction of all rounds still to come."""
    if report.rounds_left is None:
        return 0.0
    rounds = report.stage + 1 + report.rounds_left
    # The last step is the first round on the target.
    return 1.0 / max(1, report.rounds_left + 1 - round(settled * rounds))


def better_stage(
    report: StageReport, slices: Sequence[SliceKnobs], limits: Thresholds
) -> tuple[StageRecord, str] | None:
    """The latest earlier stage to go back towards, and why; None as long as training is alive and the target no worse."""
    now = signals(report, report.objective, slices)
    here = now.here
    if here is None:
        return None
    for record in reversed(report.history):
        before = signals(record, report.objective, slices)
        if before.here is None or record.config == report.config:
            continue
        if here.pooled <= limits.dead_below(here) and before.here.pooled > limits.alive:
            return (
                record,
                f"estimated success fell from {before.here.pooled:.2f} at stage {record.stage} to {here.pooled:.2f}: half taken back",
            )
        if _clearly_below(now.validated, before.validated):
            assert now.validated is not None
            assert before.validated is not None
            was, is_now = before.validated.pooled, now.validated.pooled
            return (
                record,
                f"estimated success on the target fell from {was:.2f} at stage {record.stage} to {is_now:.2f}: half taken back",
            )
    return None


def _clearly_below(now: Rates | None, before: Rates | None) -> bool:
    """Whether the two intervals of 95 % are apart."""
    if now is None or before is None:
        return False
    return wilson(now.pooled, now.episodes)[1] < wilson(before.pooled, before.episodes)[0]
