"""Samplers: curricula without an engineer, which turn shares by training's own successes. Rivals, or all that you want.

- ``Learnability``: a slice gets data by p(1 − p), its success p in the last stage. With ``group``, replies are drawn in groups of n
  (as in GRPO), and it gets data by the chance that a group has a signal, 1 − pⁿ − (1 − p)ⁿ.
- ``Thompson``: many draws of each slice's success from what is known of it, older outcomes fading; a slice gets data as often as its
  draw is the most learnable.
- ``Pools``: the pools of prime-rl's ``DifficultyPoolSampler``. Hard slices and easy ones get a fifth of the weight of the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from engineers.knobs import dump, find_knobs, with_values
from engineers.plain.shares import checked_floor, mixed_with_uniform
from engineers.roles import find_slices, share_of, shares_in
from engineers.shared.counts import short
from envtuning.curriculum.curriculum import Column, Config, Curriculum
from envtuning.curriculum.slices import Slices, adapted
from envtuning.errors import SpecError
from envtuning.outcomes import Arriving, Outcome, Tally

Rates = NDArray[np.float64]


class Sampler(Curriculum):
    """Sets the config's shares anew after every ``every`` episodes; ``floor`` is the part of the data that all slices get alike."""

    def __init__(self, config: BaseModel, *, every: int = 500, floor: float = 0.2) -> None:
        if not isinstance(config, BaseModel):
            raise SpecError(f"config is a {type(config).__name__}: give a pydantic model, whose shares are turned")
        if every < 1:
            raise SpecError(f"every={every}: give at least 1 episode")
        self.config, self.every, self.floor = config, every, checked_floor(floor)
        self.slices = Slices(config)
        self.names = self.slices.names
        if len(self.names) < 2:
            raise SpecError(
                f"{type(self).__name__} turns the shares of slices, and the config has one: give two or more"
            )
        self._seen = Arriving()  # since the shares were set
        self.stage, self._looked = 0, False

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {short(part)}" for name, part in shares_in(self.config).items())
        return f"{type(self).__name__}: {self.stage} stages, now {parts}; {self._seen.episodes:,} of {self.every:,} episodes to new shares"

    def observe(self, outcome: Outcome) -> None:
        self.slices.raise_unless_known([outcome.slice])
        self._seen.observe(outcome)

    def observe_many(
        self, slices: Column, successes: Column, scores: Column | None = None, further: Column | None = None
    ) -> None:
        self._seen.observe_many(slices, successes, scores, further)
        if not self._looked:  # at the first episodes; at all of them, once a stage
            self._looked = True
            self.slices.raise_unless_known(self._seen.read().first)

    def decide(self) -> Config | None:
        if self._seen.episodes < self.every:
            return None
        tally = self._seen.read()
        self.slices.raise_unless_known(tally.first)
        counted = [tally.first.get(name) for name in self.names]
        won = np.array([counts.successes if counts else 0 for counts in counted], float)
        played = np.array([counts.episodes if counts else 0 for counts in counted], float)
        self._seen, self.stage = Arriving(), self.stage + 1
        parts = mixed_with_uniform(dict(zip(self.names, self.weights(won, played).tolist(), strict=True)), self.floor)
        return _with_shares(self.config, parts)

    def draws_alike(self, config: Config) -> bool:
        return self.slices.drawn_alike(dump(self.config), dump(config))

    @abstractmethod
    def weights(self, won: Rates, played: Rates) -> Rates:
        """Each slice's weight, from its successes and episodes since the last call."""

    def metrics(self) -> dict[str, float]:
        """The shares, and since they were set, successes and mean scores by slice."""
        shares = {f"share/{name}": part for name, part in shares_in(self.config).items()}
        return shares | self._seen.read().as_logged()

    def settings(self) -> dict[str, Any]:
        return {"every": self.every}

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"stage": self.stage, "slices": self.names, "tally": self._seen.read().dump()}

    def load_state_dict(self, state: dict[str, Any], renamed: Mapping[str, str] | None = None) -> None:
        self.raise_unless_of_this_kind(state)
        self._take(adapted(state, self.config, renamed or {}))

    def _take(self, state: dict[str, Any]) -> None:
        """A state with an entry for each slice of the config. A subclass reads its own part, calls this, and only then sets its own."""
        stage, seen = int(state["stage"]), Arriving(Tally.model_validate(state["tally"]))
        super().load_state_dict(state)
        self.stage, self._seen = stage, seen

    def _of_each(self, state: dict[str, Any], part: str) -> Rates:
        found = np.array(state[part], float)
        if found.shape != (len(self.names),):
            raise ValueError(f"{part} has no number for each slice")
        return found


class _ByRate(Sampler):
    """Reads the success of the last stage; a slice that was not played keeps its rate, and one that never was has 1/2."""

    def __init__(self, config: BaseModel, *, every: int = 500, floor: float = 0.2) -> None:
        super().__init__(config, every=every, floor=floor)
        self._rates = np.full(len(self.names), 0.5)

    def weights(self, won: Rates, played: Rates) -> Rates:
        self._rates = np.where(played > 0, won / np.maximum(played, 1), self._rates)
        return self.of_rates(self._rates)

    @abstractmethod
    def of_rates(self, rates: Rates) -> Rates: ...

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"rates": self._rates.tolist()}

    def _take(self, state: dict[str, Any]) -> None:
        rates = self._of_each(state, "rates")
        super()._take(state)
        self._rates = rates


class Learnability(_ByRate):
    """By p(1 − p), or for groups of n replies by the chance that a group has a signal."""

    def __init__(self, config: BaseModel, *, every: int = 500, floor: float = 0.2, group: int | None = None) -> None:
        super().__init__(config, every=every, floor=floor)
        if group is not None and group < 2:
            raise SpecError(f"group={group}: a group has at least 2 replies")
        self.group = group

    def of_rates(self, rates: Rates) -> Rates:
        if self.group is None:
            return rates * (1 - rates)
        return 1 - rates**self.group - (1 - rates) ** self.group


class Pools(_ByRate):
    """By prime-rl's pools: success up to 0.25 is hard, above 0.75 easy."""

    HARD, EASY, ASIDE = 0.25, 0.75, 0.2

    def __init__(self, config: BaseModel, *, every: int = 500, floor: float = 0.0) -> None:
        super().__init__(config, every=every, floor=floor)

    def of_rates(self, rates: Rates) -> Rates:
        return np.where((rates <= self.HARD) | (rates > self.EASY), self.ASIDE, 1.0)


class Thompson(Sampler):
    """By draws from each slice's Beta posterior, whose older outcomes fade by ``decay`` a stage."""

    def __init__(
        self,
        config: BaseModel,
        *,
        every: int = 500,
        floor: float = 0.2,
        draws: int = 64,
        decay: float = 0.5,
        seed: int = 0,
    ) -> None:
        super().__init__(config, every=every, floor=floor)
        if draws < 1 or not 0 <= decay <= 1:
            raise SpecError(f"draws={draws}, decay={decay}: give at least 1 draw, and a decay from 0 to 1")
        self.draws, self.decay, self.seed = draws, decay, seed
        self._won, self._lost = np.zeros(len(self.names)), np.zeros(len(self.names))

    def weights(self, won: Rates, played: Rates) -> Rates:
        self._won = self.decay * self._won + won
        self._lost = self.decay * self._lost + played - won
        rng = np.random.default_rng((self.seed, self.stage))
        drawn = rng.beta(1 + self._won, 1 + self._lost, (self.draws, len(self.names)))
        best = (drawn * (1 - drawn)).argmax(axis=1)
        return np.bincount(best, minlength=len(self.names)) / self.draws

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"won": self._won.tolist(), "lost": self._lost.tolist()}

    def _take(self, state: dict[str, Any]) -> None:
        won, lost = self._of_each(state, "won"), self._of_each(state, "lost")
        super()._take(state)
        self._won, self._lost = won, lost


def _with_shares(config: BaseModel, parts: dict[str, float]) -> BaseModel:
    slices = [piece for piece in find_slices(find_knobs(config, ("*",))) if piece.share is not None]
    return with_values(
        config,
        {piece.share.path: share_of(piece.share, parts[piece.name]) for piece in slices if piece.share is not None},
    )
