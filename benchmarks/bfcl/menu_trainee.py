"""``MenuTrainee``: REINFORCE over a menu of calls. It is small and fast, and shows that the loop works on tool use.

The environment offers a menu with the right call among decoys (``MenuWorld``). So this is multiple choice, and its figures are not
results on the benchmark. The policy is linear in hashed features of the conversation: it scores each choice and
samples by softmax. It plays each task in a group of episodes and learns from how much better each one was than its group.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bfcl.menu import DONE, HEADING, MenuWorld, read_menu
from engineers.from_file import PLAIN, reads
from envtuning.outcomes import Tally
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee, TrainingDiverged
from envtuning.trainees.visited import Visited

SIZE = 2**15  # weights
USER = "User: "
_WORD = re.compile(r"[A-Za-z0-9][\w.\-]*")
_VALUE = re.compile(r"=('[^']*'|[^,()\[\]]+)")

Messages = Sequence[Mapping[str, str]]


@dataclass
class Choice:
    """One decision: the features of each thing on the menu, and what was taken."""

    features: list[np.ndarray]  # for each choice, its indices into the weights
    taken: int
    turn: int = 0  # of the user, in which it was made
    paid: float = 0.0  # the immediate reward


class MenuPolicy:
    """Replies with an entry of the menu: the likeliest one, or a random draw."""

    def __init__(self, weights: np.ndarray, *, draw: bool = False) -> None:
        self.weights, self.draw = weights, draw
        self.choices: list[Choice] = []  # of the last call of ``reply``, in the conversations' order

    def reply(self, conversations: Sequence[Messages], *, seed: int = 0) -> list[str]:
        """One of the menu's lines for each conversation; a function of (weights, conversations, seed)."""
        generator = np.random.default_rng(seed)
        said, self.choices = [], []
        for messages in conversations:
            menu = read_menu(messages[-1]["content"])
            if not menu:
                raise ValueError("the last message has no menu: this policy needs MenuWorld")
            rows = features(messages, menu)
            odds = probabilities(self.weights, rows)
            taken = int(generator.choice(len(menu), p=odds)) if self.draw else int(np.argmax(odds))
            self.choices.append(Choice(rows, taken))
            said.append(menu[taken])
        return said


def probabilities(weights: np.ndarray, rows: Sequence[np.ndarray]) -> np.ndarray:
    scores = np.array([weights[row].sum() for row in rows])
    odds = np.exp(scores - scores.max())
    return odds / odds.sum()


def features(messages: Messages, menu: Sequence[str]) -> list[np.ndarray]:
    """For each choice, its indices into the weights: features shared with the conversation and with its errors."""
    asked = [m["content"] for m in messages if m["content"].startswith(USER)]
    heard = _without_menu(messages[-1]["content"])
    made = [m["content"] for m in messages if m["role"] == "assistant"]
    this_turn = _since_the_question(messages)
    wanted = sorted(set(_words(_without_menu(asked[-1]) if asked else "")))  # the order that weights are summed in
    known = " ".join(map(_without_menu, asked)).lower()
    hint = set(_words(heard.partition("Hint:")[2]))
    wrong = "rror" in heard
    state = f"{min(this_turn, 4)} calls, {'wrong' if wrong else 'fine'}"
    return [_places(choice, wanted, known, heard, hint, wrong, state, made) for choice in menu]


def _places(
    choice: str,
    wanted: Sequence[str],
    known: str,
    heard: str,
    hint: set[str],
    wrong: bool,
    state: str,
    made: Sequence[str],
) -> np.ndarray:
    if choice == DONE:
        names = ["done", f"done after {state}", *(f"done {word}" for word in wanted)]
        return np.array([_place(name) for name in names])
    tool = choice.removeprefix("[").partition("(")[0]
    values = [value.strip("'").lower() for value in _VALUE.findall(choice)]
    said = sum(value in known for value in values)
    seen = sum(value not in known and value in heard.lower() for value in values)
    arguments = set(re.findall(r"(\w+)=", choice))
    names = [
        "call",
        f"call after {state}",
        f"tool {tool}",
        f"{tool} after {state}",
        f"{len(values) - said - seen} values from nowhere",
        f"{said} values of the user's",
        f"{tool}({','.join(sorted(arguments))})",
        *(f"{tool} {word}" for word in wanted),
        *(f"{tool} {name} {_shape(value)}" for name, value in zip(sorted(arguments), values)),
    ]
    if choice in made:
        names += ["made already", f"made already, {'wrong' if wrong else 'fine'}"]
    elif made and made[-1].removeprefix("[").partition("(")[0] == tool:
        names += ["same tool again", f"same tool again, {'wrong' if wrong else 'fine'}"]
    if hint:
        named = (tool in hint) + 2 * bool(arguments & hint) + 4 * (choice in made)
        names += [f"hinted {named}", f"hinted {named}, {'same' if made and tool in made[-1] else 'other'} tool"]
    return np.array([_place(name) for name in names])


@lru_cache(maxsize=200_000)
def _place(name: str) -> int:
    return zlib.crc32(name.encode()) % SIZE


def _words(text: str) -> list[str]:
    return [word if "_" in word else word.lower().rstrip(".") for word in _WORD.findall(text)]


def _shape(value: str) -> str:
    kind = "number" if value.replace(".", "").isdigit() else "path" if "/" in value else "text"
    return f"{kind}{' with draft' if value.endswith(' draft') else ''}"


def _without_menu(message: str) -> str:
    return message.rpartition(f"\n{HEADING}\n")[0] or message


def _since_the_question(messages: Messages) -> int:
    count = 0
    for message in reversed(messages):
        if message["content"].startswith(USER):
            break
        count += message["role"] == "assistant"
    return count


def advantages(group: Sequence[Sequence[Choice]]) -> tuple[np.ndarray, float]:
    """For each episode of a group and each turn, the advantage of its later rewards over the other episodes, in deviations.

    A turn's reward depends on this turn and on earlier ones, so a decision is credited with the rewards after it. Also returns
    the spread of the whole returns.
    """
    turns = 1 + max(choice.turn for choices in group for choice in choices)
    paid = np.zeros((len(group), turns))
    for episode, choices in enumerate(group):
        for choice in choices:
            paid[episode, choice.turn] += choice.paid
    to_come = paid[:, ::-1].cumsum(axis=1)[:, ::-1]  # float64[episode, turn]
    spread = to_come.std(axis=0)
    return (to_come - to_come.mean(axis=0)) / (spread + 0.05), float(spread[0])


@reads(dict.fromkeys(("clip", "group", "groups", "kl", "learning_rate"), PLAIN))
class MenuTrainee(Trainee):
    """REINFORCE with the group's mean as baseline and, if ``kl`` is not 0, a penalty for leaving the first policy."""

    in_words = "REINFORCE over a menu of calls, from the config's reward; linear in features of the conversation."
    outcomes_in_words = "The policy draws its calls, in several episodes of each task."
    form = "replies"
    reports = frozenset({"success_rate", "progress", "grad_norm", "kl", "zero_variance"})
    late_rates = ("kl",)

    def __init__(
        self,
        *,
        world: Any,
        capacity: Mapping[str, Any],
        exclude: Sequence[Any] = (),
        seed: int = 0,
        learning_rate: float = 0.3,
        group: int = 8,
        groups: int = 4,
        kl: float = 0.02,
        clip: float = 5.0,
    ) -> None:
        self.world, self.exclude = world, tuple(exclude)
        self.group, self.groups, self.kl, self.clip = group, groups, kl, clip
        self.learning_rate = learning_rate
        self.weights = np.zeros(SIZE)  # all choices are equally likely
        self.visited = Visited()

    @classmethod
    def check_world(cls, world: Any) -> None:
        if not isinstance(world, MenuWorld):
            raise ValueError(f"it chooses from menus of calls, and {world.about.name} has none: give MenuWorld")

    def train(self, config: Any, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        """Learn on about ``budget`` episodes, whole groups of them."""
        envs = [
            self.world.make_env(config, exclude=self.exclude, capacity={}, seed=seed)
            for _ in range(self.group * self.groups)
        ]
        spent, totals = 0, np.zeros(4)
        iteration = 0
        while spent < budget:
            metrics, outcomes = self._iterate(envs, seed=seed * 10_007 + iteration)
            iteration += 1
            spent += int(metrics["episodes"])
            totals += [metrics[name] for name in ("env_steps", "success_rate", "progress", "grad_norm")]
            if on_iteration is not None:
                on_iteration({**metrics, OUTCOMES: outcomes})
        means = totals / iteration
        return {
            "episodes": float(spent),
            "env_steps": float(totals[0]),
            "success_rate": float(means[1]),
            "progress": float(means[2]),
            "grad_norm": float(means[3]),
        }

    def _iterate(self, envs: Sequence[Any], seed: int) -> tuple[Metrics, Tally]:
        """Play a few tasks several times each, and take one gradient step."""
        policy = MenuPolicy(self.weights, draw=True)
        tasks = [envs[0].next_task() for _ in range(self.groups)]
        talks: list[list[dict[str, str]]] = []
        for index, env in enumerate(envs):
            said, _ = env.reset(options={"task": tasks[index // self.group]})
            talks.append([{"role": "user", "content": said}])
        taken: list[list[Choice]] = [[] for _ in envs]
        infos: list[dict[str, Any]] = [{} for _ in envs]
        going, turn = list(range(len(envs))), 0
        while going:
            replies = policy.reply([talks[index] for index in going], seed=(seed * 1_009 + turn) % 2**63)
            turn += 1
            still = []
            for index, reply, choice in zip(going, replies, policy.choices):
                choice.turn = infos[index]["turn"] if infos[index] else 0
                said, choice.paid, terminated, truncated, infos[index] = envs[index].step(reply)
                taken[index].append(choice)
                talks[index] += [{"role": "assistant", "content": reply}, {"role": "user", "content": said}]
                if not (terminated or truncated):
                    still.append(index)
            going = still
        gradient, kl, flat = self._gradient(taken)
        norm = float(np.linalg.norm(gradient))
        if not np.isfinite(norm):
            raise TrainingDiverged(f"the gradient norm became {norm}: lower learning_rate")
        # Plain steps, so that features of many decisions are learned before features of one.
        self.weights += self.learning_rate * min(1.0, self.clip / max(norm, 1e-12)) * gradient
        outcomes = Tally()
        for info, repeat in zip(infos, self.visited.repeats([info["task"] for info in infos]), strict=True):
            outcomes.observe(self.world.outcome(info, repeat))
        metrics = {
            "episodes": float(len(envs)),
            "env_steps": float(sum(map(len, taken))),
            "success_rate": float(np.mean([info["success"] for info in infos])),
            "progress": float(np.mean([info["progress"] for info in infos])),
            "reward": float(np.mean([sum(choice.paid for choice in choices) for choices in taken])),
            "grad_norm": norm,
            "kl": kl,
            "zero_variance": flat,
        }
        return metrics, outcomes

    def _gradient(self, taken: Sequence[Sequence[Choice]]) -> tuple[np.ndarray, float, float]:
        """The gradient of the mean return, the mean divergence from the first policy, and the part of groups without any difference."""
        gradient, divergence, decisions, flat = np.zeros(SIZE), 0.0, 0, 0
        for start in range(0, len(taken), self.group):
            group = taken[start : start + self.group]
            better, spread = advantages(group)
            flat += spread < 1e-9
            for choices, advantage in zip(group, better):
                for choice in choices:
                    odds = probabilities(self.weights, choice.features)
                    logs = np.log(odds * len(odds) + 1e-12)  # relative to the first policy, which is uniform
                    here = float(odds @ logs)
                    divergence, decisions = divergence + here, decisions + 1
                    pull = -odds * advantage[choice.turn] - self.kl * odds * (logs - here)
                    pull[choice.taken] += advantage[choice.turn]
                    for row, weight in zip(choice.features, pull):
                        np.add.at(gradient, row, weight)
        return gradient / len(taken), divergence / decisions, flat / self.groups

    def policy(self) -> MenuPolicy:
        return MenuPolicy(self.weights.copy())

    def save(self, folder: Path) -> None:
        np.save(folder / "weights.npy", self.weights)
        self.visited.save(folder)

    def load(self, folder: Path) -> None:
        self.weights = np.load(folder / "weights.npy")
        self.visited.load(folder)

    def close(self) -> None:
        """Nothing to release."""
