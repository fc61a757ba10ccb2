"""A page's Python runs, block by block in one namespace, and prints what it says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/cluster.md", "docs/environments.md", "docs/instances.md"])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / page).read_text())
    assert blocks, f"{page} shows no Python"
    namespace: dict = {}
    for code, expected in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), namespace)
        if expected:
            assert printed.getvalue().strip() == expected.strip(), code


def calls_in_tables(page):
    """What a page's tables show in code quotes that is a call, each completed to be run: `a()`; "…" and [shapes] are prose."""
    lines = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("|")]
    shown = [code.strip() for line in lines for code in re.findall(r"`([^`]+)`", line)]
    return [code for code in shown if re.fullmatch(r"(gym|mfl|mapf_frozenlake_v0)\.[\w.]+\(.*\)", code)]


def test_calls_in_tables_run():
    import gymnasium as gym

    import mapf_frozenlake as mfl
    from mapf_frozenlake import mapf_frozenlake_v0

    calls = calls_in_tables("docs/environments.md")
    assert len(calls) >= 6
    for code in calls:
        made = eval(code, {"gym": gym, "mfl": mfl, "mapf_frozenlake_v0": mapf_frozenlake_v0})
        made.reset()


def test_arguments_in_the_table_are_understood():
    """Every `name=value` of the arguments' table is taken by the form that its row names."""
    import gymnasium as gym

    import mapf_frozenlake as mfl

    text = (ROOT / "docs/environments.md").read_text().partition("## Arguments")[2].partition("## Observations")[0]
    rows = [line for line in text.splitlines() if line.startswith("|") and "=" in line]
    tried = 0
    for row in rows:
        for name, first, others in re.findall(r"`(\w+)=([^`]+)`((?:,? (?:or )?`[^`=]+`)*)", row):
            for value in [first, *re.findall(r'`("[^`]+"|None)`', others)]:
                given = {name: eval(value)}
                if name == "discrete":
                    given["num_agents"] = 1
                if value == '"human"':  # opens a window
                    continue
                make = (
                    mfl.parallel_env if "PettingZoo" in row else lambda **given: gym.make("MAPFFrozenLake-v0", **given)
                )
                make(**given).reset(seed=0)
                tried += 1
    assert tried >= 15


def test_links_to_files_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"
