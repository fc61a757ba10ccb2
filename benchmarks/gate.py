"""When is it better to know what a policy lacks than to follow a fixed schedule? ``python -m benchmarks.gate``.

A small transformer answers questions of 24 tasks. A root has mastered some tasks, lacks some, and cannot learn others;
these differ from root to root. Six stages follow; in each, an arm decides how often each task is drawn.
Open-loop arms see no results; ``oracle`` sees which tasks are lacking; ``failure`` and ``give-up`` read the success of each task,
``cases`` also how many letters the answers have right. An arm's configuration is chosen on other roots than it is
measured on. Every run is kept in ``runs/gate``: after a kill, the same command continues.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks._record import RESULTS
from envtuning import atomic
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "gate"
MASTERED, LACKING, HOPELESS = range(3)
KINDS = ("mastered", "lacking", "hopeless")


@dataclass(frozen=True)
class Variant:
    """A family of roots, and the budget that is spent on each."""

    name: str
    family: str = "codes"  # codes: each letter stands for another; pairs: each two do; algorithms: reverse, sort, …
    lacking: int = 8
    hopeless: int = 8
    slices: int = 24
    letters: tuple[int, ...] = (26,)  # of the alphabet, by level: slice i is of level i modulo their number
    lengths: tuple[int, ...] = (4,)  # of a question, by level
    chains: bool = False  # the levels of a generator share one code: what a lower level teaches helps above
    rate: float = 1e-3
    warm: int = 10  # updates over which the rate rises
    carry: bool = False  # the optimiser goes on from stage to stage; else every stage starts it anew
    stages: int = 6
    updates: int = 60
    batch: int = 16
    pretrain: int = 600  # updates of a root, on what it masters
    cases: int = 50  # of each task in a report

    @property
    def root(self) -> str:
        """What its roots depend on, as a folder's name."""
        kinds = (self.family, self.slices, self.lacking, self.hopeless)
        parts = (*kinds, self.letters, self.lengths, self.chains, self.pretrain)
        return "-".join(str(part).replace(" ", "") for part in parts)


class Tasks:
    """The slices of a root: their codes, and which it has mastered, lacks, or cannot learn."""

    def __init__(self, variant: Variant, seed: int) -> None:
        rng, n = np.random.default_rng([seed, 7]), variant.slices
        levels = max(len(variant.letters), len(variant.lengths))
        self.family, self.n, self.chains = variant.family, n, variant.chains
        self.level = np.arange(n) % levels
        self.letters = np.resize(variant.letters, levels)[self.level]
        self.lengths = np.resize(variant.lengths, levels)[self.level]
        self.alphabet, self.longest = max(variant.letters), max(variant.lengths)
        self.generator = np.arange(n) // levels if variant.chains else np.arange(n)
        count = n // levels if variant.chains else n
        counts = [count - variant.lacking - variant.hopeless, variant.lacking, variant.hopeless]
        self.kind = rng.permutation(np.repeat(range(3), counts))[self.generator]
        if variant.chains:  # of a chain that is lacking, the lower levels may be mastered
            known = rng.integers(0, levels, count)[self.generator]
            self.kind = np.where((self.kind == LACKING) & (self.level < known), MASTERED, self.kind)
        self.codes = np.stack([rng.permutation(self.alphabet) for _ in range(n)])[self.generator]
        self.pairs = rng.integers(0, self.alphabet, (n, self.alphabet, self.alphabet))[self.generator]
        self.mixes = rng.integers(1, 97, (n, self.longest, self.longest + 1))
        self.rule = rng.permutation(n)

    def answers(self, s: int, x: np.ndarray) -> np.ndarray:
        k, n = self.letters[s], x.shape[1]
        if self.kind[s] == HOPELESS:  # every letter depends on all of them
            total = x @ self.mixes[s, :n, :n] + self.mixes[s, :n, self.longest]
            return (total * total % 97) % k
        if self.family == "codes":
            return self.codes[s][x]
        if self.family == "pairs":
            return self.pairs[s][x, np.roll(x, -1, 1)]
        again, rule = divmod(self.rule[s], 12)
        return algorithm(rule, 1 + 2 * again, x, k)

    def make(self, which: np.ndarray, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """A row for each slice named: its tag, the question, "=", the answer; and which tokens are the answer's."""
        n, room, equals = len(which), self.longest, self.alphabet
        tokens, answer = np.full((n, 2 * room + 2), equals + 1), np.zeros((n, 2 * room + 2), bool)
        for s in np.unique(which):
            rows, length = np.flatnonzero(which == s), np.arange(self.lengths[s])
            x = rng.integers(0, self.letters[s], (len(rows), len(length)))
            tokens[rows, 0], tokens[rows, room + 1] = equals + 2 + s, equals
            tokens[np.ix_(rows, 1 + length)] = x
            tokens[np.ix_(rows, room + 2 + length)] = self.answers(s, x)
            answer[np.ix_(rows, room + 2 + length)] = True
        return torch.from_numpy(tokens), torch.from_numpy(answer[:, room + 2 :])


def algorithm(rule: int, by: int, x: np.ndarray, k: int) -> np.ndarray:
    back = x[:, ::-1]
    return (
        lambda: back, lambda: np.sort(x, 1), lambda: -np.sort(-x, 1), lambda: (x + by) % k, lambda: np.cumsum(x, 1) % k,
        lambda: np.roll(x, by, 1), lambda: k - 1 - x, lambda: np.maximum.accumulate(x, 1),
        lambda: (x + np.roll(x, -by, 1)) % k, lambda: (back + by) % k, lambda: np.minimum.accumulate(back, 1),
        lambda: (x - np.roll(x, by, 1)) % k,
    )[rule]()  # fmt: skip


class Policies(nn.Module):
    """Causal transformers of about 100,000 parameters, several side by side: small products cost most when they are alone."""

    def __init__(self, tasks: list[Tasks], seeds: list[int], width: int = 64, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        one, self.heads, self.n = tasks[0], heads, len(tasks)
        self.answer, self.alphabet, self.words = one.longest + 1, one.alphabet, one.alphabet + 2 + one.n
        shapes = {"tok": (self.words, width), "pos": (2 * one.longest + 1, width), "head": (width + 1, self.alphabet)}
        for layer in range(layers):
            shapes |= {f"qkv{layer}": (width + 1, 3 * width), f"out{layer}": (width + 1, width)}
            shapes |= {f"up{layer}": (width + 1, 4 * width), f"down{layer}": (4 * width + 1, width)}
        self.layers = layers
        draws = [torch.Generator().manual_seed(seed) for seed in seeds]
        for name, (rows, columns) in shapes.items():  # a matrix has its bias as the last row
            scale = 0.5 if name in ("tok", "pos") else rows**-0.5
            drawn = torch.stack([torch.randn(rows, columns, generator=draw) for draw in draws])
            self.register_parameter(name, nn.Parameter(scale * drawn))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the answers' letters, each after the right ones before it: policy, row, letter of the answer, letter."""
        n, rows, length = tokens.shape[0], tokens.shape[1], tokens.shape[2] - 1
        which = tokens[:, :, :-1] + self.words * torch.arange(n)[:, None, None]
        h = F.embedding(which, self.tok.flatten(0, 1)) + self.pos[:, None]
        h = h.view(n, rows * length, -1)
        for layer in range(self.layers):
            qkv = self.linear(f"qkv{layer}", norm(h)).view(n * rows, length, 3, self.heads, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(h.shape)
            h = h + self.linear(f"out{layer}", attended)
            h = h + self.linear(f"down{layer}", F.gelu(self.linear(f"up{layer}", norm(h))))
        h = h.view(n, rows, length, -1)[:, :, self.answer :].flatten(1, 2)
        return self.linear("head", norm(h)).view(n, rows, -1, self.alphabet)

    def linear(self, name: str, h: Tensor) -> Tensor:
        weight = getattr(self, name)
        return torch.baddbmm(weight[:, -1:], h, weight[:, :-1])

    def clip(self) -> None:
        """Each policy's gradient to a norm of at most 1."""
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        squares = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0)
        scale = (1.0 / (squares.sqrt() + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_(gradients, [scale[:, None, None]] * len(gradients))


def norm(h: Tensor) -> Tensor:
    return F.layer_norm(h, h.shape[-1:])


def train(
    policies: Policies, tasks: list[Tasks], which: np.ndarray, rngs: list, opt: Any, rate: Callable
) -> np.ndarray:
    """Updates on rows of slices: ``which`` is policy, update, row. Returns as many: which rows the policy had right before their update."""
    n, updates, batch = which.shape
    made = [each.make(rows.reshape(-1), rng) for each, rows, rng in zip(tasks, which, rngs, strict=True)]
    tokens, answer = (torch.stack(a).view(n, updates, batch, -1) for a in zip(*made, strict=True))
    wanted = tokens[..., tasks[0].longest + 2 :].clamp(max=tasks[0].alphabet - 1)
    weight = answer.float() / answer.float().sum((2, 3), keepdim=True)
    right = np.empty(which.shape, bool)
    for update in range(updates):
        for group in opt.param_groups:
            group["lr"] = rate(update)
        logits = policies(tokens[:, update])
        losses = F.cross_entropy(logits.flatten(0, 2), wanted[:, update].flatten(), reduction="none")
        right[:, update] = ((logits.argmax(-1) == wanted[:, update]) | ~answer[:, update]).all(-1).numpy()
        opt.zero_grad()
        (losses * weight[:, update].flatten()).sum().backward()
        policies.clip()
        opt.step()
    return right


@torch.no_grad()
def report(policies: Policies, tasks: list[Tasks], cases: int, rngs: list) -> tuple[np.ndarray, np.ndarray]:
    """Of each policy and slice: the share of fresh cases that are answered right, and of letters.

    One pass decodes all: the greedy answer is the right one exactly where each letter is the likeliest after the right ones.
    """
    shape = (len(tasks), tasks[0].n, cases, -1)
    made = [each.make(np.repeat(np.arange(each.n), cases), rng) for each, rng in zip(tasks, rngs, strict=True)]
    tokens, answer = (torch.stack(a) for a in zip(*made, strict=True))
    found = (policies(tokens).argmax(-1) == tokens[..., tasks[0].longest + 2 :]).view(shape)
    answer = answer.view(shape)
    letters = (found & answer).sum((2, 3)) / answer.sum((2, 3))
    return (found | ~answer).all(3).double().mean(2).numpy(), letters.double().numpy()


@torch.no_grad()
def own_entropy(policies: Policies, tasks: list[Tasks], cases: int, rngs: list) -> np.ndarray:
    """Of each policy and slice: the entropy of its own answers to fresh questions, by letter, as a part of a blind guess's.

    No right answer is seen: each letter follows those that the policy itself has written.
    """
    made = [each.make(np.repeat(np.arange(each.n), cases), rng) for each, rng in zip(tasks, rngs, strict=True)]
    tokens, written = (torch.stack(a) for a in zip(*made, strict=True))
    first = tasks[0].longest + 2
    tokens[..., first:] = 0
    total = torch.zeros(written.shape[:2])
    for letter in range(written.shape[2]):
        logits = policies(tokens)[:, :, letter]
        total += torch.distributions.Categorical(logits=logits).entropy() * written[..., letter]
        tokens[..., first + letter] = logits.argmax(-1)
    by_slice = (total / written.sum(2)).view(len(tasks), tasks[0].n, cases).mean(2)
    return by_slice.double().numpy() / np.log([each.letters for each in tasks])


def roots(variant: Variant, seeds: list[int]) -> tuple[list[Tasks], dict[int, dict[str, Tensor]]]:
    """The policies that runs start from, trained on what they have mastered."""
    folder = KEPT / "roots" / variant.root
    folder.mkdir(parents=True, exist_ok=True)
    new = [seed for seed in dict.fromkeys(seeds) if not (folder / f"{seed}.pt").exists()]
    if new:
        tasks = [Tasks(variant, seed) for seed in new]
        policies, last = Policies(tasks, new), variant.pretrain
        rngs = [np.random.default_rng([seed, 11]) for seed in new]
        known = [np.flatnonzero(each.kind == MASTERED) for each in tasks]
        which = np.stack([rng.choice(k, (last, 64)) for rng, k in zip(rngs, known, strict=True)])
        opt = torch.optim.Adam(policies.parameters(), fused=True)
        train(policies, tasks, which, rngs, opt, lambda u: 2e-3 * min(1, u / 50, (last - u) / (last / 4)))
        for i, seed in enumerate(new):
            with atomic.new_file(folder / f"{seed}.pt") as draft:
                torch.save({name: p.detach()[i].clone() for name, p in policies.named_parameters()}, draft)
    return [Tasks(variant, seed) for seed in seeds], {s: torch.load(folder / f"{s}.pt") for s in set(seeds)}


@dataclass
class Seen:
    """What an arm may look at; each says how much of it it uses."""

    tasks: Tasks
    order: np.ndarray  # a permutation of the slices that knows nothing
    variant: Variant
    stage: int = 0
    success: list[np.ndarray] = field(default_factory=list)
    letters: list[np.ndarray] = field(default_factory=list)
    drawn: list[np.ndarray] = field(default_factory=list)  # the parts of the data in each stage so far
    trained: list[tuple[np.ndarray, np.ndarray]] = field(
        default_factory=list
    )  # by stage: the slice of each row, and whether it was right
    entropy: Callable[[], np.ndarray] | None = None  # of the policy's own answers now; made where an arm asks for it
    entropies: list[np.ndarray] = field(default_factory=list)  # what an arm that asks has seen of it


def shares(ratio: float, seen: Seen) -> np.ndarray:
    """Fixed shares, by level (without levels: by name), the last over the first as the configuration says."""
    at = seen.tasks.level if seen.tasks.level.max() else np.arange(seen.tasks.n)
    return ratio ** (at / at.max())


def warm_up(config: tuple[int, float], seen: Seen) -> np.ndarray:
    """The lower levels first (without levels: half of the slices), then all."""
    stages, floor = config
    level, n = seen.tasks.level, seen.tasks.n
    low = level <= (level.max() - 1) / 2 if level.max() else np.isin(np.arange(n), seen.order[: n // 2])
    return np.where(low, 1.0, floor) if seen.stage < stages else np.ones(n)


def blocks(config: tuple[int, bool, float], seen: Seen) -> np.ndarray:
    """A part of the slices, and replay of all; the part stays, or moves on."""
    parts, moves, replay = config
    at = (seen.stage * parts // seen.variant.stages) % parts if moves else 0
    chosen = np.isin(np.arange(seen.tasks.n), np.array_split(seen.order, parts)[at])
    return replay / seen.tasks.n + (1 - replay) * chosen / chosen.sum()


def oracle(config: tuple[float, float], seen: Seen) -> np.ndarray:
    """What is lacking, all at once or the nearest first; a floor for what is mastered, nothing for the hopeless."""
    floor, part = config
    kind, now, generator = seen.tasks.kind, seen.success[-1], seen.tasks.generator
    lacking = kind == LACKING
    todo, done = np.flatnonzero(lacking & (now < 0.9)), np.flatnonzero((kind == MASTERED) | (lacking & (now >= 0.9)))
    if part < 1 and seen.tasks.chains:
        todo = todo[np.unique(generator[todo], return_index=True)[1]]  # the lowest level of each
    elif part < 1:
        todo = todo[np.argsort(-now[todo], kind="stable")][: round(part * lacking.sum())]
    weights = np.zeros(seen.tasks.n)
    weights[done] = floor / len(done) * (1 + 2 * (now[done] < 0.8)) if len(todo) else 1.0
    weights[todo] = (1 - floor) / max(1, len(todo))
    return weights


def give_up(config: Any, seen: Seen) -> np.ndarray:
    """By failure; what has had two stages and still succeeds nowhere is left at a floor."""
    now = seen.success[-1]
    return np.where((now < 0.05) & (len(seen.success) > 2), 0.05, 1.1 - now)


def cases(config: Any, seen: Seen) -> np.ndarray:
    """After an even stage: what has more letters right than chance, but too few; floors for the rest."""
    now, letters = seen.success[-1], seen.letters[-1]
    if seen.stage == 0:
        return np.ones(seen.tasks.n)
    above = letters > 2.0 / seen.tasks.letters
    learnt, moves, still = now >= 0.9, above & (now < 0.9), ~above
    if not moves.any():
        return np.where(above, 0.3, 1.0)
    rest = np.where(learnt, 0.15 / max(1, learnt.sum()), 0.05 / max(1, still.sum()))
    return np.where(moves, 0.8 / moves.sum(), rest)


def permuted(config: Any, seen: Seen) -> np.ndarray:
    """``cases``, told each slice's results under the name of the next one on a circle."""
    before = seen.order[np.argsort(seen.order) - 1]
    told = {what: [row[before] for row in getattr(seen, what)] for what in ("success", "letters")}
    return cases(config, replace(seen, **told))


def average(config: Any, seen: Seen) -> np.ndarray:
    """``cases``, told the mean results of its runs on the development roots: a schedule that it follows for anybody."""
    success, letters = mean_results(seen.variant)
    return cases(config, replace(seen, success=success[: seen.stage + 1], letters=letters[: seen.stage + 1]))


@cache
def mean_results(variant: Variant) -> list[list[np.ndarray]]:
    """Success and letters by stage and slice."""
    played = play(variant, [Run(root, "cases") for root in DEVELOP])
    return [list(np.mean([getattr(one, what) for one in played], 0)) for what in ("success", "letters")]


OPEN: dict[str, tuple[Callable, tuple]] = {
    "even": (lambda config, seen: np.ones(seen.tasks.n), (None,)),
    "shares": (shares, (1 / 3, 0.6, 1.7, 3.0)),
    "warm-up": (warm_up, ((1, 0.2), (2, 0.2), (3, 0.2), (3, 0.0))),
    "blocks": (blocks, ((2, False, 0.2), (3, False, 0.2), (2, True, 0.2), (3, True, 0.2))),
}
SEARCHED = {"searched": (blocks, ((2, False, 0.4),))}  # the best of 26 open loops on four roots of codes-slow
READERS: dict[str, tuple[Callable, tuple]] = {
    "oracle": (oracle, ((0.1, 1), (0.3, 1), (0.1, 0.5), (0.3, 0.5))),
    "failure": (lambda config, seen: 1.1 - seen.success[-1], (None,)),
    "give-up": (give_up, (None,)),
    "cases": (cases, (None,)),
}
CONTROLS = {"permuted": (permuted, (None,)), "average": (average, (None,))}
ARMS = OPEN | SEARCHED | READERS | CONTROLS


@dataclass(frozen=True)
class Run:
    root: int
    arm: str
    config: Any = None
    training: int = 0


def play(variant: Variant, runs: list[Run]) -> list[Seen]:
    """All stages of several runs, side by side; what there was to see before each stage, and in the end."""
    tasks, starts = roots(variant, [run.root for run in runs])
    policies = Policies(tasks, [run.root for run in runs])
    with torch.no_grad():
        for name, parameter in policies.named_parameters():
            parameter.copy_(torch.stack([starts[run.root][name] for run in runs]))
    draws, tests, orders, asks = (
        [np.random.default_rng([run.root, run.training, purpose]) for run in runs] for purpose in (3, 4, 5, 6)
    )
    seen = [Seen(t, order.permutation(t.n), variant) for t, order in zip(tasks, orders, strict=True)]
    opt = torch.optim.Adam(policies.parameters(), fused=True)
    for stage in range(variant.stages + 1):
        success, letters = report(policies, tasks, 200 if stage == variant.stages else variant.cases, tests)
        entropy = cache(partial(own_entropy, policies, tasks, 50, asks))  # of all side by side, once a stage at most
        for i, (one, right, close) in enumerate(zip(seen, success, letters, strict=True)):
            one.stage = stage
            one.entropy = lambda i=i, entropy=entropy: entropy()[i]
            one.success.append(right)
            one.letters.append(close)
        if stage == variant.stages:
            break
        if not variant.carry:
            opt = torch.optim.Adam(policies.parameters(), fused=True)
        warm = variant.warm if stage == 0 or not variant.carry else 0
        weights = [ARMS[run.arm][0](run.config, one) for run, one in zip(runs, seen, strict=True)]
        for one, w in zip(seen, weights, strict=True):
            one.drawn.append(w / w.sum())
        size = (variant.updates, variant.batch)
        which = [rng.choice(variant.slices, size, p=one.drawn[-1]) for rng, one in zip(draws, seen, strict=True)]
        rising = lambda u, w=warm: variant.rate * min(1.0, (u + 1) / (w + 1))  # noqa: E731
        right = train(policies, tasks, np.stack(which), draws, opt, rising)
        for one, rows, hits in zip(seen, which, right, strict=True):
            one.trained.append((rows, hits))
    return seen


def rows(variant: Variant, runs: list[Run], side_by_side: int = 8) -> list[dict[str, Any]]:
    """What each run gave; those not kept yet are made."""
    path = KEPT / "runs.jsonl"
    KEPT.mkdir(parents=True, exist_ok=True)
    path.touch()
    *whole, cut_off = path.read_text(encoding="utf-8").split("\n")
    if cut_off:  # by a kill: the next line would be written behind it
        atomic.write_text(path, "".join(f"{line}\n" for line in whole))
    kept = {row["key"]: row for row in map(json.loads, whole)}
    keys = [json.dumps([asdict(variant), asdict(run)]) for run in runs]
    missing = [(key, run) for key, run in zip(keys, runs, strict=True) if key not in kept]
    for at in range(0, len(missing), side_by_side):
        part = missing[at : at + side_by_side]
        for (key, _), seen in zip(part, play(variant, [run for _, run in part]), strict=True):
            is_of = [seen.tasks.kind == k for k in range(3)]
            by_kind = [[float(s[of].mean()) if of.any() else None for of in is_of] for s in seen.success]
            kept[key] = {"key": key, "end": float(seen.success[-1].mean()), "by_kind": by_kind}
            atomic.append_line(path, kept[key])
    return [kept[key] for key in keys]


TUNE, DEVELOP, FRESH = (100, 101), (0, 1, 2, 3, 4), tuple(range(1000, 1016))
CODES = Variant("codes")
SLOW = replace(CODES, name="codes-slow", rate=3e-4, warm=30, carry=True)
ALGORITHMS = Variant("algorithms", family="algorithms", letters=(12,), lengths=(4, 6), hopeless=0, pretrain=1200)
VARIANTS = {
    variant.name: variant
    for variant in (
        CODES,
        SLOW,
        replace(SLOW, name="codes-few", lacking=4, hopeless=12),
        replace(SLOW, name="codes-48", slices=48, lacking=16, hopeless=16),
        replace(SLOW, name="codes-levels", letters=(14, 20, 26, 32)),
        replace(SLOW, name="codes-chains", letters=(10, 18, 26), chains=True, lacking=3, hopeless=2),
        replace(SLOW, name="codes-long", updates=120),
        replace(SLOW, name="codes-all-learnable", hopeless=0),
        replace(SLOW, name="codes-all-learnable-slower", hopeless=0, rate=1.5e-4),
        replace(SLOW, name="pairs-slow", family="pairs", letters=(12,), batch=48, pretrain=1500, rate=5e-4),
        ALGORITHMS,
        replace(ALGORITHMS, name="algorithms-hopeless", hopeless=8),
    )
}


def study(variant: Variant, on: tuple[int, ...], trainings: int = 1) -> dict[str, Any]:
    """Each arm's best configuration on the roots for tuning, and how the arms end on the given ones."""
    opened, readers = (OPEN | SEARCHED, READERS | CONTROLS) if on == FRESH else (OPEN, READERS)
    played = opened | readers
    many = {arm: configs for arm, (_, configs) in played.items() if len(configs) > 1}
    tried = [Run(root, arm, c) for arm, configs in many.items() for c in configs for root in TUNE]
    ends = dict(zip(tried, (row["end"] for row in rows(variant, tried)), strict=True))
    chosen = {
        arm: max(configs, key=lambda c, arm=arm: sum(ends.get(Run(root, arm, c), 0) for root in TUNE))
        for arm, (_, configs) in played.items()
    }
    runs = [Run(root, arm, chosen[arm], t) for arm in played for root in on for t in range(trainings)]
    found = rows(variant, runs)
    success = np.array([row["end"] for row in found]).reshape(len(played), len(on), trainings).mean(2)
    by_kind = np.array([row["by_kind"][-1] for row in found], float).reshape(len(played), -1, 3).mean(1)
    arms = {}
    for i, arm in enumerate(played):
        over = {base: t_mean(success[i] - success[j]) for j, base in enumerate(opened)}
        kinds = {k: None if np.isnan(x) else round(float(x), 4) for k, x in zip(KINDS, by_kind[i], strict=True)}
        by_root = {"success": float(success[i].mean()), "per_root": success[i].round(4).tolist()}
        arms[arm] = {"config": chosen[arm], **by_root, "by_kind": kinds}
        if arm in readers:
            worst = min(over, key=lambda base: over[base].mean)
            low = min(gap.low for gap in over.values())
            arms[arm] |= {"over_best_open_loop": asdict(over[worst]), "which": worst, "lower_bound": low}
    return {"variant": asdict(variant), "tuned_on": TUNE, "roots": on, "training_seeds": trainings, "arms": arms}


def table(figures: dict[str, Any]) -> str:
    """The arms' ends in percent, and the readers' differences to the best open loop in points."""
    lines = []
    for arm, row in figures["arms"].items():
        kinds = " ".join("–" if x is None else f"{100 * x:.0f}" for x in row["by_kind"].values())
        lines.append(f"{figures['variant']['name']:22} {arm:8} {100 * row['success']:5.1f}  [{kinds}] {row['config']}")
        if "which" in row:
            mean, low, high, bound = (100 * x for x in (*row["over_best_open_loop"].values(), row["lower_bound"]))
            lines[-1] += f" {mean:+.1f} ({low:+.1f}, {high:+.1f}) over {row['which']}, bound {bound:+.1f}"
    return "\n".join(lines)


def with_stored(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored studies that were not made again, each with its commit, and the new ones."""
    stored = json.loads((RESULTS / "gate.json").read_text(encoding="utf-8"))
    old = [{"commit": stored["commit"], **study} for study in stored["figures"]["studies"]]
    new = [(study["variant"]["name"], list(study["roots"])) for study in figures]
    return [study for study in old if (study["variant"]["name"], study["roots"]) not in new] + figures


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--fresh", choices=VARIANTS, help="the variant to measure again on sixteen fresh roots")
    parser.add_argument("--trainings", type=int, default=2, help="training seeds on each fresh root (2)")
    arguments = arguments_of(parser)
    torch.set_num_threads(1)
    planned = [(name, DEVELOP, 1) for name in arguments.variants]
    planned += [(arguments.fresh, FRESH, arguments.trainings)] * bool(arguments.fresh)
    figures = []
    for name, on, trainings in planned:
        figures.append(study(VARIANTS[name], on, trainings))
        print(table(figures[-1]), flush=True)
    record_if_asked(arguments, "gate", {"studies": with_stored(figures)})


if __name__ == "__main__":
    main()
