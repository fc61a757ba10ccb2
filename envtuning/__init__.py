"""The loop: stages of training, validation, reports, and an engineer between the stages.

The curriculum for your own training script can be used without the loop: ``CurriculumEnv``, ``CurriculumVectorEnv``,
``CurriculumParallelEnv``, ``Ladder``, ``RLlibCurriculumCallback`` and ``SB3CurriculumCallback``.
"""

from __future__ import annotations

import engineers  # noqa: F401  # before all else: from here on Ctrl-C ends a command without a traceback

TYPE_CHECKING = False  # without typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback
    from envtuning.curriculum.sb3_callback import SB3CurriculumCallback
    from envtuning.curriculum.wrappers import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv, Ladder

__all__ = [
    "CurriculumEnv",
    "CurriculumParallelEnv",
    "CurriculumVectorEnv",
    "Ladder",
    "RLlibCurriculumCallback",
    "SB3CurriculumCallback",
]
CALLBACKS = {"RLlibCurriculumCallback": "rllib_callback", "SB3CurriculumCallback": "sb3_callback"}


def __getattr__(name: str) -> Any:
    """Imported when asked for: the wrappers need PettingZoo, each callback its trainer."""
    if name not in __all__:
        raise AttributeError(f"module 'envtuning' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"envtuning.curriculum.{CALLBACKS.get(name, 'wrappers')}"), name)
