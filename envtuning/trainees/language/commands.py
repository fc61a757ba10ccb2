"""What ``envtuning pretrain`` does: the model that a run's file needs, taught on the run's target, its held-out cases left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from envtuning.loop.validation import draw_suites, draw_validation
from envtuning.runs.plan import Plan
from envtuning.runs.seeds import derive
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.trainees.language.pretrain import Pretraining, pretrain
from envtuning.worlds.episodes import rates
from mapf_frozenlake import LakeConfig, LakeError
from mapf_frozenlake.generator.symmetry import canonical_keys

BOARDS = 48_000  # that a model for lakes is taught
PASSES = 25  # over the training tasks that a model for tool use is taught

Told = Callable[[int, int, float], None]


def pretrain_for(
    spec: RunSpec,
    out: Path,
    *,
    also: Sequence[RunSpec] = (),
    samples: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int, float], None] | None = None,
) -> Path:
    """Teach a model for this run; no held-out case of it, nor of ``also``, is shown. Raises ``SpecError`` where it cannot be.

    ``samples`` boards or conversations are shown; ``progress`` gets how many were, how many will be, and the loss.
    """
    told = progress or (lambda done, of, loss: None)
    if out.exists():
        raise SpecError(f"{out} exists already: choose another folder, or remove it to train the model again")
    for one in also:
        if one.world.name != spec.world.name:
            raise SpecError(f"{one.name} is a run in the world {one.world.name!r}, {spec.name} in {spec.world.name!r}")
    if spec.world.name == "tools":
        return _on_tools(spec, out, samples, seed, told)
    if spec.world.name != "lakes":
        raise SpecError(
            f"{spec.name} is a run in the world {spec.world.name!r}: models are pretrained on lakes and on tools"
        )
    return _on_lakes(spec, out, also, samples or BOARDS, seed, told)


def _on_lakes(spec: RunSpec, out: Path, also: Sequence[RunSpec], samples: int, seed: int, told: Told) -> Path:
    if spec.world.options.get("mode") == "turns":
        raise SpecError(
            f"{spec.name} asks for a move per reply (world.options.mode: turns), and pretraining teaches whole plans, which no "
            "turn can be read from: set the mode to plan, or train a model that is brought along"
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
    """Training scenarios are no held-out ones, whatever the run: the cut between them is stored."""
    from envtuning.worlds.bfcl.config import BFCLConfig
    from envtuning.worlds.bfcl.lessons import teach
    from envtuning.worlds.bfcl.pool import fitting
    from envtuning.worlds.bfcl.world import BFCLWorld

    plan = Plan.of(spec)
    world, target = plan.world, plan.target
    assert isinstance(world, BFCLWorld), "the world named tools"
    assert isinstance(target, BFCLConfig), "its target is a BFCLConfig"
    tasks = {task.id: task for config in plan.written for task in fitting(world.package, world.cut, "train", config)}
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
    """What this model scores on the run's validation cases before any training, and how many these are."""
    plan = Plan.of(spec)
    trainee, cases = plan.make_trainee(model=str(folder)), draw_validation(plan)
    try:
        episodes = plan.world.play(trainee.policy(), cases, plan.target, seed=derive(spec.suites.seed, "play"))
    finally:
        trainee.close()
    return rates(episodes)[plan.world.about.objective], len(cases)


def held_out_keys(specs: Sequence[RunSpec]) -> np.ndarray:
    """uint64[n]: the symmetry keys of all boards that these runs validate and test on."""
    keys = [canonical_keys(suite) for spec in specs for suite in draw_suites(Plan.of(spec)).held_out]
    return np.unique(np.concatenate(keys))
