"""Constrained decoding, part by part: the room that a text needs, the steps that make it finite, and which token may come."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.lazily import Lazy, needed

needed("torch", "llguidance", extra="local")
torch, structured = Lazy("torch"), Lazy("engineers.model.structured")


@pytest.fixture
def processor() -> Any:
    import engineers.model.structured.processor as module

    return module


@pytest.mark.parametrize(
    ("schema", "room"),
    [
        ({"type": "integer"}, 24),
        ({"type": ["number", "null"]}, 24),
        ({}, 24),
        ({"type": "string"}, 8),  # its quotes and a started \\u escape
        ({"type": "string", "minLength": 3}, 26),
        ({"type": "string", "enum": ["a", "ünf"]}, 10),  # in quotes, and escaped as JSON's \\u00fc
        ({"enum": [None, 7]}, 4),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 24),
        ({"oneOf": [{"type": "string"}, {"enum": [1]}]}, 8),
        ({"type": "object"}, 2),
        ({"type": "object", "properties": {"ab": {"type": "string"}, "c": {"enum": [1]}}}, 2 + (4 + 4 + 8) + (3 + 4 + 1)),
        ({"type": "array", "items": {"type": "string"}}, 2 + 1 * (2 + 8)),  # one may have been started
        ({"type": "array", "items": {"type": "string"}, "minItems": 3}, 2 + 3 * (2 + 8)),
        ({"type": "array"}, 2 + 1 * (2 + 24)),
    ],
)  # fmt: skip
def test_the_room_to_end_a_text_is_counted_by_its_longest_parts(schema: dict[str, Any], room: int) -> None:
    assert structured.room(schema) == room


def bounded(**more: Any) -> dict[str, Any]:
    return {"type": "number", "minimum": 0.0, "maximum": 1.0} | more


@pytest.mark.parametrize(
    ("schema", "added"),
    [
        ({"type": "string"}, {"maxLength": 300}),
        ({"type": ["string", "null"]}, {"maxLength": 300}),
        ({"type": "string", "maxLength": 5}, {}),
        ({"type": "string", "enum": ["a"]}, {}),
        ({"type": "string", "pattern": "a*"}, {}),
        ({"type": "boolean"}, {}),
        (bounded(), {"multipleOf": 1e-4}),
        (bounded(type=["number", "null"]), {"multipleOf": 1e-4}),
        (bounded(multipleOf=0.5), {}),
        (bounded(type="integer"), {}),
        (bounded(maximum=0.0), {}),  # one value
        (bounded(minimum=2.0, maximum=3.0), {"multipleOf": 1e-4}),
        (bounded(minimum=-50.0, maximum=50.0), {"multipleOf": 1e-2}),
        (bounded(maximum=0.12345), {"multipleOf": 1e-5}),
        (bounded(maximum=0.123456), {}),  # the bound would not be a multiple
        (bounded(minimum=1e-9), {}),
        ({"type": "number", "minimum": 0.0}, {}),
        ({"type": "number", "maximum": 1.0}, {}),
    ],
)
def test_what_has_no_end_gets_one_and_nothing_else_is_touched(schema: dict[str, Any], added: dict[str, Any]) -> None:
    assert structured.finite(schema) == schema | added
    nested = {"type": "object", "properties": {"a": {"anyOf": [schema, {"type": "null"}]}}}
    assert structured.finite(nested)["properties"]["a"]["anyOf"][0] == schema | added


def test_flags_are_read_lowest_bit_first_and_nothing_beyond_them_is_allowed(processor: Any) -> None:
    words = torch.tensor([0b101, -(2**31)], dtype=torch.int32)  # bits 0 and 2; bit 31 of the second word
    assert processor._unpack(words, 70).nonzero().flatten().tolist() == [0, 2, 63]
    assert processor._unpack(words, 70).tolist()[64:] == [False] * 6
    assert processor._unpack(words, 3).tolist() == [True, False, True]


def test_a_view_is_of_fast_tokenizers_with_a_token_for_each_closing_mark(byte_tokens: Any, monkeypatch: Any) -> None:
    view = structured.TokenView.of(byte_tokens, 300)
    assert view.tokens.vocab_size == 300
    assert structured.TokenView.of(byte_tokens, 10).tokens.vocab_size == len(byte_tokens)
    end, *marks = view.closers
    assert (end, byte_tokens.decode(marks)) == (byte_tokens.eos_token_id, '"}],')
    for tokenizer in (SimpleNamespace(), SimpleNamespace(is_fast=False)):
        with pytest.raises(ValueError, match="SimpleNamespace is not a fast tokenizer: load it with use_fast=True"):
            structured.TokenView.of(tokenizer, 300)
    monkeypatch.setattr("engineers.model.structured.processor.CLOSERS", (b'"', b"no such token"))
    with pytest.raises(ValueError, match="for one of"):
        structured.TokenView.of(byte_tokens, 300)


def allowed(tokenizer: Any, processor: Any, written: str) -> set[str]:
    """What may come after these words, by a model that would write anything; the end is ''."""
    ids = torch.tensor([[0, 0, *tokenizer.encode(written)]])
    scores = processor(ids, torch.zeros(1, len(tokenizer)))
    found = [index for index in range(len(tokenizer)) if scores[0, index] > -torch.inf]
    return {"" if index == tokenizer.eos_token_id else tokenizer.decode([index]) for index in found}


def made(tokenizer: Any, schema: dict[str, Any], spare: int) -> Any:
    """A processor for a text of this schema with so many tokens more than the least."""
    view = structured.TokenView.of(tokenizer, len(tokenizer))
    return structured.SchemaLogits(view, schema, prompt_length=2, max_tokens=structured.room(schema) + 1 + spare)


def test_a_text_is_closed_as_soon_as_it_can_be_once_its_room_is_used_up(byte_tokens: Any) -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 5}
    free, tight = made(byte_tokens, schema, spare=6), made(byte_tokens, schema, spare=5)
    assert allowed(byte_tokens, free, "[1, 2") >= {"]", ",", "3"}
    assert allowed(byte_tokens, tight, "[1, 2") == {"]"}
    assert allowed(byte_tokens, made(byte_tokens, schema, spare=0), "[1") == {","}  # a second one is needed
    started = allowed(byte_tokens, made(byte_tokens, schema, spare=0), "[")  # nothing closes here
    assert started >= {"-", "9"}
    assert "0" not in started  # zeros could go on for ever
    for one in (free, tight):
        one = made(byte_tokens, schema, spare=9)
        assert allowed(byte_tokens, one, "[1, 2]") == {""}
        assert allowed(byte_tokens, one, "[1, 2]" + byte_tokens.eos_token) == {""}  # and for ever


def test_between_parts_there_is_one_space_and_no_other(byte_tokens: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}
    for written, next_one in (("", "{"), ("{", '"'), ('{"a"', ":"), ('{"a":', " "), ('{"a": ', "1"), ('{"a": 1', "}")):
        assert allowed(byte_tokens, made(byte_tokens, schema, spare=90), written) == {next_one}


def test_the_least_number_of_tokens_is_said_and_enough(byte_tokens: Any) -> None:
    schema = {"type": "string"}
    assert made(byte_tokens, schema, spare=0).wind_up_at == 2
    with pytest.raises(ValueError, match=r"^max_tokens=8: the shortest reply may take 9; allow at least that many$"):
        made(byte_tokens, schema, spare=-1)


def test_a_diverged_models_logits_keep_their_order(byte_tokens: Any) -> None:
    one, size = made(byte_tokens, {"enum": ["a", "b", "c", "d"]}, spare=90), len(byte_tokens)
    a, b, c, d = (byte_tokens.encode(letter)[0] for letter in "abcd")
    scores = torch.zeros(1, size)
    scores[0, [a, b, c, d]] = torch.tensor([torch.nan, torch.inf, -torch.inf, 3.0])
    ids = torch.tensor([[0, 0, *byte_tokens.encode('"')]])
    assert one(ids, scores)[0, [a, b, c, d]].tolist() == [0.0, 1e4, -1e4, 3.0]


def test_a_text_that_left_the_schema_is_an_error(byte_tokens: Any) -> None:
    one = made(byte_tokens, {"type": "boolean"}, spare=90)
    with pytest.raises(ValueError, match="the schema cannot be decoded"):
        allowed(byte_tokens, one, "xyz")
