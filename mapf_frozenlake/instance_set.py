"""``InstanceSet``: many instances as one struct of arrays, saved as one file that carries its own checksum."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake import instance_file
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.frames import frame
from mapf_frozenlake.instance_arrays import ARRAYS, CERTIFICATES, InstanceData, raise_on_broken_arrays
from mapf_frozenlake.types import Instance

SHOWN_IN_NOTEBOOKS = 8


@dataclass(frozen=True, eq=False)
class InstanceSet(InstanceData):
    """Instances padded to one shape. Indexing gives an ``Instance``, slicing an ``InstanceSet``; rules are checked once."""

    def __post_init__(self) -> None:
        raise_on_broken_arrays(self)

    @classmethod
    def empty(cls, n: int, height: int, width: int, agents: int) -> InstanceSet:
        """Arrays for n instances, which the generator fills in place: not checked until they are sliced or copied."""
        return _unchecked(
            holes=np.ones((n, height, width), np.bool_),
            heights=np.zeros(n, np.int16),
            widths=np.zeros(n, np.int16),
            num_agents=np.zeros(n, np.int16),
            starts=np.full((n, agents, 2), -1, np.int16),
            goals=np.full((n, agents, 2), -1, np.int16),
            makespan=np.full(n, -1, np.int32),
            needs_wait=np.full(n, -1, np.int8),
            certificates=np.zeros(n, np.int8),
        )

    @classmethod
    def from_instances(cls, instances: Iterable[Instance]) -> InstanceSet:
        """The given instances, in order, padded to the largest of them."""
        given = list(instances)
        if not given:
            raise LakeError("an InstanceSet of 0 instances has no shape: give at least one instance")
        for instance in given:
            if not isinstance(instance, Instance):
                raise LakeError(f"an instance is of type {type(instance).__name__}: give instances of Instance")
        room = cls.empty(
            len(given),
            max(instance.height for instance in given),
            max(instance.width for instance in given),
            max(instance.num_agents for instance in given),
        )
        for row, instance in enumerate(given):
            room.holes[row, : instance.height, : instance.width] = instance.holes
            room.heights[row], room.widths[row] = instance.height, instance.width
            room.num_agents[row] = instance.num_agents
            room.starts[row, : instance.num_agents] = instance.starts
            room.goals[row, : instance.num_agents] = instance.goals
            room.makespan[row] = -1 if instance.makespan is None else instance.makespan
            room.needs_wait[row] = -1 if instance.needs_wait is None else instance.needs_wait
            room.certificates[row] = CERTIFICATES.index(instance.certificate)
        ids = tuple(instance.sample_id or "" for instance in given)
        return replace(room, sample_ids=ids if any(ids) else None)

    @classmethod
    def concatenate(cls, sets: Sequence[InstanceSet]) -> InstanceSet:
        """Join sets, padded to the largest; keeps the labels that all of them have."""
        if not sets:
            raise LakeError("nothing to concatenate: give at least one InstanceSet")
        height, width = max(one.holes.shape[1] for one in sets), max(one.holes.shape[2] for one in sets)
        agents = max(one.starts.shape[1] for one in sets)
        padded = [one.padded(height, width, agents) for one in sets]
        columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in padded]) for name in ARRAYS}
        shared = [name for name in padded[0].labels if all(name in one.labels for one in padded)]
        ids = [name for one in padded for name in one.sample_ids or [""] * len(one)]
        return cls(
            **columns,
            sample_ids=tuple(ids) if any(ids) else None,
            labels={name: np.concatenate([one.labels[name] for one in padded]) for name in shared},
        )

    def padded(self, height: int, width: int, agents: int) -> InstanceSet:
        """The same instances, padded to a larger shape."""
        n, old_height, old_width = self.holes.shape
        old_agents = self.starts.shape[1]
        if height < old_height or width < old_width or agents < old_agents:
            raise LakeError(
                f"cannot pad {old_height}×{old_width} boards with {old_agents} agents to {height}×{width} with "
                f"{agents}: each bound must be at least what is there"
            )
        if (height, width, agents) == (old_height, old_width, old_agents):
            return self
        room = InstanceSet.empty(n, height, width, agents)
        room.holes[:, :old_height, :old_width] = self.holes
        room.starts[:, :old_agents], room.goals[:, :old_agents] = self.starts, self.goals
        return replace(self, holes=room.holes, starts=room.starts, goals=room.goals)

    def __len__(self) -> int:
        return len(self.heights)

    @overload
    def __getitem__(self, index: int) -> Instance: ...
    @overload
    def __getitem__(self, index: slice | NDArray | Sequence[int]) -> InstanceSet: ...
    def __getitem__(self, index: int | slice | NDArray | Sequence[int]) -> Instance | InstanceSet:
        if isinstance(index, int | np.integer):
            return self._instance(int(index))
        rows = np.arange(len(self))[index]
        ids = None if self.sample_ids is None else tuple(self.sample_ids[row] for row in rows.tolist())
        columns = {name: getattr(self, name)[rows] for name in ARRAYS}
        labels = {name: column[rows] for name, column in self.labels.items()}
        return _unchecked(**columns, sample_ids=ids, labels=labels, config=self.config, seed=self.seed)

    def __iter__(self) -> Iterator[Instance]:
        return (self._instance(row) for row in range(len(self)))

    def _instance(self, row: int) -> Instance:
        if not -len(self) <= row < len(self):
            raise IndexError(f"instance {row} of {len(self)}: give an index from 0 to {len(self) - 1}")
        agents = int(self.num_agents[row])
        makespan, wait = int(self.makespan[row]), int(self.needs_wait[row])
        return Instance(
            holes=self.holes[row, : self.heights[row], : self.widths[row]],
            starts=self.starts[row, :agents],
            goals=self.goals[row, :agents],
            makespan=None if makespan < 0 else makespan,
            needs_wait=None if wait < 0 else bool(wait),
            certificate=CERTIFICATES[self.certificates[row]],
            sample_id=None if self.sample_ids is None else self.sample_ids[row] or None,
        )

    def __eq__(self, other: object) -> bool:
        """Equal if all arrays, labels, ids, configs and seeds are equal."""
        if not isinstance(other, InstanceSet):
            return NotImplemented
        return (
            all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ARRAYS)
            and self.labels.keys() == other.labels.keys()
            and all(np.array_equal(self.labels[name], other.labels[name]) for name in self.labels)
            and (self.sample_ids, self.config, self.seed) == (other.sample_ids, other.config, other.seed)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        n, height, width = self.holes.shape
        return (
            f"InstanceSet({n} instances up to {height}×{width}, up to {self.starts.shape[1]} agents, seed={self.seed})"
        )

    def _repr_html_(self) -> str:
        """The display in a notebook: the first boards."""
        from mapf_frozenlake.render import notebook

        return notebook.gallery(self[:SHOWN_IN_NOTEBOOKS], repr(self))

    def to_pandas(self) -> Any:
        """One row for each instance: size, agents, holes, certified facts (missing if unknown), labels, and its JSON
        for ``Instance.from_json``; needs pandas."""
        _, height, width = self.holes.shape
        padding = height * width - self.heights.astype(np.int64) * self.widths  # True in ``holes``
        columns: dict[str, Any] = {
            "sample_id": list(self.sample_ids) if self.sample_ids is not None else [None] * len(self),
            "height": self.heights,
            "width": self.widths,
            "num_agents": self.num_agents,
            "holes": self.holes.sum(axis=(1, 2)) - padding,
            "makespan": [None if steps < 0 else steps for steps in self.makespan.tolist()],
            "needs_wait": [None if wait < 0 else bool(wait) for wait in self.needs_wait.tolist()],
            "certificate": [CERTIFICATES[code] for code in self.certificates.tolist()],
        }
        table = frame(columns | dict(self.labels) | {"instance": [one.to_json() for one in self]})
        return table.astype({"makespan": "Int64", "needs_wait": "boolean"})

    @property
    def checksum(self) -> str:
        """SHA-256 of the content, 64 hex digits: equal for equal sets, on any machine."""
        return instance_file.checksum(self)

    def fingerprints(self) -> frozenset[int]:
        """A key for each instance. Instances that differ only by rotation, reflection or the agents' numbers have equal keys."""
        from mapf_frozenlake.generator.symmetry import canonical_keys

        return frozenset(canonical_keys(self).tolist())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write one compressed file, checksum and config inside."""
        return instance_file.write(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> InstanceSet:
        """Read a file that ``save`` wrote. Other files raise a ``LakeError`` that says where and why; nothing is executed."""
        return instance_file.read(Path(path), cls)


def _unchecked(**values: object) -> InstanceSet:
    """An InstanceSet without checks: its arrays are known to be correct, or are not filled yet."""
    made = object.__new__(InstanceSet)
    for column in fields(InstanceSet):
        object.__setattr__(made, column.name, values.get(column.name, {} if column.name == "labels" else None))
    return made
