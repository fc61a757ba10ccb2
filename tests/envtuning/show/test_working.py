"""What a command that only counts shows: a line that changes on a terminal, a line for each tenth in a log."""

import io

from rich.console import Console

from envtuning.show.working import Working


def shown(counts, monkeypatch=None):
    """What is printed by these counts; with ``monkeypatch`` to a log, and ten seconds lie between them."""
    now = 0.0
    out = io.StringIO()
    if monkeypatch is not None:
        monkeypatch.setattr("time.monotonic", lambda: now)
    with Working(Console(file=out, force_terminal=monkeypatch is None, width=100), "asking …") as working:
        for done, of in counts:
            working.tell("answered", done, of)
            now += 10.0
    return out.getvalue()


def test_a_log_has_a_line_for_each_tenth_and_says_how_long_the_rest_takes(monkeypatch):
    rest = ["3 min", "3 min", "2 min", "2 min", "2 min", "80 s", "60 s", "40 s", "20 s"]
    assert shown([(done, 40) for done in range(0, 41, 2)], monkeypatch).splitlines() == [
        "asking …",
        *(f"  answered {done} of 40, about {left} left" for done, left in zip(range(4, 40, 4), rest, strict=True)),
        "  answered 40 of 40",
    ]


def test_what_was_done_before_does_not_count_for_the_pace(monkeypatch):
    said = shown([(50, 100), (60, 100)], monkeypatch).splitlines()
    assert said[1:] == ["  answered 50 of 100", "  answered 60 of 100, about 40 s left"]


def test_a_terminal_has_a_line_that_changes():
    assert "asking …" in shown([])
    assert "answered 1 of 2" not in shown([(1, 2), (2, 2)]).splitlines()[0]
