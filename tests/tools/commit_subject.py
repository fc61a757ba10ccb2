"""The hook ``commit-msg``: a commit's subject is one thought in at most 72 characters.

``pre-commit install`` sets it up; git gives it the file that holds the message.
"""

from __future__ import annotations

import sys
from pathlib import Path

MOST = 72  # characters: what git's own tools show of a subject


def faults(message: str) -> list[str]:
    """What is wrong with a message's subject, a sentence each."""
    lines = [line for line in message.splitlines() if line.strip() and not line.startswith("#")]
    subject = lines[0] if lines else ""
    found = []
    if len(subject) > MOST:
        found.append(f"The subject has {len(subject)} characters, at most {MOST} fit: move the why into the body.")
    if ";" in subject:
        found.append("The subject joins thoughts by a semicolon: make a commit of each, or name the one that matters.")
    return found


def main(path: str) -> int:
    found = faults(Path(path).read_text(encoding="utf-8"))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
