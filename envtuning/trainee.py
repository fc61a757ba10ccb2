"""``Trainee``: what the loop needs of anything that learns. Neural policies and language models fit the same four methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mapf_frozenlake import LakeConfig


class TrainingDiverged(RuntimeError):
    """The loss, the gradient or the weights left the finite numbers; the stage's last good checkpoint stands."""


@runtime_checkable
class Trainee(Protocol):
    """Learns on a config, acts, and can be put away and taken out again."""

    def train(self, config: LakeConfig, budget: int, *, seed: int) -> dict[str, float]:
        """Learn for ``budget`` env steps on instances of ``config``; a config swap touches neither weights nor optimiser.

        Returns metrics with at least ``env_steps`` (really taken), ``success_rate`` and ``grad_norm``.
        Raises ``TrainingDiverged`` when the numbers stop being finite.
        """
        ...

    def policy(self) -> Any:
        """What ``mapf_frozenlake.evaluate`` takes: the trainee as it is now, acting without learning."""
        ...

    def save(self, folder: Path) -> None:
        """Write everything that ``load`` needs, random state included."""
        ...

    def load(self, folder: Path) -> None: ...
