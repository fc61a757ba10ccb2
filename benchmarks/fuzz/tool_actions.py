"""Hostile actions against the tool-use environment: code, dunders, huge texts and numbers, deep nesting, unknown tools."""

from __future__ import annotations

import _strptime  # noqa: F401  a tool imports it late, which is no doing of the agent's
import builtins
import os
import random
import time
from typing import Any
from unittest import mock

from benchmarks.bfcl.memory import highest_kib
from benchmarks.bfcl.random_calls import random_call
from envtuning.worlds.bfcl.calls import as_reply
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import SPLITS, load
from envtuning.worlds.bfcl.tasks import load_tasks

SLOWEST = 1.0  # CPU seconds that one reply may take

CODE = (
    "__import__('os').system('touch HACKED')",
    "[__import__('os').system('touch HACKED')]",
    "[cd(folder=__import__('os').getcwd())]",
    "[cd(folder=open('HACKED', 'w'))]",
    "[eval('1')]",
    "[exec('x = 1')]",
    "[print('HACKED')]",
    "[cd.__globals__()]",
    "[cd(folder='a').__class__.__mro__]",
    "[().__class__.__base__.__subclasses__()]",
    "[(lambda: 1)()]",
    "[cd(folder=(lambda: 'x')())]",
    "[x for x in (1, 2)]",
    "[_load_scenario({})]",
    "[__init__()]",
    "[_navigate_to_directory('/')]",
    "[globals()]",
    "[cd(**{'folder': 'x'})]",
    "[cd(*['x'])]",
    "[cd(folder=f'{1}')]",
    "[GorillaFileSystem._load_scenario({'root': {}})]",
    "[self._load_scenario({})]",
    "[power(base=9, exponent=10000000000)]",
    "[power(9, 10**10)]",
    "[power(base=1e308, exponent=1e308)]",
    "[square_root(number=2, precision=1000000000)]",
    "[logarithm(value=2, base=10, precision=1000000000)]",
    "[round_number(number=5, decimal_places=-1000000000)]",
    "[find(path='/')]",
    '{"name": "__import__", "arguments": {"name": "os"}}',
    '{"name": "cd", "arguments": {"__class__": 1}}',
    '{"name": "cd", "arguments": "{\\"folder\\": \\"x\\"}"}',
    '{"error": "I cannot"}',
    '[{"name": 5}]',
    "[" * 5_000,
    "[cd(folder=" + "[" * 55 + "]" * 55 + ")]",
    "[cd(folder=" + "-" * 15_000 + "1)]",
    "[cd(folder=1" + "+1" * 9_000 + ")]",
    "[cd(folder='" + "x" * 10_000_000 + "')]",
    "[ls" + "()" * 9_000 + "]",
    "[add(a=" + "9" * 15_000 + ", b=1)]",
    "[add(a=" + "9" * 3_900 + ", b=1)]",
    "[cd(folder='\ud800\u202e\x00')]",
    "[cd(folder='\\ud800')]",
    "[ｃｄ(folder='x')]",
    "[cd(folder={1, 2})]",
    "[cd(folder=b'x')]",
    "[cd(folder=...)]",
    "[cd(folder=1+2j)]",
    "<tool_call>" * 1_000,
    "<think>" * 1_000,
    "```python\n[ls()]\n```",
    "\x00",
    "[ls()" + ", ls()" * 3_000 + "]",
)
VALUES = (
    None,
    True,
    -1,
    10**300,
    1e308,
    float("nan"),
    "",
    "x" * 5_000,
    "../..",
    "\u202e",
    [],
    [[]],
    {},
    {"a": [1]},
    ["x"] * 200,
)
SELF_COPIES = ["[mkdir('a')]", *["[cp('a', 'a')]", "[cp('a', 'b')]", "[mv('b', 'a')]", "[find('.')]", "[du(True)]"] * 3]


def run(n: int, seed: int) -> dict[str, Any]:
    """Play conversations of hostile replies. Raises where one is evaluated, crashes, or takes too long."""
    package = load("v4")
    tasks = [task for split in SPLITS for task in load_tasks(package, split)]
    generator = random.Random(seed)
    said, slowest, conversations, settled = 0, 0.0, 0, 0
    outcome = {"errors": 0, "results": 0, "turns_ended": 0}
    shell = mock.patch.object(os, "system", _never("os.system"))
    watched = mock.patch.multiple(
        builtins, **{name: _never(name) for name in ("eval", "exec", "open", "print", "input")}
    )
    while said < n:
        talk = Conversation(package, generator.choice(tasks), tool_style="none")
        conversations += 1
        while not talk.over and said < n:
            reply, turn = _reply(talk, generator), talk.turn
            began = time.process_time()
            with shell, watched:
                talk.act(reply)
            took = time.process_time() - began
            said += 1
            if said == n // 4:
                settled = highest_kib()
            slowest = max(slowest, took)
            if took > SLOWEST:
                raise AssertionError(f"{took:.1f} CPU seconds for {reply!r:.200} in {talk.task.id}")
            ended = talk.over or talk.turn > turn
            outcome["turns_ended" if ended else "errors" if "rror" in talk.said[:200] else "results"] += 1
    return outcome | {
        "conversations": conversations,
        "slowest_cpu_seconds": round(slowest, 3),
        "grown_by_kib": highest_kib() - settled,  # since a quarter of the replies
    }


def _never(name: str) -> Any:
    def called(*arguments: Any, **named: Any) -> Any:
        raise BaseException(f"{name} was called with {arguments!r:.200}")  # not an Exception: no tool may swallow it

    return called


def _reply(talk: Conversation, generator: random.Random) -> str:
    kind = generator.randrange(10)
    tools = talk.tools
    if kind < 3:
        return generator.choice(CODE)
    if kind < 4:
        return generator.choice(SELF_COPIES)
    if kind < 7 and tools:
        document = generator.choice(tools)
        arguments = {name: generator.choice(VALUES) for name in document["parameters"]["properties"]}
        return f"[{document['name']}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})]"
    if kind < 8 and tools:
        return as_reply([random_call(generator.choice(tools), generator)])
    if kind < 9:
        text = generator.choice(CODE)[:2_000]
        places = sorted(generator.randrange(len(text) + 1) for _ in range(2))
        return text[: places[0]] + generator.choice(["(", ")", "[", "'", "\\", ",", "=", "\n", "é"]) + text[places[1] :]
    return "".join(chr(generator.randrange(1, 0x3000)) for _ in range(generator.randrange(1, 50)))
