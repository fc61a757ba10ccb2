"""What the toolbox hands to a tool: its own copies, and a list of its own where a method's default is one; on a tool made here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.tools import Toolbox, _public_methods, parameters_of


class Notes:
    kind: ClassVar[type] = int  # no method, and it cannot be called with a tool's arguments

    def add(self, note, notes=[], *, by=None):  # noqa: B006
        notes.append(note)
        return notes

    def forget(self, first, names={}, /):  # noqa: B006
        raise LookupError(f"{first} is not there")

    def _open(self, door): ...


def toolbox():
    box = object.__new__(Toolbox)
    notes = Notes()
    box.package = SimpleNamespace(executor_finds=lambda name: name == "exec")
    box._methods = {name: ("Notes", notes, defaults) for name, defaults in _public_methods(Notes).items()}
    return box


def test_public_methods_are_the_tools_with_those_defaults_that_a_call_could_change():
    assert _public_methods(Notes) == {"add": {"notes": (1, [])}, "forget": {"names": (1, {})}}
    assert parameters_of(Notes, "add") == ["note", "notes", "by"]


def test_a_default_list_is_a_new_one_in_each_call_and_what_was_given_is_used_and_left_as_it_is():
    box, given = toolbox(), ["old"]
    for call, said in [
        (Call("add", ("a",)), "['a']"),
        (Call("add", ("b",)), "['b']"),
        (Call("add", (), {"note": "c"}), "['c']"),
        (Call("add", ("d", given)), "['old', 'd']"),
        (Call("add", ("e",), {"notes": given}), "['old', 'e']"),
        (Call("add", (), {"note": "f", "notes": given}), "['old', 'f']"),
    ]:
        found = box.run(call)
        assert (found.text, found.error, found.departure) == (said, False, "")
    assert given == ["old"]
    assert Notes.add.__defaults__ == ([],)


def test_what_a_tool_raises_is_an_error_in_its_words():
    found = toolbox().run(Call("add", (), {}))
    assert (found.error, found.departure) == (True, "")
    assert found.text.startswith("Error during execution: Notes.add() missing 1 required positional argument")
    for name, departure in (("_open", ""), ("exec", "exec: Python's own, and no tool")):
        found = toolbox().run(Call(name, ("door",)))
        assert found.text == f"Error during execution: name '{name}' is not defined"
        assert (found.error, found.departure) == (True, departure)
