# /// script
# dependencies = ["mapf-frozenlake[verifiers]"]
# [tool.client]
# title = "prime-rl's task samplers"
# how = "`PrimeTaskSampler(curriculum, list(tasks))` as the `sampler` of its `Curriculum`, over `mapf-lake` with `tasks=N`"
# source = "https://github.com/PrimeIntellect-ai/prime-rl"
# commit = "0c771bb7c742e998a2d575468a2c9e43b83ee7df"
# ///
"""prime-rl's own ``Curriculum`` and ``DifficultyPoolSampler``, over the lake's own tasks. Rollouts are made here: nothing is trained."""

import os
import random
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import _checks
from with_verifiers import taskset

import mapf_frozenlake as mfl
from envtuning import EngineerCurriculum, Pools
from envtuning.curriculum.prime_rl import PrimeTaskSampler

SOURCE = os.environ["CLIENT_SOURCE"]
PACKAGES = ["verifiers"]
VERSIONS = {"prime-rl": _checks.commit_of(SOURCE)}

SIZES = {"slices": {"4": {}, "5": {}}}
CONFIG = mfl.LakeConfig.model_validate(SIZES)
TASKS = 40
SHARES = ["slices.*.share"]
BEGUN, DRAWN = 500, 2_500  # draws before those that are counted, and these
# As its settings have them, which are a package of their own.
POOLS = {"hard": (0.25, 0.2), "normal": (0.75, 1.0), "easy": (1.0, 0.2)}
SETTINGS = SimpleNamespace(
    seed=42, pools={name: SimpleNamespace(threshold=most, weight=weight) for name, (most, weight) in POOLS.items()}
)


def theirs():
    """Its ``Curriculum`` and ``DifficultyPoolSampler``. What they import beside each other wants the whole trainer installed."""
    folder = Path(SOURCE) / "src/prime_rl/orchestrator/curriculum"
    place = "prime_rl.orchestrator.curriculum"
    for name in ("prime_rl", "prime_rl.orchestrator", "prime_rl.orchestrator.algo", place):
        sys.modules[name] = ModuleType(name)
    sys.modules["prime_rl.orchestrator.algo.base"] = given(
        "prime_rl.orchestrator.algo.base", iter_trainable_traces=traces_of
    )
    sys.modules[f"{place}.gates"] = given(f"{place}.gates", AdmissionGate=object)
    samplers = sys.modules[f"{place}.samplers"] = ModuleType(f"{place}.samplers")
    samplers.TaskSampler = _checks.module_at(f"{place}.samplers.base", folder / "samplers/base.py").TaskSampler
    pools = _checks.module_at(f"{place}.samplers.pool", folder / "samplers/pool.py").DifficultyPoolSampler
    return _checks.module_at(f"{place}.base", folder / "base.py").Curriculum, pools


def given(name, **entries):
    module = ModuleType(name)
    vars(module).update(entries)
    return module


def traces_of(group):
    return (trace for episode in group for trace in episode.traces if not trace.has_error and trace.agent.trainable)


def tasks():
    return list(taskset(tasks=TASKS, lake=SIZES))


def group(task, *rewards):
    about = {"has_error": False, "agent": SimpleNamespace(trainable=True), "num_turns": 1}
    return [SimpleNamespace(task=task, ok=True, traces=[SimpleNamespace(reward=reward, **about)]) for reward in rewards]


def over(sampler):
    """Its ``Curriculum`` without gates over this sampler, which its settings cannot name."""
    curriculum = object.__new__(theirs()[0])
    curriculum.sampler, curriculum.gates = sampler, {}
    return curriculum


def ours(engineer="rules", every=160):
    target = mfl.LakeConfig.model_validate({"slices": {"4": {"share": 0}, "5": {}}})
    return PrimeTaskSampler(EngineerCurriculum(engineer, CONFIG, target=target, every=every, editable=SHARES), tasks())


def played(curriculum, groups, seed):
    """Four replies a group: nine in ten are right on 4×4, and three in ten on 5×5. The tasks that were drawn, and their rewards."""
    rng, told = random.Random(seed), []
    for _ in range(groups):
        task = next(curriculum.sampler)
        rewards = [float(rng.random() < {"4": 0.9, "5": 0.3}[task.data.slice]) for _ in range(4)]
        assert curriculum.on_result(group(task, *rewards))
        told.append((task, rewards))
    return told


def check_exact_counts():
    """its `Curriculum` over an engineer: every reply counts once, by slice, and `rules` makes three configs"""
    sampler = ours()
    told = played(over(sampler), 160, seed=0)
    history = sampler.curriculum.history
    assert len(history) == 4
    for number, record in enumerate(history):
        of_stage, counted = told[40 * number : 40 * (number + 1)], Counter()
        for task, rewards in of_stage:
            counted[task.data.slice, "episodes"] += len(rewards)
            counted[task.data.slice, "right"] += sum(rewards)
        for row in record.training_results:
            assert row.episodes == counted[row.name, "episodes"]
            assert round(row.metrics["success_rate"] * row.episodes) == counted[row.name, "right"]
    configs = {one.config.model_dump_json() for one in sampler.curriculum.proposals} | {CONFIG.model_dump_json()}
    assert len(configs) >= 3, configs
    assert "sampler/share/5" in over(sampler).metrics()


def check_its_checkpoint():
    """its `state_dict` holds the engineer's curriculum: loaded, it gives the same configs and the same 1,000 draws"""
    whole, part = over(ours()), over(ours())
    played(whole, 50, seed=1)
    played(part, 50, seed=1)
    after = over(ours())
    after.load_state_dict(part.state_dict())
    assert [told for _, told in played(whole, 60, seed=2)] == [told for _, told in played(after, 60, seed=2)]
    assert whole.sampler.curriculum.config == after.sampler.curriculum.config != CONFIG
    assert [next(whole.sampler).key for _ in range(1_000)] == [next(after.sampler).key for _ in range(1_000)]


def halves(sampler, replies_of):
    """The part of the draws that goes to the tasks which are right every other time; the others are always right."""
    drawn = Counter()
    for number in range(BEGUN + DRAWN):
        task = next(sampler)
        sampler.observe(group(task, *replies_of(task)))
        drawn[task.data.slice] += number >= BEGUN
    return drawn["5"] / DRAWN


def check_its_pools():
    """its own `DifficultyPoolSampler` works on `mapf-lake`'s tasks: where two of four replies are always right, it gives these tasks as
    much as our `Pools` do (80 to 86 %); where each is right by chance, a group of four misleads it (60 to 72 %), and ours keep theirs"""
    assert 0.35 < Counter(task.data.slice for task in tasks())["5"] / TASKS < 0.65
    rng = random.Random(0)

    def two_of_four(task):
        return [1.0, 0.0, 1.0, 0.0] if task.data.slice == "5" else [1.0] * 4

    def by_chance(task):
        return [float(task.data.slice == "4" or rng.random() < 0.5) for _ in range(4)]

    told = {
        (whose, replies_of.__name__): halves(made(), replies_of)
        for whose, made in (
            ("theirs", lambda: theirs()[1](SETTINGS, tasks())),
            ("ours", lambda: PrimeTaskSampler(Pools(CONFIG, every=200), tasks())),
        )
        for replies_of in (two_of_four, by_chance)
    }
    print(told, file=sys.stderr)
    assert 0.60 <= told.pop(("theirs", "by_chance")) <= 0.72
    assert all(0.80 <= part <= 0.86 for part in told.values()), told


if __name__ == "__main__":
    _checks.run(globals())
