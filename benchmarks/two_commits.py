"""Does a change leave runs as they were? One small RLlib run by another commit's code and by this one's, compared number by number.

    python -m benchmarks.two_commits --old 4ca501d

Both run on this machine with the same packages; only the project's own code differs. Compared are every stage's config, its
validation table and episodes, and the test. What was found is stored; exits with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._record import record

ROOT = Path(__file__).parents[1]
RUN = """
name: two-commits
target: {num_agents: 2, collisions: end, slices: {4: {hole_ratio: 0.2}, 5: {hole_ratio: 0.2}}}
trainee: {kind: rllib, options: {gamma: 0.95}}
engineer: {name: random, options: {seed: 5}}
suites: {validation_per_size: 30, test_per_size: 40, probe_per_size: 10, validate_every: 15000}
stages:
  - budget: 30000
    config: {num_agents: 2, collisions: end, reward: shaped, slices: {4: {hole_ratio: 0.0}, 5: {share: 0.5, hole_ratio: 0.1}}}
  - {budget: 30000}
"""


def results_of(code: Path, folder: Path) -> dict[str, Any]:
    """Run it by the code in that checkout; what it ended in, in a form that both formats of run folders have."""
    run_file = folder / "two-commits.yaml"
    folder.mkdir()
    run_file.write_text(RUN)
    out = folder / "run"
    command = [sys.executable, "-m", "envtuning", "run", str(run_file), "--out", str(out)]
    subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(code)}, check=True, stdout=sys.stderr)
    found: dict[str, Any] = {"test": json.loads((out / "test.json").read_text())}
    for stage in sorted((out / "stages").iterdir()):
        report = json.loads((stage / "report.json").read_text())
        found[stage.name] = {
            "config": json.loads((stage / "config.json").read_text()),
            "results": report["results"],
            "training_results": report["training_results"],
            "moves": [moves_of(one) for one in json.loads((stage / "episodes.json").read_text())],
            "losses": [
                line["loss"]
                for line in map(json.loads, (stage / "metrics.jsonl").read_text().splitlines())
                if line["kind"] == "iteration"
            ],
        }
    return found


def moves_of(episode: dict[str, Any]) -> list[str]:
    return episode["moves"] if "moves" in episode else episode["trace"]["moves"]


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Where they differ, deepest place first named."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [one for key in keys for one in differences(old.get(key), new.get(key), f"{place}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [one for n, pair in enumerate(zip(old, new, strict=True)) for one in differences(*pair, f"{place}/{n}")]
    return [] if old == new else [f"{place}: {old!r:.80} → {new!r:.80}"]


def figures(old: str, before: dict[str, Any], after: dict[str, Any], found: list[str]) -> dict[str, Any]:
    """What is stored: how much was compared, what differs, and both commits' test rates."""
    return {
        "old": old,
        "stages": len(after) - 1,
        "numbers_compared": leaves(after),
        "differences": len(found),
        "first_differences": found[:20],
        "old_test": before["test"],
        "new_test": after["test"],
    }


def leaves(value: Any) -> int:
    """How many values were compared one by one."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 1 if parts is None else sum(map(leaves, parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, help="the commit to compare with")
    old = parser.parse_args().old
    with tempfile.TemporaryDirectory() as place:
        checkout = Path(place) / "old"
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(checkout), old], cwd=ROOT, check=True, stdout=sys.stderr
        )
        try:
            before = results_of(checkout, Path(place) / "by-old")
            after = results_of(ROOT, Path(place) / "by-new")
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(checkout)], cwd=ROOT, check=True)
    found = differences(before, after)
    print("\n".join(found) or f"the same: {len(after) - 1} stages, every config, table, episode and loss, and the test")
    print(f"figures: {record('two_commits', figures(old, before, after, found))}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
