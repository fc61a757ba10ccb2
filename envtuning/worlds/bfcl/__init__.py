"""Multi-turn tool use: the Berkeley Function-Calling Leaderboard's multi-turn part as an environment and a world.

``import envtuning.worlds.bfcl`` registers ``BFCLMultiTurn-v0``. The benchmark itself is the package ``bfcl-eval``:
``python -m envtuning.worlds.bfcl install`` gets it without its requirements.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envtuning.worlds.bfcl.package import PackageError, load

__all__ = ["PackageError", "load"]

ENV_ID = "BFCLMultiTurn-v0"


def __getattr__(name: str) -> Any:
    """Import at first use: ``python -m envtuning.worlds.bfcl`` runs this module before it can handle Ctrl-C."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from envtuning.worlds.bfcl import package

    return getattr(package, name)


def register_env() -> None:
    """Make the id known to ``gym.make``, once."""
    import gymnasium

    if ENV_ID not in gymnasium.registry:
        gymnasium.register(
            ENV_ID,
            entry_point="envtuning.worlds.bfcl.env:BFCLMultiTurnEnv",
            order_enforce=False,  # the environment checks it
            disable_env_checker=True,
        )


if sys.orig_argv[1:3] != ["-m", __name__]:  # the command makes no environment, and gymnasium is slow to import
    register_env()
