"""What the page shows before anything else: what was trained on, what it led to, and why the engineer changed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean

from engineers.proposal import Change
from engineers.roles import natural_key
from envtuning.show.page.figures import Arm
from envtuning.show.page.line_chart import colour
from envtuning.show.page.view import Rated, RunView

MOST_SLICES = 5  # with a colour and a name; the others share one
MOST_STAGES = 6  # as bars; of more, the first and the last are among them
MOST_ARMS = 4  # as sentences
MOST_CHANGES = 3  # with their reasons
OTHERS = "#9fb3c1"


@dataclass(frozen=True)
class Decision:
    """What the engineer answered to one report, as far as there is room for it."""

    stage: int  # the one that was trained on the changed config
    changes: Sequence[Change]  # the largest first
    left_out: int


@dataclass(frozen=True)
class Part:
    name: str
    colour: str


@dataclass(frozen=True)
class FirstScreen:
    run: RunView  # the one whose shares and reasons are shown
    bars: str
    parts: list[Part]
    outcomes: list[str]
    decision: Decision | None


def first_screen(runs: Sequence[RunView], arms: Sequence[Arm]) -> FirstScreen:
    """About the run whose data moved most, and about the outcome of every arm."""
    run = max(runs, key=_moved)
    named = _named(run)
    parts = [Part(run.about.label(name), colour(number)) for number, name in enumerate(named)]
    if len(_slices(run)) > len(named):
        parts.append(Part(f"{len(_slices(run)) - len(named)} others", OTHERS))
    return FirstScreen(run, _bars(run, named), parts, [_outcome(arm) for arm in arms[:MOST_ARMS]], _decision(run))


def _slices(run: RunView) -> list[str]:
    return sorted({name for stage in run.stages for name in run.shares(stage)}, key=natural_key)


def _named(run: RunView) -> list[str]:
    """The slices whose shares change most, in natural order."""
    told = [run.shares(stage) for stage in run.stages]

    def change(name: str) -> float:
        shares = [one.get(name, 0.0) for one in told]
        return max(shares) - min(shares)

    return sorted(sorted(_slices(run), key=change, reverse=True)[:MOST_SLICES], key=natural_key)


def _turn(run: RunView, number: int) -> float:
    """The part of the data that moved between this stage and the one before."""
    before, now = run.shares(run.stages[number - 1]), run.shares(run.stages[number])
    return sum(abs(now.get(name, 0.0) - before.get(name, 0.0)) for name in before.keys() | now.keys()) / 2


def _moved(run: RunView) -> float:
    return sum(_turn(run, number) for number in range(1, len(run.stages)))


def _bars(run: RunView, named: Sequence[str]) -> str:
    """One bar a stage; its pieces are the slices' shares of that stage's data."""
    stages, width, left, row = run.stages, 340.0, 52.0, 17.0
    if len(stages) > MOST_STAGES:
        stages = [stages[round(i * (len(stages) - 1) / (MOST_STAGES - 1))] for i in range(MOST_STAGES)]
    drawn = []
    for line, stage in enumerate(stages):
        shares, x, y = run.shares(stage), left, line * row
        drawn.append(f'<text x="0" y="{y + 11:g}">stage {stage.number}</text>')
        pieces = [(run.about.label(name), shares.get(name, 0.0), colour(at)) for at, name in enumerate(named)]
        rest = sum(shares.values()) - sum(share for _, share, _ in pieces)
        for name, share, fill in [*pieces, ("others", rest, OTHERS)]:
            length = share * (width - left)
            if length > 0.01:
                said = f"<title>{escape(name)}: {100 * share:.0f} %</title>"
                drawn.append(
                    f'<rect x="{x:.1f}" y="{y:g}" width="{length:.1f}" height="13" fill="{fill}">{said}</rect>'
                )
            x += length
    height = max(len(stages), 1) * row
    return f'<svg class="bars" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="share of the data by stage">{"".join(drawn)}</svg>'


def _outcome(arm: Arm) -> str:
    """One sentence: the objective after the first stage and at the end, in the test if it was opened by all runs."""
    about = arm.runs[0].about
    tested = all(run.test for run in arm.runs)
    ends = [run.tested(about.objective) if tested else _validated(run, -1) for run in arm.runs]
    reached = [rate for rate in ends if rate]
    if len(reached) < len(arm.runs):
        return f"{arm.name}: nothing measured yet"
    told = f"{about.headings[about.objective]} in {'the test' if tested else 'validation'}"
    if len(reached) > 1:
        return f"{arm.name}: {100 * fmean(rate for rate, *_ in reached):.1f} % {told}, mean of {len(reached)} seeds"
    ((rate, low, high),) = reached
    begun = arm.runs[0].tested(about.objective, "first") if tested else _validated(arm.runs[0], 0)
    begins = f"{100 * begun[0]:.1f} % after the first stage, " if begun else ""
    return f"{arm.name}: {begins}{100 * rate:.1f} % [{100 * low:.0f}, {100 * high:.0f}] {told}"


def _validated(run: RunView, stage: int) -> Rated | None:
    return run.done[stage].rate(run.about.objective) if run.done else None


def _decision(run: RunView) -> Decision | None:
    """The answer that moved most data, else the last one that changed anything."""
    found = [
        (_turn(run, stage.number + 1), stage.number + 1, stage.answer.proposal.reasons)
        for stage in run.stages[:-1]
        if stage.answer and stage.answer.proposal and stage.answer.proposal.reasons
    ]
    if not found:
        return None
    _, number, changes = max(found, key=lambda one: one[:2])
    largest = dict[str, Change]()  # rules give one reason for many knobs: each reason is told once
    for change in sorted(changes, key=_size, reverse=True):
        largest.setdefault(change.reason, change)
    told = list(largest.values())[:MOST_CHANGES]
    return Decision(number, told, len(changes) - len(told))


def _size(change: Change) -> float:
    numbers = isinstance(change.old, int | float) and isinstance(change.new, int | float)
    return abs(change.new - change.old) if numbers else 1.0
