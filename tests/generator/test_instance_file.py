"""The file form: what was saved comes back; everything else is refused in a sentence."""

import json
import os
import zlib

import numpy as np
import pytest

import mapf_frozenlake as mfl
from benchmarks.fuzz import instance_files
from mapf_frozenlake import InstanceSet, LakeError
from mapf_frozenlake.instance_file import parse, payload, sealed


@pytest.fixture
def drawn():
    config = mfl.LakeConfig(slices={3: {"wait_ratio": 0.5}, 6: {}}, num_agents={2: 1, 4: 1})
    return mfl.generate(config, 50, seed=3)


def test_saved_and_loaded(drawn, tmp_path):
    path = drawn.save(tmp_path / "new" / "some.lakes")
    loaded = InstanceSet.load(str(path))
    assert loaded == drawn
    assert loaded.config == drawn.config
    assert loaded.seed == 3
    assert loaded.checksum == drawn.checksum == path.read_bytes().split(b"\n")[1].decode()
    assert os.listdir(path.parent) == ["some.lakes"]  # nothing half-written is left
    assert path.stat().st_size < drawn.holes.nbytes


def test_labels_ids_and_the_empty_set_survive(tmp_path):
    suite = mfl.load_suite("quick")
    assert InstanceSet.load(suite[5:9].save(tmp_path / "part")) == suite[5:9]
    assert InstanceSet.load(suite[:0].save(tmp_path / "none")) == suite[:0]


def test_checksum_tells_contents_apart(drawn):
    other = drawn[:]
    other.makespan[7] += 1
    assert other.checksum != drawn.checksum


def header_of(content):
    length = int(np.frombuffer(content[:4], "<u4")[0])
    return json.loads(content[4 : 4 + length]), content[4 + length :]


def with_header(header, rest):
    text = json.dumps(header).encode()
    return np.array(len(text), "<u4").tobytes() + text + rest


def refusals(drawn):
    content = payload(drawn)
    file, (header, rest) = sealed(content), header_of(content)
    lines = file.split(b"\n", 2)
    yield "empty", b"", "byte 0: not an instance file"
    yield "a zip", b"PK\x03\x04" + file, "byte 0: not an instance file"
    yield "another version", file.replace(b"instances 1", b"instances 7", 1), "format '7'.*this package reads 1"
    yield "no checksum", lines[0] + b"\n" + lines[2], "line 2: the checksum must be 64"
    yield "wrong checksum", b"\n".join([lines[0], b"0" * 64, lines[2]]), "line 2: the checksum does not match"
    yield "cut", file[:-40], "byte [0-9]+ of the payload: .* needs [0-9]+ bytes"
    yield "not compressed", b"\n".join([*lines[:2], content]), "byte 0 of the payload: broken compression in the header"
    yield "more behind", file + b"x", "the arrays should end here"
    yield (
        "arrays missing",
        sealed(content[:-1]),
        "byte [0-9]+ of the payload: certificates needs 50 bytes, 49 are there",
    )
    yield "arrays surplus", sealed(content + b"x"), "the arrays should end here"
    yield "header too long", sealed(b"\xff\xff\xff\xff" + content), "the header claims 4294967295 bytes"
    yield (
        "too large",
        sealed(with_header(header | {"shape": [10**9, 64, 64, 64]}, rest)),
        "1000000000 boards of 64×64.*split",
    )
    yield "wrong config", sealed(with_header(header | {"config": {"slices": {}}}, rest)), "config is not a LakeConfig"
    yield "extra key", sealed(with_header(header | {"code": "x"}, rest)), "must have exactly shape"
    yield "objects", sealed(with_header(header | {"labels": {"x": "object"}}, rest)), "int64 or float64"
    yield "deep", sealed(np.array(10**5, "<u4").tobytes() + b"[" * 10**5), "header is not JSON"
    off_board = drawn[:]
    off_board.starts[4, 0] = 9
    yield "broken rule", sealed(payload(off_board)), "instance 4 of 50: a start or goal is off the board"


def test_each_refusal_says_where_and_why(drawn, tmp_path):
    for name, data, why in refusals(drawn):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(LakeError, match=why) as refusal:
            InstanceSet.load(path)
        assert str(refusal.value).startswith(f"{path}: ")
        assert "\n" not in str(refusal.value)


def test_unreadable_paths(tmp_path):
    with pytest.raises(LakeError, match="cannot be read"):
        InstanceSet.load(tmp_path / "none")
    with pytest.raises(LakeError, match="cannot be read"):
        InstanceSet.load(tmp_path)


def test_a_bomb_is_not_inflated(drawn):
    header, _ = header_of(payload(drawn))
    bomb = sealed(with_header(header | {"shape": [1, 2, 2, 1]}, bytes(100 << 20)))
    assert len(bomb) < 200_000
    assert len(zlib.decompress(bomb.split(b"\n", 2)[2])) > 100 << 20
    with pytest.raises(LakeError, match="should end here"):
        parse(bomb, InstanceSet)


def test_a_failed_write_leaves_the_old_file(drawn, tmp_path, monkeypatch):
    path = drawn.save(tmp_path / "kept.lakes")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        drawn[:3].save(path)
    monkeypatch.undo()
    assert InstanceSet.load(path) == drawn
    assert os.listdir(tmp_path) == ["kept.lakes"]


@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.prove)])
def test_thousands_of_broken_files(count):
    outcome = instance_files.run(count, seed=1)
    assert outcome["outcomes"]["read"] > count / 50  # untouched files are among them
    assert len(outcome["outcomes"]) > 10  # and many kinds of refusal
