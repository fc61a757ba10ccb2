"""docs/compatibility.md: one row for each client, from what its script reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clients.scripts import Script

HEAD = """# Which libraries the lake works with

Each row was made by running the library, in an environment of its own, against this checkout: `make clients` runs them all and
writes this page; `python -m clients NAME` one of them. The scripts are in `clients/checks`, figures and
machine in [benchmarks/results/clients.json](../benchmarks/results/clients.json).

| client | versions | from there | what was shown |
| --- | --- | --- | --- |
"""
FOOT = """
What to know before using one of them:

- A crowd that varies (`num_agents={2: 1, 4: 1}`) needs `fixed_roster=True` wherever a library wants the same agents in every episode
  (TorchRL, SuperSuit, Tianshou, AgileRL, RLlib's PettingZoo wrapper). Empty slots see zeros, may only WAIT and are paid 0.
- A library that takes arrays, not dicts, needs `action_mask=None`, or `"info"` where it looks for masks there.
- `max_episode_steps` of `gym.make_vec`, `max_cycles` of Gymnasium's forms and the like are called `horizon` here: it is counted inside.
- Minari's `record_infos=True` wants the same keys in every info, from reset on, which no environment with events has: leave it out,
  or give it a `StepDataCallback` that fills them.
- EPyMARL's own PettingZoo wrapper drops the reward of an episode's last step and imports only what lies inside the pettingzoo
  package: use its `gymma` wrapper on `MAPFFrozenLakeTuple-v0`.
"""


def write_table(figures: Mapping[str, Mapping[str, Any]], scripts: Mapping[str, Script], path: Path) -> None:
    """Rows in the scripts' order; a client that has not been run is left out."""
    rows = [row(script, figures[name]) for name, script in scripts.items() if name in figures]
    path.write_text(HEAD + "".join(rows) + FOOT, encoding="utf-8")


def row(script: Script, figures: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    shown = [f"✓ {what}" for what in figures["shown"]]
    failed = [f"✗ {what}: {why}" for what, why in figures["failed"].items()]
    cells = [script.title, versions or "–", script.how, "<br>".join([*shown, *failed])]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
