"""What ``envtuning pretrain`` does: the model that a run's file needs, taught on the run's target, its held-out boards left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from envtuning.loop.validation import draw_test, draw_validation
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.trainees.language.pretrain import Pretraining, pretrain
from mapf_frozenlake import LakeConfig, LakeError
from mapf_frozenlake.generator.symmetry import canonical_keys


def pretrain_for(
    spec: RunSpec,
    out: Path,
    *,
    also: Sequence[RunSpec] = (),
    options: Pretraining | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Path:
    """Teach a model on the target of ``spec``; the validation and test boards of it and of ``also`` are never shown."""
    for one in (spec, *also):
        if one.world.name != "lakes":
            raise SpecError(f"{one.name} is a run in the world {one.world.name!r}: models are pretrained on lakes only")
    style = spec.world.options.get("style", "paper")
    chosen = options or Pretraining(style=style)
    assert isinstance(spec.target, LakeConfig), "a lake's target is a LakeConfig"
    try:
        return pretrain(out, spec.target, held_out_keys([spec, *also]), chosen, progress)
    except LakeError as error:
        raise SpecError(str(error)) from error


def held_out_keys(specs: Sequence[RunSpec]) -> np.ndarray:
    """uint64[n]: the symmetry keys of all boards that these runs validate and test on."""
    keys = []
    for spec in specs:
        validation = draw_validation(spec)
        keys.append(canonical_keys(validation))
        if spec.suites.test_per_slice:
            keys.append(canonical_keys(draw_test(spec, validation)))
    return np.unique(np.concatenate(keys))
