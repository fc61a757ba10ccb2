"""``RunSpec``: the complete description of a run, as plain data.

Presets and users' files are read into this model; nothing is imported for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from engineers.shared import own, untrusted
from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable
from envtuning.errors import SpecError
from envtuning.runs.reading import LONGEST, read_mapping
from envtuning.runs.sections import (
    FOLDER,
    HIGHEST_SEED,
    MOST_SPENT,
    MOST_STAGES,
    SUITE_SEED,
    Config,
    EngineerSpec,
    Fade,
    Frozen,
    GuardSpec,
    StageSpec,
    SuiteSpec,
    TraineeSpec,
    Unit,
    WorldSpec,
)
from envtuning.runs.trust import Written

__all__ = [
    "SUITE_SEED", "EngineerSpec", "Fade", "GuardSpec", "RunSpec", "SpecError", "StageSpec", "SuiteSpec", "TraineeSpec",
    "Unit", "WorldSpec", "load_spec", "parse_spec", "preset_names", "preset_text",
]  # fmt: skip

Described = TypeVar("Described", bound=BaseModel)


class RunSpec(Frozen, metaclass=Written):
    """The complete description of a run. Two runs of one spec give the same figures if the trainee is deterministic."""

    name: str = Field("run", pattern=FOLDER, max_length=100)
    description: str = ""
    seed: int = Field(0, ge=0, le=HIGHEST_SEED)
    world: WorldSpec = Field(WorldSpec(), description="The environment.")
    target: Config = Field(description="The config that validation and test cases are drawn from.")
    stages: tuple[StageSpec, ...] = Field(min_length=1, max_length=MOST_STAGES)
    unit: Unit | None = Field(
        None, description="What budgets count: env_steps, episodes, samples or tokens; null: what the world counts."
    )
    total: int | None = Field(
        None,
        ge=1,
        le=MOST_SPENT,
        description="Budget of the whole run: the last stage is repeated until it is spent; null: every stage is trained once.",
    )
    trainee: TraineeSpec = TraineeSpec()
    engineer: EngineerSpec = EngineerSpec()
    editable: tuple[str, ...] | None = Field(
        None, description="Knobs that the engineer may change; null: the list of the config's class."
    )
    suites: SuiteSpec = SuiteSpec()
    guard: GuardSpec = GuardSpec()
    retries: int = Field(
        2, ge=0, le=1_000, description="Number of times that a stage is tried again after it diverged or lost a worker."
    )

    @model_validator(mode="after")
    def _can_be_run(self) -> RunSpec:
        if self.stages[0].asks:
            raise ValueError(
                "stages[0].config is 'engineer', but there is no report yet: write the first stage's config"
            )
        if self.total is not None and self.total < self.stage_budget:
            raise ValueError(
                f"total is {self.total:,}, but the stages' budgets add up to {self.stage_budget:,}: give at least that"
            )
        return self

    def was_written(self) -> None:
        """A script wrote this spec, so what its sections name is trusted."""
        for section in (self.world, self.trainee, self.engineer):
            section.was_written()

    @property
    def asks_an_engineer(self) -> bool:
        return any(stage.asks for stage in self.stages)

    @property
    def stage_budget(self) -> int:
        """The budget of the listed stages, without repetitions."""
        return sum(stage.budget for stage in self.stages)

    @property
    def budget(self) -> int:
        return self.total if self.total is not None else self.stage_budget

    def stage(self, number: int) -> StageSpec:
        """A stage of the list; after the list, the last stage again."""
        return self.stages[min(number, len(self.stages) - 1)]

    def allowed(self, number: int) -> int:
        """The budget up to the end of this stage."""
        listed = sum(self.stage(earlier).budget for earlier in range(number + 1))
        return listed if self.total is None else min(listed, self.total)

    def with_rounds(self, count: int) -> RunSpec:
        """The run with ``count`` stages: the first ones of the list, then copies of the last with configs by the engineer.

        The run has no ``total``, because that would ask for another number of stages.
        """
        if not 1 <= count <= MOST_STAGES:
            raise SpecError(f"{count} stages: a run has at least 1 and at most {MOST_STAGES:,}")
        more = [self.stages[-1].model_copy(update={"config": "engineer", "name": ""})] * (count - len(self.stages))
        return self.model_copy(update={"stages": (*self.stages[:count], *more), "total": None})

    def with_test_seed(self, seed: int | None) -> RunSpec:
        """The same run with another test set; None: that of ``suites.seed``."""
        return self.model_copy(update={"suites": self.suites.model_copy(update={"test_seed": seed})})


def preset_names() -> list[str]:
    return sorted(entry.name.removesuffix(".yaml") for entry in _presets().iterdir() if entry.name.endswith(".yaml"))


def preset_text(name: str) -> str:
    return (_presets() / f"{name}.yaml").read_text(encoding="utf-8")


def load_spec(source: str | Path, *, changes: Mapping[str, Any] | None = None, trust: Iterable[str] = ()) -> RunSpec:
    """The spec in a preset or in a YAML or JSON file. Raises ``SpecError``.

    ``changes`` are values by dotted keys, which replace those of the file: ``{"trainee.options.lr": 3e-4}``. They are trusted;
    of the file only what ``trust`` names is: modules, hosts and options (docs/trust.md).
    """
    own.trust([*trust, *own.chosen_in(changes), *(own.OPTION + key for key in changes or ())])
    if str(source) in preset_names():
        return parse_spec(preset_text(str(source)), f"preset {source}", changes=changes)
    path = Path(source)
    if not path.is_file():
        raise SpecError(f"{source} is neither a file nor a preset: the presets are {', '.join(preset_names())}")
    return parse_spec(_text_of(path), str(path), name=path.stem, changes=changes)


def read_file(path: str | Path, kind: type[Described]) -> Described:
    """The content of a YAML or JSON file as this model. Raises ``SpecError``."""
    return _as(kind, _noted(_text_of(Path(path)), str(path)), str(path))


def keys_of(source: str | Path) -> set[str]:
    """The keys at the top of a YAML or JSON file; none for a preset, and for a file that cannot be read."""
    if str(source) in preset_names():
        return set()
    try:
        return set(read_mapping(_text_of(Path(source))))
    except (NotReadable, SpecError):
        return set()


def _text_of(path: Path) -> str:
    try:
        found = untrusted.read_bytes(path, 4 * LONGEST)  # UTF-8 takes up to four bytes for a character
    except NotReadable as error:
        raise SpecError(f"{path} {error}") from error
    if found is None:
        raise SpecError(f"{path} cannot be read: No such file")
    return found.decode("utf-8", errors="replace")


def parse_spec(text: str, origin: str, name: str | None = None, *, changes: Mapping[str, Any] | None = None) -> RunSpec:
    data = _noted(text, origin)
    if name is not None:
        data.setdefault("name", name)
    if (base := data.pop("extends", None)) is not None:
        if base not in preset_names():
            raise SpecError(
                f"{origin} extends {base!r}, which is not a preset: the presets are {', '.join(preset_names())}"
            )
        data = read_mapping(preset_text(base)) | data  # sections are replaced as a whole, not merged
    data = _unshared(data)  # otherwise a change would reach every place that YAML's anchors share
    for key, value in (changes or {}).items():
        _set(data, key, value)
    return _as(RunSpec, data, origin)


def _noted(text: str, origin: str) -> dict[str, Any]:
    """The mapping in a file's text; what it names is named only in a file from now on."""
    try:
        data = read_mapping(text)
    except NotReadable as error:
        raise SpecError(f"{origin} {error}") from error
    own.note_file(data)
    return data


def _as(kind: type[Described], data: Any, origin: str) -> Described:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise SpecError(f"{origin}: {in_sentences(error, of=kind)}") from error


def _unshared(data: Any) -> Any:
    """A copy in which no two places share an object."""
    if isinstance(data, dict):
        return {key: _unshared(value) for key, value in data.items()}
    return [_unshared(value) for value in data] if isinstance(data, list) else data


def _set(data: Any, key: str, value: Any) -> None:
    """Put a value at a dotted key. Missing sections are made."""
    *way, last = key.split(".")
    for at, part in enumerate(way):
        place = _place_in(data, part, way[:at], f"--set {key}: there is no {part!r} to set anything in")
        data = data[place] if isinstance(data, list) else data.setdefault(place, {})
    data[_place_in(data, last, way, f"--set {key}: there is no {last!r} to set")] = value


def _place_in(data: Any, part: str, way: list[str], otherwise: str) -> Any:
    """The index or the key that a part of a dotted key means, behind the parts of the ``way``. Raises ``SpecError`` that says what is ``otherwise``."""
    if isinstance(data, list) and part.isdecimal() and int(part) < len(data):
        return int(part)
    if isinstance(data, dict):
        return next((name for name in data if str(name) == part), part)  # YAML reads sizes as numbers
    here = ".".join(way)
    plain = "" if isinstance(data, list) else f", because {here} is {data!r:.60}: give --set {here}=…"
    raise SpecError(f"{otherwise}{plain}")


def _presets() -> Traversable:
    return resources.files("envtuning") / "presets"
