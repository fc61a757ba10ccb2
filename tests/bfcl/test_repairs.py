"""What a scripted reader takes from a message: the call that it makes again, and the calls that it makes first."""

import random

import pytest

from benchmarks.bfcl.readers import (
    Desk,
    Repair,
    blindly,
    by_looking_around,
    by_names,
    complains,
    one_by_one,
    told_everything,
)
from envtuning.worlds.bfcl.calls import read_call

CALM = random.Random(0)
CD, LOGIN = read_call("cd(folder='x')"), read_call("log_in(user='u')")


def desk(written, meant, left_out=(CD,)):
    return Desk(
        read_call(written), read_call(meant), left_out, frozenset({"mv", "cd", "ls", "cat", "cp"}), ("ls", "pwd")
    )


def again(text, *first):
    return Repair(first, read_call(text))


MOVED = desk("mv(source='b.txt', destination='other')", "mv(source='a.txt', destination='docs')")
MISSPELT = desk("move(source='b.txt')", "mv(source='a.txt')", (CD, LOGIN))
LACKING = desk("mv(source='b.txt', deep=True)", "mv(source='b.txt', destination='docs')", ())


@pytest.mark.parametrize(
    ("message", "at", "at_once", "singly"),
    [
        ("source?", MOVED, again("mv(source='a.txt', destination='other')"), again("mv(source='a.txt', destination='other')")),
        ("destination, source?", MOVED, again(str(MOVED.meant)), again("mv(source='b.txt', destination='docs')")),
        ("mv needs cd", MOVED, again(str(MOVED.written), CD), again(str(MOVED.written), CD)),
        ("cd, then source", MOVED, again("mv(source='a.txt', destination='other')", CD), again("mv(source='a.txt', destination='other')")),
        ("ls?", MOVED, None, None),
        ("use mv", MISSPELT, again("mv(source='b.txt')"), again("mv(source='b.txt')")),
        ("use mv: source", MISSPELT, again("mv(source='a.txt')"), again("move(source='a.txt')")),
        ("you should really use mv", MISSPELT, again("mv(source='b.txt')"), again("mv(source='b.txt')")),
        ("mv: ls, cat or cd", MOVED, again(str(MOVED.written), CD), again(str(MOVED.written), CD)),
        ("use move", MISSPELT, None, None),
        ("log_in or cd", MISSPELT, again("move(source='b.txt')", CD, LOGIN), again("move(source='b.txt')", LOGIN)),
        ("ls cat cp mv", MISSPELT, None, None),  # who names everything points at nothing
        ("ls cat mv", MISSPELT, again("mv(source='b.txt')"), again("mv(source='b.txt')")),
        ("destination", LACKING, again("mv(source='b.txt', deep=True, destination='docs')"), again("mv(source='b.txt', deep=True, destination='docs')")),
        ("deep", LACKING, again("mv(source='b.txt')"), again("mv(source='b.txt')")),
        ("source? ask", LACKING, Repair(asks=True), Repair(asks=True)),
        ("source? task", LACKING, None, None),
        ("'other' is not there", MOVED, None, again("mv(source='b.txt', destination='docs')")),
    ],
)  # fmt: skip
def test_names_lead_to_the_arguments_and_tools_that_they_name(message, at, at_once, singly):
    assert by_names(message, at, CALM) == at_once
    assert one_by_one(message, at, CALM) == singly


def test_values_lead_to_the_arguments_that_had_them_but_for_the_shortest_and_only_the_first_three():
    short = desk("t(a='x', b=1, c=12, d=True)", "t(a='y', b=2, c=13, d=False)")
    assert one_by_one("x 1", short, CALM) is None
    assert one_by_one("12", short, CALM) == again("t(a='x', b=1, c=13, d=True)")
    assert one_by_one("true", short, CALM) == again("t(a='x', b=1, c=12, d=False)")
    many = "aa bb cc dd"
    third = desk("t(a='aa', b='bb', c='cc', d='dd')", "t(a='aa', b='bb', c='right', d='dd')")
    fourth = desk("t(a='aa', b='bb', c='cc', d='dd')", "t(a='aa', b='bb', c='cc', d='right')")
    assert one_by_one(many, third, CALM) == again("t(a='aa', b='bb', c='right', d='dd')")
    assert one_by_one(many, fourth, CALM) is None


@pytest.mark.parametrize("message", ["Error", '{"ok": false}', "x not found", "Cannot", "INVALID", "x\nHint: y"])
def test_complaints_are_told_from_results(message):
    assert complains(message)
    assert not complains('{"ok": true}')
    assert not Repair().asks


def test_readers_that_do_not_read():
    drawn = {str(blindly("x", MISSPELT, random.Random(seed))) for seed in range(60)}
    wanted = [
        again("move(source='a.txt')"),
        again("mv(source='b.txt')"),
        again("move(source='b.txt')", CD),
        again("move(source='b.txt')", LOGIN),
    ]
    assert drawn == set(map(str, wanted))
    assert by_looking_around("x", MOVED, CALM) == again(str(MOVED.written), read_call("ls()"), read_call("pwd()"))
    assert told_everything("x", MISSPELT, CALM) == again(str(MISSPELT.meant), CD, LOGIN)
