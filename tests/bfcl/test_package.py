"""Getting the benchmark's package: what is run, what is accepted, and what a user without it reads."""

import shutil
import sys

import pytest

from envtuning.worlds.bfcl import package as packages
from envtuning.worlds.bfcl.command import main
from envtuning.worlds.bfcl.package import PackageError, find, install_command, requirement, verify


def test_the_command_leaves_the_requirements_out_and_checks_the_wheel(tmp_path):
    command = install_command("v4", tmp_path / "requirements.txt")
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert {"--no-deps", "--require-hashes"} <= set(command)
    assert requirement("v4").startswith("bfcl-eval==2026.3.23 --hash=sha256:3bb6")
    assert requirement("v3-paper").startswith("bfcl-eval==2025.6.9.2 --hash=sha256:566e")


def test_absent_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(PackageError, match=r"envtuning\.worlds\.bfcl install --version v3-paper"):
        find("v3-paper")


def test_an_unpacked_wheel_is_taken_by_path_and_a_changed_one_refused(v4, tmp_path, capsys):
    copy = tmp_path / "wheel"
    shutil.copytree(v4.root, copy)
    assert find("v4", copy) == copy
    verify("v4", copy)
    assert main(["verify", "--path", str(copy)]) == 0
    changed = copy / "bfcl_eval" / "eval_checker" / "multi_turn_eval" / "multi_turn_checker.py"
    changed.write_text(changed.read_text() + "\n")
    with pytest.raises(PackageError, match="are not those of version"):
        verify("v4", copy)
    assert main(["verify", "--path", str(copy)]) == 1
    assert "run `python -m envtuning.worlds.bfcl install" in capsys.readouterr().err


def test_a_process_keeps_to_the_folder_that_it_loaded(v4, tmp_path):
    assert packages.load("v4", v4.root) is packages.load("v4", str(v4.root)) is v4
    with pytest.raises(PackageError, match="in a process of its own"):
        packages.load("v4", tmp_path)


def test_both_versions_verify(v4, v3_paper):
    for version in packages.VERSIONS:
        verify(version, find(version))
