"""The hook for commit messages takes a subject of one thought, and refuses the others before they are committed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
HOOK = ROOT / "tests" / "tools" / "commit_subject.py"


@pytest.mark.parametrize(
    ("message", "taken"),
    [
        ("The page on runs in short sentences\n\nA body; it may be long: " + "x" * 100, True),
        ("x" * 72, True),
        ("x" * 73, False),
        ("One thing; another thing", False),
        ("# a comment; of git's\nOne thing\n# another; comment", True),
    ],
)
def test_git_commits_only_subjects_of_one_thought(message, taken, tmp_path):
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=environment)
    hook = tmp_path / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HOOK}" "$1"\n')
    hook.chmod(0o755)
    commit = [*git, "commit", "-q", "--allow-empty", "--cleanup=strip", "-F", "-"]
    done = subprocess.run(commit, input=message, text=True, capture_output=True, env=environment)
    assert (done.returncode == 0) == taken, done.stderr


def test_pre_commit_installs_the_hook():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    [hook] = [hook for repo in config["repos"] for hook in repo["hooks"] if hook.get("stages") == ["commit-msg"]]
    assert hook["entry"].split()[-1] == HOOK.relative_to(ROOT).as_posix()
    assert set(config["default_install_hook_types"]) == {"pre-commit", "commit-msg"}
