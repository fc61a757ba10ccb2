"""The file form of an ``InstanceSet``: two text lines, then a zlib stream of a JSON header and the raw arrays.

::

    mapf-frozenlake instances 1
    <SHA-256 of the content before compression, 64 hex digits>
    zlib( uint32 length of the header | header, JSON | the arrays, in the order of ARRAYS, then the labels; little endian )

A reader executes nothing from the file, and checks sizes before it allocates memory.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.constants import MAX_SIZE
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.instance_arrays import ARRAYS, DTYPES, InstanceData
from mapf_frozenlake.whole_file import write_whole

Made = TypeVar("Made", bound=InstanceData)

MAGIC = b"mapf-frozenlake instances "
VERSION = 1
DIGEST_LENGTH = 64
MAX_HEADER_BYTES = 256 << 20
MAX_ARRAY_BYTES = 4 << 30
LABEL_DTYPES = {"int64": np.int64, "float64": np.float64}


def write(these: InstanceData, path: Path) -> Path:
    """Write the file whole or not at all; equal sets have equal checksums."""
    return write_whole(path, sealed(payload(these)))


def sealed(content: bytes) -> bytes:
    """The file with this content."""
    digest = hashlib.sha256(content).hexdigest().encode()
    return MAGIC + b"%d\n" % VERSION + digest + b"\n" + zlib.compress(content, 9)


def checksum(these: InstanceData) -> str:
    """SHA-256 of the content, for the file's second line."""
    return hashlib.sha256(payload(these)).hexdigest()


def payload(these: InstanceData) -> bytes:
    """The content of a file before compression."""
    arrays = {name: getattr(these, name) for name in ARRAYS} | {"holes": np.packbits(these.holes, axis=None)}
    header = {
        "shape": [*these.holes.shape, these.starts.shape[1]],  # n, H, W, A
        "labels": {name: str(column.dtype) for name, column in these.labels.items()},
        "sample_ids": these.sample_ids,
        "config": None if these.config is None else these.config.model_dump(mode="json"),
        "seed": these.seed,
    }
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    columns = [*arrays.values(), *these.labels.values()]
    little_endian = [np.ascontiguousarray(column, column.dtype.newbyteorder("<")).tobytes() for column in columns]
    return b"".join([np.array(len(text), "<u4").tobytes(), text, *little_endian])


def read(path: Path, make: Callable[..., Made]) -> Made:
    """The set that ``write`` wrote, made by ``make`` from its fields; other files raise a ``LakeError`` that says where and why."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LakeError(f"{path}: cannot be read ({error.strerror})") from error
    try:
        return parse(data, make)
    except LakeError as error:
        raise LakeError(f"{path}: {error}") from error


def parse(data: bytes, make: Callable[..., Made]) -> Made:
    """The set in these bytes, made from its fields; other bytes raise ``LakeError``."""
    expected, body = _checksum_and_body(data)
    stream = _Inflated(body)
    length = int(np.frombuffer(stream.take(4, "the header's length"), "<u4")[0])
    if length > MAX_HEADER_BYTES:
        raise LakeError(
            f"the header claims {length} bytes, but at most {MAX_HEADER_BYTES} are allowed: it is not an instance file"
        )
    header = _header(stream.take(length, "the header"))
    n, height, width, agents = header["shape"]
    columns: dict[str, NDArray] = {}
    shapes = dict.fromkeys(ARRAYS, (n,)) | {"holes": (n, height, width)}
    shapes |= {"starts": (n, agents, 2), "goals": (n, agents, 2)}
    if n * (height * width // 8 + agents * 8 + 16 + 8 * len(header["labels"])) > MAX_ARRAY_BYTES:
        raise LakeError(
            f"the header claims {n} boards of {height}×{width}, more than {MAX_ARRAY_BYTES >> 30} GiB: split the set"
        )
    for name in ARRAYS:
        columns[name] = _column(stream, name, DTYPES[name], shapes[name])
    labels = {name: _column(stream, name, LABEL_DTYPES[dtype], (n,)) for name, dtype in header["labels"].items()}
    stream.expect_end()
    if stream.digest() != expected:
        raise LakeError("line 2: the checksum does not match the rest of the file; fetch or write the file again")
    ids = header["sample_ids"]
    return make(
        **columns,
        labels=labels,
        sample_ids=None if ids is None else tuple(ids),
        config=header["config"],
        seed=header["seed"],
    )


def _checksum_and_body(data: bytes) -> tuple[bytes, bytes]:
    first_line, _, rest = data.partition(b"\n") if b"\n" in data[:64] else (data[:64], b"", b"")
    if not first_line.startswith(MAGIC):
        raise LakeError(f"byte 0: not an instance file, which starts with {MAGIC.decode().strip()!r}")
    version = first_line.removeprefix(MAGIC)
    if version != b"%d" % VERSION:
        raise LakeError(
            f"line 1: the file has format {version.decode(errors='replace')!r}, but this package reads {VERSION}: "
            "update the package"
        )
    if rest[DIGEST_LENGTH : DIGEST_LENGTH + 1] != b"\n":
        raise LakeError(
            f"line 2: the checksum must be {DIGEST_LENGTH} hex digits and a newline; the file was cut or edited"
        )
    return rest[:DIGEST_LENGTH], rest[DIGEST_LENGTH + 1 :]


class _Inflated:
    """A zlib stream, read in chunks of stated size, so that a small file cannot claim a large memory."""

    def __init__(self, body: bytes) -> None:
        self._engine = zlib.decompressobj()
        self._rest = body
        self._taken = 0
        self._hash = hashlib.sha256()

    def digest(self) -> bytes:
        return self._hash.hexdigest().encode()

    def take(self, size: int, what: str) -> bytes:
        chunks, missing = [], size
        try:
            while missing > 0 and (self._rest or not self._engine.eof):
                chunk = self._engine.decompress(self._rest, missing)
                self._rest = self._engine.unconsumed_tail
                if not chunk:
                    break
                chunks.append(chunk)
                missing -= len(chunk)
        except zlib.error as error:
            raise LakeError(f"byte {self._taken} of the payload: broken compression in {what} ({error})") from error
        if missing:
            raise LakeError(f"byte {self._taken} of the payload: {what} needs {size} bytes, {size - missing} are there")
        self._taken += size
        taken = b"".join(chunks)
        self._hash.update(taken)
        return taken

    def expect_end(self) -> None:
        try:
            surplus = self._engine.decompress(self._rest, 1) or self._engine.unused_data
        except zlib.error as error:
            raise LakeError(f"byte {self._taken} of the payload: broken compression at the end ({error})") from error
        if surplus or not self._engine.eof:
            raise LakeError(f"byte {self._taken} of the payload: the arrays should end here, but more follows")


def _column(stream: _Inflated, name: str, dtype: type, shape: tuple[int, ...]) -> NDArray:
    size = math.prod(shape)
    if name == "holes":
        packed = np.frombuffer(stream.take((size + 7) // 8, name), np.uint8)
        return np.unpackbits(packed, count=size).astype(np.bool_).reshape(shape)
    little = np.dtype(dtype).newbyteorder("<")
    return np.frombuffer(stream.take(size * little.itemsize, name), little).astype(dtype).reshape(shape)


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LakeError(f"the header is not JSON ({error.__class__.__name__})") from error
    if not isinstance(header, dict) or set(header) != {"shape", "labels", "sample_ids", "config", "seed"}:
        raise LakeError("the header must have exactly shape, labels, sample_ids, config and seed")
    shape, labels, ids, seed = header["shape"], header["labels"], header["sample_ids"], header["seed"]
    if not (isinstance(shape, list) and len(shape) == 4 and all(type(side) is int for side in shape)):
        raise LakeError(f"the header's shape is {shape!r:.80}: it must be four integers n, height, width, agents")
    n, height, width, agents = shape
    if not (0 <= n < 2**40 and 0 < height <= MAX_SIZE and 0 < width <= MAX_SIZE and 0 < agents <= MAX_SIZE * MAX_SIZE):
        raise LakeError(f"the header's shape {shape!r:.80} is out of bounds: sides are 1 to {MAX_SIZE}")
    if not (
        isinstance(labels, dict) and len(labels) <= 64 and all(str(kind) in LABEL_DTYPES for kind in labels.values())
    ):
        raise LakeError("the header's labels must map at most 64 names to int64 or float64")
    if ids is not None and not (isinstance(ids, list) and len(ids) == n and all(type(one) is str for one in ids)):
        raise LakeError(f"the header's sample_ids must be null or {n} strings")
    if seed is not None and type(seed) is not int:
        raise LakeError(f"the header's seed is {seed!r:.80}: it must be null or an integer")
    if header["config"] is not None:
        try:
            header["config"] = LakeConfig.model_validate(header["config"])
        except (ValueError, RecursionError) as error:
            raise LakeError(f"the header's config is not a LakeConfig ({str(error).splitlines()[0]})") from error
    return header
