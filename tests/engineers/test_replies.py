"""Finding the answer in what a model wrote; anything else is a ReplyError, in bounded time."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engineers.model.replies import MAX_CHARACTERS, ReplyError, parse_reply, without_thoughts

GOOD = {"changes": [{"a": 1}]}
TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\nI hope this helps!",
        f"<think>maybe {{'a': 2}} or {{\"changes\": {{}}}}</think>\n{TEXT}",
        f"thoughts that the prompt opened </think>{TEXT}",
        f"<THINK>\n{{</THINK>Here: {TEXT} Done.",
        f'The schema {{"type": "object"}} asks for {TEXT}',
        f'First {{"changes": {{"a": 9}}}}, but better: {TEXT}',
        f"{{braces}} and {{more}} then {TEXT}",
        f"<reasoning>x</reasoning><think>y</think>{TEXT}{{",
        "\ufeff" + TEXT,
    ],
)
def test_the_answer_is_found(reply):
    assert parse_reply(reply) == GOOD


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        ("<think>I wonder {", "nothing but thoughts"),
        ("I cannot help with that.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"changes": {"a": 1}', "line 1, column 21: invalid JSON"),
        ('{"changes": {"a": 1,}}', "invalid JSON"),
        ('{"changes": NaN}', "NaN is not a JSON number"),
        ('{"changes": {"a": -Infinity}}', "-Infinity is not a JSON number"),
        ('{"a": 1, "a": 2}', "'a' appears twice"),
        ('{"a": ' + "9" * 5000 + "}", "thousands of digits"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("x" * (MAX_CHARACTERS + 1), "at most 1000000 are read"),
    ],
)
def test_what_is_no_answer_says_why(reply, said):
    with pytest.raises(ReplyError) as error:
        parse_reply(reply)
    assert said in str(error.value)
    assert len(str(error.value)) < 300


def test_nested_thoughts_do_not_hide_the_answer():
    assert without_thoughts("<think>a<think>b</think>c</think>d") == "d"
    assert without_thoughts("a<think>b</think>c") == "ac"


@pytest.mark.parametrize(
    "piece",
    ["{", "{{", '{"', '{"a":[', "<think>", "</think>", "<think>{}</think>", '{"a":1}', "[[", '{"a":1', "\\", "```"],
)
def test_time_is_bounded_on_hostile_megabytes(piece):
    """The worst piece takes about a second; without the work budget some take hours."""
    reply = piece * (MAX_CHARACTERS // len(piece))
    begin = time.process_time()
    with contextlib.suppress(ReplyError):  # some of these hold an object
        parse_reply(reply + '{"changes"')
    assert time.process_time() - begin < 8


def test_ten_megabytes_are_refused_at_once():
    begin = time.process_time()
    with pytest.raises(ReplyError, match="10000000 characters"):
        parse_reply("{" * 10_000_000)
    assert time.process_time() - begin < 0.5


@given(st.text(alphabet=st.sampled_from(list('{}[]",:0aN<think>/`\n \\')), max_size=200))
def test_any_text_is_an_object_or_a_reply_error(text):
    try:
        found = parse_reply(text)
    except ReplyError as error:
        found = error
    assert isinstance(found, dict) or (found.where and found.why)


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=5), st.lists, max_leaves=5)))
def test_any_object_comes_back_from_prose(body):
    text = f"Sure.\n```json\n{json.dumps(body)}\n```\nBye."
    assert parse_reply(text) == body


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"a": 1} {"b": 2}', {"b": 2}),
        ('{"a": 1} {"changes": 1} {"b": 2}', {"changes": 1}),
        ('{"changes": 1} {"changes": 2}', {"changes": 2}),
        ('{"a": {"changes": 1}} {"b": 2}', {"b": 2}),
        ('{x {"changes": 1}', {"changes": 1}),
        ('{{"changes": 1}', {"changes": 1}),  # the next brace after one that opens nothing
    ],
)
def test_of_several_objects_the_last_that_has_what_was_asked_for_counts_else_the_last(reply, found):
    assert parse_reply(reply) == found


@pytest.mark.parametrize("reply", ['{x {"a": 1}', '{"a": 1} {x', '{"a": 1} {"b": NaN}'])
def test_beside_a_broken_object_only_one_that_has_what_was_asked_for_counts(reply):
    with pytest.raises(ReplyError, match=r"invalid JSON|not a JSON number"):
        parse_reply(reply)


def test_a_reply_is_read_up_to_its_greatest_length():
    longest = TEXT + " " * (MAX_CHARACTERS - len(TEXT))
    assert parse_reply(longest) == GOOD
    with pytest.raises(ReplyError, match=f"{MAX_CHARACTERS + 1} characters, at most {MAX_CHARACTERS} are read"):
        parse_reply(longest + " ")


@pytest.mark.parametrize(
    ("openings", "found"),
    [
        ("{x" * 9_990, True),  # each takes 1,000 and the one character that was read: 9,999,990 of 10,000,000
        ("{x" * 9_991, False),
        ("{x" * 9_989 + "{" + " " * 10 + "x", False),  # 10,000,000
        ("{x" * 9_989 + "{" + " " * 9 + "x", True),
    ],
)
def test_so_much_is_read_in_search_of_an_answer_and_no_more(openings, found):
    if found:
        assert parse_reply(openings + TEXT) == GOOD
    else:
        with pytest.raises(ReplyError, match="line 1, column 2: invalid JSON"):
            parse_reply(openings + TEXT)


@pytest.mark.parametrize(("deep", "found"), [(19, True), (20, False)])
def test_what_is_nested_too_deep_is_tried_twenty_times(deep, found, monkeypatch):
    """Each takes 501,000 of 10,000,000, and so will the next openings."""
    from engineers.model import replies

    class Deep(json.JSONDecoder):
        def raw_decode(self, text, start):
            if text.startswith("{!", start):
                raise RecursionError
            return super().raw_decode(text, start)

    monkeypatch.setattr(replies, "_DECODER", Deep())
    if found:
        assert parse_reply("{!" * deep + TEXT) == GOOD
    else:
        with pytest.raises(ReplyError, match="nested too deeply"):
            parse_reply("{!" * deep + TEXT)


@pytest.mark.parametrize("broken", ['{"a":1,"a":2}', '{"a":' + "9" * 4301 + "}"], ids=["twice", "digits"])
def test_an_object_that_repeats_a_key_or_has_endless_digits_takes_the_rest_of_the_reply(broken):
    """A million each where the reply is so long, less what lies before: after ten the eleventh is tried still."""

    def long(times):
        return (broken * times + TEXT).ljust(999_000)

    assert parse_reply(long(10)) == GOOD
    with pytest.raises(ReplyError, match=r"appears twice|thousands of digits"):
        parse_reply(long(11))


def test_thoughts_are_told_from_what_is_said():
    for text, said in (
        ("a<think>b", "a"),
        ("a</think>b", "b"),
        ("a</think>b</think>c", "c"),
        ("<think>a</think>b<reasoning>c</reasoning>d", "bd"),
        ("a<think>b<think>c", "a"),
        ("a</thought>b", "a</thought>b"),
    ):
        assert without_thoughts(text) == said
