"""Every question is noted at its worst case before it is asked, and with what it took afterwards."""

from __future__ import annotations

import json
import os
import random

import pytest

from engineers import Completion, Meter, ModelEngineer, Price
from engineers.model.chat import RateLimited, Timeout
from engineers.model.ledger import Ledger, LedgerDamaged, Taken
from engineers.model.meter import most_tokens


def test_a_ledger_counts_the_answered_as_they_were_and_the_others_at_their_worst(tmp_path):
    ledger = Ledger(tmp_path / "asked.jsonl")
    assert ledger.total() == Taken(0, 0.0)
    ledger.asks(Taken(100, 1.0))
    assert ledger.total() == Taken(100, 1.0)
    ledger.took(Taken(40, 0.25))
    assert ledger.total() == Taken(40, 0.25)
    ledger.asks(Taken(100, 1.0))  # killed
    ledger.asks(Taken(100, None))  # killed again, at a model whose price nobody knows
    ledger.took(Taken(10, None))
    assert ledger.total() == Taken(150, None)


def test_of_several_open_questions_each_answer_names_its_own(tmp_path):
    ledger = Ledger(tmp_path / "asked.jsonl")
    first, second = ledger.asks(Taken(100, 1.0)), ledger.asks(Taken(10, 0.5))
    assert ledger.total() == Taken(110, 1.5)
    ledger.took(Taken(40, 0.25), first)
    assert ledger.total() == Taken(50, 0.75)
    with ledger.path.open("ab") as file:
        file.write(b'{"ask')  # killed with the second still open
    third = ledger.asks(Taken(1_000, 2.0))
    ledger.took(Taken(7, 0.125), third)
    assert (first, second, third) == (1, 2, 5)
    assert ledger.total() == Taken(57, 0.875)


def test_a_ledgers_line_that_was_cut_off_is_none_and_any_other_damage_is_told(tmp_path):
    ledger = Ledger(tmp_path / "asked.jsonl")
    ledger.asks(Taken(100, 1.0))
    with ledger.path.open("ab") as file:
        file.write(b'{"took": 4')
    assert ledger.total() == Taken(100, 1.0)
    ledger.asks(Taken(7, 0.5))
    assert ledger.total() == Taken(107, 1.5)
    ledger.path.write_bytes(b'{"took": "x", "cost": 1}\n')
    with pytest.raises(LedgerDamaged, match=r"asked\.jsonl is damaged"):
        ledger.total()


class Watching:
    """Answers as it is told, and reads what had been noted by then."""

    def __init__(self, ledger, reply, model="openai/unheard-of"):
        self.ledger, self.reply, self.model, self.noted = ledger, reply, model, []

    def complete(self, messages, schema, *, max_tokens):
        self.noted.append(noted(self.ledger)[-1])
        self.worst = most_tokens(messages, schema), max_tokens
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def noted(path):
    """All that was written, but for the lines' checks."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [{name: value for name, value in line.items() if name != "check"} for line in lines]


PRICE = Price(1.0, 4.0)  # dollars per million tokens


@pytest.mark.parametrize("price", [PRICE, None])
@pytest.mark.parametrize(
    ("reply", "took"),
    [
        (Completion("no", 1000, 10), (1000, 10)),
        (Timeout("hang"), None),  # may have been billed: its worst case
        (RateLimited("wait"), (0, 0)),
        (Timeout("cut", spent=Completion("", 7, 3)), (7, 3)),
    ],
)
def test_what_a_question_may_take_is_noted_before_and_what_it_took_after(tmp_path, report, kitchen, price, reply, took):
    path = tmp_path / "run" / "engineer" / "asked.jsonl"
    chat = Watching(path, reply)
    meter = Meter(price=price)
    engineer = ModelEngineer(chat, ledger=path, meter=meter, max_attempts=1, max_tokens=50)
    usage = engineer.propose(report, kitchen).usage
    spent = took or chat.worst
    before, after = noted(path)
    assert chat.noted == [before] == [{"asked": sum(chat.worst), "cost": price and price.of(*chat.worst)}]
    cost = 0.0 if took == (0, 0) else price and price.of(*spent)
    assert after == {"took": sum(spent), "cost": cost}
    assert meter.tokens == sum(spent)
    seen = took or (0, 0)  # charged to the caps, but not known to be used
    assert (usage.prompt_tokens, usage.completion_tokens) == seen
    assert Ledger(path).total() == Taken(sum(spent), cost)


def test_what_is_not_asked_is_not_noted(tmp_path, report, kitchen):
    path = tmp_path / "asked.jsonl"
    engineer = ModelEngineer(Watching(path, RateLimited("wait")), ledger=path, max_total_tokens=5)
    assert engineer.propose(report, kitchen).fallback
    assert not path.exists()
    assert Ledger(path).total() == Taken(0, 0.0)
    silent = ModelEngineer(Watching(path, RateLimited("wait")), max_total_tokens=5)
    assert (silent.ledger, silent.transcript) == (None, None)


@pytest.mark.parametrize(("one", "other", "cost"), [(0.5, 0.25, 0.75), (None, 0.25, None), (0.25, None, None)])
def test_an_unknown_cost_makes_the_sum_unknown(one, other, cost):
    assert Taken(3, one) + Taken(4, other) == Taken(7, cost)


def test_empty_lines_are_none_and_a_line_after_a_kill_stands_by_itself(tmp_path):
    ledger = Ledger(tmp_path / "asked.jsonl")
    ledger.asks(Taken(100, 1.0))
    with ledger.path.open("ab") as file:
        file.write(b"\n  \n")
    ledger.took(Taken(40, 0.5))
    assert noted(ledger.path) == [{"asked": 100, "cost": 1.0}, {"took": 40, "cost": 0.5}]
    assert ledger.path.read_bytes().splitlines()[1:3] == [b"", b"  "]
    assert ledger.total() == Taken(40, 0.5)


OLDER = b'{"asked": 100, "cost": 1.0}\n{"took": 40, "cost": 0.25}\n'  # a line had no check of its own


def test_an_older_ledger_is_read_and_gone_on_with(tmp_path):
    ledger = Ledger(tmp_path / "asked.jsonl")
    ledger.path.write_bytes(OLDER)
    ledger.asks(Taken(7, 0.5))
    assert ledger.total() == Taken(47, 0.75)


@pytest.mark.parametrize(
    "line",
    ['{"took": -999999, "cost": 0}', '{"took": 1, "cost": -5}', '{"took": 1, "cost": NaN}', '{"took": 1, "cost": 1e400}',
     '{"took": 1e400, "cost": 0}', '{"took": 1.5, "cost": 0}', '{"took": true, "cost": 0}', '{"took": null, "cost": 0}',
     '{"asked": 1, "took": 1, "cost": 0}', '{"took": 1}', '{"took": 1, "cost": 0, "line": "1"}', "[]", "7", "notes of mine",
     "[" * 5000, '{"took": ' + "[" * 5000, "9" * 5000, '{"took": ' + "9" * 400 + ', "cost": 0}', "\x00", '{"took": 4, "kost'],
)  # fmt: skip
def test_a_line_that_no_question_could_have_left_is_told(tmp_path, line):
    ledger = Ledger(tmp_path / "asked.jsonl")
    for place in (0, 1, 2):
        lines = OLDER.splitlines()
        ledger.path.write_bytes(b"\n".join([*lines[:place], line.encode(), *lines[place:]]) + b"\n")
        with pytest.raises(LedgerDamaged, match=rf"asked\.jsonl is damaged \(line {place + 1}: "):
            ledger.total()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
def test_what_is_no_file_is_told_before_anything_is_asked(tmp_path, kind):
    ledger = Ledger(tmp_path / "asked.jsonl")
    {"folder": os.mkdir, "pipe": os.mkfifo, "loop": lambda path: os.symlink(path, path)}[kind](ledger.path)
    for use in (ledger.total, lambda: ledger.asks(Taken(1, 0.0)), lambda: ledger.took(Taken(1, 0.0))):
        with pytest.raises(LedgerDamaged, match=r"is not a file|cannot be read"):
            use()


def corruptions(count: int, seed: int, path) -> int:
    """So many ledgers with one byte or line changed; how many were told. The others count what the whole one counts, or more."""
    ledger, told = Ledger(path), 0
    for question in range(4):
        line = ledger.asks(Taken(100 + question, 0.5 + question))
        ledger.took(Taken(10 + question, 0.25), line)
    ledger.asks(Taken(77, 2.0))
    whole, total = path.read_bytes(), ledger.total()
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        data, lines = bytearray(whole), whole.splitlines(keepends=True)[:-1]
        kind = rng.choice(["bit", "digit", "cut", "line gone", "line twice"])
        if kind == "bit":
            data[rng.randrange(len(data) - 1)] ^= 1 << rng.randrange(8)
        elif kind == "digit":
            place = rng.choice([place for place, byte in enumerate(data) if 48 <= byte < 58])
            data[place] = 48 + (data[place] - 48 + rng.randrange(1, 10)) % 10
        elif kind == "cut":  # before the last line's end, as a kill cuts it
            data = data[: -rng.randrange(1, len(whole.splitlines(keepends=True)[-1]))]
        else:
            place = rng.randrange(len(lines))
            changed = lines[:place] + lines[place : place + 1] * (2 if kind == "line twice" else 0) + lines[place + 1 :]
            data = bytearray(b"".join([*changed, whole.splitlines(keepends=True)[-1]]))
        path.write_bytes(data)
        try:
            found = ledger.total()
        except LedgerDamaged:
            told += 1
            continue
        last_is_cut = kind == "cut" and (found.tokens, found.cost) == (total.tokens - 77, total.cost - 2.0)
        assert found == total or last_is_cut, f"{kind} {number}: {found} in place of {total}"
    return told


def test_a_hundred_corruptions_are_told_or_change_nothing(tmp_path):
    assert corruptions(100, 0, tmp_path / "asked.jsonl") > 60


@pytest.mark.prove
def test_ten_thousand_corruptions_are_told_or_change_nothing(tmp_path):
    assert corruptions(10_000, 1, tmp_path / "asked.jsonl") > 6_000
