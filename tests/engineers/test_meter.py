"""The cap holds before the money is gone."""

from __future__ import annotations

import random

import pytest

from engineers import BudgetExceeded, Completion, Meter, Price
from engineers.model.chat import ChatError, Refused, Timeout, TooLong
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


@pytest.mark.parametrize("failure", [TooLong, Refused])
def test_a_text_that_was_cut_or_refused_counts_although_the_server_counts_nothing(failure):
    meter = Meter(max_total_tokens=10_000)
    error = failure("cut", spent=Completion("y" * 250))
    assert meter.record_failure("local/m", error, ASK)[:2] == (41, 101)
    assert meter.tokens == 142


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
    meter.record("openai/unheard-of", ASK, Completion("", 15, 5, cost=0.25))
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


def test_a_server_that_counts_less_than_was_sent_and_received_is_not_believed():
    """A token has eight characters at most, over a whole text."""
    meter = Meter(max_total_tokens=10_000, price=Price(1.0, 1.0))
    long = [{"role": "user", "content": "x" * 8_000}]
    meter.reserve("server/m", long, None, 500)
    assert meter.record("server/m", long, Completion("y" * 800, 1, 1)) == (1_000, 100, pytest.approx(1_100 / 1e6))
    assert meter.tokens == 1_100
    assert meter.record("server/m", long, Completion("y" * 800, 2_000, 200))[:2] == (2_000, 200)


def test_a_cost_once_unknown_stays_unknown_whatever_is_known_later():
    meter = Meter()
    meter.record("openai/unheard-of", ASK, Completion("", 15, 5))
    meter.record("openai/unheard-of", ASK, Completion("", 15, 5, cost=0.25))
    assert meter.cost is None
    assert (meter.tokens, meter.questions) == (40, 2)


def reserved(**options):
    """A meter that expects 116 tokens of prompt and 50 of answer at most."""
    meter = Meter(price=Price(1.0, 4.0), **options)
    meter.reserve("m", ASK, None, 50)
    assert meter.worst == (116, 50)
    return meter


@pytest.mark.parametrize(
    ("said", "prompt", "answer"),
    [
        (17, 17, 17),
        (0, 41, 11),  # not counted: estimated, at 2.5 characters a token
        (11_600, 11_600, 50),  # a hundred times the worst case is still a count
        (11_601, 116, 50),
        (10_000, 10_000, 10_000),
        (10_001, 10_001, 50),  # a hundred times a hundred is one for any question
        (-1, 116, 50),
        (True, 116, 50),
        ("9", 116, 50),
        (None, 116, 50),
        (1e308, 116, 50),
    ],
)
def test_a_count_that_can_be_none_is_the_worst_case(said, prompt, answer):
    meter = reserved()
    found = meter.record("m", ASK, Completion("y" * 25, said, said))
    assert found == (prompt, answer, pytest.approx((prompt + 4 * answer) / 1e6))
    assert (meter.tokens, meter.cost, meter.questions) == (prompt + answer, found[2], 1)


@pytest.mark.parametrize("said", [-1, True, "9", 1e308])
def test_a_failure_with_such_a_count_is_the_worst_case_too_and_one_that_counts_nothing_took_nothing(said):
    assert reserved().record_failure("m", Timeout("cut", spent=Completion("", said, said)))[:2] == (116, 50)
    assert reserved().record_failure("m", Timeout("cut", spent=Completion("", 0, 0))) == (0, 0, 0.0)
    assert reserved().record_failure("m", Timeout("cut", spent=Completion("", 1, 2, cost=0.5))) == (1, 2, 0.5)


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        (0.25, 0.25),
        (0, 0.0),
        (1_000_000, 1e6),
        (1_000_001, None),
        (-0.1, None),
        (True, None),
        ("1", None),
        (None, None),
    ],
)
def test_a_cost_that_can_be_one_counts_and_any_other_is_found_by_the_price(said, cost):
    by_price = (20 + 4 * 5) / 1e6
    found = reserved().record("m", ASK, Completion("", 20, 5, cost=said))[2]
    assert found == (pytest.approx(by_price) if cost is None else cost)
    assert Meter().record("openai/unheard-of", ASK, Completion("", 20, 5, cost=said))[2] == cost


def test_what_does_not_fit_is_said_with_what_it_may_take_what_is_left_and_the_remedy():
    meter = Meter(max_total_tokens=200, price=Price(100.0, 400.0))
    meter.record("m", ASK, Completion("", 60, 40))
    with pytest.raises(BudgetExceeded) as said:
        meter.reserve("m", ASK, None, 50)
    assert str(said.value) == (
        "the next question may take 166 tokens, 100 of max_total_tokens=200 are left: "
        "raise the cap or lower the context's token_budget"
    )
    meter = Meter(max_cost=0.03, price=Price(100.0, 400.0))
    meter.record("m", ASK, Completion("", 60, 40))
    with pytest.raises(BudgetExceeded) as said:
        meter.reserve("m", ASK, None, 50)
    assert str(said.value) == (
        "the next question may cost $0.0316, $0.0080 of max_cost=$0.03 are left: "
        "raise the cap or lower the context's token_budget"
    )
    over = Meter(max_total_tokens=5, max_cost=0.001, tokens=9, cost=0.5, price=Price(1.0, 1.0))
    with pytest.raises(BudgetExceeded, match=r"tokens, 0 of max_total_tokens=5 are left"):
        over.reserve("m", ASK, None, 50)
    over.max_total_tokens = None
    with pytest.raises(BudgetExceeded, match=r"\$0\.0000 of max_cost=\$0\.001 are left"):
        over.reserve("m", ASK, None, 50)


def test_a_question_may_take_all_that_is_left_and_what_costs_nothing_always_fits():
    cost = Price(1.0, 4.0).of(116, 50)
    assert cost == pytest.approx(0.000316)
    reserved(max_total_tokens=166, max_cost=cost)
    Meter(max_cost=0.0).reserve("local/m", ASK, None, 50)
    Meter(max_cost=cost, price=Price(1.0, 4.0), cost=None).reserve("m", ASK, None, 50)


@pytest.mark.parametrize("model", ["local/Qwen/Qwen3-4B", "live/model", "replay/t.jsonl"])
def test_what_runs_here_costs_nothing(model):
    assert Meter().price_of(model) == Price(0.0, 0.0)
    assert Meter(price=Price(1.0, 2.0)).price_of(model) == Price(1.0, 2.0)


@pytest.mark.parametrize("name", ["openai/gpt-4o-mini-2024-07-x", "12345", "", "openai/gpt-4o-mini-", "-5"])
def test_a_name_that_is_no_dated_one_of_a_family_has_no_price(name):
    assert listed_price(name) is None


@pytest.mark.parametrize(("characters", "tokens"), [(0, 1), (2, 1), (3, 2), (250, 101)])
def test_a_text_is_estimated_at_two_and_a_half_characters_a_token_and_one_more(characters, tokens):
    assert estimate_tokens("x" * characters) == tokens
