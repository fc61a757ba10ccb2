"""Boards as lessons: the question that asks for a whole plan, and an optimal plan as its answer."""

from __future__ import annotations

from envtuning.worlds.world import Lesson
from mapf_frozenlake import format_plan, plan_prompt, solve_batch
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.text import TextStyle
from mapf_frozenlake.types import Solution


def lessons_of(boards: InstanceSet, style: TextStyle) -> list[Lesson]:
    """One lesson for each board, in order. Every board must have a solution, as all generated boards do."""
    instances = list(boards)
    lessons = []
    for instance, solution in zip(instances, solve_batch(instances, num_threads=1), strict=True):
        assert isinstance(solution, Solution)
        assert solution.plan is not None
        lessons.append(Lesson(plan_prompt(instance, style), format_plan(solution.plan), str(instance.height)))
    return lessons
