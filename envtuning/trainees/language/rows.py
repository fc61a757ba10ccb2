"""A stage's config as rows of prompts: new boards, none of them held out, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from envtuning.worlds.world import InfeasibleConfig
from mapf_frozenlake import GenerationError, LakeConfig, generate
from mapf_frozenlake.text import TextStyle
from mapf_frozenlake.text.trl import prompt_row


def rows_of(
    config: LakeConfig, n: int, seed: int, *, style: TextStyle, exclude: NDArray[np.uint64] | None = None
) -> list[dict[str, Any]]:
    """``n`` rows for TRL; ``metadata`` names the slice that a reply counts for. Raises ``InfeasibleConfig``."""
    try:
        boards = generate(config, n=n, seed=seed, exclude=exclude, num_threads=1)
    except GenerationError as error:
        raise InfeasibleConfig(str(error)) from error
    return [prompt_row(instance, config.reward, style) for instance in boards]
