"""A stored tree that no build could have written is refused in a sentence with its file's name; no damage loads, hangs or traces back."""

from __future__ import annotations

import copy
import json
import lzma
import os
import random
import shutil
from pathlib import Path

import pytest

from envtuning.atlas.store import read_trees
from envtuning.errors import RunError


def read(folder: Path, spec) -> list[object]:
    """All that a score stands on."""
    return [(tree.seed, tree.reports, tree.tested) for tree in read_trees(folder, spec)]


def content(file: Path) -> dict:
    return json.loads(lzma.decompress(file.read_bytes()))


def packed(value: object) -> bytes:
    return lzma.compress((value if isinstance(value, str) else json.dumps(value)).encode())


def told(folder: Path, spec, name: str) -> str:
    with pytest.raises(RunError) as error:
        read(folder, spec)
    assert name in str(error.value)
    return str(error.value)


@pytest.fixture
def copied(stored, tmp_path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "trees"))


def node(**changes):
    return lambda tree: tree["reports"]["easy"].update(changes)


def rows(value):
    return lambda tree: tree["reports"][""]["results"][0]["metrics"].update(valid_rate=value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: tree.pop("reports"), lambda tree: tree.update(reports=None), lambda tree: tree.update(reports=[]),
        lambda tree: tree.update(reports={}), lambda tree: tree["reports"].pop("easy-target"), lambda tree: tree["reports"].pop(""),
        lambda tree: tree["reports"].update({"easy": None}), lambda tree: tree["reports"].update({"nowhere": tree["reports"][""]}),
        lambda tree: tree["reports"].update({"easy-": tree["reports"][""]}), node(stage=-1), node(stage="x"), node(config={}),
        node(config=None), node(results=None), node(results=[{}]), node(version=2), node(more=1), rows(-7), rows(1.01), rows(None),
        rows(float("nan")), lambda tree: tree.pop("format"), lambda tree: tree.update(seed=None), lambda tree: tree.update(digest=7),
        lambda tree: tree.clear(), lambda tree: tree.pop("words"), lambda tree: tree["words"].pop("easy"),
        lambda tree: tree["words"][""]["entries"].pop("easy"), lambda tree: tree["words"].update({"easy-easy": {}}),
    ],
)  # fmt: skip
def test_reports_that_no_build_wrote(copied, spec, damage):
    file = copied / "seed1.reports.json.xz"
    tree = content(file)
    damage(tree)
    file.write_bytes(packed(tree))
    assert "build this seed again" in told(copied, spec, file.name)


@pytest.mark.parametrize(
    "damage",
    [
        lambda test: test.update({"easy": -7}), lambda test: test.update({"easy": 1.5}), lambda test: test.update({"easy": None}),
        lambda test: test.update({"easy": "x"}), lambda test: test.pop("easy-easy"), lambda test: test.update({"": float("inf")}),
    ],
)  # fmt: skip
def test_results_that_no_build_wrote(copied, spec, damage):
    file = copied / "seed2.test.json.xz"
    tree = content(file)
    damage(tree["test"])
    file.write_bytes(packed(tree))
    assert "build this seed again" in told(copied, spec, file.name)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "data",
    [b"", b"no xz", packed("[" * 5000), packed("[" * 5000 + "]" * 5000), packed("null"), packed("7" * 5000), packed("[1e400]"),
     packed(" " * (1 << 28) + "{}"), packed("{}")[:-5], packed("{}") + b"more"],
    ids=["empty", "no xz", "open", "deep", "null", "digits", "infinite", "bomb", "cut", "more"],
)  # fmt: skip
def test_what_is_no_tree_at_all(copied, spec, data):
    for part in ("test", "reports"):
        (copied / f"seed1.{part}.json.xz").write_bytes(data)
        told(copied, spec, f"seed1.{part}.json.xz")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file(copied, spec, kind):
    file = copied / "seed1.reports.json.xz"
    file.unlink()
    {"pipe": os.mkfifo, "folder": os.mkdir}[kind](file)
    told(copied, spec, file.name)


def corruptions(count: int, seed: int, copied: Path, spec) -> int:
    """So many trees with a byte, or a value of the JSON, changed; how many were told. The others are what they were, or sound."""
    whole, refused = read(copied, spec), 0
    files = sorted(copied.glob("*.xz"))
    stored = {file: (file.read_bytes(), content(file)) for file in files}
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        file = rng.choice(files)
        data, tree = stored[file]
        if bytewise := rng.random() < 0.5:
            damaged = bytearray(data)
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            file.write_bytes(damaged if rng.random() < 0.7 else data[: rng.randrange(len(data))])
        else:
            tree = copy.deepcopy(tree)
            place = tree
            while isinstance(place, dict | list) and place:
                keys = list(place) if isinstance(place, dict) else range(len(place))
                holder, key = place, rng.choice(keys)
                place = place[key]
                if rng.random() < 0.3:
                    break
            holder[key] = rng.choice([None, [], {}, "x", -7, 1e300, float("nan"), True, [[[]]]])
            file.write_bytes(packed(tree))
        try:
            found, said = read(copied, spec), ""
        except RunError as error:
            found, said = whole, str(error)
            refused += 1
        assert file.name in said or not said
        assert not bytewise or found == whole, f"{number}: {file.name} is another one"
        file.write_bytes(data)
    return refused


def test_corruptions_are_told_or_change_nothing(copied, spec):
    assert corruptions(20, 0, copied, spec) > 10


@pytest.mark.prove
def test_a_hundred_corruptions_are_told_or_change_nothing(copied, spec):
    assert corruptions(100, 1, copied, spec) > 60
