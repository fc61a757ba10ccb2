"""How a tree is stored: for every seed a file of reports and a separate, sealed file of test results."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from engineers.knobs import KnobError, validated
from engineers.report import StageRecord, StageReport
from engineers.sentences import in_sentences
from engineers.untrusted import NotReadable, parsed, read_bytes
from envtuning.atlas.spec import AtlasSpec, Path_
from envtuning.errors import RunError
from envtuning.runs import atomic
from envtuning.worlds.episodes import Rate, pooled

FORMAT = 1
REPORTS, TEST = "reports", "test"
LARGEST = 1 << 28  # bytes of a file, unpacked
_NODES: dict[str, TypeAdapter[Any]] = {
    REPORTS: TypeAdapter(dict[str, StageReport]),
    TEST: TypeAdapter(dict[str, Rate]),
}


class _Head(BaseModel):
    """What both files of a seed begin with."""

    format: int
    atlas: str
    seed: int
    digest: str


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
        return validated(self.spec.plan.world.config_type, self.reports[path].config)

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
        return _read(_file(self.folder, self.seed, TEST), TEST, self.spec, self.seed)


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
        _read(_file(folder, seed, part), part, spec, seed)


def is_stored(folder: Path, seed: int) -> bool:
    return _file(folder, seed, REPORTS).exists() and _file(folder, seed, TEST).exists()


def stored_seeds(folder: Path, spec: AtlasSpec) -> list[int]:
    """The seeds that are whole, in the file's order."""
    return [seed for seed in spec.seeds if is_stored(folder, seed)]


def read_tree(folder: Path, spec: AtlasSpec, seed: int) -> Tree:
    return Tree(spec, seed, _read(_file(folder, seed, REPORTS), REPORTS, spec, seed), folder)


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


def _read(path: Path, part: str, spec: AtlasSpec, seed: int) -> dict[Path_, Any]:
    """What is stored of every node. Raises ``RunError`` for a file that no build of this tree could have written."""
    try:
        stored = parsed(_unpacked(read_bytes(path) or b""))
        head = _Head.model_validate(stored)
        if (head.format, head.atlas, head.seed) != (FORMAT, spec.name, seed):
            raise RunError(
                f"{path} is format {head.format} of {head.atlas!r}, seed {head.seed}: wanted {(FORMAT, spec.name, seed)}"
            )
        if head.digest != spec.digest:
            raise RunError(
                f"{path} was built from another file of {spec.name}, or from another preset {spec.preset}: undo the changes to these, "
                "or remove what is stored and build again"
            )
        nodes: dict[Path_, Any] = {
            as_path(key): value for key, value in _NODES[part].validate_python(stored.get(part)).items()
        }
        _raise_unless_whole(nodes, part, spec)
    except (NotReadable, lzma.LZMAError, EOFError, KnobError) as error:
        raise RunError(f"{path} is not part of an atlas ({error}): build this seed again") from error
    except ValidationError as error:
        said = in_sentences(error).partition("; ")[0]
        raise RunError(f"{path} is not part of an atlas ({said}): build this seed again") from error
    return nodes


def _unpacked(data: bytes) -> bytes:
    """Not beyond ``LARGEST``: a few bytes may unpack to any number."""
    unpacking = lzma.LZMADecompressor()
    found = unpacking.decompress(data, LARGEST)
    if not unpacking.eof or unpacking.unused_data:
        raise NotReadable(f"does not end where it should, or unpacks to more than {LARGEST:,} bytes")
    return found


def _raise_unless_whole(nodes: Mapping[Path_, Any], part: str, spec: AtlasSpec) -> None:
    """Every node that the file asks for, and no other; reports on configs and rates of its world."""
    wanted = {path for length in range(spec.depth + 1) for path in spec.paths(length)}
    if odd := sorted(wanted ^ nodes.keys()):
        what = "lacks" if odd[0] in wanted else "has"
        raise NotReadable(f"it {what} the node {as_key(odd[0]) or 'root'!r}")
    world = spec.plan.world
    for path, report in nodes.items() if part == REPORTS else ():
        trained_on = validated(world.config_type, report.config)
        if path and trained_on != spec.written.get(
            path[-1], trained_on
        ):  # what is drawn anew at every node is believed
            raise NotReadable(f"{as_key(path)} was trained on another config than the menu's {path[-1]}")
        for row in (*report.results, *report.training_results):
            for name in world.about.rates:
                if not 0 <= row.metrics.get(name, 0.0) <= 1:
                    raise NotReadable(f"{as_key(path) or 'root'}: {name}={row.metrics[name]:g}, a rate is from 0 to 1")
