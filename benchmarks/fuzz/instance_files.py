"""Instance files that are broken, cut, forged or hostile: each must be read rightly or refused in a sentence."""

from __future__ import annotations

import hashlib
import json
import pickle
import time
import zlib
from collections import Counter
from typing import Any

import numpy as np

import mapf_frozenlake as mfl
from mapf_frozenlake.instance_file import MAGIC, VERSION, parse, sealed
from mapf_frozenlake.instance_file import payload as payload_of

MAX_SECONDS = 5.0  # CPU time for one file; a few milliseconds are usual
NASTY = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**40, 1.5, "", "x" * 300, "\x00", [], [1], {}, {"a": 1}, [[[]]], "int8", "object",
    [1, 2, 3, 4], [-1, 4, 4, 2], [2**39, 64, 64, 4096], [0, 1, 1, 1], {"label": "int64"},
]  # fmt: skip


def run(n: int, seed: int) -> dict[str, Any]:
    """Outcomes of n files; raises ``AssertionError`` on the first that was neither read rightly nor refused well."""
    rng = np.random.default_rng(seed)
    originals = [(payload, sealed(payload)) for payload in _payloads()]
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for _ in range(n):
        payload, file = originals[rng.integers(len(originals))]
        how = bomb if rng.random() < 0.002 else BREAKERS[rng.integers(len(BREAKERS))]
        broken = how(payload, file, rng)
        began = time.process_time()
        outcome = _outcome(broken)
        took = time.process_time() - began
        assert took < MAX_SECONDS, f"{how.__name__}: {took:.1f} s for {len(broken)} bytes"
        slowest = max(slowest, took)
        outcomes[outcome] += 1
    assert outcomes["read"] < n, "nothing was broken"
    return {"slowest_seconds": round(slowest, 4), "outcomes": dict(outcomes.most_common())}


def _outcome(data: bytes) -> str:
    """ "read", or the first words of the refusal."""
    try:
        read = parse(data, mfl.InstanceSet)
    except mfl.LakeError as refusal:
        sentence = str(refusal)
        assert "\n" not in sentence, sentence
        assert 20 < len(sentence) < 500, sentence
        assert "Traceback" not in sentence, sentence
        return " ".join(word for word in sentence.split()[:4] if word.isalpha() or word.endswith("'s"))
    assert parse(sealed(payload_of(read)), mfl.InstanceSet) == read
    return "read"


def _payloads() -> list[bytes]:
    config = mfl.LakeConfig(slices={3: {}, 5: {"hole_ratio": 0.3}}, num_agents={1: 1, 3: 1})
    drawn = mfl.generate(config, 12, certify="reachable")
    return [payload_of(drawn), payload_of(drawn[:1]), payload_of(mfl.load_suite("quick")[:20])]


def random_bytes(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    return rng.bytes(rng.integers(0, 300))


def flipped(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    broken = bytearray(file)
    for at in rng.integers(0, len(file), rng.integers(1, 4)):
        broken[at] ^= 1 << int(rng.integers(8))
    return bytes(broken)


def cut(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    return file[: rng.integers(0, len(file))]


def extended(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    return file + rng.bytes(rng.integers(1, 50))


def spliced(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    a, b, c = sorted(rng.integers(0, len(file), 3))
    return (file[:a] + file[b:c] + file[a:b] + file[c:]) if rng.integers(2) else file[:a] + file[b:]


def first_lines(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    lines = [
        MAGIC + b"1\n",
        MAGIC + b"2\n",
        MAGIC + b"-1\n",
        MAGIC + b"\xff\xfe\n",
        MAGIC,
        b"",
        b"\n" * 5,
        b"PK\x03\x04\n",
    ]
    return lines[rng.integers(len(lines))] + file.partition(b"\n")[2][rng.integers(0, 80) :]


def forged_arrays(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    """Bytes changed before sealing: the checksum fits, the rules may not."""
    broken = bytearray(payload)
    header_end = 4 + int(np.frombuffer(payload[:4], "<u4")[0])
    for at in rng.integers(header_end, len(payload), rng.integers(1, 6)):
        broken[at] = rng.integers(256)
    return sealed(bytes(broken))


def forged_bytes(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    """The same anywhere, and of another length."""
    broken = bytearray(payload)
    broken[rng.integers(len(payload))] = rng.integers(256)
    if rng.integers(2):
        del broken[rng.integers(len(payload)) :]
    return sealed(bytes(broken) + rng.bytes(rng.integers(0, 3)))


def forged_header(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    length = int(np.frombuffer(payload[:4], "<u4")[0])
    header = json.loads(payload[4 : 4 + length])
    where = header
    while isinstance(where, dict | list) and where:
        keys: list[Any] = list(where) if isinstance(where, dict) else list(range(len(where)))
        key = keys[rng.integers(len(keys))]
        if not isinstance(where[key], dict | list) or rng.random() < 0.4:
            where[key] = NASTY[rng.integers(len(NASTY))]
            break
        where = where[key]
    if rng.random() < 0.2:
        header["more" if rng.integers(2) else "shape"] = NASTY[rng.integers(len(NASTY))]
    text = json.dumps(header).encode()
    return sealed(np.array(len(text), "<u4").tobytes() + text + payload[4 + length :])


def deep_header(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    texts = [b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000, b"NaN", b"\xff\xfe", b'"\\ud800"', b"null"]
    text = texts[rng.integers(len(texts))]
    return sealed(np.array(len(text), "<u4").tobytes() + text)


def bomb(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    """A small file that would be large."""
    if not _BOMBS:
        _BOMBS.extend(_made_bombs())
    return _BOMBS[rng.integers(len(_BOMBS))]


_BOMBS: list[bytes] = []


def _made_bombs() -> list[bytes]:
    zeros = bytes(200 << 20)
    made = []
    for claimed in ([10**6, 10, 10, 5], [10**9, 64, 64, 64], [2**39, 1, 1, 1], [1, 2, 2, 1]):
        header = {"shape": claimed, "labels": {}, "sample_ids": None, "config": None, "seed": None}
        text = json.dumps(header).encode()
        made.append(sealed(np.array(len(text), "<u4").tobytes() + text + zeros))
    made.append(sealed(np.array(2**32 - 1, "<u4").tobytes() + zeros))
    return made


def pickled(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    """What other formats would execute."""
    evil = pickle.dumps({"shape": [1, 2, 2, 1]}, protocol=int(rng.integers(6)))
    body = [evil, zlib.compress(evil), np.array(len(evil), "<u4").tobytes() + evil][rng.integers(3)]
    if rng.integers(2):
        return sealed(body)
    digest = hashlib.sha256(body).hexdigest().encode()
    return MAGIC + b"%d\n" % VERSION + digest + b"\n" + body


def untouched(payload: bytes, file: bytes, rng: np.random.Generator) -> bytes:
    return file


BREAKERS = [
    random_bytes, flipped, cut, extended, spliced, first_lines, forged_arrays, forged_arrays, forged_bytes, forged_header,
    forged_header, deep_header, pickled, untouched,
]  # fmt: skip
