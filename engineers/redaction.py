"""Keeps keys out of prompts, transcripts, logs and errors: blanks known secrets and texts that look like one.

This is a second line of defence: backends do not pass headers or keys on.
"""

from __future__ import annotations

import os
import re
from functools import cache

BLANK = "<redacted>"
SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "AUTHORIZATION", "CREDENTIALS")
MIN_LENGTH = 8  # shorter values would blank ordinary words

_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|github_pat|glpat)[-_][A-Za-z0-9_\-]{12,}"  # providers' prefixes
    r"|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/\-]{8,}=*"
    r"|(?<=://)[^\s/@:\"]{1,200}:[^\s/@\"]{1,200}(?=@)"  # user:password@host
)
_FILE_PATH = re.compile(
    r"(?<![\w/:.<~\\])(?:~(?:[\\/][\w.@+\-]+)+|[A-Za-z]:(?:[\\/][\w.@+\-]+){2,}|(?:/[\w.@+\-]+){2,})[\\/]?"
)
_HOMES = frozenset(["home", "Users", "root"])
# Beginnings of a machine's paths. A report may have other paths, of files in an environment's simulation.
_TOP_FOLDERS = (
    "Applications Library System Volumes bin boot data dev etc lib lib64 lost+found media mnt nix opt private proc "
    "run sbin scratch snap srv sys tmp usr var"
)
_MACHINE = _HOMES | frozenset(_TOP_FOLDERS.split())
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?|%[A-Z_]{3,}%")

_protected: set[str] = set()


def protect(secret: str | None) -> None:
    """Blank this value from now on, wherever ``redact`` is applied."""
    if secret and len(secret.strip()) >= MIN_LENGTH:
        _protected.add(secret.strip())


def is_secret_name(name: str) -> bool:
    """Whether an option or a variable of this name holds a secret, such as ``api_key``."""
    return any(word.endswith(SECRET_NAMES) for word in name.upper().split("_"))


def redact(text: str) -> str:
    """The text without protected values, values of environment variables named like secrets, and key-shaped words."""
    for secret in sorted(_protected | _from_environment(), key=len, reverse=True):
        text = text.replace(secret, BLANK)
    return _LOOKS_LIKE_A_KEY.sub(BLANK, text)


def scrub(text: str) -> str:
    """For prompts: also without paths of a machine and environment variables."""
    return _VARIABLE.sub("<variable>", _FILE_PATH.sub(_blank_path, redact(text)))


def scrub_picture(text: str) -> str:
    """For an environment's texts: its own files' paths and ``$WORDS`` stay; paths of this machine or of a home are blanked."""
    return _FILE_PATH.sub(_blank_real_path, redact(text))


def _blank_real_path(found: re.Match[str]) -> str:
    path = found.group()
    if not path.startswith("/"):
        return "<path>"
    first, second = path.split("/")[1:3]
    return "<path>" if first in _HOMES or os.path.lexists(f"/{first}/{second}") else path


def _blank_path(found: re.Match[str]) -> str:
    """Blank a path of a machine: from a home, a drive, a usual root, or a folder of this machine."""
    path = found.group()
    if not path.startswith("/"):
        return "<path>"
    first = path.split("/")[1]
    return "<path>" if first in _MACHINE or first in _top_folders() else path


@cache
def _top_folders() -> frozenset[str]:
    try:
        return frozenset(os.listdir("/"))
    except OSError:
        return frozenset()


def _from_environment() -> set[str]:
    return {
        value.strip() for name, value in os.environ.items() if len(value.strip()) >= MIN_LENGTH and is_secret_name(name)
    }
