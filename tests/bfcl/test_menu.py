"""The menu of a moment: what is on it, and that it is the one that stored figures were measured with."""

import hashlib
import random

from benchmarks.bfcl.menu import DONE, _next_call, choices, read_menu, shown
from envtuning.worlds.bfcl.calls import Call, as_reply
from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.scripted import named_plan
from envtuning.worlds.bfcl.tasks import find_task, load_tasks


def moments(package, task):
    """Each moment of who makes the calls of the ground truth one by one: (turn, calls made in it, replies so far)."""
    spoken = 0
    for turn, calls in enumerate(named_plan(package, task)):
        for made in range(len(calls) + 1):
            yield turn, [(call, None) for call in calls[:made]], spoken
            spoken += 1


def test_a_menu_has_the_next_call_two_faulty_ones_another_one_and_the_end_of_the_turn(v4):
    """Also where nothing is left to call in any turn (base 167), and where the next call is of a tool not offered yet (miss_func 49)."""
    sizes = []
    tasks = [task for split in SPLITS for task in load_tasks(v4, split)[::40]]
    for task in [*tasks, find_task(v4, "multi_turn_base_167"), find_task(v4, "multi_turn_miss_func_49")]:
        plan = named_plan(v4, task)
        for turn, made, spoken in moments(v4, task):
            menu = choices(v4, task, turn, made, spoken)
            assert menu.count(DONE) == 1
            assert len(set(menu)) == len(menu) <= 5
            assert read_menu(f"said\n{shown(menu)}") == menu
            if len(made) < len(plan[turn]):
                assert as_reply([plan[turn][len(made)]]) in menu
            sizes.append(len(menu))
    assert sizes.count(5) > len(sizes) / 2


def test_what_was_made_in_another_order_is_made(v4):
    task = next(task for task in load_tasks(v4, "base") if len(task.plan[0]) == 3)
    first, second, third = named_plan(v4, task)[0]
    assert as_reply([first]) in choices(v4, task, 0, [(third, None), (second, None)], 2)
    assert as_reply([third]) in choices(v4, task, 0, [(second, None), (first, None)], 2)


def test_a_call_that_is_wanted_twice_is_next_until_it_was_made_twice():
    a, b = Call("a"), Call("b")
    assert _next_call([a, b, a], [(a, None)]) == b
    assert _next_call([a, b, a], [(a, None), (b, None)]) == a
    assert _next_call([a, b, a], [(a, None), (b, None), (a, None)]) is None


def test_menus_are_those_that_stored_figures_were_measured_with(v4):
    whole = hashlib.sha256()
    for split in SPLITS:
        for task in load_tasks(v4, split)[::10]:
            every = list(moments(v4, task))
            for turn, made, spoken in random.Random(task.id).sample(every, min(4, len(every))):
                whole.update("\n".join(choices(v4, task, turn, made, spoken)).encode())
    assert whole.hexdigest()[:16] == "f16afccd89180924"
