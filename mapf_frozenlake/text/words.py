"""Models' words for the five moves and their names for agents, one table each."""

from __future__ import annotations

from mapf_frozenlake.letters import START_LETTERS
from mapf_frozenlake.types import Action

LEFT, DOWN, RIGHT, UP, WAIT = Action.LEFT, Action.DOWN, Action.RIGHT, Action.UP, Action.WAIT

MOVE_WORDS = {
    "left": LEFT, "leftward": LEFT, "leftwards": LEFT, "west": LEFT, "westward": LEFT,
    "down": DOWN, "downward": DOWN, "downwards": DOWN, "south": DOWN, "southward": DOWN,
    "right": RIGHT, "rightward": RIGHT, "rightwards": RIGHT, "east": RIGHT, "eastward": RIGHT,
    "up": UP, "upward": UP, "upwards": UP, "north": UP, "northward": UP,
    "wait": WAIT, "stay": WAIT, "noop": WAIT, "pass": WAIT, "hold": WAIT, "idle": WAIT, "pause": WAIT,
}  # fmt: skip
WAIT_PHRASES = r"no[-_ ]?op(?:eration)?|(?:stay|remain|stand|wait)[-_ ](?:in[-_ ]place|still|put)|do[-_ ]nothing"

MOVE_ARROWS = {"←": LEFT, "⬅": LEFT, "↓": DOWN, "⬇": DOWN, "→": RIGHT, "➡": RIGHT, "↑": UP, "⬆": UP}

# One letter each, in two alphabets: W is WAIT beside L R U D but west beside N E; S is STAY or south.
RELATIVE_LETTERS = {"l": LEFT, "d": DOWN, "r": RIGHT, "u": UP, "w": WAIT, "s": WAIT}
COMPASS_LETTERS = {"w": LEFT, "s": DOWN, "e": RIGHT, "n": UP}
COMPASS_EVIDENCE = {"n", "e"} | {word for word in MOVE_WORDS if word.startswith(("west", "south", "east", "north"))}
RELATIVE_EVIDENCE = {"l", "d", "r", "u", *MOVE_ARROWS} | {
    word for word, action in MOVE_WORDS.items() if action != WAIT and word not in COMPASS_EVIDENCE
}

# Words between moves that do not change them.
FILLERS = frozenset({"then", "and", "next", "finally", "first", "move", "moves", "go", "goes", "to", "at"})
# Words that count the steps of a plan.
STEP_WORDS = frozenset({"step", "steps", "time", "timestep", "t", "turn", "round"})
PROSE = FILLERS | STEP_WORDS  # among moves, these have no meaning
# Words between two answers that make it ambiguous whether the second replaces the first, continues it, or is a choice.
CONTINUING_WORDS = STEP_WORDS | frozenset(
    {"times", "timesteps", "turns", "rounds", "phase", "phases", "part", "half", "stage", "segment", "second", "third"}
    | {"then", "next", "after", "that", "afterwards", "later", "continue", "continued", "continuing", "and", "to"}
)
CHOICE_WORDS = frozenset({"option", "alternative", "alternatively", "or"})
# Words in a remark that take back or multiply the moves before it.
CORRECTING_WORDS = frozenset({"correction", "corrected", "actually", "instead", "rather"})
OBJECTING_WORDS = frozenset({"or", "no", "not"})
COUNTING_WORDS = frozenset({"times", "twice", "thrice", "repeat", "repeated", "repeatedly"})
COUNTED_WORDS = frozenset({"step", "steps", "move", "moves", "action", "actions", "total", "in"})
# Words between an agent's name and its moves.
HEADER_WORDS = frozenset(
    {"move", "moves", "action", "actions", "plan", "path", "route", "steps", "sequence", "trajectory", "directions"}
    | {"start", "goal", "from", "to", "is", "answer"}
)
NUMBER_WORDS = {
    word: number
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
}


def agent_numbers(labels: set[str], num_agents: int) -> dict[str, int] | None:
    """The agent of each label, decided by all labels together; None if a label names an agent that does not exist.

    Numbers count from 0, or from 1 where exactly 1 … num_agents occur. Letters are the board's start letters, or the
    alphabet from A where exactly its first num_agents letters occur.
    """
    numbers = {label: number for label in labels if (number := _number(label)) is not None}
    if len(numbers) == len(labels):
        values = set(numbers.values())
        first = 1 if values == set(range(1, num_agents + 1)) else 0
        if values <= set(range(first, first + num_agents)):
            return {label: number - first for label, number in numbers.items()}
        return None
    lettered = list(START_LETTERS[:num_agents])
    if labels <= set(lettered):
        return {label: lettered.index(label) for label in labels}
    alphabet = [chr(ord("a") + index) for index in range(min(num_agents, 26))]
    if {label.lower() for label in labels} == set(alphabet):
        return {label: alphabet.index(label.lower()) for label in labels}
    return None


def _number(label: str) -> int | None:
    return int(label) if label.isascii() and label.isdigit() else NUMBER_WORDS.get(label.lower())
