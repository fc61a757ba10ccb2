"""The commands: run, resume (in ``runs``); presets; compare (``studies``); exam; show, report, tensorboard, replay (``views``);
weights, pretrain, evaluate (``language``); openenv.

``arguments`` has the arguments that several commands share, ``base`` the command line itself. ``app`` has all commands; on the
command line, only the module of the typed command is imported (``envtuning.__main__``).
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

MODULES = (
    "runs",
    "presets",
    "studies",
    "exam",
    "views",
    "language",
    "openenv",
)  # in the order of `envtuning --help`

__all__ = ["MODULES", "app", "app_with"]


def app_with(modules: Iterable[str]) -> Any:
    """The command line, with the commands of these modules."""
    for module in modules:
        import_module(f"envtuning.cli.{module}")
    return import_module("envtuning.cli.base").app


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'envtuning.cli' has no attribute {name!r}")
    return app_with(MODULES)
