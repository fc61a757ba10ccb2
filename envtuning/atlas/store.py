"""Stores a tree: for every seed a file of reports and a separate, sealed file of test results.

The reports' file has the menu's texts, too, so that a choice from a menu needs neither the configs nor their world.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from engineers.knobs import KnobError, validated
from engineers.report import StageRecord, StageReport
from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable, parsed, read_bytes
from envtuning import atomic
from envtuning.atlas.legend import Words, words_of
from envtuning.atlas.spec import AtlasSpec, Path_
from envtuning.errors import RunError
from envtuning.loop.report import trainee_in_words
from envtuning.worlds.episodes import Rate, pooled

FORMAT = 2
REPORTS, WORDS, TEST = "reports", "words", "test"
LARGEST = 1 << 28  # bytes of a file, unpacked
Sums = Mapping[str, str]  # by a file's name its SHA-256
_NODES: dict[str, TypeAdapter[Any]] = {
    REPORTS: TypeAdapter(dict[str, StageReport]),
    WORDS: TypeAdapter(dict[str, Words]),
    TEST: TypeAdapter(dict[str, Rate]),
}


class _Head(BaseModel):
    """The header of both files of a seed."""

    format: int
    atlas: str
    seed: int
    digest: str


class _Told(BaseModel):
    """The record of the whole tree in the file of reports."""

    aside: list[str]
    trainee: str


@dataclass(frozen=True)
class Tree:
    """One seed's tree: a report at every node, kept without its history, which is the reports before it."""

    spec: AtlasSpec
    seed: int
    reports: Mapping[Path_, StageReport]
    words: Mapping[Path_, Words] = field(default_factory=dict)  # of every node that has children
    aside: list[str] = field(default_factory=list)  # as in a report of a run
    trainee: str = ""  # likewise
    folder: Path | None = None
    label: str = ""  # of a tree whose reports were altered
    sums: Sums | None = None  # of a tree that is published

    def report(self, path: Path_, engineer: str = "") -> StageReport:
        """The report that an engineer on this path gets after its last stage."""
        before = [self.reports[path[:length]] for length in range(len(path))]
        history: list[StageRecord] = []
        for number, report in enumerate(before):
            record = report.model_copy(update={"history": []}).records()[0]
            history.append(record.model_copy(update={"engineer": engineer if number else "default"}))
        return self.reports[path].model_copy(update={"history": history})

    def config(self, path: Path_) -> Any:
        """The config of the node's training."""
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
        stored = _Stored.read(_file(self.folder, self.seed, TEST), self.spec, self.seed, self.sums)
        return stored.nodes(TEST, _all_paths(self.spec))


def as_key(path: Path_) -> str:
    return "-".join(path)


def as_path(key: str) -> Path_:
    return tuple(key.split("-")) if key else ()


def write_tree(
    folder: Path, spec: AtlasSpec, seed: int, reports: Mapping[Path_, dict[str, Any]], tested: Mapping[Path_, float]
) -> None:
    """Both files of a seed; that of the reports last, so that a seed counts when it is whole."""
    head = {"format": FORMAT, "atlas": spec.name, "seed": seed, "digest": spec.digest}
    config_type = spec.plan.world.config_type
    trained_on = {path: validated(config_type, report["config"]) for path, report in reports.items()}
    words = {
        path: words_of(spec, trained_on[path], {name: trained_on[(*path, name)] for name in spec.menu}).model_dump()
        for path in _inner_paths(spec)
    }
    told = {"aside": sorted(spec.plan.world.about.aside), "trainee": trainee_in_words(spec.plan)}
    _write(_file(folder, seed, TEST), head | {TEST: _by_key(tested)})
    _write(_file(folder, seed, REPORTS), head | told | {WORDS: _by_key(words), REPORTS: _by_key(reports)})


def _by_key(nodes: Mapping[Path_, Any]) -> dict[str, Any]:
    return {as_key(path): nodes[path] for path in sorted(nodes)}


def raise_unless_stored_of(folder: Path, spec: AtlasSpec, seed: int) -> None:
    """Raise ``RunError`` if a seed's files are damaged, or were built from another file or preset."""
    _ = read_tree(folder, spec, seed).tested


def is_stored(folder: Path, seed: int) -> bool:
    return _file(folder, seed, REPORTS).exists() and _file(folder, seed, TEST).exists()


def stored_seeds(folder: Path, spec: AtlasSpec) -> list[int]:
    """The seeds that are whole, in the file's order."""
    return [seed for seed in spec.seeds if is_stored(folder, seed)]


def read_tree(folder: Path, spec: AtlasSpec, seed: int, sums: Sums | None = None) -> Tree:
    """One seed. Files whose checksums are in ``sums`` are not checked further; other files are checked in full, which makes the tree's world.

    Raises ``RunError`` for a file of another tree.
    """
    stored = _Stored.read(_file(folder, seed, REPORTS), spec, seed, sums)
    reports = stored.nodes(REPORTS, _all_paths(spec))
    if sums is None:
        stored.raise_unless_of_its_menu(reports)
    words, told = stored.nodes(WORDS, _inner_paths(spec)), stored.told
    return Tree(spec, seed, reports, words, told.aside, told.trainee, folder, sums=sums)


def read_trees(folder: Path, spec: AtlasSpec, sums: Sums | None = None) -> list[Tree]:
    """Every stored seed. Raises ``RunError`` if there is none."""
    seeds = stored_seeds(folder, spec)
    if not seeds:
        raise RunError(f"{folder} has no tree of {spec.name}: build one with envtuning atlas build {spec.name}")
    return [read_tree(folder, spec, seed, sums) for seed in seeds]


def _all_paths(spec: AtlasSpec) -> set[Path_]:
    return {path for length in range(spec.depth + 1) for path in spec.paths(length)}


def _inner_paths(spec: AtlasSpec) -> set[Path_]:
    """Of the nodes that have children."""
    return {path for length in range(spec.depth) for path in spec.paths(length)}


def _file(folder: Path, seed: int, part: str) -> Path:
    return folder / f"seed{seed}.{part}.json.xz"


def _write(path: Path, content: Mapping[str, Any]) -> None:
    atomic.make_folder(path.parent)
    with atomic.new_file(path) as draft:
        draft.write_bytes(lzma.compress(json.dumps(content, allow_nan=False).encode(), preset=9))


@dataclass(frozen=True)
class _Stored:
    """The content of one file, after a check of its header."""

    path: Path
    spec: AtlasSpec
    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path, spec: AtlasSpec, seed: int, sums: Sums | None) -> _Stored:
        """Raises ``RunError`` for a file that no build of this tree could have written, or that is not the published one."""
        try:
            data = read_bytes(path) or b""
            if sums is not None and hashlib.sha256(data).hexdigest() != sums.get(path.name):
                raise RunError(f"{path} is not the published file: install mapf-frozenlake again")
            unpacked = _unpacked(data)
            content = json.loads(unpacked) if sums is not None else parsed(unpacked)
            head = _Head.model_validate(content)
        except (NotReadable, lzma.LZMAError, EOFError) as error:
            raise _no_part(path, error) from error
        except ValidationError as error:
            raise _no_part(path, in_sentences(error).partition("; ")[0]) from error
        if (head.format, head.atlas, head.seed) != (FORMAT, spec.name, seed):
            raise RunError(
                f"{path} is format {head.format} of {head.atlas!r}, seed {head.seed}: wanted {(FORMAT, spec.name, seed)}"
            )
        if sums is None and head.digest != spec.digest:
            raise RunError(
                f"{path} was built from another file of {spec.name}, or from another preset {spec.preset}: undo the changes to these, "
                "or remove what is stored and build again"
            )
        return cls(path, spec, content)

    def nodes(self, part: str, wanted: set[Path_]) -> dict[Path_, Any]:
        """By path; these nodes and no others. Raises ``RunError``."""
        try:
            read = _NODES[part].validate_python(self.content.get(part))
        except ValidationError as error:
            raise _no_part(self.path, in_sentences(error).partition("; ")[0]) from error
        found = {as_path(key): value for key, value in read.items()}
        if odd := sorted(wanted ^ found.keys()):
            what = "lacks" if odd[0] in wanted else "has"
            raise _no_part(self.path, f"its {part}: it {what} the node {as_key(odd[0]) or 'root'!r}")
        if part == WORDS and any(words.entries.keys() != self.spec.menu.keys() for words in found.values()):
            raise _no_part(self.path, "its texts describe other entries than the menu's")
        return found

    @property
    def told(self) -> _Told:
        try:
            return _Told.model_validate(self.content)
        except ValidationError as error:
            raise _no_part(self.path, in_sentences(error).partition("; ")[0]) from error

    def raise_unless_of_its_menu(self, reports: Mapping[Path_, StageReport]) -> None:
        """Reports are on the menu's configs, and rates are rates. Raises ``RunError``."""
        world = self.spec.plan.world
        for path, report in reports.items():
            try:
                trained_on = validated(world.config_type, report.config)
            except KnobError as error:
                raise _no_part(self.path, error) from error
            if path and trained_on != self.spec.written.get(
                path[-1], trained_on
            ):  # entries that every node draws again are not checked
                raise _no_part(self.path, f"{as_key(path)} was trained on another config than the menu's {path[-1]}")
            for row in (*report.results, *report.training_results):
                for name in world.about.rates:
                    if not 0 <= row.metrics.get(name, 0.0) <= 1:
                        raise _no_part(
                            self.path,
                            f"{as_key(path) or 'root'}: {name}={row.metrics[name]:g}, a rate is from 0 to 1",
                        )


def _no_part(path: Path, why: object) -> RunError:
    return RunError(f"{path} is not part of an atlas ({why}): build this seed again")


def _unpacked(data: bytes) -> bytes:
    """Not beyond ``LARGEST``: a few bytes may unpack to any number."""
    unpacking = lzma.LZMADecompressor()
    found = unpacking.decompress(data, LARGEST)
    if not unpacking.eof or unpacking.unused_data:
        raise NotReadable(f"is cut off, or unpacks to more than {LARGEST:,} bytes")
    return found
