"""The five short tasks, and one that a small language model cannot learn: a hash. The comparison
``benchmarks/preregistered/six-tasks.yaml`` trains on them.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from envtuning.worlds.text_world import Task, TextWorld
from examples.five_tasks import LETTERS, Length, letters
from examples.five_tasks import world as five


def scramble(rng: np.random.Generator, knobs: Length) -> tuple[str, str]:
    """Every letter of the answer depends on all letters of the question."""
    word = letters(rng, knobs)
    digest = blake2b(word.encode(), digest_size=knobs.length).digest()
    return f"scramble {word}", "".join(LETTERS[byte % len(LETTERS)] for byte in digest)


world = TextWorld(
    "six-tasks",
    {**five.tasks, "scramble": Task(Length, scramble)},
    "Six short tasks on letters and numbers: copy a word, reverse it, sort its letters, replace each letter by the next one of the "
    "alphabet, double a number, scramble a word. The reply is the answer and nothing else.",
)
