"""Reading one list of moves: the run of moves that begins at a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, takewhile

from mapf_frozenlake.text.moves import Move, moves_in
from mapf_frozenlake.text.remarks import changes_moves, end_of_remark
from mapf_frozenlake.text.tokens import END, Token
from mapf_frozenlake.text.words import HEADER_WORDS, MOVE_ARROWS, PROSE

MAX_MOVES = 10_000  # per agent, repetitions ("WAIT x3") written out
MAX_HEADER = 40  # tokens between a label and its moves
SEPARATORS = frozenset(",;:.!?|/\\\"'`“”‘’*_-+&=>•·")
CLOSING_BRACKETS = ("]", ")", "}")
CLOSING = ('"', "'", "`", "*", *CLOSING_BRACKETS)
_BETWEEN = ("mark", "number", "to", "comment", "cell", "times")  # other tokens that a line of moves may have


@dataclass
class MoveList:
    """The result of reading a list of moves."""

    moves: list[Move] = field(default_factory=list)
    end: int = 0  # index of the first token after it
    broken: tuple[int, str] | None = None  # offset, and the reason why it is not a list of moves
    formal: bool = True  # no prose words among the moves
    cells: int = 0  # coordinates on the way
    bracketed: bool = False  # written in square brackets
    empty: bool = False  # written as []: then a list without moves is a list, too
    stopped_by: Token | None = None  # the text instead of a first move

    @property
    def found(self) -> bool:
        return self.broken is None and (bool(self.moves) or self.empty)


def read_list(tokens: list[Token], start: int, labels: frozenset[int] = frozenset()) -> MoveList:
    """The list that begins at token ``start``, which follows a label. Ends before the next of ``labels``."""
    return _ListReader(tokens, start, labels).read()


class _ListReader:
    """Walks from a label's end to its list's end, and never silently skips text that it cannot read."""

    def __init__(self, tokens: list[Token], start: int, labels: frozenset[int]) -> None:
        self.tokens = tokens
        self.labels = labels  # indices of tokens at which a label begins
        self.start = self.at = start
        self.depth = 0  # open brackets
        self.closed = False  # the outermost square bracket was closed, which ends the list
        self.numbering: list[int] = []  # "1.", "2)", … before the moves
        self.own_lines = False  # the moves began on a line after the label's, so they may fill several lines
        self.list = MoveList()

    def read(self) -> MoveList:
        if self._skip_header():
            while self.list.broken is None and not self._at_end():
                self._take()
            for refuse in (self._refuse_gaps_in_numbering, self._refuse_doubtful_arrows, self._refuse_open_bracket):
                if self.list.broken is None:
                    refuse()
        self.list.end = self.at
        return self.list

    def _token(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if 0 <= at < len(self.tokens) and at not in self.labels else END

    def _break(self, why: str, token: Token | None = None) -> None:
        self.list.broken = ((token or self._token()).start, why)

    def _skip_header(self) -> bool:
        """Go to the first move. False if there is other text, or if nothing announces the moves."""
        announced = False
        while (token := self._token()) is not END and self.at < self.start + MAX_HEADER:
            remark_end = end_of_remark(self.tokens, self.at) if token.text == "(" else None
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
                if not (announced and token.text.lower() in PROSE):
                    break
                self.list.formal = False
            elif token.kind == "number" and self._is_numbering():
                self.numbering.append(int(token.text[:9]))
            elif token.kind in ("tag", "elided", "times", "number"):
                break
            self.list.cells += token.kind == "cell"
            self.at += 1
        self.list.stopped_by = self._token()
        return False

    def _moves_ahead(self, at: int) -> bool:
        """Whether the next line that is not empty begins with a move, behind at most a bullet, a number, a bracket."""
        for token_at in range(at, min(at + MAX_HEADER, len(self.tokens))):
            token = self.tokens[token_at]
            if token_at in self.labels or token.kind == "tag":
                return False
            if moves_in(token) or token.text == "[":
                return True
            if token.kind == "word" and token.text.lower() not in PROSE:
                return False
        return False

    def _at_end(self) -> bool:
        """The list ends with its bracket, its line, at the next label or JSON key, or where a remark begins."""
        token = self._token()
        if token is END:
            return True
        if token.kind == "tag" and not self.closed:
            self._refuse_moves_in_rest_of_line()
            return True
        if self.closed or (self.depth == 0 and token.text in CLOSING_BRACKETS):
            self._refuse_move_behind_bracket()
            return True
        if token.kind == "newline":
            if self.depth > 0 or (self.own_lines and self._moves_ahead(self.at + 1)):
                return False
            self._refuse_moves_in_later_lines()
            return True
        if self._begins_remark():
            self._refuse_moves_in_rest_of_line()
            return True
        return self.depth == 0 and self._begins_key()

    def _refuse_move_behind_bracket(self) -> None:
        following = self._token(0 if self.closed else 1)
        if moves_in(following):
            self._break("a move stands behind the list's bracket: write all moves in one row", following)
        elif following.kind == "times":
            self._break("a list is repeated here: write every move", following)

    def _begins_remark(self) -> bool:
        """A full stop or a dash ends a list, unless the moves go on behind it."""
        token, following = self._token(), self._token(1)
        if token.text.strip() in (".", ";", "!", "?", "-", "—", "–"):
            numbered = following.kind == "number" and self._token(2).text in (".", ")", ":")
            return not (moves_in(following) or numbered or following.kind == "newline" or following.text in CLOSING)
        return token.kind == "comment"

    def _begins_key(self) -> bool:
        """The next key of a JSON object, as in "reasoning": a quoted name with a colon behind it."""
        if self._token().text not in ('"', "'"):
            return False
        ahead = [self._token(step) for step in range(1, 8)]
        name = list(takewhile(lambda token: token.kind in ("word", "number") or token.text in "_-", ahead))
        behind = [token.text for token in ahead[len(name) : len(name) + 2]]
        return bool(name) and behind == [self._token().text, ":"]

    def _refuse_moves_in_rest_of_line(self) -> None:
        for token in takewhile(lambda token: token.kind != "newline", self._tokens_from(self.at + 1)):
            if moves_in(token) and (len(token.text) > 1 or token.kind == "mark"):
                self._break("a move stands behind the end of the list: write all moves in one row", token)
                return

    def _refuse_moves_in_later_lines(self) -> None:
        """Refuse a line that would be silently left out: moves alone, or the next numbered line without moves."""
        first_line = True
        for is_break, tokens in groupby(self._tokens_from(self.at), lambda token: token.kind == "newline"):
            line = list(tokens)
            if is_break:
                continue
            if self.own_lines and first_line and line[0].kind == "number":
                return self._break(
                    "this line of the list is not a move; the moves are LEFT, DOWN, RIGHT, UP and WAIT", line[0]
                )
            if any(map(moves_in, line)) and all(moves_in(token) or token.kind in _BETWEEN for token in line):
                return self._break("moves go on in this line: write all moves of an agent in one row", line[0])
            first_line = False

    def _refuse_gaps_in_numbering(self) -> None:
        numbers = self.numbering
        if len(numbers) > 1 and numbers != list(range(min(numbers[0], 1), min(numbers[0], 1) + len(numbers))):
            counted = ", ".join(map(str, numbers[:8]))
            self._break(f"the moves are numbered {counted}: some seem to be missing", self.tokens[self.at - 1])

    def _refuse_doubtful_arrows(self) -> None:
        way = next((token for token in self.tokens[self.start : self.at] if token.kind == "way"), None)
        if way is not None and any(move.text in MOVE_ARROWS for move in self.list.moves):
            self._break("an arrow between two cells may be a move or not: write the moves as words", way)

    def _refuse_open_bracket(self) -> None:
        if self.depth > 0 and self.list.bracketed:
            end = self.tokens[self.at - 1]
            self._break("the list that ends here is not closed: the reply seems to be cut off", end)

    def _tokens_from(self, at: int) -> Iterator[Token]:
        return (
            self.tokens[index]
            for index in takewhile(lambda index: index not in self.labels, range(at, len(self.tokens)))
        )

    def _take(self) -> None:
        """One token inside the list: a move, what stands between moves, or what breaks the list."""
        token = self._token()
        moves = moves_in(token)
        if moves:
            self._refuse_joined_pair()
            self.list.moves += moves
        elif token.text in ("[", "{"):
            self.depth += 1
            self.list.bracketed = self.list.bracketed or token.text == "["
            self.list.empty = token.text == "[" and self._token(1).text == "]"
        elif token.text in CLOSING_BRACKETS:
            self.depth -= 1
            self.closed = self.depth == 0 and token.text == "]"
        elif token.text == "(":
            self._take_round_bracket()
        elif token.text in (",", "|") and self._token(1).text == token.text:
            between = "commas" if token.text == "," else "bars"
            self._break(f"a move is missing between two {between}: write every move")
        elif self._is_empty_string():
            self._break("an empty string is not a move; the moves are LEFT, DOWN, RIGHT, UP and WAIT")
        elif token.kind == "times":
            self._repeat(token)
        elif token.kind == "mark" and token.text not in SEPARATORS:
            self._break(f"{token.text!r} is not a move; the moves are LEFT, DOWN, RIGHT, UP and WAIT")
        elif token.kind == "elided":
            self._break("moves are left out here: write every move")
        elif token.kind == "number":
            self._take_number(token)
        elif token.kind == "word":
            self.list.formal = False
            if token.text.lower() not in PROSE:
                self._break(f"{token.text[:20]!r} is not a move; the moves are LEFT, DOWN, RIGHT, UP and WAIT")
        self.list.cells += token.kind == "cell"
        if len(self.list.moves) > MAX_MOVES and self.list.broken is None:
            self._break(f"more than {MAX_MOVES} moves for one agent: shorten the plan")
        self.at += 1

    def _refuse_joined_pair(self) -> None:
        """Two moves in one word, "up-left" or "UP/LEFT": a diagonal, a choice, or both. A longer chain is a list."""
        first, joint, second = self._token(), self._token(1), self._token(2)
        if joint.text not in ("-", "/") or not first.end == joint.start == second.start - 1:
            return
        is_chain = joint.text in (self._token(-1).text, self._token(3).text)
        if moves_in(second) and second.text.lower() != first.text.lower() and not is_chain:
            self._break("two moves joined like this may be both, or one of them: write them apart")

    def _is_empty_string(self) -> bool:
        """ "" instead of a list's next string."""
        token, following = self._token(), self._token(1)
        is_pair = token.text == following.text and token.text in ('"', "'") and token.end == following.start
        return is_pair and self._token(-1).text in (",", "[") and self.list.bracketed

    def _take_number(self, token: Token) -> None:
        if self._is_numbering():
            self.numbering.append(int(token.text[:9]))
            following = self._token(2)
            if following.kind in ("newline", "number", "end"):
                self._break("no move stands behind this number: write every move")
        else:
            self._break("a number among the moves may be a count or a step: write words only")

    def _take_round_bracket(self) -> None:
        """A round bracket: around the whole list, or after a move with a remark or "x3"."""
        if not self.list.moves:
            self.depth += 1
            return
        inside, closing = self._token(1), self._token(2)
        if inside.kind == "times" and closing.text == ")":
            self._repeat(inside)
            self.at += 2
            return
        end = end_of_remark(self.tokens, self.at)
        if end is None:
            self._break("moves in round brackets may or may not belong to the list: leave the brackets out")
        elif changes_moves(self.tokens[self.at + 1 : end - 1], len(self.list.moves)):
            self._break("this remark may change the moves before it: write every move, and no others")
        else:
            self.at = end - 1

    def _repeat(self, token: Token) -> None:
        count = int(token.text.lstrip("xX×* "))
        if self._token(-1).text in CLOSING_BRACKETS:
            self._break("what is in brackets is repeated here: write every move", token)
        elif not self.list.moves or count == 0:
            self._break(f"{token.text!r} repeats nothing: write a move, then x and how often", token)
        else:
            self.list.moves += [self.list.moves[-1]] * min(count - 1, MAX_MOVES + 1)

    def _is_numbering(self) -> bool:
        """ "1." or "2)" or "Step 3:" before a move."""
        return self._token(1).text in (".", ")", ":")
