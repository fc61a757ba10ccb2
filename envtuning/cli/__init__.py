"""The commands: run, resume (``runs``); presets; compare, study (``studies``); show, report, tensorboard, replay (``views``); pretrain,
evaluate (``language``); credit; atlas, a group; openenv.

``arguments`` is what they read, ``base`` the command line itself. ``app`` has all of them; a command that was typed imports its own
module alone (``envtuning.__main__``).
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

MODULES = (
    "runs",
    "presets",
    "studies",
    "views",
    "language",
    "credit",
    "atlas",
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
