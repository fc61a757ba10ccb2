"""What each variant of a fault makes of a call, and where it does not fit."""

import random

import pytest

from benchmarks.bfcl import measure
from benchmarks.bfcl.faults import VARIANTS, NotHere, Place
from benchmarks.bfcl.measure import Fault, draw
from envtuning.worlds.bfcl.calls import Call, read_call

TEXT = {"type": "string"}
WAY = {"description": "[Enum]: [north, south]"}
NOT_HERE = "not here"


def tool(name, *needed, **takes):
    return {"name": name, "parameters": {"properties": takes, "required": list(needed)}}


def place(text, *needed, index=0, **takes):
    call = read_call(text)
    return Place(0, index, call, tool(call.name, *needed, **(dict.fromkeys(call.named, TEXT) | takes)))


def made_of(variant, at, tools=(), seeds=60):
    """Everything that the variant may make of the call."""
    found = set()
    for seed in range(seeds):
        try:
            found.add(str(VARIANTS[variant](at, tools, random.Random(seed))))
        except NotHere:
            found.add(NOT_HERE)
    return found


MV = "mv(source='a.txt', destination='docs')"


@pytest.mark.parametrize(
    ("variant", "at", "made"),
    [
        ("missing_argument/first", place(MV, "force", "source", "destination", "deep"), {"mv(destination='docs')"}),
        ("missing_argument/last", place(MV, "force", "source", "destination", "deep"), {"mv(source='a.txt')"}),
        ("missing_argument/first", place(MV, "force"), {NOT_HERE}),
        ("unexpected_argument/renamed", place("cd(folder='x')"), {"cd(folder_value='x')"}),
        ("unexpected_argument/renamed", place("t(order_id=1, b=2)"), {"t(OrderId=1, b=2)", "t(order_id=1, b_value=2)"}),
        ("unexpected_argument/renamed", place("ls()"), {NOT_HERE}),
        ("unexpected_argument/added", place("ls()"), {f"ls({name}=True)" for name in ("verbose", "recursive", "format", "timeout")}),
        ("wrong_enumeration/other_spelling", place("go(way='north')", way=WAY), {"go(way='NORTH')"}),
        ("wrong_enumeration/other_spelling", place("go(way=['north', 5])", way=WAY), {"go(way=['NORTH', 5])"}),
        ("wrong_enumeration/other_spelling", place("go(way='a')", way={"description": "[Enum]: [a, A]"}), {NOT_HERE}),
        ("wrong_enumeration/other_spelling", place("go(way='a')", way={"description": "[Enum]: [a]"}), {NOT_HERE}),
        ("wrong_enumeration/no_such_value", place("go(way='north', who='me')", way=WAY), {"go(way='default', who='me')"}),
        ("wrong_enumeration/no_such_value", place("go(way=['north'])", way=WAY), {"go(way=['default'])"}),
        ("wrong_enumeration/no_such_value", place("go(who='me')", way=WAY), {NOT_HERE}),
        ("wrong_enumeration/no_such_value", Place(0, 0, read_call("go(way=1)"), tool("go")), {NOT_HERE}),
        ("wrong_id/off_by_one", place("t(order_id=5)"), {"t(order_id=6)"}),
        ("wrong_id/off_by_one", place("t(order_id='USR019')"), {"t(order_id='USR010')"}),
        ("wrong_id/off_by_one", place("t(symbol='AAPL', count=3)"), {"t(symbol='AAPQ', count=3)"}),
        ("wrong_id/off_by_one", place("t(symbol='m²')"), {"t(symbol='mQ')"}),
        ("wrong_id/off_by_one", place("t(symbol='')"), {NOT_HERE}),
        ("wrong_id/off_by_one", place("t(count=3)"), {NOT_HERE}),
        ("wrong_id/name_for_id", place("t(order_id=5, count=3)"), {f"t(order_id={said!r}, count=3)" for said in ("latest", "my own", "the first one")}),
        ("wrong_type/text_for_number", place("t(a=5, b=2.5, c=True, d='x')"), {"t(a='5 units', b=2.5, c=True, d='x')", "t(a=5, b='2.5 units', c=True, d='x')"}),
        ("wrong_type/list_for_one", place("t(a=5, d='x')"), {"t(a=5, d=['x'])"}),
        ("unmet_precondition/first_step", place("touch(file_name='x')"), {"None"}),
        ("unmet_precondition/first_step", place("touch(file_name='x')", index=1), {NOT_HERE}),
        ("unmet_precondition/first_step", place("cd(folder='x')"), {NOT_HERE}),
        ("unmet_precondition/later_step", place("touch(file_name='x')"), {NOT_HERE}),
        ("unmet_precondition/later_step", place("touch(file_name='x')", index=1), {"None"}),
        ("unmet_precondition/later_step", place("touch(file_name='x')", index=2), {"None"}),
        ("path_for_name/here", place("grep(file_name='x', pattern='y')"), {"grep(file_name='./x', pattern='y')"}),
        ("path_for_name/folder", place("grep(file_name='x', pattern='y')"), {"grep(file_name='files/x', pattern='y')"}),
        ("path_for_name/here", place("grep(file_name=5, pattern='y')"), {NOT_HERE}),
        ("wrong_directory/stayed", place("cd(folder='x')"), {"None"}),
        ("wrong_directory/stayed", place("ls()"), {NOT_HERE}),
        ("wrong_directory/elsewhere", place("cd(folder='x')"), {"cd(folder='x_old')"}),
        ("wrong_directory/elsewhere", place("cd(folder='..')"), {NOT_HERE}),
        ("wrong_directory/elsewhere", place("mk(folder='x')"), {NOT_HERE}),
        ("wrong_tool/misspelt", place("place_order(a=1)"), {"placeorderTool(a=1)"}),
        ("wrong_tool/misspelt", place("ls(a=1)"), {"ls_tool(a=1)"}),
        ("swapped_arguments/two", place("t(a=1, b=2)"), {"t(a=2, b=1)"}),
        ("swapped_arguments/two", place("t(a=1, b=2, c=3)"), {"t(a=2, b=1, c=3)", "t(a=3, b=2, c=1)", "t(a=1, b=3, c=2)"}),
        ("swapped_arguments/two", place("t(a=1)"), {NOT_HERE}),
        ("swapped_arguments/all", place("t(a=1, b=2, c=3)"), {"t(a=2, b=3, c=1)"}),
        ("swapped_arguments/all", place("t(a=1, b=2, c=3, d=4)"), {"t(a=2, b=3, c=4, d=1)"}),
        ("swapped_arguments/all", place("t(a=1, b=2)"), {NOT_HERE}),
        ("wrong_value/number", place("t(a=5, b=True, c='x')"), {f"t(a={value}, b=True, c='x')" for value in (6, 4, 15, -995)}),
        ("wrong_value/number", place("t(b=True)"), {NOT_HERE}),
        ("wrong_value/words", place("t(a='four', b='two', order_id='12345', c=12345)"), {"t(a='four draft', b='two', order_id='12345', c=12345)"}),
        ("wrong_value/words", place("t(b='two')"), {NOT_HERE}),
    ],
)  # fmt: skip
def test_what_a_variant_makes_of_a_call(variant, at, made):
    assert made_of(variant, at) == made


def test_another_tool_is_one_that_does_not_take_these_arguments():
    tools = [tool("t", a=TEXT), tool("same", a=TEXT), tool("more", a=TEXT, b=TEXT), tool("no"), tool("other", b=TEXT)]
    assert made_of("wrong_tool/other", place("t(a=1)"), tools) == {"no(a=1)", "other(a=1)"}
    assert made_of("wrong_tool/other", place("t(a=1)", a=TEXT), [tool("t"), *tools[1:3]]) == {NOT_HERE}


def test_a_fault_is_drawn_among_the_places_where_it_changes_something(monkeypatch):
    equal, one, other = (place(f"t(a={a}, b=2)", index=a) for a in (2, 1, 0))
    monkeypatch.setattr(measure, "places", lambda package, task: [equal, place("t(a=1)"), one, other])

    class Task:
        def tools(self, package, turn):
            return []

    drawn = [draw(None, Task(), "swapped_arguments/two", random.Random(seed)) for seed in range(30)]
    assert {fault.index for fault in drawn} == {0, 1}
    assert drawn[0] == Fault("swapped_arguments/two", "t", 0, drawn[0].index, Call("t", (), {"a": 2, "b": drawn[0].index}))  # fmt: skip
    assert drawn[0].kind == "swapped_arguments"
    assert draw(None, Task(), "wrong_directory/stayed", random.Random(0)) is None
