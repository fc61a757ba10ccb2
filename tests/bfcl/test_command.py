"""``python -m envtuning.worlds.bfcl``: what each word does with which versions, what it prints, and how it ends. Nothing is fetched here."""

import shlex
import sys

import pytest

from envtuning.worlds.bfcl import package
from envtuning.worlds.bfcl.command import main
from envtuning.worlds.bfcl.package import PackageError, install, install_command, requirement

PUBLISHED = {
    "v4": "bfcl-eval 2026.3.23 (v4) in HERE: its files are the published ones\n",
    "v3-paper": "bfcl-eval 2025.6.9.2 (v3-paper) in HERE: its files are the published ones\n",
}


@pytest.fixture
def asked(monkeypatch):
    """What the command asked of the package, in order."""
    done = []
    monkeypatch.setattr(package, "install", lambda version: done.append(("install", version)) or "HERE")
    monkeypatch.setattr(package, "find", lambda version, path: done.append(("find", version, path)) or "HERE")
    monkeypatch.setattr(package, "verify", lambda version, root: done.append(("verify", version, root)))
    return done


def test_installing_and_verifying_are_of_v4_of_the_version_named_or_of_all(asked, capsys):
    assert main(["install"]) == 0
    assert main(["install", "--version", "v3-paper"]) == 0
    assert main(["install", "--version", "all"]) == 0
    assert asked == [("install", version) for version in ("v4", "v3-paper", "v4", "v3-paper")]
    asked.clear()
    assert main(["verify"]) == 0
    assert main(["verify", "--version", "v3-paper", "--path", "there"]) == 0
    assert asked == [
        ("find", "v4", None), ("verify", "v4", "HERE"), ("find", "v3-paper", "there"), ("verify", "v3-paper", "HERE")
    ]  # fmt: skip
    told = capsys.readouterr()
    assert told.out == "".join(PUBLISHED[v] for v in ("v4", "v3-paper", "v4", "v3-paper", "v4", "v3-paper"))
    assert not told.err


def test_what_goes_wrong_is_one_line_on_stderr_and_ends_with_1(asked, monkeypatch, capsys):
    def refuse(version, root):
        raise PackageError("these are others")

    monkeypatch.setattr(package, "verify", refuse)
    assert main(["verify"]) == 1
    assert capsys.readouterr() == ("", "these are others\n")


@pytest.mark.parametrize("wrong", [["remove"], [], ["verify", "--version", "v5"], ["templates"]])
def test_what_it_does_not_know_it_refuses_with_its_usage(asked, wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m envtuning.worlds.bfcl ")
    assert not asked


def test_installing_shows_and_runs_pip_on_the_one_wheel_that_is_accepted_and_looks_at_its_files(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    ran, told, verified = [], [], []

    def pip(command, *, check):
        with open(command[-1], encoding="utf-8") as file:
            ran.append((command, file.read(), check))

    monkeypatch.setattr(package.subprocess, "run", pip)
    monkeypatch.setattr(package, "verify", lambda version, root: verified.append((version, root)))
    home = tmp_path / "share" / "bfcl-eval" / "2026.3.23"
    assert install("v4", told.append) == home
    [(command, requirements, check)] = ran
    assert command == install_command("v4", command[-1])
    assert ("--target", str(home)) == tuple(command[-4:-2])
    assert requirements == requirement("v4") + "\n"
    assert check is True  # pip's failure ends the command
    assert told == [f"requirements.txt: {requirement('v4')}", shlex.join(command)]
    assert verified == [("v4", home)]
