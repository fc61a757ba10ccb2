"""Environment engineering as an environment: an episode is a run, an action is the next config. ``import envtuning.gym`` registers the ids.

``EnvironmentEngineering-v0`` has learners in closed form, by ``gym.make`` or natively by ``gym.make_vec``; ``EnvironmentEngineeringMenu-v0`` has a
stored tree of the atlas. Train on the families of ``DEVELOPMENT``, claim on those of ``HELD_OUT``; on ``NULL`` nothing can be gained.
"""

from __future__ import annotations

import gymnasium

from envtuning.dynamics.families import DEVELOPMENT, HELD_OUT, NULL

__all__ = ["DEVELOPMENT", "ENV_ID", "HELD_OUT", "MENU_ID", "NULL"]

ENV_ID = "EnvironmentEngineering-v0"
MENU_ID = "EnvironmentEngineeringMenu-v0"

if ENV_ID not in gymnasium.registry:
    gymnasium.register(
        ENV_ID,
        entry_point="envtuning.gym.single:EngineeringEnv",
        vector_entry_point="envtuning.gym.vector:EngineeringVectorEnv",
    )
if MENU_ID not in gymnasium.registry:
    gymnasium.register(MENU_ID, entry_point="envtuning.gym.menu:MenuEnv")
