"""How a tree is stored: for every seed a file of reports and a separate, sealed file of test results."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from engineers.knobs import validated
from engineers.report import StageRecord, StageReport
from envtuning.atlas.spec import AtlasSpec, Path_
from envtuning.runs import atomic
from envtuning.runs.checked import RunError
from envtuning.worlds.episodes import pooled

FORMAT = 1
REPORTS, TEST = "reports", "test"


@dataclass(frozen=True)
class Tree:
    """One seed's tree: a report at every node, kept without its history, which is the reports before it."""

    spec: AtlasSpec
    seed: int
    reports: Mapping[Path_, StageReport]
    folder: Path | None = None
    label: str = ""  # of a tree whose reports were altered

    def report(self, path: Path_, engineer: str = "") -> StageReport:
        """The report that an engineer on this path gets after its last stage."""
        before = [self.reports[path[:length]] for length in range(len(path))]
        history: list[StageRecord] = []
        for number, report in enumerate(before):
            record = report.model_copy(update={"history": []}).records()[0]
            history.append(record.model_copy(update={"engineer": engineer if number else "default"}))
        return self.reports[path].model_copy(update={"history": history})

    def config(self, path: Path_) -> Any:
        """What the node was trained on."""
        return validated(self.spec.run.world.made.config_type, self.reports[path].config)

    def entries(self, path: Path_) -> dict[str, Any]:
        """The menu of a node, as its children were trained."""
        return {name: self.config((*path, name)) for name in self.spec.menu}

    def validated(self, path: Path_) -> float:
        report = self.reports[path]
        return pooled(report.results, report.objective)

    @cached_property
    def tested(self) -> dict[Path_, float]:
        """Success on the test at every node: only for scoring, never shown to an engineer."""
        assert self.folder is not None, "a tree is scored from its folder"
        stored = _read(_file(self.folder, self.seed, TEST), self.spec, self.seed)
        return {as_path(key): success for key, success in stored[TEST].items()}


def as_key(path: Path_) -> str:
    return "-".join(path)


def as_path(key: str) -> Path_:
    return tuple(key.split("-")) if key else ()


def write_tree(
    folder: Path, spec: AtlasSpec, seed: int, reports: Mapping[Path_, dict[str, Any]], tested: Mapping[Path_, float]
) -> None:
    """Both files of a seed; that of the reports last, so that a seed counts when it is whole."""
    head = {"format": FORMAT, "atlas": spec.name, "seed": seed, "digest": spec.digest}
    _write(_file(folder, seed, TEST), head | {TEST: {as_key(path): tested[path] for path in sorted(tested)}})
    _write(_file(folder, seed, REPORTS), head | {REPORTS: {as_key(path): reports[path] for path in sorted(reports)}})


def raise_unless_stored_of(folder: Path, spec: AtlasSpec, seed: int) -> None:
    """Raise ``RunError`` where a seed's files are damaged, or were built from another file or preset."""
    for part in (REPORTS, TEST):
        _read(_file(folder, seed, part), spec, seed)


def is_stored(folder: Path, seed: int) -> bool:
    return _file(folder, seed, REPORTS).exists() and _file(folder, seed, TEST).exists()


def stored_seeds(folder: Path, spec: AtlasSpec) -> list[int]:
    """The seeds that are whole, in the file's order."""
    return [seed for seed in spec.seeds if is_stored(folder, seed)]


def read_tree(folder: Path, spec: AtlasSpec, seed: int) -> Tree:
    stored = _read(_file(folder, seed, REPORTS), spec, seed)[REPORTS]
    reports = {as_path(key): StageReport.model_validate(report) for key, report in stored.items()}
    return Tree(spec, seed, reports, folder)


def read_trees(folder: Path, spec: AtlasSpec) -> list[Tree]:
    """Every seed that is stored. Raises ``RunError`` where there is none."""
    seeds = stored_seeds(folder, spec)
    if not seeds:
        raise RunError(
            f"{folder} has no tree of {spec.name}: build one with python -m benchmarks.atlas build {spec.name}"
        )
    return [read_tree(folder, spec, seed) for seed in seeds]


def _file(folder: Path, seed: int, part: str) -> Path:
    return folder / f"seed{seed}.{part}.json.xz"


def _write(path: Path, content: Mapping[str, Any]) -> None:
    atomic.make_folder(path.parent)
    with atomic.new_file(path) as draft:
        draft.write_bytes(lzma.compress(json.dumps(content, allow_nan=False).encode(), preset=9))


def _read(path: Path, spec: AtlasSpec, seed: int) -> dict[str, Any]:
    try:
        stored = json.loads(lzma.decompress(path.read_bytes()))
        head, digest = (stored["format"], stored["atlas"], stored["seed"]), stored["digest"]
    except (OSError, ValueError, lzma.LZMAError, KeyError, TypeError) as error:
        raise RunError(f"{path} is not part of an atlas ({error}): build this seed again") from error
    if head != (FORMAT, spec.name, seed):
        raise RunError(f"{path} is format {head[0]} of {head[1]!r}, seed {head[2]}: wanted {(FORMAT, spec.name, seed)}")
    if digest != spec.digest:
        raise RunError(
            f"{path} was built from another file of {spec.name}, or from another preset {spec.preset}: undo the changes to these, "
            "or remove what is stored and build again"
        )
    return dict(stored)
