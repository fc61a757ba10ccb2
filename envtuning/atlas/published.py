"""The trees in this package, and trees in a user's folders.

``trees/index.json`` has for every published tree its digest, the SHA-256 of its files, and the walks of the engineers without a model.
The files in the index were checked when they were published, so reading them makes no world. Other files are checked in full.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from engineers.tiers import Tier
from envtuning.atlas.rows import Nearness, Row
from envtuning.atlas.spec import AtlasSpec, Path_, load_atlas
from envtuning.atlas.store import Tree, as_key, as_path, read_trees, stored_seeds
from envtuning.errors import RunError, SpecError
from envtuning.runs.checked import figures

FOLDER = Path(__file__).parent / "trees"
INDEX = FOLDER / "index.json"
VERSION = 1  # of the trees: another one where any of them is trained again


class StoredWalks(BaseModel):
    """The walks of an engineer without a model."""

    model_config = ConfigDict(extra="forbid")

    tier: int
    paths: dict[int, str]  # by seed, entries with hyphens between them
    distance: float | None  # the median distance from a written config to its entry
    bound: float | None

    @classmethod
    def of(cls, row: Row) -> StoredWalks:
        near = row.nearness
        paths = {seed: as_key(path) for seed, path in row.paths.items()}
        return cls(
            tier=row.tier, paths=paths, distance=near and round(near.median, 6), bound=near and round(near.bound, 6)
        )

    def row(self, name: str, trees: list[Tree]) -> Row:
        paths: dict[int, Path_] = {tree.seed: as_path(self.paths[tree.seed]) for tree in trees}
        values = {tree.seed: tree.tested[paths[tree.seed]] for tree in trees}
        known = self.distance is not None and self.bound is not None
        near = Nearness([self.distance or 0.0], [2 * (self.bound or 0.0)]) if known else None
        return Row(name, values, paths, nearness=near, tier=Tier(self.tier))


class Entry(BaseModel):
    """The index's record of one tree."""

    model_config = ConfigDict(extra="forbid")

    digest: str
    sums: dict[str, str]  # by file, the tree's description included
    walks: dict[str, StoredWalks]


class Index(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: int
    trees: dict[str, Entry]


@dataclass(frozen=True)
class StoredTree:
    """One tree with all its seeds that are stored."""

    spec: AtlasSpec
    seeds: list[Tree]
    published: Entry | None = field(default=None, repr=False)  # None: in a user's folder

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def menu(self) -> Mapping[str, str]:
        """The entries, and what the first seed's root is told of each."""
        return self.seeds[0].words[()].entries

    @property
    def digest(self) -> str:
        """The digest of all settings of its training."""
        return self.published.digest if self.published else self.spec.digest

    @property
    def roster(self) -> list[Row]:
        """The engineers without a model whose walks are stored."""
        walks = self.published.walks if self.published else {}
        return [stored.row(name, self.seeds) for name, stored in walks.items()]


@cache
def index() -> Index:
    found: Index | None = figures(INDEX, Index)
    if found is None:
        raise RunError(f"{INDEX} is missing: install mapf-frozenlake again")
    return found


def digest_of_index() -> str:
    """Of all published trees and walks together."""
    return hashlib.sha256(INDEX.read_bytes()).hexdigest()[:12]


def names(*, weak: bool = False) -> list[str]:
    """The trees to score on, those that are held out last; or those of policies that lack one thing."""
    specs = [spec for spec in map(spec_named, index().trees) if (spec.diagnosis is not None) == weak]
    return [spec.name for spec in sorted(specs, key=lambda spec: spec.held_out)]


def spec_named(name: str | Path) -> AtlasSpec:
    """Of a published tree, or of a file. Raises ``SpecError``."""
    own = FOLDER / f"{name}.yaml"
    if not own.exists() and not Path(name).exists():
        known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.yaml")))
        raise SpecError(f"{str(name)!r} is neither a file nor a tree: the trees are {known}")
    return _of_package(own) if own.exists() else load_atlas(name)


_of_package = cache(load_atlas)  # these files do not change


def load(name: str | Path, folder: Path | None = None) -> StoredTree:
    """A published tree by its name; with a folder, the tree that ``envtuning atlas build`` stored there.

    Raises ``SpecError`` for an unknown name, ``RunError`` for a tree that is not stored or damaged.
    """
    spec = spec_named(name)
    if folder is not None:
        return StoredTree(spec, read_trees(folder / spec.name, spec))
    entry = index().trees.get(spec.name)
    if entry is None or not (FOLDER / f"{name}.yaml").exists():
        raise RunError(
            f"{spec.name} is not among the published trees: name the folder that it was built in, or build it: envtuning atlas build {name}"
        )
    if _sum(FOLDER / f"{spec.name}.yaml") != entry.sums[f"{spec.name}.yaml"]:
        raise RunError(f"{FOLDER / spec.name}.yaml is not the published file: install mapf-frozenlake again")
    return StoredTree(spec, read_trees(FOLDER / spec.name, spec, entry.sums), entry)


def stored_in(folder: Path, *, weak: bool = False) -> list[str]:
    """The names of published trees that have a seed in a user's folder."""
    return [name for name in names(weak=weak) if stored_seeds(folder / name, spec_named(name))]


def publish(walks: Mapping[str, Mapping[str, StoredWalks]]) -> None:
    """Write the index anew from the files that are there, each checked in full; ``walks`` are by tree and engineer."""
    found = {}
    for file in sorted(FOLDER.glob("*.yaml")):
        spec = load_atlas(file)
        read_trees(FOLDER / spec.name, spec)
        files = [file, *sorted((FOLDER / spec.name).glob("*.xz"))]
        sums = {path.name: _sum(path) for path in files}
        found[spec.name] = Entry(digest=spec.digest, sums=sums, walks=dict(walks.get(spec.name, {})))
    written = Index(version=VERSION, trees=found).model_dump(mode="json")
    INDEX.write_text(json.dumps(written, separators=(",", ":")) + "\n", encoding="utf-8")
    index.cache_clear()


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
