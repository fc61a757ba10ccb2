"""Write ``benchmarks/README.md`` from the figures in ``benchmarks/results``: ``python -m benchmarks.readme``."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
PAGE = RESULTS.parent / "README.md"
HEAD = """# What was measured

Every figure on the pages is stored in [results](results) as JSON, unless the page says that it is not. The file has the command that made it,
the commit, the machine and the versions. A `+` after a commit means uncommitted changes; such figures are now refused.
`python -m benchmarks.readme` makes this page from those files, and a test checks that it is up to date.

Some figures are older than the current code. Their commands are those of their commits: what was `benchmarks.study NAME` is
`envtuning compare benchmarks/preregistered/NAME.yaml` today, and what was `benchmarks.engineers` is `envtuning compare`. `envtuning exam`
replaces `benchmarks.gate`, `benchmarks.gate_engineers`, `benchmarks.gate_cost`, `benchmarks.gate_training` and `benchmarks.reader`;
nothing replaces `benchmarks.readers`. In the stored studies, every stage drew a probe and paid for it. Today, trainees that give outcomes draw none, so presets spend differently now. The tables of the
studies are made again from the stored outcomes (`python -m benchmarks.store NAME --redraw`). Their intervals are now Student's t; when the studies were published they were by bootstrap.

`half-success` and `progress-share` were called `learnability` and `bandit`, and still are in the studies' pictures. An earlier version of these two
and of `rules` made the runs of the studies and of `engineers_engineer`. It took a step less to the target; in
`progress-share` of three stages it took none at all. It did not go beyond the default space to a target outside of it, and its `half-success` did
not ease where nothing succeeded.

| result | command | commit | machine | recorded |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The page that the stored results give."""
    rows = [row(path) for path in sorted(RESULTS.glob("*.json"))]
    studies = [
        f"## Study: {path.stem.removeprefix('study_').replace('-', ' ')}\n\n{question(path)}![arms over the budget, and each seed on the test; an arm that was added later may be missing](results/{path.stem}.png)\n\n{path.read_text(encoding='utf-8')}"
        for path in sorted(RESULTS.glob("study_*.md"))
    ]
    return "\n".join([HEAD + "\n".join(rows) + "\n", *studies])


def row(path: Path) -> str:
    stored = json.loads(path.read_text(encoding="utf-8"))
    machine = stored["machine"]
    sittings = [*stored["figures"].get("added_to", []), stored]
    cells = [
        f"[{path.stem}](results/{path.name})",
        ", then ".join(f"`{sitting['command']}`" for sitting in sittings),
        f"`{stored['commit']}`",
        f"{machine['processor']}, {machine['cores']} cores",
        stored["recorded"][:10],
    ]
    return f"| {' | '.join(cells)} |"


def question(path: Path) -> str:
    """The study's question, and the commits that made its runs."""
    figures = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["figures"]
    commits = (
        ", ".join(f"`{commit}`" for commit in figures["runs_made_by_commits"]) or "commits that were not noted then"
    )
    return f"{figures['question']} Preset `{figures['preset']}`; runs made by {commits}.\n\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
