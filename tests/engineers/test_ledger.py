"""Every question is noted at its worst case before it is asked, and with what it took afterwards."""

from __future__ import annotations

import json

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
    return [json.loads(line) for line in path.read_text().splitlines()]


PRICE = Price(1.0, 4.0)  # dollars per million tokens


@pytest.mark.parametrize("price", [PRICE, None])
@pytest.mark.parametrize(
    ("reply", "took"),
    [
        (Completion("no", 100, 10), (100, 10)),
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
    assert noted_lines(ledger) == [b'{"asked": 100, "cost": 1.0}', b"", b"  ", b'{"took": 40, "cost": 0.5}']
    assert ledger.total() == Taken(40, 0.5)


def noted_lines(ledger):
    return ledger.path.read_bytes().splitlines()
