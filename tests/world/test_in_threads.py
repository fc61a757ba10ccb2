"""Work in threads: every range once, errors and Ctrl-C heard wherever they land, nothing left running."""

from __future__ import annotations

import _thread
import gc
import sys
import threading
import time
from itertools import count

import pytest

from mapf_frozenlake.threads import in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("number", [0, 1, 7, 100])
def test_every_range_is_worked_on_once(threads, number):
    done = []
    in_threads(lambda begin, end: done.extend(range(begin, end)), number, threads)
    assert sorted(done) == list(range(number))


def test_the_callers_thread_is_left_alone_where_that_is_asked():
    seen = []
    in_threads(lambda begin, end: seen.append(threading.current_thread()), 3, 1)
    assert set(seen) == {threading.current_thread()}
    in_threads(lambda begin, end: seen.append(threading.current_thread()), 3, 1, here=False)
    assert threading.current_thread() not in seen[1:]


def test_an_error_of_a_thread_stops_the_others():
    begun, stopped = threading.Event(), threading.Event()

    def work(begin: int, end: int) -> None:
        if begin == 0:
            begun.wait()
            raise ZeroDivisionError("row 0")
        begun.set()
        stopped.wait()

    with pytest.raises(ZeroDivisionError, match="row 0"):
        in_threads(work, 2, 2, stop=stopped.set)
    assert stopped.is_set()


running = _thread._count


def interrupted_at(line: int) -> bool:
    """Press Ctrl-C before that line, counted in this thread, of all that ``in_threads`` runs: whether there was such a line.

    What is worked on ends only by ``stop``, or after the last line.
    """
    stopped, lines = threading.Event(), count()
    pressed = False

    def trace(frame, event, argument):
        nonlocal pressed
        if event == "line" and not pressed and next(lines) == line:
            pressed = True
            raise KeyboardInterrupt
        return trace

    def ends_when_nobody_stops_it():
        if not pressed:
            stopped.set()

    late = threading.Timer(0.15, ends_when_nobody_stops_it)
    before = running()
    late.start()
    gc.disable()  # Python itself swallows what is raised in a callback of the collector, and Hypothesis has one
    sys.settrace(trace)
    try:
        in_threads(lambda begin, end: stopped.wait(), 4, 2, stop=stopped.set)
        heard = False
    except KeyboardInterrupt:
        heard = True
    finally:
        sys.settrace(None)
        gc.enable()
        late.cancel()
        late.join()
    assert heard == pressed, f"line {line}: Ctrl-C was swallowed"
    for _ in range(100):  # who has nothing to do may take a moment to end
        if running() <= before:
            break
        time.sleep(0.01)
    assert running() <= before, f"line {line}: a thread runs on"
    return pressed


def test_ctrl_c_is_heard_wherever_it_lands():
    """Before any line of Python, the standard library's own included, that waiting for threads runs through."""
    for line in count():
        if not interrupted_at(line):
            break
    assert line > 20
