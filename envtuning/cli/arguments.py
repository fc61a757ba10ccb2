"""The arguments that several commands share, and their effect on a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from engineers.plain.open_loop import OPEN_LOOP
from engineers.shared import own
from engineers.shared.untrusted import NotReadable
from envtuning.runs.reading import read_value
from envtuning.runs.sections import HIGHEST_SEED
from envtuning.runs.spec import RunSpec, SpecError


def trust_names(words: list[str] | None) -> list[str] | None:
    """Names are trusted as ``--trust`` gives them, several in a word separated by commas."""
    own.trust(name for word in words or () for name in listed(word))
    return words


def trust_typed(words: Any) -> Any:
    """Words of the command line may name modules and hosts."""
    own.trust(own.chosen_in(words))
    return words


def trust_engineers(words: str | None) -> str | None:
    """The user chose these engineers, separated by commas, with the model or the file after the slash."""
    if words is not None:
        own.trust([own.OPTION + "engineer.name", *own.chosen_in(listed(words))])
    return words


def listed(words: str) -> list[str]:
    """The names in a text that separates them by commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


Run = Annotated[Path, typer.Argument(help="The folder of a run.")]
Runs = Annotated[
    list[Path],
    typer.Argument(help="Folders of runs; a folder that holds runs, such as a comparison's, stands for all of them."),
]
Engineer = Annotated[
    str | None,
    typer.Option(
        callback=trust_engineers,
        help="The engineer, which writes the next config: steady, rules, fixed, random, uniform, openai/MODEL, local/MODEL, …",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A key of the run's file and its value: trainee.options.lr=3e-4. May be given several times."
    ),
]
Observed = Annotated[
    list[str] | None,
    typer.Option(
        "--observer",
        callback=trust_typed,
        help="Your own observer, as package.module:factory. May be given several times.",
    ),
]
Trusted = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        envvar="ENVTUNING_TRUST",
        callback=trust_names,
        help="Allow a run's file to use this: a module, a host for your API key (host:NAME), or an option (option:PLACE). Several are separated by commas (docs/trust.md).",
    ),
]

OnRay = Annotated[
    bool,
    typer.Option(
        "--ray",
        help="Run on the Ray cluster at RAY_ADDRESS, as many runs at a time as fit; `--jobs` is ignored (docs/cluster.md).",
    ),
]

MOST_SEEDS = 10_000


def adjusted(
    spec: RunSpec,
    *,
    engineer: str | None = None,
    stages: int | None = None,
    context: str | None = None,
    max_cost: float | None = None,
) -> RunSpec:
    """The spec with the changes from the command line."""
    if stages is not None:
        spec = spec.with_rounds(stages)
    changed = spec.engineer
    if engineer is not None:
        changed = changed.replaced_by(engineer)
    extra = {"context": context, "max_cost": max_cost}
    options = changed.options | {name: value for name, value in extra.items() if value is not None}
    return spec.model_copy(update={"engineer": changed.model_copy(update={"options": options})})


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """``trainee.options.lr=3e-4`` by its dotted key; values are read as YAML."""
    changes: dict[str, Any] = {}
    for setting in settings or []:
        key, sign, value = setting.partition("=")
        if not sign or not all(key.split(".")):
            raise SpecError(f"--set {setting!r}: write KEY=VALUE with a dotted key, such as trainee.options.lr=3e-4")
        try:
            changes[key] = read_value(value)
        except NotReadable as error:
            raise SpecError(f"--set {setting!r:.200}: {value!r:.60} {error}") from error
    return changes


def parse_seeds(text: str) -> list[int]:
    """'3' is 0, 1, 2; '4,7' is 4 and 7; '4,' is only 4."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SpecError(f"seeds {text!r:.60}: give a number of seeds, or a list such as 0,4,7") from None
    listed = "," in text
    count = numbers[0] if numbers and not listed else len(numbers)
    if count > MOST_SEEDS:
        raise SpecError(f"seeds {text!r:.60}: at most {MOST_SEEDS:,} runs at a time")
    chosen = numbers if listed else list(range(count))
    if not chosen or min(chosen) < 0 or max(chosen) > HIGHEST_SEED or len(set(chosen)) != len(chosen):
        raise SpecError(f"seeds {text!r}: give at least one seed, none below 0 or above {HIGHEST_SEED:,}, none twice")
    return chosen


def run_name(spec: RunSpec) -> str:
    """The preset's name, and the engineer's name if it is not the preset's own."""
    named_after = spec.engineer.name.replace("/", "_").replace(":", "_").replace("#", "_")
    writes = spec.asks_an_engineer or spec.engineer.name in OPEN_LOOP
    return f"{spec.name}-{named_after}" if writes and named_after != spec.name else spec.name
