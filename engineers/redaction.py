"""Keys stay out of prompts, transcripts, logs and errors: known secrets and whatever looks like one are blanked.

Defence in depth. Backends never hand headers or keys on in the first place.
"""

from __future__ import annotations

import os
import re

BLANK = "<redacted>"
SECRET_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS")
MIN_LENGTH = 8  # shorter values would blank ordinary words

_LOOKS_LIKE_A_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|github_pat|glpat)[-_][A-Za-z0-9_\-]{12,}"  # providers' prefixes
    r"|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|(?<=Bearer )[A-Za-z0-9._~+/\-]{8,}=*"
    r"|(?<=://)[^\s/@:\"]{1,200}:[^\s/@\"]{1,200}(?=@)"  # user:password@host
)
_FILE_PATH = re.compile(r"(?<![\w/:.<~\\])(?:~(?:[\\/][\w.@+\-]+)+|(?:[A-Za-z]:)?(?:[\\/][\w.@+\-]+){2,})[\\/]?")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?|%[A-Z_]{3,}%")

_protected: set[str] = set()


def protect(secret: str | None) -> None:
    """Blank this value from now on, wherever ``redact`` is applied."""
    if secret and len(secret.strip()) >= MIN_LENGTH:
        _protected.add(secret.strip())


def redact(text: str) -> str:
    """The text without protected values, values of environment variables named like secrets, and key-shaped words."""
    for secret in sorted(_protected | _from_environment(), key=len, reverse=True):
        text = text.replace(secret, BLANK)
    return _LOOKS_LIKE_A_KEY.sub(BLANK, text)


def scrub(text: str) -> str:
    """For prompts: also without file paths and environment variables."""
    return _VARIABLE.sub("<variable>", _FILE_PATH.sub("<path>", redact(text)))


def _from_environment() -> set[str]:
    return {
        value.strip()
        for name, value in os.environ.items()
        if len(value.strip()) >= MIN_LENGTH and any(word.endswith(SECRET_NAMES) for word in name.upper().split("_"))
    }
