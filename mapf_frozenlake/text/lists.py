"""Reading one list of moves: tokens, and the run of moves that begins at a token."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from mapf_frozenlake.text.words import (
    COMPASS_EVIDENCE,
    COMPASS_LETTERS,
    FILLERS,
    HEADER_WORDS,
    MOVE_ARROWS,
    MOVE_WORDS,
    RELATIVE_EVIDENCE,
    RELATIVE_LETTERS,
    STEP_WORDS,
    WAIT_PHRASES,
)

MAX_MOVES = 10_000  # per agent, repetitions ("WAIT x3") written out
MAX_REMARK = 300  # characters between round brackets
SEPARATORS = frozenset(",;:.!?|/\\\"'`“”‘’*_-+&=>•·")
MAX_HEADER = 40  # tokens between a label and its moves
_PROSE = FILLERS | STEP_WORDS  # among the moves these say nothing

_TOKEN = re.compile(
    rf"""
      (?P<newline>\n)
    | (?P<cell>[(\[]\s{{0,3}}\d{{1,3}}\s{{0,3}},\s{{0,3}}\d{{1,3}}\s{{0,3}}[)\]])   # (row, col)
    | (?P<wait>\b(?:{WAIT_PHRASES})\b)
    | (?P<tag></?[a-z][a-z_]{{0,20}}/?>)
    | (?P<times>(?:\bx|[×*])[ ]?\d{{1,6}}(?!\w))                                    # x3
    | (?P<elided>\.{{3}}|…|\betc\b)
    | (?P<to>->|=>|-->)
    | (?P<comment>//|\#|—|–|[ ]-[ ])
    | (?P<number>\d+)
    | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)
    | (?P<mark>[^\s\ufe0f])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COMPACT = re.compile(r"[LRUDWS]{2,}|[NESW]{2,}")


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


_END = Token("end", "", -1, -1)
_CLOSING = ('"', "'", "`", "*", "]", ")", "}")


def tokens_of(text: str) -> list[Token]:
    return [Token(str(match.lastgroup), match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]


class Move(NamedTuple):
    """A move as it was written: a word, a letter of one of two alphabets, or an arrow."""

    text: str  # lower case
    start: int


@dataclass
class MoveList:
    """What stood where a list of moves was looked for."""

    moves: list[Move] = field(default_factory=list)
    end: int = 0  # index of the first token after it
    broken: tuple[int, str] | None = None  # offset, and why it cannot be read as a list of moves
    formal: bool = True  # no prose words among the moves
    cells: int = 0  # coordinates on the way
    bracketed: bool = False  # written in square brackets: then an empty list is one too
    stopped_by: Token | None = None  # what stood there instead of a first move

    @property
    def found(self) -> bool:
        return self.broken is None and (bool(self.moves) or self.bracketed)

    @property
    def stopped_by_text(self) -> bool:
        return self.stopped_by is not None and self.stopped_by.kind not in ("newline", "end")


def moves_in(token: Token) -> list[Move]:
    """The moves that this token writes; none where it is no move."""
    if token.kind == "wait":
        return [Move("wait", token.start)]
    if token.kind == "mark":
        return [Move(token.text, token.start)] if token.text in MOVE_ARROWS else []
    if token.kind != "word":
        return []
    word = token.text.lower()
    if word in MOVE_WORDS or word in RELATIVE_LETTERS or word in COMPASS_LETTERS:
        return [Move(word, token.start)]
    if _COMPACT.fullmatch(token.text):
        return [Move(letter.lower(), token.start + index) for index, letter in enumerate(token.text)]
    return []


def read_list(tokens: list[Token], start: int, labels: frozenset[int] = frozenset()) -> MoveList:
    """The list that begins at token ``start``, which follows a label. Ends before the next of ``labels``."""
    return _ListReader(tokens, start, labels).read()


class _ListReader:
    """Walks from a label's end to its list's end, and never skips in silence what it cannot read."""

    def __init__(self, tokens: list[Token], start: int, labels: frozenset[int]) -> None:
        self.tokens = tokens
        self.labels = labels  # indices of tokens at which a label begins
        self.start = self.at = start
        self.depth = 0  # open brackets
        self.own_lines = False  # the moves began on a line after the label's: then they may fill several
        self.list = MoveList()

    def read(self) -> MoveList:
        if self._skip_header():
            while self.list.broken is None and not self._at_end():
                self._take()
            if self.depth > 0 and self.list.bracketed and self.list.broken is None:
                self._break(
                    "the list that ends here is not closed: the reply seems to be cut off", self.tokens[self.at - 1]
                )
        self.list.end = self.at
        return self.list

    def _token(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) and at not in self.labels else _END

    def _break(self, why: str, token: Token | None = None) -> None:
        self.list.broken = ((token or self._token()).start, why)

    def _skip_header(self) -> bool:
        """Go to the first move. False where something else stands there, or moves without anything to announce them."""
        announced = False
        while (token := self._token()) is not _END and self.at < self.start + MAX_HEADER:
            remark_end = self._remark_end() if token.text == "(" else None
            if remark_end is not None:
                self.at = remark_end
                continue
            if token.text in ("[", "(") or moves_in(token):
                if announced or self.at == self.start or token.text == "[":
                    return True
                break
            if token.kind == "newline":
                if not self._moves_ahead(self.at + 1):
                    break
                self.own_lines = announced = True
            elif token.text in (":", "=", "|") or token.kind in ("to", "comment"):
                announced = True
            elif token.kind == "word" and token.text.lower() not in HEADER_WORDS:
                if not (announced and token.text.lower() in _PROSE):
                    break
                self.list.formal = False
            elif token.kind in ("tag", "elided", "times") or (token.kind == "number" and not self._is_numbering()):
                break
            self.list.cells += token.kind == "cell"
            self.at += 1
        self.list.stopped_by = self._token()
        return False

    def _remark_end(self) -> int | None:
        """Behind "(S)" or "(to stay on its goal)": round brackets on one line whose words are not all moves."""
        opening, moves, words = self._token(), 0, 0
        for at in range(self.at + 1, len(self.tokens)):
            token = self.tokens[at]
            if token.text == ")":
                is_letter = at == self.at + 2 and len(self.tokens[at - 1].text) == 1
                return at + 1 if words or not moves or is_letter else None
            if token.kind == "newline" or token.start - opening.start > MAX_REMARK:
                return None
            is_move = bool(moves_in(token))
            moves += is_move
            words += token.kind == "word" and not is_move and token.text.lower() not in _PROSE
        return None

    def _moves_ahead(self, at: int) -> bool:
        """Whether the next line that is not empty begins with a move, behind at most a bullet, a number, a bracket."""
        for token_at in range(at, min(at + MAX_HEADER, len(self.tokens))):
            token = self.tokens[token_at]
            if token_at in self.labels or token.kind == "tag":
                return False
            if moves_in(token) or token.text == "[":
                return True
            if token.kind == "word" and token.text.lower() not in _PROSE:
                return False
        return False

    def _at_end(self) -> bool:
        """The list ends with its bracket, with its line, with the next label, or where a remark begins."""
        token = self._token()
        if token is _END or token.kind == "tag":
            return True
        if token.text in ("]", ")", "}"):
            self.depth -= 1
            self.at += self.depth >= 0
            if self.depth < 0 or (self.depth == 0 and token.text == "]"):
                return True
            return self._at_end()
        if token.kind == "newline":
            return self.depth == 0 and not (self.own_lines and self._moves_ahead(self.at + 1))
        if self._begins_remark():
            self._refuse_moves_in_rest_of_line()
            return True
        return False

    def _begins_remark(self) -> bool:
        """A full stop or a dash ends a list, unless the moves go on behind it."""
        token, following = self._token(), self._token(1)
        if token.text.strip() in (".", ";", "!", "?", "-", "—", "–"):
            goes_on = moves_in(following) or following.kind in ("number", "newline") or following.text in _CLOSING
            return not goes_on
        return token.kind == "comment"

    def _refuse_moves_in_rest_of_line(self) -> None:
        for at in range(self.at + 1, len(self.tokens)):
            token = self.tokens[at]
            if at in self.labels or token.kind == "newline":
                return
            if moves_in(token) and len(token.text) > 1:
                self._break(
                    "a move stands behind the end of the list: write all moves in one row, and nothing else", token
                )
                return

    def _take(self) -> None:
        """One token inside the list: a move, what stands between moves, or what breaks the list."""
        token = self._token()
        moves = moves_in(token)
        if moves:
            self.list.moves += moves
        elif token.text in ("[", "{"):
            self.depth += 1
            self.list.bracketed = self.list.bracketed or token.text == "["
        elif token.text == "(":
            self._take_round_bracket()
        elif token.kind == "times":
            self._repeat(token)
        elif token.kind == "mark" and token.text not in SEPARATORS:
            self._break(f"{token.text!r} is no move; the moves are LEFT, DOWN, RIGHT, UP and WAIT")
        elif token.kind == "elided":
            self._break("moves are left out here: write every move")
        elif token.kind == "number" and not self._is_numbering():
            self._break("a number among the moves may be a count or a step: write words only")
        elif token.kind == "word":
            self.list.formal = False
            if token.text.lower() not in _PROSE:
                self._break(f"{token.text[:20]!r} is no move; the moves are LEFT, DOWN, RIGHT, UP and WAIT")
        self.list.cells += token.kind == "cell"
        if len(self.list.moves) > MAX_MOVES and self.list.broken is None:
            self._break(f"more than {MAX_MOVES} moves for one agent: shorten the plan")
        self.at += 1

    def _take_round_bracket(self) -> None:
        """Around the whole list it is a bracket; behind a move it holds a remark or "x3"."""
        if not self.list.moves:
            self.depth += 1
            return
        inside, closing = self._token(1), self._token(2)
        if inside.kind == "times" and closing.text == ")":
            self._repeat(inside)
            self.at += 2
            return
        end = self._remark_end()
        if end is None:
            self._break("moves in round brackets may or may not belong to the list: leave the brackets out")
        else:
            self.at = end - 1

    def _repeat(self, token: Token) -> None:
        count = int(token.text.lstrip("xX×* "))
        if not self.list.moves or count == 0:
            self._break(f"{token.text!r} repeats nothing: write a move, then x and how often", token)
        else:
            self.list.moves += [self.list.moves[-1]] * min(count - 1, MAX_MOVES + 1)

    def _is_numbering(self) -> bool:
        """ "1." or "2)" or "Step 3:" before a move."""
        return self._token(1).text in (".", ")", ":", "]", "|")


def readable(moves: list[Move]) -> tuple[list[Move], tuple[int, str] | None]:
    """A right arrow between words separates them, arrows alone are moves; a mixture is neither."""
    arrows = [move for move in moves if move.text in MOVE_ARROWS]
    if not arrows or len(arrows) == len(moves):
        return moves, None
    odd = next((arrow for arrow in arrows if arrow.text not in "→➡"), None)
    if odd is not None:
        return [], (odd.start, "arrows and words are mixed: write every move as a word")
    return [move for move in moves if move.text not in MOVE_ARROWS], None


def actions_of(lists: list[list[Move]]) -> list[list[int]] | tuple[int, str]:
    """The actions of one answer's lists. W and S mean what the answer's other words and letters say they mean."""
    written = {move.text for moves in lists for move in moves}
    compass = bool(written & COMPASS_EVIDENCE)
    relative = bool(written & RELATIVE_EVIDENCE)
    doubtful = next((move for moves in lists for move in moves if move.text in ("w", "s")), None)
    if doubtful is not None and compass == relative:
        return (
            doubtful.start,
            f"{doubtful.text.upper()!r} may mean WAIT, west, STAY or south here: write the move's word",
        )
    table: dict[str, int] = {**MOVE_WORDS, **MOVE_ARROWS, **COMPASS_LETTERS, **RELATIVE_LETTERS}
    if compass and not relative:
        table |= COMPASS_LETTERS
    return [[int(table[move.text]) for move in moves] for moves in lists]
