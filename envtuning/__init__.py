"""The loop: stages of training, validation, reports, and an engineer between the stages.

``run(spec, folder)`` runs a spec to its end. A ``World`` is an environment for the loop; a ``Trainee`` is a learner.

The curriculum for your own training script can be used without the loop: ``CurriculumEnv``, ``CurriculumVectorEnv``,
``CurriculumParallelEnv``, ``EngineerCurriculum`` (fed by ``Outcome``), ``Ladder``, the samplers ``Learnability``, ``Thompson`` and ``Pools``,
``RLlibCurriculumCallback`` and ``SB3CurriculumCallback``.
"""

from __future__ import annotations

TYPE_CHECKING = False  # without typing, because its import takes longer than this whole module
if TYPE_CHECKING:
    from typing import Any

    from envtuning.curriculum.engineer_curriculum import EngineerCurriculum as EngineerCurriculum
    from envtuning.curriculum.ladder import Ladder as Ladder
    from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback as RLlibCurriculumCallback
    from envtuning.curriculum.samplers import Learnability as Learnability
    from envtuning.curriculum.samplers import Pools as Pools
    from envtuning.curriculum.samplers import Thompson as Thompson
    from envtuning.curriculum.sb3_callback import SB3CurriculumCallback as SB3CurriculumCallback
    from envtuning.curriculum.wrappers import CurriculumEnv as CurriculumEnv
    from envtuning.curriculum.wrappers import CurriculumParallelEnv as CurriculumParallelEnv
    from envtuning.curriculum.wrappers import CurriculumVectorEnv as CurriculumVectorEnv
    from envtuning.loop.run import start as run  # noqa: F401
    from envtuning.outcomes import Outcome as Outcome
    from envtuning.trainees.base import Trainee as Trainee
    from envtuning.worlds.world import World as World

HOMES = {
    "World": "worlds.world",
    "Trainee": "trainees.base",
    "run": "loop.run:start",
    **dict.fromkeys(("CurriculumEnv", "CurriculumParallelEnv", "CurriculumVectorEnv"), "curriculum.wrappers"),
    "EngineerCurriculum": "curriculum.engineer_curriculum",
    "Ladder": "curriculum.ladder",
    "Outcome": "outcomes",
    **dict.fromkeys(("Learnability", "Pools", "Thompson"), "curriculum.samplers"),
    "RLlibCurriculumCallback": "curriculum.rllib_callback",
    "SB3CurriculumCallback": "curriculum.sb3_callback",
}
__all__ = [*HOMES]


def __getattr__(name: str) -> Any:
    """Import at first use, because the wrappers need PettingZoo, and each callback its trainer."""
    if name not in HOMES:
        raise AttributeError(f"module 'envtuning' has no attribute {name!r}")
    from importlib import import_module

    home, _, there = HOMES[name].partition(":")
    return getattr(import_module(f"envtuning.{home}"), there or name)


def __dir__() -> list[str]:
    """For completion, which imports none of them."""
    return sorted({*globals(), *__all__})
