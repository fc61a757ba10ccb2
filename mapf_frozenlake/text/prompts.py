"""The prompts for a language model: for a whole plan, or for the next move of every agent."""

from __future__ import annotations

from mapf_frozenlake.letters import GOAL_LETTERS, HOLE, ICE, START_LETTERS
from mapf_frozenlake.maps import lettered
from mapf_frozenlake.text.board import TextStyle, to_text
from mapf_frozenlake.types import Cells, Instance, OnGoal

_RULES = """\
All agents move at once, one step at a time, on a board of ice and holes. Cells are (row, column), counted from (0, 0) at the top left.
In each step every agent makes one move: LEFT, DOWN, RIGHT, UP or WAIT.
No agent may leave the board or enter a hole. Two agents may not be on one cell after a step, nor exchange their cells in a step.
An agent may enter a cell that another agent leaves in the same step.{stays}
{end}"""
_ON_ITS_GOAL = " An agent that stands on its goal still takes up its cell."
_ENDS: dict[OnGoal, str] = {
    "wait": "All agents must end on their goals, after as few steps as possible.",
    "finish": "An agent that reaches its goal leaves the board. All agents must leave, after as few steps as possible.",
    "next": "An agent that reaches its goal gets a new goal. Together the agents must reach as many goals as possible.",
}
PLAN_FORMAT = (
    "Write one line for each agent, with all its moves in order; an agent whose line has ended waits. For example:"
)
TURN_FORMAT = "Write the next move of every agent, one line for each. For example:"


def plan_prompt(instance: Instance, style: TextStyle = "paper") -> str:
    """Rules, instance and the form of the answer, for a whole plan. ``from_text`` reads the instance from it.

    Style ``"short"`` has the instance alone, for a small model that learned the rules from examples.
    """
    if style == "short":
        return to_text(instance, style)
    example = _example(instance, "RIGHT RIGHT DOWN", "WAIT LEFT")
    return f"{_introduction(instance, style)}\n\n{PLAN_FORMAT}\n{example}"


def turns_prompt(instance: Instance, horizon: int, style: TextStyle = "paper", on_goal: OnGoal = "wait") -> str:
    """The same for the first move of every agent, of at most ``horizon``."""
    if style == "short":
        return f"{to_text(instance, style)}. Step 0 {horizon}"
    steps, example = f"There are at most {horizon} steps.", _example(instance, "RIGHT", "WAIT")
    return f"{_introduction(instance, style, on_goal)}\n\n{steps}\n{TURN_FORMAT}\n{example}"


def state_text(
    instance: Instance,
    positions: Cells,
    step: int,
    horizon: int,
    style: TextStyle = "paper",
    goals: Cells | None = None,
) -> str:
    """The positions of all agents after ``step`` steps; with the board in letters, agents replace their starts.

    Style ``"short"`` has the steps and each agent's row and column. ``goals`` are the present goals, if they are not the
    instance's: the short style then has them after the positions. An agent that has left the board has a position of -1.
    """
    if style == "short":
        ends = [positions] if goals is None else [positions, goals]
        return f"Step {step} {horizon}: {'; '.join(' '.join(map(str, cells.ravel().tolist())) for cells in ends)}"
    goals = instance.goals if goals is None else goals
    lines = [f"Step {step} of at most {horizon} is done."]
    if style == "paper":
        board = lettered(instance.holes, positions, goals)
        lines += ["", *(" ".join(row) for row in board), ""]
    for agent, (cell, goal) in enumerate(zip(positions.tolist(), goals.tolist())):
        if cell[0] < 0:
            lines.append(f"Agent {agent} has left the board.")
            continue
        where = f"Agent {agent} is at ({cell[0]}, {cell[1]})"
        lines.append(f"{where}, on its goal." if cell == goal else f"{where}; its goal is ({goal[0]}, {goal[1]}).")
    return "\n".join(lines)


def rules_text(on_goal: OnGoal = "wait") -> str:
    """The rules of the lake in words."""
    return _RULES.format(stays=_ON_ITS_GOAL if on_goal == "wait" else "", end=_ENDS[on_goal])


def _introduction(instance: Instance, style: TextStyle, on_goal: OnGoal = "wait") -> str:
    text, rules = to_text(instance, style), rules_text(on_goal)
    return f"{rules}\n{_legend(instance.num_agents)}\n\n{text}" if style == "paper" else f"{rules}\n\n{text}"


def _legend(num_agents: int) -> str:
    starts, goals = " ".join(START_LETTERS[:num_agents]), " ".join(GOAL_LETTERS[:num_agents])
    return f"On the board, {ICE} is ice and {HOLE} a hole; {starts} are the agents' starts and {goals} their goals, in order."


def _example(instance: Instance, first: str, second: str) -> str:
    return f"Agent 0: {first}" + (f"\nAgent 1: {second}" if instance.num_agents > 1 else "")
