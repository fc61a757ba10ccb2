"""The worlds by name. Each is imported at first use."""

from __future__ import annotations

from inspect import signature
from typing import Any

from engineers.from_file import NotAllowed, allowed_in, raise_unless_allowed
from engineers.shared.own import NotTrusted, chosen, declares, object_at
from envtuning.errors import SpecError
from envtuning.worlds.world import World

DEFAULT_WORLD = "lakes"
WORLDS: dict[str, str] = {
    "lakes": "envtuning.worlds.lakes.world:LakeWorld",
    "tools": "envtuning.worlds.bfcl.world:BFCLWorld",
    "exam": "envtuning.exam.world:ExamWorld",
    "reasoning-gym": "envtuning.worlds.reasoning_gym:reasoning_gym_world",
    "small-skills": "envtuning.worlds.small_skills:world",
}


class UnknownWorld(SpecError):
    """There is no world of this name, or it does not take these options."""

    @property
    def untrusted(self) -> bool:
        """Whether the world was refused because the user does not trust its module or an option."""
        return isinstance(self.__cause__, NotTrusted | NotAllowed)


def make_world(name: str, /, **options: Any) -> World[Any]:
    """A world in ``WORLDS``, or the ``World`` (a class, a function that makes one, or the object) at ``package.module:object``.

    The caller chose the name and the options, so they are trusted.
    """
    chosen("world", {"name": name, **{f"options.{option}": value for option, value in options.items()}})
    return named_in_a_file(name, options)


def named_in_a_file(name: str, options: dict[str, Any]) -> World[Any]:
    """The same for a name and options that the caller has from a file."""
    place = WORLDS.get(name, name)
    if ":" not in place:
        raise UnknownWorld(
            f"no world {name!r}: the worlds are {', '.join(WORLDS)}, or name your own as 'package.module:object'"
        )
    try:
        found = object_at(place)
    except ImportError as error:
        raise UnknownWorld(f"world {name!r}: {error}") from error
    if isinstance(found, World):
        if options:
            raise UnknownWorld(f"world {name!r} is an object, so it takes no options: leave out {', '.join(options)}")
        return found
    if not declares(found, World):
        raise UnknownWorld(
            f"world {name!r} is not a World: name a class derived from envtuning.worlds.world.World, an object of such a class, "
            "or a function whose return annotation is such a class"
        )
    try:
        signature(found).bind(**options)
        raise_unless_allowed("world.options", options, allowed_in(found, place))
        made = found(**options)
    except (Exception, SystemExit) as error:  # foreign code
        said = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "
        raise UnknownWorld(f"world {name!r} cannot be made with these options: {said}{error}") from error
    if not isinstance(made, World):
        raise UnknownWorld(
            f"world {name!r} is of type {type(made).__name__}, not a World: derive it from envtuning.worlds.world.World"
        )
    return made
