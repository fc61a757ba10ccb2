"""The datasets of reasoning-gym as tasks: the knobs are the levels of its curricula, and its own ``score_answer`` is the judge.

``USED`` lists the datasets of version 0.1.25 that meet a world's contract; ``LEFT_OUT`` gives the reason for each of the others. A
dataset of a later version is in neither list; it is offered only after a review of its scorer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import Field, create_model

from engineers.shared.extras import needs
from envtuning.worlds.text_world import Asked, Task, TaskKnobs, TextWorld

QUESTIONS = 2**31  # indices of a dataset's questions; ``size`` does not limit a dataset that makes questions one by one
KEPT = 64  # configs whose dataset is kept
SHOWN = 120  # characters of a level's values in a knob's description

USED = (
    "ab", "advanced_geometry", "aiw", "arc_1d", "arc_agi", "base_conversion", "basic_arithmetic",
    "binary_alternation", "bitwise_arithmetic", "caesar_cipher", "calendar_arithmetic", "chain_sum", "circuit_logic",
    "color_cube_rotation", "count_bits", "count_primes", "course_schedule", "cryptarithm", "decimal_arithmetic",
    "decimal_chain_sum", "dice", "emoji_mystery", "family_relationships", "figlet_font", "fraction_simplification",
    "futoshiki", "game_of_life", "gcd", "group_anagrams", "isomorphic_strings", "kakurasu", "knights_knaves",
    "largest_island", "lcm", "leg_counting", "letter_counting", "letter_jumble", "mahjong_puzzle",
    "manipulate_matrix", "maze", "mini_sudoku", "modulo_grid", "needle_haystack", "number_filtering", "number_format",
    "number_sequence", "number_sorting", "palindrome_generation", "palindrome_partitioning", "path_star",
    "polynomial_equations", "pool_matrix", "power_function", "prime_factorization", "products", "quantum_lock",
    "ransom_note", "rearc", "rectangle_count", "rotate_matrix", "rotten_oranges", "self_reference",
    "sentence_reordering", "shortest_path", "simple_equations", "simple_geometry", "spell_backward", "string_splitting",
    "string_synthesis", "sudoku", "survo", "syllogism", "time_intervals", "tsumego",
    "word_sequence_reversal", "word_sorting",
)  # fmt: skip
_NO_ANSWER = "it gives no answer of its own that scores 1"
_RUNS_REPLIES = "its scorer runs the reply as Python code"
_ALL_AT_ONCE = "all its questions are made before the first is asked"
_SLOW = "a question takes a minute or more at its highest level"
LEFT_OUT = {
    **dict.fromkeys(("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"), _NO_ANSWER),
    **dict.fromkeys(("binary_matrix", "n_queens", "spiral_matrix", "string_insertion"), f"{_RUNS_REPLIES} (eval)"),
    **dict.fromkeys(
        ("countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration"),
        f"{_RUNS_REPLIES} (sympy's parse_expr)",
    ),
    **dict.fromkeys(("acre", "gsm_symbolic", "list_functions"), _ALL_AT_ONCE),
    **dict.fromkeys(("jugs", "sokoban", "zebra_puzzles"), _SLOW),
    "bf": "it prints while it makes a question",
    "codeio": "the same seed does not always give the same question",
    "coin_flip": "its scorer computes with fractions of any size, so a short reply (1e999999999) keeps it busy",
    "complex_arithmetic": "its scorer pays for nan",
    "composite": "it is a mixture of other datasets, as a config is",
    "game_of_life_halting": "its scorer takes any reply for True",
    "knight_swap": "its own check refuses the first level of its curriculum",
    "string_manipulation": "some of its right answers are empty, and score 0",
    "tower_of_hanoi": "its curriculum's first level has too few different questions",
    "word_ladder": "it numbers at most 20,000 questions",
}


def reasoning_gym_world() -> TextWorld:
    """A world of all datasets in ``USED``; a run's config names the few that it uses. Raises ``ImportError`` without the extra."""
    try:
        from reasoning_gym.factory import CURRICULA
    except ImportError as error:
        raise needs("the world 'reasoning-gym'", error, "reasoning-gym") from error
    return TextWorld(
        "reasoning-gym",
        {name: task_of(name, CURRICULA[name]().attributes if name in CURRICULA else {}) for name in USED},
        "Questions of reasoning-gym's datasets, each asked in full; the reply is the answer alone, or ends with <answer>…</answer>. "
        "A higher level of a knob asks for longer or harder questions.",
        score_in_words="reasoning-gym's own score of the answer",
    )


def task_of(name: str, attributes: Mapping[str, Any]) -> Task[Any]:
    """One dataset; each attribute of its curriculum is a knob, whose values are the attribute's levels."""

    @lru_cache(KEPT)
    def dataset(knobs: TaskKnobs) -> Any:
        return dataset_at(name, {attribute: getattr(knobs, attribute) for attribute in attributes})

    def make(rng: np.random.Generator, knobs: TaskKnobs) -> Asked:
        made = dataset(knobs.model_copy(update={"share": 1.0}))  # does not affect the questions
        entry = made[int(rng.integers(QUESTIONS))]
        return Asked(entry["question"], entry["answer"], (made, entry))

    def score(answer: str, asked: Asked) -> float:
        made, entry = asked.data
        return made.score_answer(answer, entry)

    fields: Any = {attribute: (int, knob_of(about)) for attribute, about in attributes.items()}
    return Task(create_model(f"Knobs_{name}", __base__=TaskKnobs, **fields), make, score)


def knob_of(attribute: Any) -> Any:
    levels = ", ".join(map(str, attribute.levels))
    values = levels if len(levels) <= SHOWN else f"{levels[:SHOWN]}…"
    said = (attribute.description or attribute.name.replace("_", " ")).rstrip(".")
    return Field(
        attribute.default_level,
        ge=0,
        le=len(attribute.levels) - 1,
        description=f"{said}, by level. Up to it, from level 0: {values}.",
    )


def dataset_at(name: str, levels: Mapping[str, int]) -> Any:
    """reasoning-gym's own dataset at these levels of its curriculum."""
    from reasoning_gym.factory import create_curriculum, create_dataset

    if not levels:
        return create_dataset(name, seed=0)
    curriculum = create_curriculum(name)
    for attribute, level in levels.items():
        curriculum.set_attr_level(attribute, level)
    return create_dataset(name, **vars(curriculum.generate_configuration({"seed": 0})))
