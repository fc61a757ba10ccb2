"""What the menu's learner sees of a choice: names of features, which are hashed to places in its weights."""

import pytest

from benchmarks.bfcl import menu_trainee as learner
from benchmarks.bfcl.menu import DONE, shown
from benchmarks.bfcl.menu_trainee import SIZE, features

MENU = ["[ls()]", "[mv(a='final_report.pdf', b='temp')]", "[mv(a='docs')]", "[mv(a='gone', z='5.5')]", "[mv(b=1.5)]", "[cd(folder='x/y draft')]", "[touch(name='/new')]", DONE]  # fmt: skip
OPENING = {"role": "user", "content": "User: Move Final_report.pdf to temp."}


@pytest.fixture
def seen(monkeypatch):
    """The names of a choice's features after what was said, without those of the question's words."""
    names = []

    def place(name):
        names.append(name)
        return len(names) - 1

    monkeypatch.setattr(learner, "_place", place)

    def of(choice, *messages, menu=MENU):
        last = {**messages[-1], "content": f"{messages[-1]['content']}\n{shown(menu)}"}
        rows = features([*messages[:-1], last], menu)
        return [names[int(place)] for place in rows[menu.index(choice)]]

    return of


def said(text):
    return {"role": "assistant", "content": text}


def heard(text):
    return {"role": "user", "content": text}


def test_a_done_is_seen_with_the_state_and_the_words_of_the_question(seen):
    first, state, *words = seen(DONE, OPENING)
    assert (first, state) == ("done", "done after 0 calls, fine")
    assert set(words) == {f"done {word}" for word in ("user", "move", "Final_report.pdf", "to", "temp")}


def plain(names):
    return [name for name in names if name.rpartition(" ")[2] not in ("user", "move", "Final_report.pdf", "to", "temp")]


def test_a_call_is_seen_by_its_tool_its_arguments_and_where_their_values_come_from(seen):
    words = {f"mv {word}" for word in ("user", "move", "Final_report.pdf", "to", "temp")}
    every = seen(MENU[1], OPENING)
    assert words <= set(every)
    assert [name for name in every if name not in words] == [
        "call",
        "call after 0 calls, fine",
        "tool mv",
        "mv after 0 calls, fine",
        "0 values from nowhere",
        "2 values of the user's",
        "mv(a,b)",
        "mv a text",
        "mv b text",
    ]


@pytest.mark.parametrize(
    ("choice", "nowhere", "users", "shapes"),
    [
        (MENU[0], 0, 0, []),
        (MENU[2], 0, 0, ["mv a text"]),  # a value that was heard
        (MENU[3], 2, 0, ["mv a text", "mv z number"]),
        (MENU[4], 1, 0, ["mv b number"]),
        (MENU[5], 1, 0, ["cd folder path with draft"]),
        (MENU[6], 1, 0, ["touch name path"]),
    ],
)
def test_values_are_the_user_s_or_were_heard_or_come_from_nowhere(seen, choice, nowhere, users, shapes):
    names = plain(seen(choice, OPENING, said("[pwd()]"), heard("There is Docs.")))
    assert f"{nowhere} values from nowhere" in names
    assert f"{users} values of the user's" in names
    assert names[7:] == shapes


def test_what_was_said_in_an_earlier_turn_is_still_the_user_s_but_no_longer_asked(seen):
    later = [said(DONE), heard("User: Now list."), said("[pwd()]"), heard("fine")]
    names = seen(MENU[1], OPENING, *later)
    assert "2 values of the user's" in names
    assert "call after 1 calls, fine" in names
    assert "mv list" in names
    assert "mv move" not in names


def test_a_menu_that_was_shown_before_is_nothing_that_was_said(seen):
    menu = ["[mv(a='gone')]", DONE]
    first = {"role": "user", "content": f"User: look\n{shown(menu)}"}
    names = seen(menu[0], first, said("[ls()]"), heard("fine"), menu=menu)
    assert "1 values from nowhere" in names
    assert "mv gone" not in names


def test_calls_since_the_question_are_counted_to_four_and_errors_noted(seen):
    for made, told in ((1, 1), (4, 4), (5, 4)):
        talk = [one for _ in range(made) for one in (said("[pwd()]"), heard("Error: no"))]
        assert f"call after {told} calls, wrong" in seen(MENU[0], OPENING, *talk)


@pytest.mark.parametrize(
    ("choice", "made", "result", "told"),
    [
        ("[ls()]", "[ls()]", "a.txt", ["made already", "made already, fine"]),
        ("[ls()]", "[ls()]", "Error", ["made already", "made already, wrong"]),
        ("[mv(a='docs')]", "[mv(a='other')]", "moved", ["same tool again", "same tool again, fine"]),
        ("[mv(a='docs')]", "[mv(a='other')]", "error", ["same tool again", "same tool again, wrong"]),
        ("[mv(a='docs')]", "[pwd()]", "error", []),
        ("[mv(a='docs')]", "[pwd()]", "x\nHint: call ls", ["hinted 0", "hinted 0, other tool"]),
        ("[mv(a='docs')]", "[pwd()]", "x\nHint: call mv", ["hinted 1", "hinted 1, other tool"]),
        ("[mv(a='docs')]", "[pwd()]", "x\nHint: check a.", ["hinted 2", "hinted 2, other tool"]),
        ("[mv(a='docs')]", "[pwd()]", "x\nHint: check a of mv.", ["hinted 3", "hinted 3, other tool"]),
        ("[ls()]", "[ls()]", "x\nHint: ls", ["made already", "made already, fine", "hinted 5", "hinted 5, same tool"]),
        ("[ls()]", "[ls()]", "x\nHint: no", ["made already", "made already, fine", "hinted 4", "hinted 4, same tool"]),
    ],
)  # fmt: skip
def test_what_was_made_before_and_what_a_hint_names_are_seen(seen, choice, made, result, told):
    names = plain(seen(choice, OPENING, said(made), heard(result)))
    assert [name for name in names if "made" in name or "again" in name or "hinted" in name] == told


def test_without_a_question_only_the_choice_is_seen(seen):
    assert seen(DONE, heard("fine")) == ["done", "done after 0 calls, fine"]
    assert "same tool again" not in seen(MENU[0], heard("fine"))
    assert "hinted 0, other tool" in seen(MENU[0], heard("Hint: wait"))


def test_places_lie_within_the_weights():
    assert SIZE == 32_768
    rows = features([{"role": "user", "content": f"User: look\n{shown(MENU)}"}], MENU)
    assert all(0 <= place < SIZE for row in rows for place in row)
    assert max(int(row.max()) for row in rows) > SIZE / 2
