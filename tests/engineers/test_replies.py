"""Finding the answer in what a model wrote; anything else is a ReplyError, in bounded time."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engineers.model.replies import MAX_CHARACTERS, ReplyError, parse_reply, without_thoughts

GOOD = {"reasons": [], "config": {"a": 1}}
TEXT = json.dumps(GOOD)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```\nI hope this helps!",
        f"<think>maybe {{'a': 2}} or {{\"config\": {{}}}}</think>\n{TEXT}",
        f"thoughts that the prompt opened </think>{TEXT}",
        f"<THINK>\n{{</THINK>Here: {TEXT} Done.",
        f'The schema {{"type": "object"}} asks for {TEXT}',
        f'First {{"config": {{"a": 9}}}}, but better: {TEXT}',
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
        ('{"config": {"a": 1}', "line 1, column 20: invalid JSON"),
        ('{"config": {"a": 1,}}', "invalid JSON"),
        ('{"config": NaN}', "NaN is not a JSON number"),
        ('{"config": {"a": -Infinity}}', "-Infinity is not a JSON number"),
        ('{"a": 1, "a": 2}', "'a' appears twice"),
        ('{"a": ' + "9" * 5000 + "}", "thousands of digits"),
        ('{"a":' * 100_000, "nested too deep"),
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
        parse_reply(reply + '{"config"')
    assert time.process_time() - begin < 8


def test_ten_megabytes_are_refused_at_once():
    begin = time.process_time()
    with pytest.raises(ReplyError, match="10000000 characters"):
        parse_reply("{" * 10_000_000)
    assert time.process_time() - begin < 0.5


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from(list('{}[]",:0aN<think>/`\n \\')), max_size=200))
def test_any_text_is_an_object_or_a_reply_error(text):
    try:
        found = parse_reply(text)
    except ReplyError as error:
        found = error
    assert isinstance(found, dict) or (found.where and found.why)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=5), st.lists, max_leaves=5)))
def test_any_object_comes_back_from_prose(body):
    text = f"Sure.\n```json\n{json.dumps(body)}\n```\nBye."
    assert parse_reply(text) == body
