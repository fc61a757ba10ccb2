"""``Ladder``: a curriculum of given configs, from the first to the last."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from envtuning.curriculum.curriculum import Config, Curriculum, Fits
from envtuning.errors import RunError
from envtuning.outcomes import Outcome

ROUNDING = 1e-9  # relative: 0.55 * 100 is above 55


class Ladder(Curriculum):
    """One rung up when ``threshold`` of the last ``window`` episodes succeeded.

    Every ``curriculum`` argument takes it. Several ``CurriculumEnv`` (or ``CurriculumParallelEnv``) of one process may share one:
    each takes the current rung at its own next reset.
    """

    def __init__(self, configs: Sequence[Config], *, threshold: float = 0.8, window: int = 100) -> None:
        if isinstance(configs, BaseModel):
            raise ValueError(
                f"configs is a {type(configs).__name__}: give a list of configs, from the first to the last"
            )
        if not configs:
            raise ValueError("a Ladder of 0 configs: give at least one")
        if not 0 < threshold <= 1 or window < 1:
            raise ValueError(f"threshold={threshold}, window={window}: give 0 < threshold ≤ 1 and window ≥ 1")
        self.configs = list(configs)
        self.threshold = threshold
        self.rung = 0
        self.config = self.configs[0]
        self._successes: deque[float] = deque(maxlen=window)

    def __str__(self) -> str:
        last, window = len(self._successes), self._successes.maxlen
        top = len(self.configs) - 1
        then = f"{100 * self.threshold:.6g}% of {window} lead on" if self.rung < top else "it is the last"
        return (
            f"Ladder: rung {self.rung}, of 0 to {top}; {sum(self._successes):g} of the last {last} episodes on it "
            f"succeeded, and {then}"
        )

    def __call__(self, success: float) -> Config | None:
        """Count an episode's success, or the success rate that a trainer logs; the next config if this rung is mastered."""
        self._successes.append(success)
        return self.next()

    def observe(self, outcome: Outcome) -> None:
        self._successes.append(outcome.success)

    def decide(self) -> Config | None:
        """The next rung's config if this one is mastered."""
        full = len(self._successes) == self._successes.maxlen
        mastered = full and sum(self._successes) >= self.threshold * len(self._successes) * (1 - ROUNDING)
        if not mastered or self.rung + 1 == len(self.configs):
            return None
        self.rung += 1
        self._successes.clear()
        return self.configs[self.rung]

    def take_back(self, error: Exception) -> None:
        self.rung -= 1
        self._successes.clear()

    def attach(self, fits: Fits) -> None:
        for config in reversed(self.configs):  # the last is likely to need the most room
            fits(config)

    def metrics(self) -> dict[str, float]:
        return {"rung": float(self.rung)}

    def settings(self) -> dict[str, Any]:
        return {"threshold": self.threshold, "window": self._successes.maxlen}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"rung": self.rung, "successes": list(self._successes), "config": None}

    def load_state_dict(self, state: dict[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        rung = int(state.get("rung", 0))
        if not 0 <= rung < len(self.configs):
            raise RunError(
                f"the saved state is on rung {rung}, and this Ladder has {len(self.configs)}: give all configs"
            )
        self.raise_unless_of_this_kind(state)
        successes = [float(success) for success in state["successes"]]
        super().load_state_dict(state | {"config": self.config}, renamed)  # none was saved: the rung says it
        self.rung, self.config = rung, self.configs[rung]
        self._successes.clear()
        self._successes.extend(successes)
