"""Plays scripts, and makes scripts with mistakes: the ground truth with dropped, doubled, exchanged, foreign and malformed calls."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

from benchmarks.bfcl.random_calls import random_call
from envtuning.worlds.bfcl.calls import as_reply, read_call
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.reply_format import write_answer
from envtuning.worlds.bfcl.scripted import DONE, Script, ground_truth_in
from envtuning.worlds.bfcl.tasks import Task


def run_script(conversation: Conversation, script: Script) -> Conversation:
    """Reply by the script; turns after its end are ended without a call."""
    done = write_answer(DONE, conversation.reply_format)
    for replies in [*script, *[[]] * (conversation.task.turns - len(script))]:
        for reply in replies:
            conversation.act(reply)
            if conversation.over:
                return conversation
        conversation.act(done)
    return conversation


def ground_truth(package: Package, task: Task, generator: random.Random) -> Script:
    """Each turn's calls in one reply."""
    return ground_truth_in(package, task, "readable")


def perturbed(package: Package, task: Task, generator: random.Random) -> Script:
    """The ground truth with random mistakes: dropped, doubled, exchanged, foreign and malformed calls, and other limits of the steps."""
    turns = [list(map(str, calls)) for calls in task.plan]
    for _ in range(generator.choice([0, 1, 1, 1, 2, 3])):
        _mistake(package, task, turns, generator)
    script: Script = []
    for calls in turns:
        replies: list[str] = []
        while calls:
            size = generator.randint(1, len(calls))
            replies.append(as_reply(calls[:size]) if generator.random() < 0.8 else _as_json(calls[:size]))
            calls = calls[size:]
        if generator.random() < 0.02:
            replies += ["[pwd()]"] * 25  # over the limit of steps
        if generator.random() < 0.05:
            replies.insert(0, "[cd(folder=")
        script.append(replies)
    return script if generator.random() < 0.9 else script[: generator.randint(0, len(script))]


def _as_json(calls: Sequence[str]) -> str:
    read = [read_call(call) for call in calls]
    if any(call.positional for call in read):
        return as_reply(calls)
    return json.dumps([{"name": call.name, "arguments": call.named} for call in read])


def _mistake(package: Package, task: Task, turns: list[list[str]], generator: random.Random) -> None:
    places = [(turn, place) for turn, calls in enumerate(turns) for place in range(len(calls))]
    if not places:
        return
    turn, place = generator.choice(places)
    kind = generator.randrange(8)
    tools = task.tools(package, task.turns)
    if kind == 0:
        del turns[turn][place]
    elif kind == 1:
        turns[turn].insert(place, turns[turn][place])
    elif kind == 2:
        other_turn, other = generator.choice(places)
        turns[turn][place], turns[other_turn][other] = turns[other_turn][other], turns[turn][place]
    elif kind == 3:
        turns[generator.randrange(len(turns))].append(str(random_call(generator.choice(tools), generator)))
    elif kind == 4:
        turns[turn][place] = str(random_call(generator.choice(tools), generator))
    elif kind == 5:
        turns[turn].insert(place, "no_such_tool(x=1)")
    elif kind == 6:
        turns[turn][place] = turns[turn][place].replace("='", "='x", 1)
    else:
        generator.shuffle(turns[turn])
