"""What a tool's document says: listed values, ids, and calls that it allows."""

import random

from benchmarks.bfcl.random_calls import random_call
from envtuning.worlds.bfcl.documents import documented_values, is_id, parameters, required

PROPERTIES = {
    "count": {"type": "integer"},
    "ratio": {"type": "float"},
    "amount": {"type": "number"},
    "deep": {"type": "boolean"},
    "kind": {"type": "string", "enum": ["one", "two"]},
    "names": {"type": "array", "items": {"type": "integer"}},
    "pair": {"type": "tuple"},
    "more": {"type": "dict"},
    "text": {"type": "string"},
}
TYPES = {"count": int, "ratio": float, "amount": float, "deep": bool, "kind": str, "names": list, "pair": list, "more": dict, "text": str}  # fmt: skip


def tool(*needed):
    return {"name": "t", "parameters": {"properties": PROPERTIES, "required": list(needed)}}


def test_a_random_call_has_what_is_required_some_of_the_rest_and_values_of_the_types_that_are_written():
    generator = random.Random(0)
    drawn = [random_call(tool("count", "names"), generator) for _ in range(400)]
    assert all(call.name == "t" and not call.positional for call in drawn)
    assert all({"count", "names"} <= call.named.keys() <= PROPERTIES.keys() for call in drawn)
    for name in PROPERTIES.keys() - {"count", "names"}:
        assert 0.2 < sum(name in call.named for call in drawn) / len(drawn) < 0.4
    for call in drawn:
        assert all(type(value) is TYPES[name] for name, value in call.named.items())
        assert all(type(item) is int for item in call.named["names"])
        assert all(type(item) is str for item in call.named.get("pair", ()))
    for name in PROPERTIES.keys() - {"more"}:
        assert len({str(call.named[name]) for call in drawn if name in call.named}) > 1, name
    assert {call.named["kind"] for call in drawn if "kind" in call.named} == {"one", "two"}
    assert random_call(tool(), random.Random(3)) == random_call(tool(), random.Random(3))


def test_a_document_says_what_it_needs_and_what_it_takes():
    assert required(tool("count")) == ["count"]
    assert required({"parameters": {"properties": {}}}) == []
    assert parameters(tool()) == PROPERTIES


def test_listed_values_are_read_in_each_way_that_documents_list_them():
    assert documented_values({"description": "The class. [Enum]: ['economy', 'first']"}) == ("economy", "first")
    assert documented_values({"description": 'Options are: "low", high. Default is low'}) == ("low", "high")
    assert documented_values({"description": "'a' for all, 'n' for none"}) == ("a", "n")
    assert documented_values({"description": "A name."}) == documented_values({}) == ()


def test_handles_that_another_tool_gives_out_are_ids():
    assert all(map(is_id, ("id", "symbol", "order_id", "access_token", "travel_to")))
    assert not any(map(is_id, ("message", "idea", "tokens", "paid")))
