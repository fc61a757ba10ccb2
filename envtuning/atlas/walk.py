"""Walks: an engineer chooses at the root, moves to the child that it chose, chooses again, and so on to a leaf.

In *menu mode* it chooses an entry. In *free mode* it writes any config and moves to the entry whose cases are most similar; the
next report shows that entry's config. Engineers that write configs by rules cannot read a menu: in menu mode each gets the
entry nearest to the config that it would write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

import engineers
from engineers.engineer import Engineer
from engineers.human import HumanEngineer
from engineers.knobs import dump
from engineers.model.context import context_named
from engineers.model.engineer import ModelEngineer
from engineers.model.meter import Meter
from engineers.model.transcript import TranscriptError
from engineers.plain.base import PlainEngineer
from engineers.proposal import Proposal, Usage
from engineers.registry import PLAIN_ENGINEERS, UnknownEngineer
from engineers.report import StageReport
from envtuning.atlas.distance import Distances
from envtuning.atlas.menu import KNOB, as_menu, menu_at
from envtuning.atlas.spec import Path_
from envtuning.atlas.store import Tree
from envtuning.errors import RunError, SpecError
from envtuning.seeds import derive

MakeEngineer = Callable[[Tree, int], Engineer]  # for one question: the tree and the stage that is reported


@dataclass(frozen=True)
class Step:
    """One answer."""

    entry: str
    wanted: dict[str, Any]  # the config that was answered
    distance: float | None = None  # from it to the entry; None where the entry itself was chosen
    spacing: float | None = None  # of the node's entries
    fallback: bool = False  # no usable answer: the current config stayed
    refusals: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Walk:
    """From the root to a leaf."""

    seed: int
    steps: tuple[Step, ...]

    @property
    def path(self) -> Path_:
        return tuple(step.entry for step in self.steps)


class Player(Protocol):
    """Answers at a node."""

    def step(self, tree: Tree, path: Path_) -> Step: ...


def walk(tree: Tree, player: Player) -> Walk:
    """From the root of one seed's tree to a leaf."""
    steps: list[Step] = []
    while len(steps) < tree.spec.depth:
        steps.append(player.step(tree, tuple(step.entry for step in steps)))
    return Walk(tree.seed, tuple(steps))


@dataclass
class Chooser:
    """Menu mode."""

    make: MakeEngineer
    shift: int = 0  # other letters than the seed's own
    knob: str = KNOB  # what the choice is called
    hide_current: bool = False

    def raise_unless_able(self, tree: Tree) -> None:
        """Raises ``SpecError`` if the engineer cannot be asked, or can choose nothing. Asks nothing."""
        menu = menu_at(tree, ())
        raise_unless_able(self.make, tree, menu.config(tree.spec.first_entry), None)

    def step(self, tree: Tree, path: Path_) -> Step:
        menu = menu_at(tree, path, shift=self.shift, knob=self.knob, hide_current=self.hide_current)
        engineer = self.make(tree, len(path))
        told = tree.report(path, engineer.name)  # a replay has the recorded engineer's name
        report = as_menu(told, menu, tree, path)
        current = menu.model.model_validate(report.config)
        try:
            proposal = engineer.propose(report, current, None)
            return _step(menu.entry(proposal.config), proposal)
        except Exception as error:  # as in a run, because a third party's engineer may raise any error
            return _step(menu.entry(current), failed(engineer.name, current, error))


@dataclass
class Writer:
    """Free mode; a proposal that a run's guard would refuse is replaced by the current config, as in a run."""

    make: MakeEngineer
    distances: Distances

    def raise_unless_able(self, tree: Tree) -> None:
        """Raises ``SpecError`` if the engineer cannot be asked, or can change nothing. Asks nothing."""
        raise_unless_able(self.make, tree, tree.config(()), tree.spec.run.editable)

    def step(self, tree: Tree, path: Path_) -> Step:
        engineer = self.make(tree, len(path))
        report, current = tree.report(path, engineer.name), tree.config(path)
        try:
            proposal = guarded(tree, engineer, report, current)
        except Exception as error:  # as above
            proposal = failed(engineer.name, current, error)
        entries = tree.entries(path)
        entry, distance = self.distances.nearest(proposal.config, entries)
        return _step(entry, proposal, distance, self.distances.spacing(entries))


def raise_unless_able(make: MakeEngineer, tree: Tree, current: BaseModel, editable: Sequence[str] | None) -> None:
    """As before a run: otherwise every answer would be a fallback, and the score that of ``fixed``."""
    try:
        engineer = make(tree, 0)
        engineer.check_askable()
        engineer.check_able(current, editable)
    except (engineers.ChatError, ValueError) as error:
        raise SpecError(str(error)) from error


def failed(name: str, current: BaseModel, error: Exception) -> Proposal[Any]:
    """As in a run, the current config stays if an engineer raises an error."""
    return Proposal(config=current, engineer=name, fallback=True, refusals=[f"{type(error).__name__}: {error}"])


def guarded(tree: Tree, engineer: Engineer, report: StageReport, current: BaseModel) -> Proposal[Any]:
    """The engineer's proposal, or the current config with the reasons if the run's guard refuses it."""
    editable = tree.spec.run.editable
    proposal = engineer.propose(report, current, editable)
    refusals = tree.spec.plan.guard.check(
        proposal, current, report.records(), editable=editable, objective=report.objective
    )
    if not refusals:
        return proposal
    return proposal.model_copy(
        update={"config": current, "fallback": True, "refusals": [*proposal.refusals, *refusals]}
    )


def _step(entry: str, proposal: Proposal[Any], distance: float | None = None, spacing: float | None = None) -> Step:
    return Step(
        entry=entry,
        wanted=dump(proposal.config),
        distance=distance,
        spacing=spacing,
        fallback=proposal.fallback,
        refusals=list(proposal.refusals),
        usage=proposal.usage,
    )


def by_name(
    name: str,
    *,
    mode: str = "free",
    transcripts: Path | None = None,
    meter: Meter | None = None,
    context: str | None = None,
    **options: Any,
) -> MakeEngineer:
    """Makes the engineer of this name for a question, seeded as in a run of the tree's seed.

    ``transcripts`` is a folder in which every seed's exchanges are kept; ``replay/FOLDER`` reads one. ``meter`` holds the caps of
    all questions together, and ``context`` decides what every engineer reads.
    """
    backend, _, recorded = name.partition("/")
    replayed = backend == "replay"

    def make(tree: Tree, stage: int) -> Engineer:
        common = (
            tree.spec.run.engineer.common_options if mode == "free" else {}
        )  # an engineer that chooses needs no run and no world
        guard = {"guard": tree.spec.plan.guard} if mode == "free" else {}
        kept = {"transcript": transcript_of(transcripts, tree)} if transcripts is not None and not replayed else {}
        given = {"seed": derive(tree.seed, "engineer", stage)} | common | guard | kept | options
        if replayed:  # asks no model, and has the recorded context
            return engineers.make(f"replay/{transcript_of(recorded_in(Path(recorded), tree), tree)}", **given)
        return bound(engineers.make(name, **given), meter, context)

    return make


def bound(engineer: Engineer, meter: Meter | None, context: str | None) -> Engineer:
    """The engineer with these caps and this context. Raises ``RunError`` for one that could ask a model beyond the caps."""
    if isinstance(engineer, ModelEngineer):
        engineer.meter = meter or engineer.meter
        engineer.context = engineer.context if context is None else context_named(context)
    elif meter is not None and meter.has_caps and not isinstance(engineer, PlainEngineer | HumanEngineer):
        raise RunError(
            f"the caps cannot limit {engineer.name}, which is not a ModelEngineer: derive it from that class, or leave the caps out"
        )
    return engineer


def transcript_of(folder: Path, tree: Tree) -> Path:
    """The path of a walk's exchanges."""
    return folder / tree.spec.name / f"transcript-seed{tree.seed}{'-' if tree.label else ''}{tree.label}.jsonl"


def recorded_in(folder: Path, tree: Tree) -> Path:
    """The folder itself, or the one below it that holds a walk through this tree. Raises ``TranscriptError`` if several do."""
    if (folder / tree.spec.name).is_dir():
        return folder
    below = sorted(place.parent for place in folder.glob(f"*/{tree.spec.name}") if place.is_dir())
    if len(below) > 1:
        raise TranscriptError(f"{folder} holds several walks: replay one of {', '.join(map(str, below))}")
    return below[0] if below else folder


def player_of(name: str, mode: str, distances: Distances | None, **options: Any) -> Chooser | Writer:
    """The engineer of this name, in menu or free mode; writers by rule are writers in both, and writers need ``distances``."""
    if mode == "free" or writes_by_rule(name, **options):
        assert distances is not None, "a config that is written is compared with the entries"
        return Writer(by_name(name, mode="free", **options), distances)
    return Chooser(by_name(name, mode="menu", **options))


def reads_menus(name: str) -> bool:
    """Whether it is one of our engineers without a model that reads menus."""
    return name in PLAIN_ENGINEERS and getattr(engineers.make(name), "reads_menus", False)


def writes_by_rule(engineer: str | Engineer, **options: Any) -> bool:
    """Whether it cannot read menus: our other engineers without a model, and users' engineers that derive from them."""
    if not isinstance(engineer, str):
        return isinstance(engineer, PlainEngineer)
    if ":" not in engineer.partition("/")[0]:
        return engineer in PLAIN_ENGINEERS
    own = {key: value for key, value in options.items() if key not in ("transcripts", "meter", "context")}
    try:
        return isinstance(engineers.make(engineer, **own), PlainEngineer)
    except (TypeError, ValueError) as error:  # an unknown option, or an object without propose
        raise UnknownEngineer(str(error)) from error
