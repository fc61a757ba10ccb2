"""Remarks in round brackets among moves: their ends, and whether they change the moves."""

from __future__ import annotations

from collections.abc import Sequence

from mapf_frozenlake.text.moves import moves_in
from mapf_frozenlake.text.tokens import Token
from mapf_frozenlake.text.words import CORRECTING_WORDS, COUNTED_WORDS, COUNTING_WORDS, OBJECTING_WORDS, PROSE

MAX_REMARK = 300  # characters between round brackets


def end_of_remark(tokens: Sequence[Token], at: int) -> int | None:
    """Behind "(S)" or "(to stay on its goal)", which opens at ``at``: brackets on one line whose words are not all moves."""
    moves, words = 0, 0
    for end in range(at + 1, len(tokens)):
        token = tokens[end]
        if token.text == ")":
            is_letter = end == at + 2 and len(tokens[end - 1].text) == 1
            return end + 1 if words or not moves or is_letter else None
        if token.kind == "newline" or token.start - tokens[at].start > MAX_REMARK:
            return None
        is_move = bool(moves_in(token))
        moves += is_move
        words += token.kind == "word" and not is_move and token.text.lower() not in PROSE
    return None


def changes_moves(remark: Sequence[Token], count: int) -> bool:
    """ "(3)" or "(2 times)" or "(or DOWN)": more than a remark. "(3 moves)" is a remark if the list before it has that ``count``."""
    words = [token.text.lower() for token in remark if token.kind == "word"]
    numbers = [int(token.text[:9]) for token in remark if token.kind == "number"]
    if numbers and COUNTED_WORDS.issuperset(words):
        return not words or numbers != [count]
    if COUNTING_WORDS.intersection(words) or any(token.kind == "times" for token in remark):
        return True
    objects = bool(words) and words[0] in OBJECTING_WORDS
    return any(map(moves_in, remark)) and (objects or bool(CORRECTING_WORDS.intersection(words)))
