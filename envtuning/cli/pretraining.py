"""``envtuning pretrain``: makes the model for a run and teaches it on the run's target, without the held-out cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from envtuning.loop.validation import draw_suites, draw_validation
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.seeds import derive
from envtuning.trainees.language.pretrain import Pretraining, pretrain
from envtuning.worlds.episodes import rates
from mapf_frozenlake import LakeConfig, LakeError
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import InstanceSet

BOARDS = 48_000  # of pretraining on lakes
PASSES = 25  # over the training tasks of tool use

Told = Callable[[int, int, float], None]


def pretrain_for(
    spec: RunSpec,
    out: Path,
    *,
    also: Sequence[RunSpec] = (),
    samples: int | None = None,
    seed: int = 0,
    progress: Told | None = None,
) -> Path:
    """Teach a model for this run, without the held-out cases of it and of ``also``. Raises ``SpecError`` if that is impossible.

    ``samples`` boards or conversations are shown; ``progress`` gets the number shown, the total, and the loss.
    """
    told = progress or (lambda done, of, loss: None)
    if out.exists():
        raise SpecError(f"{out} exists already: choose another folder, or remove it to train the model again")
    for one in also:
        if one.world.name != spec.world.name:
            raise SpecError(
                f"{one.name} runs in the world {one.world.name!r}, but {spec.name} in {spec.world.name!r}: name runs in one world"
            )
    if spec.world.name == "tools":
        return _on_tools(spec, out, samples, seed, told)
    if spec.world.name != "lakes":
        raise SpecError(
            f"{spec.name} runs in the world {spec.world.name!r}, but models can be pretrained only on lakes and on tools: name such a run"
        )
    return _on_lakes(spec, out, also, samples or BOARDS, seed, told)


def _on_lakes(spec: RunSpec, out: Path, also: Sequence[RunSpec], samples: int, seed: int, told: Told) -> Path:
    if spec.world.options.get("mode") == "turns":
        raise SpecError(
            f"{spec.name} has a move per reply (world.options.mode: turns), but pretraining teaches whole plans: set the mode to "
            "plan, or train a model of your own"
        )
    style = spec.world.options.get("style", "paper")
    options = Pretraining(samples=samples, seed=seed, style=style)
    target = Plan.of(spec).target
    assert isinstance(target, LakeConfig), "a lake's target is a LakeConfig"
    try:
        keys = held_out_keys([spec, *also])
        return pretrain(out, target, keys, options, lambda done, loss: told(done, samples, loss))
    except LakeError as error:
        raise SpecError(str(error)) from error


def _on_tools(spec: RunSpec, out: Path, samples: int | None, seed: int, told: Told) -> Path:
    """No training scenario is held out in any run, because the cut between them is stored."""
    from envtuning.trainees.language.tool_lessons import teach
    from envtuning.worlds.bfcl.config import BFCLConfig
    from envtuning.worlds.bfcl.pool import fitting
    from envtuning.worlds.bfcl.world import BFCLWorld

    plan = Plan.of(spec)
    world, target = plan.world, plan.target
    assert isinstance(world, BFCLWorld), "the world named tools"
    assert isinstance(target, BFCLConfig), "its target is a BFCLConfig"
    written = [config for config in plan.written if isinstance(config, BFCLConfig)]
    tasks = {task.id: task for config in written for task in fitting(world.package, world.cut, "train", config)}
    passes = PASSES if samples is None else math.ceil(samples / len(tasks))
    shown = passes * len(tasks)
    return teach(
        out,
        world.package,
        list(tasks.values()),
        tool_style=target.tool_style,
        reply_format=target.reply_format,
        passes=passes,
        seed=seed,
        progress=lambda done, loss: told(done * len(tasks), shown, loss),
    )


def validated(spec: RunSpec, folder: Path) -> tuple[float, int]:
    """This model's score on the run's validation cases before training, and the number of these cases."""
    plan = Plan.of(spec)
    trainee, cases = plan.make_trainee(model=str(folder)), draw_validation(plan)
    try:
        episodes = plan.world.play(trainee.policy(), cases, plan.target, seed=derive(spec.suites.seed, "play"))
    finally:
        trainee.close()
    return rates(episodes)[plan.world.about.objective], len(cases)


def held_out_keys(specs: Sequence[RunSpec]) -> np.ndarray:
    """uint64[n]: the symmetry keys of all boards that these runs validate and test on."""
    suites = [cast("InstanceSet", suite) for spec in specs for suite in draw_suites(Plan.of(spec)).held_out]
    keys = [canonical_keys(suite) for suite in suites]
    return np.unique(np.concatenate(keys))
