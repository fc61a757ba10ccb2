"""How long a user waits for the first step: CPU time, so that a busy machine does not matter."""

import os
import subprocess
import sys

import pytest

COLD, WARM = 20.0, 2.0  # CPU seconds, import included; on a hardware thread whose twin is busy with other tests
FIRST_STEP = """
import sys, time
import gymnasium as gym, mapf_frozenlake
env = gym.make("MAPFFrozenLake-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
print(time.process_time(), *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def first_step(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    printed = subprocess.run(
        [sys.executable, "-c", FIRST_STEP], env=environment, check=True, capture_output=True, text=True
    ).stdout.split()
    return float(printed[0]), set(printed[1:])


@pytest.mark.slow
def test_the_first_step_comes_soon(tmp_path):
    cold, loaded = first_step(tmp_path)
    compiled = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")}
    warm, _ = first_step(tmp_path)
    assert {name.partition(".")[0] for name in compiled} == {"kernels"}, "the world alone, nothing that draws boards"
    assert not loaded & {"torch", "ray", "matplotlib", "pygame", "transformers"}
    assert cold < COLD, f"{cold:.1f} s of CPU with nothing compiled"
    assert warm < WARM, f"{warm:.1f} s of CPU with everything compiled"


def cpu_seconds(code, *arguments):
    """Of processor time in a fresh interpreter, the best of three."""
    timed = f"import atexit, sys, time; atexit.register(lambda: print(time.process_time(), file=sys.stderr)); {code}"
    runs = (subprocess.run([sys.executable, "-c", timed, *arguments], capture_output=True, text=True) for _ in range(3))
    return min(float(run.stderr.split()[-1]) for run in runs)


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "most"), [(["--help"], 0.5), (["presets"], 1.0)])
def test_what_makes_no_world_is_answered_at_once(arguments, most):
    assert cpu_seconds("from envtuning.__main__ import main; main()", *arguments) < most


@pytest.mark.slow
def test_the_environment_is_imported_within_a_second():
    assert cpu_seconds("import mapf_frozenlake") < 1.0


def test_reading_a_runs_file_imports_no_world_and_no_trainee():
    code = "import sys; from envtuning.runs.spec import load_spec, preset_names; [load_spec(name) for name in preset_names()]"
    printed = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = set(printed.stdout.split())
    assert not loaded & {
        "mapf_frozenlake",
        "numba",
        "ray",
        "torch",
        "envtuning.trainees.scripted",
        "envtuning.loop.run",
    }
