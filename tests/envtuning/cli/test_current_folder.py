"""A command that is started inside a stranger's folder runs nothing of it: neither itself, nor a library, nor a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lazily import needed

ROOT = Path(__file__).parents[3]
PLANTED = "from pathlib import Path\nPath(__file__).with_name('it_ran').touch()\n"


@pytest.fixture
def stranger(tmp_path):
    """A folder whose modules are called like those that are imported early on."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    for name in ("multiprocessing", "pickle", "yaml", "numpy", "torch", "pydantic", "ray"):
        (folder / f"{name}.py").write_text(PLANTED)
    return folder


def started(stranger, script, *arguments):
    """A script that lies elsewhere, as an installed command does, started in the stranger's folder."""
    file = stranger.with_name("command.py")
    file.write_text(f"if __name__ == '__main__':\n    {script}\n")
    return subprocess.run(
        [sys.executable, str(file), *map(str, arguments)],
        cwd=stranger,
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"} | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
    )


def command(stranger, package, *arguments):
    return started(stranger, f"from {package}.__main__ import main; main()", *arguments)


@pytest.mark.slow
def test_the_processes_of_a_comparison_import_nothing_from_it(stranger):
    done = command(
        stranger, "envtuning", "compare", "scripted", "--engineers", "fixed", "--seeds", 1, "--stages", 1, "--jobs", 2
    )
    assert done.returncode == 0, done.stderr
    assert not (stranger / "it_ran").exists()


@pytest.mark.ray
@pytest.mark.slow
def test_rays_workers_import_nothing_from_it(stranger):
    needed("ray", "torch", extra="rllib")
    asked = (
        "import sys, ray; from envtuning.trainees.rllib.ray_session import start_ray; start_ray(); "
        "print(ray.get(ray.remote(lambda: __import__('sys').path).remote()))"
    )
    done = started(stranger, asked)
    assert done.returncode == 0, done.stderr
    assert str(stranger) not in done.stdout
    assert not (stranger / "it_ran").exists()


@pytest.mark.parametrize("package", ["envtuning", "engineers"])
def test_numba_is_told_nothing_by_it(stranger, package):
    """``cache_dir`` there would have Numba unpickle a file of the stranger's."""
    (stranger / ".numba_config.yaml").write_text("cache_dir: ./compiled\n")
    done = command(stranger, package, "--help")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: .numba_config.yaml")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("package", ["envtuning", "engineers"])
def test_the_command_itself_imports_nothing_from_it(stranger, package):
    done = command(stranger, package, "--help")
    assert done.returncode == 0, done.stderr
    assert not (stranger / "it_ran").exists()
