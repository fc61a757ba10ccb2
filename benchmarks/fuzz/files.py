"""YAML and JSON files that a stranger might send: each is read, or refused in a sentence within ten seconds and 500 MB."""

from __future__ import annotations

import copy
import json
import random
import resource
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engineers.model.ledger import Ledger
from engineers.model.transcript import read_transcript
from engineers.shared.errors import UserError
from envtuning import EngineerCurriculum
from envtuning.runs.spec import load_spec
from envtuning.studies.preregistered import load_study
from mapf_frozenlake import LakeConfig

SLOWEST, LARGEST = 10, 500  # seconds of a file, MB that all of them may add
CONFIG = LakeConfig(slices={3: {}, 4: {}})
RUN = """world: lakes
target: {slices: {3: {}}, num_agents: 2}
stages:
  - {config: {slices: {3: {hole_ratio: 0.1}}, num_agents: 2}, budget: 100}
  - {budget: 100}
trainee: {kind: scripted, options: {speed: 0.5}}
engineer: {name: rules, options: {seed: 1}}
suites: {validation_per_slice: 4, test_per_slice: 4}
seed: 3
"""
STUDY = """name: mine
question: Does the engineer end above even draws?
preset: scripted
metric: valid
seeds: [0, 1, 2, 3]
test_seed: 3
trivial: [fixed]
arms:
  fixed: {engineer: fixed}
  rules: {engineer: rules}
"""
SCALARS = [
    *("1:1:1:1:1:1:1:1:1:1:1:1.5", "-0x" + "F" * 6_000, "9" * 5_000, "0b" + "1" * 4_000, "1e999", "-1e-999", ".nan", ".inf", "-.inf"),
    *("2026-11-27", "2026-11-27T99:99:99", "!!binary aGk=", "!!python/object/apply:os.system [ls]", "!!set {a}", "!evil x", "~", "null"),
    *('"\\ud800"', '"\\u0000"', '"\\x07"', "'" + "a" * 20_000 + "'", '"\u2028"', "evil:World", "http://evil.example/v1#m", "../../etc/passwd"),
    *("/dev/zero", "/dev/stdin", "[" * 3_000 + "]" * 3_000, "{a: " * 400 + "1" + "}" * 400, "*unknown", "&a [*a, *a]", "yes", "0o777", "--", "=", "<<"),
]  # fmt: skip
LINES = [
    "? [a, b]\n: 1", "<<: {seed: 1}", "x: &x {a: 1}\n<<: *x", "seed: 1\nseed: 2", "\tseed: 1", "%YAML 9.9\n---", "--- 1\n--- 2", "null: 1", "1.5: 2",
    "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "\n".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
    "m0: &m0 {a: 1}\n" + "\n".join(f"m{n}: &m{n} {{<<: [{','.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 9)),
    "world: {name: evil:World}", "trainee: {kind: evil:make}", "engineer: evil:make", "name: ../../out", "stages: 5", "stages: []",
    "suites: {validation_per_slice: 99999999999}", "target: []", "guard: {max_drop: 7}", "\ufeffseed: 1", "- 1", "#" * 50_000,
]  # fmt: skip
VALUES = [
    *(
        0,
        -1,
        1e308,
        10**400,
        None,
        True,
        "",
        "\ud800",
        "x" * 5_000,
        [],
        {},
        [[[[]]]],
        {"share": 7},
        "evil:World",
        "\x00",
        -(2**70),
    ),
    *(float("nan"), float("inf")),
]


def run(n: int, seed: int) -> dict[str, Any]:
    """Read n files, of each kind in turn; returns how many were read and refused. Raises on a crash, a hang or a change."""
    rng, outcomes = random.Random(seed), Counter[str]()
    before = _megabytes()
    with tempfile.TemporaryDirectory() as folder:
        kinds = _kinds(Path(folder))
        for index in range(n):
            kind = list(kinds)[index % len(kinds)]
            make, read = kinds[kind]
            written = make(rng)
            file = Path(folder) / f"it{'.yaml' if kind in ('run', 'study') else '.json'}"
            file.write_bytes(written)
            try:
                with _limited():
                    outcomes[f"{kind} {_read(read, file)}"] += 1
            except Exception as error:
                raise AssertionError(
                    f"file {index} of seed {seed} ({kind}) crashed its reader: {written[:400]!r}"
                ) from error
            left = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
            assert left == {file.name: written}, f"file {index} of seed {seed} ({kind}): reading it left {sorted(left)}"
            file.unlink()
    added = _megabytes() - before
    assert added < LARGEST, f"{n} files of seed {seed} added {added:.0f} MB"
    return {"files": n, "added_mb": round(added), **dict(sorted(outcomes.items()))}


Kinds = dict[str, tuple[Callable[[random.Random], bytes], Callable[[Path], Any]]]


def _kinds(folder: Path) -> Kinds:
    """How a file of each kind is made, and read."""
    whole = folder / "whole.json"
    EngineerCurriculum("rules", CONFIG, target=CONFIG).save(whole)
    state = json.loads(whole.read_text())
    whole.unlink()
    exchange = {"engineer": "e", "model": "m", "context": {}, "max_attempts": 1, "stage": 0, "number": 0, "kind": "proposal",
                "messages": [{"role": "user", "content": "?"}], "json_schema": None, "max_tokens": 9, "reply": "no"}  # fmt: skip
    return {
        "run": (lambda rng: _yaml(rng, RUN), load_spec),
        "study": (lambda rng: _yaml(rng, STUDY), load_study),
        "state": (
            lambda rng: _json(rng, state),
            lambda file: EngineerCurriculum("rules", CONFIG, target=CONFIG).load(file),
        ),
        "transcript": (lambda rng: _json(rng, exchange) + b"\n", read_transcript),
        "ledger": (
            lambda rng: _json(rng, {"asked": 5, "cost": 0.5, "check": 7}) + b"\n",
            lambda file: Ledger(file).total(),
        ),
    }


def _read(read: Callable[[Path], Any], file: Path) -> str:
    try:
        read(file)
    except UserError as error:
        said = str(error)
        assert said.strip(), "a refusal says something"
        assert "Traceback" not in said
        return "refused"
    return "read"


def _yaml(rng: random.Random, text: str) -> bytes:
    """A run's or a study's file with one to three tricks in it."""
    lines = text.splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        trick = rng.randrange(5)
        if trick == 0:
            lines.insert(at, rng.choice(LINES))
        elif trick == 1 and ": " in lines[at]:
            lines[at] = lines[at].partition(": ")[0] + ": " + rng.choice(SCALARS)
        elif trick == 2:
            lines[at] = _broken(rng, lines[at])
        elif trick == 3:
            lines.append(rng.choice(LINES))
        else:
            lines[at] = lines[at].replace("3", rng.choice(SCALARS), 1)
    written = "\n".join(lines) + "\n"
    return rng.choice(
        [written.encode("utf-8", "surrogatepass")] * 8
        + [written.encode("utf-16", "surrogatepass"), written.encode("utf-8", "surrogatepass")[:-9]]
    )


def _json(rng: random.Random, value: Any) -> bytes:
    """This JSON with one to three other values in it, or broken."""
    changed = json.loads(json.dumps(value))
    for _ in range(rng.randint(1, 3)):
        _change(rng, changed)
    text = json.dumps(changed)
    if rng.random() < 0.2:
        text = _broken(rng, text)
    if rng.random() < 0.1:
        text = rng.choice(["[" * 50_000, text + text, '{"a":1,"a":2}', "NaN", "", "\ufeff" + text, "9" * 5_000])
    return text.encode("utf-8", "surrogatepass")


def _change(rng: random.Random, value: Any) -> None:
    while isinstance(value, dict | list) and value:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        if rng.random() < 0.4 or not isinstance(value[key], dict | list) or not value[key]:
            value[key] = copy.deepcopy(rng.choice(VALUES))
            return
        value = value[key]


def _broken(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    return (
        text[:at]
        + rng.choice(['"', "'", "{", "]", ":", "\x00", "\x1b[2J", "&", "*", "!", "\ud800", "\n", "  "])
        + text[at + rng.randint(0, 3) :]
    )


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"no end within {SLOWEST} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SLOWEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
