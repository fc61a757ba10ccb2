"""Multi-turn tool use: the Berkeley Function-Calling Leaderboard's multi-turn part as an environment and a world.

``import envtuning.worlds.bfcl`` registers ``BFCLMultiTurn-v0``. The benchmark itself is the package ``bfcl-eval``:
``python -m envtuning.worlds.bfcl install`` gets it without its requirements.
"""

from envtuning.worlds.bfcl.env import register_env
from envtuning.worlds.bfcl.package import PackageError, load

__all__ = ["PackageError", "load"]

register_env()
