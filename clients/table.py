"""docs/compatibility.md: one row for each client, from what its script reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clients.scripts import Script

HEAD = """# Which libraries the lake works with

For whoever trains with another library. This page lists those that we ran with the lake, how to make the lake for each of
them, and what worked.

Each library ran in its own virtual environment, against this checkout. `make clients` runs all of them and writes this page;
`python -m clients NAME` runs one. The scripts are in `clients/checks`. The results, with the machine, are in
[benchmarks/results/clients.json](../benchmarks/results/clients.json).

| library | versions | how to make the lake | what we checked |
| --- | --- | --- | --- |
"""
FOOT = """
What to know before you use one of these libraries:

- In a *crowd that varies*, the number of agents changes from episode to episode (`num_agents={2: 1, 4: 1}`). For such a
  crowd, use `fixed_roster=True` if the library needs the same agents in every episode (TorchRL, SuperSuit, Tianshou,
  AgileRL, RLlib's PettingZoo wrapper). Empty slots see zeros, may only WAIT and get reward 0.
- Gymnasium 1.1 to 1.4 are supported. Ray needs 1.2.2, so the extra `rllib` installs that version, and most tests run on it.
  `make newest` runs the tests of the world, of its text interface and of the curricula, with Stable-Baselines3, on 1.4.
- If a library expects observations to be arrays, not dicts, use `action_mask=None`, or `action_mask="info"` if it looks for
  masks in the infos.
- To limit the length of an episode, use `horizon`, because the environment itself counts the steps. Do not use
  `max_episode_steps` of `gym.make_vec` or `max_cycles` of Gymnasium's interfaces.
- Minari's `record_infos=True` needs the same keys in every info, from reset on. An environment that reports events does not
  meet this condition. So leave this argument out, or pass a `StepDataCallback` that fills in the missing keys.
- For EPyMARL's row, we ran copies of three of its files: `gymma.py` of the commit in the table, `wrappers.py` of c731d71 and
  `multiagentenv.py` of 733ffa5.
- For prime-rl's, we ran copies of three files of its `orchestrator/curriculum`: `base.py` of the commit in the table, `samplers/pool.py`
  of 114f3ca and `samplers/base.py` of 2cfe40f.
- EPyMARL's own PettingZoo wrapper drops the reward of an episode's last step and imports only modules of the pettingzoo
  package. Use its `gymma` wrapper on `MAPFFrozenLakeTuple-v0` instead.
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
