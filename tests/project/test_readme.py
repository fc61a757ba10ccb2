"""A page's Python runs, block by block in one namespace, and prints what it says it prints."""

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

from envtuning.worlds.gym_world import GymWorld

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/cluster.md", "docs/environments.md", "docs/instances.md", "docs/pogema.md", "docs/solvers.md"],
)
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


def calls_in_tables():
    """What the pages' tables show in code quotes that is a call, with its page; a call with "…" is not whole and left out."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
        for code in [code for row in rows for code in re.findall(r"`([^`]+)`", row)]:
            with contextlib.suppress(SyntaxError):
                if "…" not in code and isinstance(ast.parse(code, mode="eval").body, ast.Call):
                    yield page.name, code


# Calls of other libraries, or on objects that a table does not make: the file that runs them.
RUN_ELSEWHERE = {
    'gym.make("BFCLMultiTurn-v0")': "tests/bfcl/test_env.py",
    "datasets.Dataset.from_list(mfl.text_dataset(config, n=1000))": "clients/checks/with_datasets.py",
    "register_lakes()": "clients/checks/with_rllib.py",
    "action_masks()": "clients/checks/with_stable_baselines3.py",
    "PettingZooEnv(mapf_frozenlake_v0.env())": "clients/checks/with_tianshou.py",
    'GymEnv("MAPFFrozenLake-v0")': "clients/checks/with_torchrl.py",
    "PettingZooWrapper(mfl.parallel_env(fixed_roster=True), use_mask=False)": "clients/checks/with_torchrl.py",
    "PrimeTaskSampler(curriculum, list(tasks))": "clients/checks/with_prime_rl.py",
    'env.unwrapped.save_animation("film.svg")': "tests/world/test_rendering.py",
}


def test_calls_in_tables_run():
    import gymnasium as gym

    import mapf_frozenlake as mfl
    from mapf_frozenlake import mapf_frozenlake_v0

    calls = set(calls_in_tables())
    known = {"gym": gym, "mfl": mfl, "mapf_frozenlake_v0": mapf_frozenlake_v0, "Discrete": gym.spaces.Discrete}
    signatures = [(page, code) for page, code in calls if re.fullmatch(r"\w+\([a-z_, ]+\)", code)]
    run = {code for _, code in calls} - {code for _, code in signatures} - set(RUN_ELSEWHERE)
    assert len(run) >= 12
    assert set(RUN_ELSEWHERE) <= {code for _, code in calls}, "a reason for a call that no page shows"
    for code in run:
        made = eval(code, dict(known))
        if hasattr(made, "reset"):
            made.reset()
    for code, file in RUN_ELSEWHERE.items():
        assert re.match(r"[\w.]+", code)[0].rpartition(".")[2] in (ROOT / file).read_text(), f"{file} has no {code}"
    for _, code in signatures:  # what a world of one's own defines
        name, _, parameters = code.removesuffix(")").partition("(")
        assert parameters.split(", ") == [
            p for p in inspect.signature(getattr(GymWorld, name)).parameters if p != "self"
        ]


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
