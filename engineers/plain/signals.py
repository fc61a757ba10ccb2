"""A report's success rates for each slice, corrected for small numbers of episodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engineers.report import SliceResult, StageRecord, StageReport, trained_on, wilson
from engineers.roles import WHOLE, SliceKnobs

LENT = 10.0  # episodes by which a slice's rate is drawn towards that of all slices
DOUBT = 2.0  # episodes by which the rate of all slices is drawn towards 1/2


@dataclass(frozen=True)
class Rates:
    """Success rates, overall and per slice, each shrunken the more the fewer episodes it has."""

    pooled: float
    episodes: int
    per_slice: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        """The slice's rate; where it was not measured, that of all slices."""
        return self.per_slice.get(name, self.pooled)

    @property
    def nothing(self) -> float:
        """The pooled rate that stands for no success at all: of ten episodes that all fail, shrinkage makes .08."""
        return DOUBT / 2 / (self.episodes + DOUBT)


@dataclass(frozen=True)
class Signals:
    """The trainee's success on its training data and on the target; None if it was not measured."""

    trained: Rates | None
    validated: Rates | None
    standings: Mapping[str, float] = field(default_factory=dict)  # of slices whose training has scores

    @property
    def here(self) -> Rates | None:
        """Success on its training data; if that was not measured separately, on the target."""
        return self.trained or self.validated

    def standing(self, name: str | None = None) -> float:
        """A slice's standing, or the best one; 0 where training has no scores."""
        return max(self.standings.values(), default=0.0) if name is None else self.standings.get(name, 0.0)

    def there(self, name: str | None = None) -> float:
        """Success on the target, overall or in a slice. 0 if it was not measured separately from training, because then
        it is unknown.
        """
        if self.trained is None or self.validated is None:
            return 0.0
        return self.validated.pooled if name is None else self.validated[name]

    def told(self, rate: float, name: str | None = None) -> str:
        """What was measured, for a reason: ``rate`` is that of ``here``. A rate that was not measured is left out, not shown as 0.

        Rates are shrunken, so they are no successes that a reader finds in a log: hence the word.
        """
        if self.trained is None:
            return f"estimated success {rate:.2f} in tests, training not counted"
        if self.validated is None:
            return f"estimated success {rate:.2f} in training, target not tested"
        return f"estimated success {rate:.2f} in training, {self.there(name):.2f} on the target"


def signals(
    report: StageReport | StageRecord, objective: str, slices: Sequence[SliceKnobs], *, towards: float | None = None
) -> Signals:
    """The rates of one stage, under the names that the config's slices have. Only a report, which knows blind guesses, has standings.

    ``towards`` is as in ``rates``.
    """
    flat = [slice_.name for slice_ in slices] == [WHOLE]
    standings = standings_of(trained_on(report), report.blind_scores) if isinstance(report, StageReport) else {}
    if flat and standings:
        standings = {WHOLE: max(standings.values())}
    return Signals(
        rates(trained_on(report), objective, flat=flat, towards=towards),
        rates(report.results, objective, flat=flat, towards=towards),
        standings,
    )


def standings_of(rows: Iterable[SliceResult], blind: Mapping[str, float]) -> dict[str, float]:
    """How far a slice's score surely is from a blind guess (0) to right answers (1): by its interval's lower end."""
    found = {}
    for row in rows:
        if row.score is not None:
            guess = blind.get(row.name, 0.0)
            found[row.name] = max(wilson(row.score, row.episodes)[0] - guess, 0.0) / max(1 - guess, 1e-9)
    return found


def rates(
    results: Iterable[SliceResult], objective: str, *, flat: bool = False, towards: float | None = None
) -> Rates | None:
    """Shrunken rates of the objective; training draws may know it only as ``success_rate``. None without episodes.

    ``flat``: the config is one slice, whatever the results' slices are called. ``towards``: the rate to which few episodes
    of a slice are drawn; by default, that of all slices.
    """
    counted = {}
    for result in results:
        if (rate := result.rate(objective)) is not None:
            counted[result.name] = (rate * result.episodes, result.episodes)
    if not counted:
        return None
    successes = sum(won for won, _ in counted.values())
    episodes = sum(played for _, played in counted.values())
    pooled = (successes + DOUBT / 2) / (episodes + DOUBT)
    prior = pooled if towards is None else towards
    per_slice = {name: (won + LENT * prior) / (played + LENT) for name, (won, played) in counted.items()}
    return Rates(pooled, episodes, {WHOLE: pooled} if flat else per_slice)


def learnability(rate: float) -> float:
    """Variance of one success or failure: if all succeed or all fail, nothing is learnt."""
    return rate * (1.0 - rate)


def variance(rate: float, n: int) -> float:
    """Of a rate over n episodes, with one success and one failure added, so that it is never 0."""
    smoothed = (rate * n + 1) / (n + 2)
    return smoothed * (1 - smoothed) / n
