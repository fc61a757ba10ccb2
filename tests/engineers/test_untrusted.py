"""Files that anybody may have written are read within bounds, or refused in a sentence; none makes the reader wait or raise anything else."""

from __future__ import annotations

import json
import os

import pytest

from engineers.shared import untrusted
from engineers.shared.untrusted import NotReadable


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no JSON"), ("{", "no JSON"), ("[1] 2", "no JSON"), (b'"\xff"', "no JSON"), ("7" * 5000, "no JSON"),
        ("NaN", "not finite"), ("[-Infinity]", "not finite"), ('{"a": [1e400]}', "not finite"), ("9" * 400, "not finite"),
        ("[" * 101 + "]" * 101, "nested deeper"), ("[" * 5000 + "]" * 5000, "nested deeper"), ('{"a":' * 50_000, "nested deeper"),
    ],
)  # fmt: skip
def test_what_no_reader_could_use_is_refused(text, says):
    with pytest.raises(NotReadable, match=f"is damaged .*{says}"):
        untrusted.parsed(text)


def test_what_is_sound_is_read_as_json_reads_it():
    value = {"a": [1, -2.5, None, True, "ä\ud800"], "b": {"c": 1e308, "d": 10**300}, "e": []}
    assert untrusted.parsed(json.dumps(value)) == value
    deep = "[" * 100 + "]" * 100
    assert untrusted.parsed(deep) == json.loads(deep)


def test_lines_that_are_whole_are_read_and_one_that_was_cut_off_is_not():
    assert untrusted.parsed_lines(b'{"a": 1}\r\n\n[2]\n{"cut o') == [{"a": 1}, [2]]
    assert untrusted.parsed_lines('"\u2028"\n'.encode()) == ["\u2028"]  # which ends a line elsewhere
    with pytest.raises(NotReadable):
        untrusted.parsed_lines(b"1\n{\n3\n")


@pytest.mark.timeout(10)
def test_only_a_regular_file_within_bounds_is_opened(tmp_path):
    assert untrusted.read_bytes(tmp_path / "none") is None
    (tmp_path / "file").write_bytes(b"12345")
    assert untrusted.read_bytes(tmp_path / "file", largest=5) == b"12345"
    with pytest.raises(NotReadable, match="5 bytes, at most 4"):
        untrusted.read_bytes(tmp_path / "file", largest=4)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", ".", "loop", "file/below", "x" * 300):
        with pytest.raises(NotReadable, match=r"is not a file|cannot be read"):
            untrusted.read_bytes(tmp_path / name)


def test_nothing_stays_open(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("file", "."):
        for _ in range(3):
            try:
                untrusted.read_bytes(tmp_path / name)
            except NotReadable:
                continue
    assert len(os.listdir("/proc/self/fd")) == before
