"""``LakeTrainee``: the common part of the trainees on lakes; subclasses sample and take the gradient steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from envtuning.outcomes import Tally
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee, TrainingDiverged
from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.lakes.policy import SharedPolicy
from envtuning.trainees.lakes.sampler import Ended, joined
from envtuning.trainees.process_state import process_state
from envtuning.trainees.visited import Visited
from envtuning.worlds.lakes.world import raise_unless_lakes
from envtuning.worlds.world import Form, InfeasibleConfig
from mapf_frozenlake import GenerationError, LakeConfig
from mapf_frozenlake.types import MAX_SIZE
from mapf_frozenlake.world.layout import EgoLayout, checked_window

LATELY = 10  # iterations over which a call's rates are taken and its gradient's norm is smoothed


class LakeTrainee(Trainee):
    """One policy shared by all agents, over the observation "ego". ``options`` are those of ``options_type``."""

    in_words = (
        "PPO from the config's reward; one neural policy that all agents share, each from what it sees around it."
    )
    outcomes_in_words = "Each agent samples its actions."
    form: Form = "acts"
    reports = frozenset({"success_rate", "valid_rate", "grad_norm", "loss", "entropy"})
    late_rates = ("entropy",)
    options_type: ClassVar[type[LakeOptions]]

    def __init__(
        self,
        *,
        capacity: Mapping[str, Any],
        world: Any = None,
        exclude: Sequence[Any] = (),
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.options: Any = self.options_type(**options)
        self.env_kwargs: dict[str, Any] = {
            "observation": "ego",
            "window": self.window_in(capacity, **options),
            "hints": self.options.hints,
            "max_size": capacity["max_size"],
            "max_agents": capacity["max_agents"],
        }
        self.lake_kwargs = self.env_kwargs | {"exclude": list(exclude), "pool_size": self.options.pool_size}
        self.visited = Visited()  # the boards of ended episodes
        self.tally = Tally()  # of the episodes that the latest iteration ended
        self.make(seed)

    @classmethod
    def check_world(cls, world: Any) -> None:
        raise_unless_lakes(world)

    @classmethod
    def check_options(cls, **options: Any) -> None:
        """Raises ``ValueError`` for unknown or wrong options, without starting anything."""
        checked_window(cls.options_type(**options).window, MAX_SIZE)

    @classmethod
    def resources(cls, **options: Any) -> Sequence[Mapping[str, float]]:
        return ({"CPU": cls.options_type(**options).torch_threads},)

    @classmethod
    def window_in(cls, capacity: Mapping[str, Any], **options: Any) -> int:
        """The side of an agent's window: a network plays only with the side that it was trained with."""
        return checked_window(cls.options_type(**options).window, capacity["max_size"])

    @abstractmethod
    def make(self, seed: int) -> None:
        """Make the parts that sample and learn, with weights drawn by this seed."""

    @abstractmethod
    def begin(self, config: LakeConfig, seed: int) -> Callable[[], Metrics]:
        """Start every lake anew on this config, with all randomness from the seed; returns a function that does one iteration."""

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        try:
            with process_state(seed, self.options.torch_threads):
                return self._iterate(self.begin(config, seed), budget, on_iteration)
        except GenerationError as error:  # at the first draw, or at a later one
            raise InfeasibleConfig(str(error)) from error

    def new_network(self) -> AgentNetwork:
        """A network with new weights."""
        return AgentNetwork(EgoLayout(self.env_kwargs["window"], self.options.hints), **self.options.network)

    @abstractmethod
    def copied_network(self) -> AgentNetwork:
        """A copy of the current network."""

    @abstractmethod
    def weights_are_finite(self) -> bool:
        """Whether every weight is finite."""

    def policy(self) -> SharedPolicy:
        """A copy of the current policy; it acts at ``options.temperature``."""
        return SharedPolicy(self.copied_network(), self.env_kwargs, temperature=self.options.temperature)

    def count(self, ended: Iterable[Ended]) -> None:
        """Sum up the episodes that this iteration ended, by each sampler."""
        every = joined(ended)
        self.tally = Tally()
        self.tally.observe_many(
            every.slices,
            every.valid,
            every.scores,
            failures=every.failures,
            repeats=self.visited.repeats_in_turn(every.boards),
        )

    def _iterate(self, once: Callable[[], Metrics], budget: int, on_iteration: OnIteration | None) -> Metrics:
        """Iterate until ``budget`` env steps are spent; returns the call's metrics."""
        history: list[Metrics] = []
        while sum(done["env_steps"] for done in history) < budget:
            history.append(once())
            if on_iteration is not None:  # first, so that the steps of a divergence count too
                on_iteration({**history[-1], OUTCOMES: self.tally})
            self._raise_unless_finite(history[-1])
        return summary(history)

    def _raise_unless_finite(self, metrics: Metrics) -> None:
        wrong = [name for name in ("loss", "grad_norm") if not math.isfinite(metrics[name])]
        if not self.weights_are_finite():
            wrong.append("weights")
        if wrong:
            raise TrainingDiverged(
                f"{', '.join(wrong)} not finite: continue from the last checkpoint with a lower learning rate "
                f"(lr={self.options.lr}) or a smaller grad_clip ({self.options.grad_clip})"
            )


def summary(history: list[Metrics]) -> Metrics:
    """A call's metrics: sums of the counts, rates over its last iterations, and the smoothed norm of the gradient."""
    late = history[-LATELY:]
    episodes = max(1.0, sum(done["episodes"] for done in late))
    found = dict(history[-1])
    for name in ("success_rate", "valid_rate"):
        found[name] = sum(done[name] * done["episodes"] for done in late) / episodes
    found["grad_norm"] = sum(done["grad_norm"] for done in late) / len(late)
    for name in ("env_steps", "episodes", "workers_lost"):
        if any(name in done for done in history):
            found[name] = sum(done.get(name, 0.0) for done in history)
    return found
