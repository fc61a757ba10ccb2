"""What a run's file may set, listed from the code: ``python -m benchmarks.from_file`` writes the list into docs/trust.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from engineers.common_options import COMMON_FROM_FILE
from engineers.from_file import Allowed, allowed_in
from engineers.registry import BACKENDS
from engineers.shared.own import object_at
from envtuning.trainees import KINDS, LIVE
from envtuning.worlds.registry import WORLDS

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"
BEGIN, END = "<!-- made from the code -->\n", "<!-- to here -->\n"


def declared(place: str) -> Allowed:
    """What a file may set of what is at this place, when its user trusts nothing."""
    return allowed_in(object_at(place), place) or {}


def tables() -> Iterator[tuple[str, Allowed]]:
    """Each section of a run's file with the options that it may have."""
    for name, place in WORLDS.items():
        yield f"world `{name}`", declared(place)
    for kind, known in sorted(KINDS.items()):
        yield f"trainee `{kind}`", declared(known.place)
    yield "any engineer", COMMON_FROM_FILE
    for name, place in (BACKENDS | LIVE).items():
        yield f"engineer `{name}`", declared(place)


def listed(allowed: Allowed) -> str:
    return ", ".join(
        f"`{name}` ({listed(kind)})" if isinstance(kind, Mapping) else f"`{name}`"
        for name, kind in sorted(allowed.items())
    )


def page_list() -> str:
    lines: dict[str, str] = {}  # by what is listed: engineers that may be told the same stand in one line
    for section, allowed in tables():
        if allowed:
            said = listed(allowed)
            lines[said] = f"{lines[said]}, `{section.split('`')[1]}`" if said in lines else section
    return "| of | a file may set |\n| --- | --- |\n" + "".join(f"| {of} | {said} |\n" for said, of in lines.items())


def parts() -> tuple[str, str, str]:
    """The page before the list, the list, and what follows."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    found, _, after = rest.partition(END)
    return before + BEGIN, found, END + after


if __name__ == "__main__":
    before, _, after = parts()
    PAGE.write_text(before + page_list() + after, encoding="utf-8")
