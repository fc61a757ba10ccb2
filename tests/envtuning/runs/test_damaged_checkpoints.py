"""A checkpoint of numbers that are not finite, or of another shape, is refused by its trainee; a run then names it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mapf_frozenlake as mfl
from envtuning.loop import run as loop
from envtuning.runs.checked import Files
from envtuning.runs.spec import SuiteSpec, load_spec
from envtuning.trainees import make_trainee
from tests.envtuning.commands import called

torch = pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")

CORRIDOR = {"n_steps": 32, "batch_size": 32, "n_epochs": 1, "num_envs": 1, "report_every": 64}


def ppo():
    trainee = make_trainee(
        "ppo", capacity={"max_size": 4, "max_agents": 1}, num_envs=4, rollout=8, minibatch=32, hidden=(8,)
    )
    return trainee, mfl.LakeConfig.single(3, num_agents=1)


def sb3():
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mapf-frozenlake[sb3]'")
    from tests.envtuning.gym_worlds import CorridorConfig, CorridorWorld

    world, config = CorridorWorld(), CorridorConfig()
    return make_trainee("sb3", world=world, capacity=world.capacity([config]), **CORRIDOR), config


def tensors(state: object) -> list[tuple[dict, str]]:
    """Every tensor of floats in the file that is more than a number, by the mapping that holds it."""
    if not isinstance(state, dict):
        return []
    found = [
        (state, name)
        for name, value in state.items()
        if torch.is_tensor(value) and value.dim() and value.is_floating_point()
    ]
    return found + [place for inner in state.values() for place in tensors(inner)]


@pytest.mark.parametrize("make", [ppo, sb3])
@pytest.mark.parametrize("damage", ["nan", "infinite", "another shape"])
def test_every_tensor_of_a_checkpoint_is_looked_at(tmp_path, make, damage):
    trainee, config = make()
    trainee.train(config, 64, seed=0)
    trainee.save(tmp_path)
    trainee.load(tmp_path)
    (file,) = (path for path in tmp_path.iterdir() if path.suffix != ".npy")  # not the questions that it knows
    whole = file.read_bytes()
    count = len(tensors(torch.load(file, weights_only=True)))
    assert count > 6  # moments too
    for number in range(count):
        file.write_bytes(whole)
        state = torch.load(file, weights_only=True)
        holder, name = tensors(state)[number]
        if damage == "another shape":
            shape = [1] * holder[name].dim()  # which PyTorch would broadcast
            holder[name] = torch.zeros(shape if shape != list(holder[name].shape) else [2])
        else:
            holder[name].view(-1)[-1] = float("nan" if damage == "nan" else "inf")
        torch.save(state, file)
        with pytest.raises((ValueError, RuntimeError), match=r"finite|shape|size"):
            trainee.load(tmp_path)


@pytest.mark.parametrize(
    "written", ["[NaN, 0, 0, 0, 0, 0]", "[1e400]", "[1.0]", '{"a": 1}', '"x"', "[[1, 2], [3]]", "[" * 5000]
)
def test_a_run_names_the_checkpoint(tmp_path, whole, written):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    checkpoint = run / "stages" / "00" / "checkpoint"
    (checkpoint / "skill.json").write_text(written)
    Files(run).note(checkpoint)  # as somebody can who hands a folder on
    (run / "test.json").unlink()
    code, output = called("resume", run)
    assert code == 1
    assert str(checkpoint) in output.partition("error: ")[2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    base = load_spec("scripted").with_rounds(1)
    stage = base.stages[0].model_copy(update={"budget": 1500, "advance_when": None})
    suites = SuiteSpec(validation_per_slice=4, test_per_slice=4, probe_per_slice=2)
    return loop.start(
        base.model_copy(update={"stages": (stage,), "suites": suites}), tmp_path_factory.mktemp("whole") / "run"
    ).path
