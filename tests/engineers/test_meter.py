"""The cap holds before the money is gone."""

from __future__ import annotations

import random

import pytest

from engineers import BudgetExceeded, Completion, Meter, Price
from engineers.model.chat import ChatError, Timeout
from engineers.model.meter import estimate_tokens, listed_price, most_tokens

ASK = [{"role": "user", "content": "x" * 100}]


def test_a_question_that_could_exceed_the_cap_is_not_asked():
    worst = most_tokens(ASK, None) + 50
    Meter(max_total_tokens=worst).reserve("local/m", ASK, None, 50)
    with pytest.raises(BudgetExceeded, match=f"{worst - 1} of max_total_tokens={worst - 1} are left"):
        Meter(max_total_tokens=worst - 1).reserve("local/m", ASK, None, 50)


def test_no_history_of_questions_exceeds_either_cap():
    """Whatever a provider counts within its limits, and whatever breaks on the way."""
    rng = random.Random(0)
    for _ in range(200):
        meter = Meter(max_total_tokens=rng.randint(0, 5000), max_cost=rng.random() * 0.02, price=Price(1.0, 4.0))
        for _ in range(50):
            ask = [{"role": "user", "content": "é" * rng.randint(0, 500)}]
            answer = rng.randint(1, 300)
            try:
                meter.reserve("x/y", ask, {"type": "object"}, answer)
            except BudgetExceeded:
                continue
            if rng.random() < 0.2:
                meter.record_failure("x/y", Timeout("gone"))
            else:
                prompt = rng.randint(1, most_tokens(ask, {"type": "object"}))
                meter.record("x/y", ask, Completion("", prompt, rng.randint(1, answer)))
        assert meter.tokens <= meter.max_total_tokens
        assert meter.cost <= meter.max_cost + 1e-12


def test_a_cost_cap_without_a_price_is_refused():
    with pytest.raises(BudgetExceeded, match="no price is known for 'openai/unheard-of'"):
        Meter(max_cost=1.0).reserve("openai/unheard-of", ASK, None, 10)


def test_what_the_provider_does_not_count_is_estimated():
    prompt, answer, cost = Meter().record("local/m", ASK, Completion("y" * 250))
    assert prompt == estimate_tokens("x" * 100) == 41
    assert answer == 101
    assert cost == 0.0


def test_failures_count_by_what_they_may_have_cost():
    meter = Meter(price=Price(1.0, 1.0))
    meter.reserve("m", ASK, None, 50)
    assert meter.record_failure("m", ChatError("no connection")) == (0, 0, 0.0)
    assert meter.record_failure("m", Timeout("hang"))[:2] == (most_tokens(ASK, None), 50)
    assert meter.record_failure("m", Timeout("cut", spent=Completion("", 7, 3)))[:2] == (7, 3)
    assert meter.tokens == most_tokens(ASK, None) + 50 + 10


def test_prices_are_looked_up_offline():
    assert listed_price("openai/gpt-4o-mini") == Price(0.15, 0.6)
    assert listed_price("openai/gpt-4o-mini-2024-07-18") == Price(0.15, 0.6)
    assert listed_price("litellm/openai/gpt-4o-mini") == Price(0.15, 0.6)
    assert listed_price("openai/gpt-4o-huge") is None
    assert listed_price("server/http://localhost/v1#m") is None
    assert Meter().price_of("local/Qwen/Qwen3-4B") == Price(0, 0)


def test_an_unknown_price_makes_the_cost_unknown_not_zero():
    meter = Meter()
    assert meter.record("openai/unheard-of", ASK, Completion("", 5, 5))[2] is None
    assert meter.cost is None


def test_a_cost_that_the_provider_names_counts():
    meter = Meter()
    meter.record("openai/unheard-of", ASK, Completion("", 5, 5, cost=0.25))
    assert meter.cost == 0.25


def test_the_schema_is_part_of_the_worst_case_in_tokens_and_in_dollars():
    schema = {"type": "object", "description": "d" * 400}
    bare, whole = most_tokens(ASK, None), most_tokens(ASK, schema)
    assert bare == 100 + 16
    assert whole == bare + len('{"type": "object", "description": "') + 400 + len('"}')
    for cap, fits in ((whole + 50, True), (whole + 49, False)):
        for caps in ({"max_total_tokens": cap}, {"max_cost": cap / 1e6, "price": Price(1.0, 1.0)}):
            meter = Meter(**caps)
            if fits:
                meter.reserve("m", ASK, schema, 50)
            else:
                with pytest.raises(BudgetExceeded):
                    meter.reserve("m", ASK, schema, 50)


def test_a_cost_once_unknown_stays_unknown_whatever_is_known_later():
    meter = Meter()
    meter.record("openai/unheard-of", ASK, Completion("", 5, 5))
    meter.record("openai/unheard-of", ASK, Completion("", 5, 5, cost=0.25))
    assert meter.cost is None
    assert (meter.tokens, meter.questions) == (20, 2)
