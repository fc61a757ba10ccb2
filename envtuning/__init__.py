"""The loop: stages of training, validation, reports, and an engineer between the stages.

The curriculum for training of your own stands by itself: ``CurriculumEnv``, ``CurriculumVectorEnv``,
``CurriculumParallelEnv``, ``Ladder`` and ``RLlibCurriculumCallback``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envtuning.rllib_callback import RLlibCurriculumCallback
    from envtuning.wrappers import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv, Ladder

__all__ = ["CurriculumEnv", "CurriculumParallelEnv", "CurriculumVectorEnv", "Ladder", "RLlibCurriculumCallback"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: the wrappers need PettingZoo, the callback needs Ray."""
    if name not in __all__:
        raise AttributeError(f"module 'envtuning' has no attribute {name!r}")
    return getattr(
        import_module("envtuning.rllib_callback" if name.startswith("RLlib") else "envtuning.wrappers"), name
    )
