"""The sentence that says which extra to install when an import fails."""

from __future__ import annotations

from importlib.util import find_spec


def require(*modules: str, extra: str) -> None:
    """Raise ``ImportError`` with the command that installs ``extra`` when a module is missing. Imports nothing."""
    missing = [name for name in modules if not _is_installed(name)]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: {how_to_install(extra)}",
            name=missing[0],
        )


def needs(what: str, error: ImportError, extra: str = "rllib") -> ModuleNotFoundError:
    """The error for an import that failed because an extra is missing; by default the extra of loop and RLlib."""
    missing = (error.name or str(error)).partition(".")[0]
    return ModuleNotFoundError(f"{what} needs {missing}: {how_to_install(extra)}", name=error.name)


def how_to_install(extra: str) -> str:
    return f'pip install "mapf-frozenlake[{extra}]", or in a checkout pip install -e ".[{extra}]"'


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent package of a dotted name is missing
        return False
