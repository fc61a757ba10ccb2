"""What others rely on to the letter: defaults, kinds of errors, contexts, what a report may be, sums of usage."""

from __future__ import annotations

import inspect
import re

import pytest
from pydantic import ValidationError

from engineers import CONTEXTS, Completion, Context, Proposal, StageReport, Usage
from engineers.engineer import Engineer, as_engineer
from engineers.human import HumanEngineer, make
from engineers.model import chat
from engineers.model.engineer import ModelEngineer
from engineers.model.transcript import Exchange
from engineers.plain.base import PlainEngineer
from engineers.proposal import Change
from engineers.report import FailureCase, Incident, SliceResult, StageRecord
from engineers.tiers import Tier
from envtuning import EngineerCurriculum

SHOWN = {  # what each context shows beside environment, knobs and the current config
    "V1": {"failures": True},
    "V2": {"failures": True, "guideline": True},
    "V3": {"failures": True, "guideline": True, "history": "all"},
    "V4": {"failures": True, "guideline": True, "history": "without_default"},
    "V5": {"failures": True, "guideline": True, "history": "without_default", "summary": True},
    "V6": {"failures": True, "guideline": True, "history": "without_default", "training": True},
    "full": {"failures": True, "guideline": True, "history": "without_default", "training": True}
    | dict.fromkeys(("target", "rounds", "metrics", "cases", "behaviour", "environment_stats", "incidents"), True),
    "informed": {"failures": True, "guideline": True, "history": "all", "changes": True}
    | dict.fromkeys(("target", "rounds", "metrics", "behaviour", "environment_stats", "incidents"), True),
}


def test_the_contexts_show_what_was_published_and_all_have_the_same_budget():
    found = {name: context.model_dump() for name, context in CONTEXTS.items()}
    assert all(context.pop("name") == name and context.pop("token_budget") == 12_000 for name, context in found.items())
    assert all(context.pop("case_tokens") == 2_000 for context in found.values())
    used = {
        name: {section: said for section, said in context.items() if said not in (False, "none")}
        for name, context in found.items()
    }
    assert used == SHOWN


def test_a_context_of_ones_own_shows_failures_alone_until_told_otherwise():
    own = Context()
    assert {name for name, said in own.model_dump().items() if said is True} == {"failures"}
    assert (own.name, own.history, own.token_budget) == ("custom", "none", 12_000)
    assert Context(token_budget=500).token_budget == 500
    for wrong in ({"token_budget": 499}, {"pictures": True}, {"history": "some"}):
        with pytest.raises(ValidationError):
            Context(**wrong)
    with pytest.raises(ValidationError, match="frozen"):
        own.name = "other"


KINDS = {  # whether the same may pass later, may have been billed, and may go better when the model is told
    "ChatError": (False, False, False),
    "Timeout": (True, True, False),
    "ConnectionCut": (True, True, False),
    "RateLimited": (True, False, False),
    "ServerFailed": (True, False, False),
    "WireBroken": (False, True, False),
    "AuthFailed": (False, False, False),
    "Rejected": (False, False, False),
    "Refused": (False, True, True),
    "TooLong": (False, True, True),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_may_be_done_after_each_kind_of_failure(name):
    kind = getattr(chat, name)
    assert (kind.transient, kind.may_be_billed, kind.ask_again) == KINDS[name]
    plain, whole = kind("no"), kind("no", Completion("", 7, 3), 1.5)
    assert (str(plain), plain.spent, plain.retry_after) == ("no", None, None)
    assert (whole.spent, whole.retry_after) == (Completion("", 7, 3), 1.5)
    exchange = exchanged(error="no", error_kind=name)
    assert type(exchange.failure()) is kind
    assert str(exchange.failure()) == "no"


def exchanged(**result):
    asked = {"engineer": "e", "model": "m", "context": Context(), "max_attempts": 3, "stage": 0, "number": 0}
    return Exchange(**asked, kind="proposal", messages=[], json_schema=None, max_tokens=9, **result)


def test_an_exchange_without_a_result_took_nothing_and_failed():
    exchange = exchanged()
    said = exchange.model_dump(exclude={"context"})
    assert {key: said[key] for key in ("version", "reply", "error", "error_kind")} == {
        "version": 2, "reply": None, "error": None, "error_kind": "",
    }  # fmt: skip
    assert (exchange.prompt_tokens, exchange.completion_tokens, exchange.cost, exchange.seconds) == (0, 0, None, 0.0)
    assert str(exchange.failure()) == "no reply"
    assert type(exchanged(error_kind="Unheard").failure()) is chat.ChatError
    assert exchanged(reply="").failure() is None
    with pytest.raises(ValidationError):
        exchanged(headers={})


def test_usage_adds_up_and_one_unknown_cost_makes_the_sum_unknown():
    one = Usage(prompt_tokens=10, completion_tokens=2, cost=0.25, seconds=1.5, attempts=1)
    other = Usage(prompt_tokens=5, completion_tokens=1, cost=0.5, seconds=0.5, attempts=2)
    assert one.tokens == 12
    assert Usage.total([one, other]) == Usage(prompt_tokens=15, completion_tokens=3, cost=0.75, seconds=2.0, attempts=3)
    assert Usage.total([one, Usage(cost=None)]).cost is None
    assert Usage.total([]) == Usage() == Usage(
        prompt_tokens=0, completion_tokens=0, cost=0.0, seconds=0.0, attempts=0
    )  # fmt: skip
    with pytest.raises(ValidationError):
        Usage(price=1)


def test_what_a_proposal_a_change_and_a_completion_are_until_told_otherwise():
    plain = Proposal(config=Usage())
    assert (plain.reasons, plain.usage, plain.engineer, plain.fallback, plain.refusals) == ([], Usage(), "", False, [])
    assert Change(path="a").model_dump() == {"path": "a", "old": None, "new": None, "reason": ""}
    assert Completion("x") == Completion("x", prompt_tokens=0, completion_tokens=0, cost=None)
    with pytest.raises(ValidationError):
        Change(path="a", why="")


def test_a_group_of_which_a_part_was_changed_is_not_kept():
    """Even if that part has a reason of its own; the group without a change is kept."""
    now = StageReport(stage=0, config={"a": {"share": 1}, "b": {"share": 1}})
    new = now.model_copy(update={"config": {"a": {"share": 2}, "b": {"share": 1}}})
    why = {"config.a": "hard", "config.a.share": "too few", "config.b": "easy"}
    told = Proposal(config=new, reasons=[Change(path=path, reason=reason) for path, reason in why.items()])
    told = told.with_changes(now)
    assert told.reasons == [Change(path="config.a.share", old=1, new=2, reason="too few")]
    assert told.kept == {"config.b": "easy"}


REPORT = {"stage": 0, "config": {}}
RESULT = {"name": "4", "episodes": 1}


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (StageReport, REPORT, {"stage": -1}),
        (StageReport, REPORT, {"rounds_left": -1}),
        (StageReport, REPORT, {"version": 3}),
        (StageReport, REPORT, {"remarks": "none"}),
        (SliceResult, RESULT, {"episodes": -1}),
        (SliceResult, RESULT, {"remarks": "none"}),
        (StageRecord, {"stage": 0, "config": {}, "results": []}, {"remarks": "none"}),
        (FailureCase, {"slice": "4", "kind": "hole", "picture": "", "explanation": ""}, {"remarks": "none"}),
        (Incident, {"kind": "other", "message": "", "stage": 0}, {"kind": "bad luck"}),
    ],
)
def test_what_is_no_report_is_refused_at_its_place(kind, right, wrong):
    kind.model_validate(right)
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        kind.model_validate(right | wrong)


def test_a_report_needs_a_stage_and_a_config_and_knows_nothing_else_until_told():
    report = StageReport.model_validate(REPORT | {"rounds_left": 0})
    empty = {name: value for name, value in report.model_dump().items() if value in ("", [], {}, None)}
    rest = {name: value for name, value in report.model_dump().items() if name not in empty}
    assert rest == {"version": 2, "stage": 0, "objective": "success_rate", "rounds_left": 0, "unit": "env_steps"}
    assert len(empty) == len(StageReport.model_fields) - len(rest)
    assert StageReport.model_validate(REPORT).rounds_left is None


def test_who_waits_for_a_person_waits_a_day_and_tells_everything():
    for human in (HumanEngineer(), make()):
        assert (human.timeout, human.poll, human.context.name) == (86_400.0, 0.5, "full")
        assert (str(human.desk), human.space, human.guard.max_drop) == ("engineer-desk", {}, None)


def test_a_model_is_asked_three_times_for_4096_tokens_without_caps_until_told_otherwise():
    defaults = {name: one.default for name, one in inspect.signature(ModelEngineer).parameters.items()}
    assert {name: defaults[name] for name in ("context", "max_attempts", "max_tokens")} == {
        "context": "informed", "max_attempts": 3, "max_tokens": 4096,
    }  # fmt: skip
    assert [defaults[name] for name in ("max_total_tokens", "max_cost", "ledger", "transcript", "name")] == [None] * 5


def test_an_engineer_derives_from_the_contract():
    class Own:
        name = "own"

        def propose(self, report, current, editable=None):
            raise NotImplementedError

    with pytest.raises(TypeError, match=r"a Own, which is not an engineer: derive its class from engineers.Engineer"):
        as_engineer(Own())


def test_an_engineer_has_a_name_and_is_an_instance(kitchen):
    class Own(Engineer):
        def propose(self, report, current, editable=None):
            raise NotImplementedError

    for given, said in (
        (Own(), 'a Own, which has no name: write name = "…" in its class'),
        (Own, "the class Own, which is not an engineer itself: give an instance, Own()"),
    ):
        for taken in (as_engineer, lambda given: EngineerCurriculum(given, kitchen)):
            with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
                taken(given)


def test_an_engineer_that_cannot_be_called_is_refused_before_it_is_asked(kitchen):
    class TakesTwo(Engineer):
        name = "takes-two"

        def propose(self, report, current):
            raise NotImplementedError

    class TakesAny(TakesTwo):
        def propose(self, report, current, **options):
            raise NotImplementedError

    said = (
        "engineer takes-two, whose propose cannot be called (got an unexpected keyword argument 'editable'): write "
        "def propose(self, report, current, editable=None)"
    )
    for taken in (as_engineer, lambda given: EngineerCurriculum(given, kitchen)):
        with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
            taken(TakesTwo())
        taken(TakesAny())


def test_a_tier_may_be_given_as_its_number():
    class Own(PlainEngineer):
        name, tier = "own", 5

        def design(self, report, current, knobs):
            raise NotImplementedError

    assert as_engineer(Own()).tier is Tier.SLICE_SUCCESS
    Own.tier = 4
    with pytest.raises(TypeError, match="engineer own has tier=4: give one of 0, 1, 2, 3, 5, 6, 7, 8"):
        as_engineer(Own())
