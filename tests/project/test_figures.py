"""Figures on the pages are the stored ones: each is written here with its rounding, from the JSON, and looked for on its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks._record import RESULTS

ROOT = Path(__file__).parents[2]
README, RUNS, TRAINEES, INSTANCES, TOOLS, PAPERS, LANGUAGE, ENVIRONMENTS, SOLVERS = (
    "README.md", "docs/runs.md", "docs/trainees.md", "docs/instances.md", "docs/tools.md", "docs/papers.md", "docs/language.md",
    "docs/environments.md", "docs/solvers.md",
)  # fmt: skip

Figures = Any  # what a result's file holds


class Claim(NamedTuple):
    page: str
    result: str
    said: Callable[[Figures], str]  # what the page has to say; "…" stands for words that may change


def rounded(value: float, digits: int) -> str:
    """1426 to two digits behind its last: 1,430."""
    return f"{round(value, digits):,.0f}"


# throughput

POGEMA, ICE = (
    "4 agents, 8×8, 11×11 windows, over POGEMA",
    "one env by gym.make, 4 agents, walks over ice, over FrozenLake (env-steps)",
)
CROWD = "64 agents, 32×32, 11×11 windows, over POGEMA"
KEPT = "native vector env, observations the caller's to keep, walks over ice, over POGEMA"


def goal(figures: Figures, name: str) -> float:
    (found,) = [one["ratio"] for one in figures["compared"]["goals"] if one["name"] == name]
    return found


def sb3(figures: Figures, other: str) -> float:
    rows = figures["stable_baselines3"]
    return rows["sb3_vec_env"]["per_cpu_second"] / rows[other]["per_cpu_second"]


# each row of the page's table on speed, by the name of its goal
FASTER = {
    "11×11 windows, on walks that avoid holes | POGEMA": POGEMA,
    "copied observations | POGEMA": KEPT,
    "the same under random moves and resets | POGEMA": "the same, random moves and resets",
    "the same with resets within the step | POGEMA": "the same, resets within the step",
    "the caller holds the last observation | POGEMA": "the same, the last observation held",
    "with the last 16 observations held | POGEMA": "random moves and resets, the last 16 observations held",
    "64 agents on 32×32 with 11×11 windows | POGEMA": CROWD,
    "on walks that avoid holes (env-steps) | Gymnasium's FrozenLake": ICE,
    "the same under random actions and resets | Gymnasium's FrozenLake": "the same, random actions and resets",
    "the same with 11×11 windows | Gymnasium's FrozenLake": "the same, 11×11 windows",
}
FASTER_THAN_SB3 = {
    "SubprocVecEnv` of 2": "SubprocVecEnv, 2 processes",
    "SubprocVecEnv` of 16": "SubprocVecEnv, 16 processes",
    "DummyVecEnv` of 64": "DummyVecEnv",
}

THROUGHPUT = [
    Claim(README, "cold_start", lambda f: f"about {f['cpu_seconds']['first step']['now']:.0f} seconds of CPU to the first step…"
          f"about {f['cpu_seconds']['first boards and plan']['now']:.0f} seconds"),
    *(Claim(ENVIRONMENTS, "throughput_ratios", lambda f, row=row, name=name: f"{row} | {f'{goal(f, name):.1f}' if 'FrozenLake' in row else f'{goal(f, name):.0f}'}× |") for row, name in FASTER.items()),
    *(Claim(ENVIRONMENTS, "throughput_ratios", lambda f, row=row, name=name: f"{row} | {sb3(f, name):.0f}× |") for row, name in FASTER_THAN_SB3.items()),
]  # fmt: skip

# threads


def threaded(figures: Figures, kind: str) -> str:
    row = figures["kinds"][kind]
    cells = (f"{row['microseconds_a_step']:,}", f"{row['serial_part']:.0%}".replace("%", " %"))
    return " | ".join((*cells, f"{row['cpu_of_two_over_one']:.2f}", f"{row['at_best']:.2f} |"))


SEEN = {
    "11×11": "`window=11`",
    "5×5": "`window=5`",
    "compact": "`compact`",
    "11×11, random moves and resets": "`window=11`, random moves and resets",
}
THREADS = [
    Claim(ENVIRONMENTS, "threads", lambda f, kind=kind, row=row: f"| {row} | {threaded(f, kind)}")
    for kind, row in SEEN.items()
]
BY_THE_CLOCK = [
    Claim(
        ENVIRONMENTS,
        "throughput_threads",
        lambda f, kind=kind, row=row: f"{f['kinds'][kind]['ratio']} times…with {row}",
    )
    for kind, row in (("5×5", "`window=5`"), ("compact", "`compact`"))
] + [
    Claim(
        ENVIRONMENTS,
        "throughput_threads",
        lambda f: f"{f['kinds']['11×11']['ratio']} times as fast as one with `window=11`",
    ),
    Claim(
        ENVIRONMENTS,
        "throughput_threads",
        lambda f: "give {}, {} and {} times".format(
            *(f["kinds"][kind]["ratio_of_the_fastest"] for kind in ("11×11", "5×5", "compact"))
        ),
    ),
]

# solvers and generator


def of_agents(rows: list[Figures], agents: int) -> list[Figures]:
    return [row for row in rows if row["agents"] == agents]


def spread(figures: Figures, agents: int) -> str:
    ratios = [row["times_fastest_peer"] for row in of_agents(figures["rows"], agents)]
    return f"{min(ratios):.0f}–{max(ratios):.0f}×"


def peers_row(figures: Figures, agents: int) -> str:
    rows, (summary,) = of_agents(figures["rows"], agents), of_agents(figures["summary"], agents)
    certified = [row["certified_per_second"] for row in rows]
    median_board = min(row["times_fastest_peer_median"] for row in rows)
    ratios = (summary["worst_row"], summary["median_row"], summary["worst_row_call_alone"], median_board)
    cells = [str(agents), f"{min(certified):,.0f} to {max(certified):,.0f}", *(f"{ratio:.1f}×" for ratio in ratios)]
    return f"| {' | '.join(cells)} |"


def hardest(figures: Figures) -> str:
    row = min(figures["rows"], key=lambda row: row["times_fastest_peer"])
    drawing = row["drawing_seconds"] * row["certified_per_second"] / row["candidates"]
    return (
        f"{row['agents']} agents on {row['size']}×{row['size']} …{row['hole_ratio']}…{100 * drawing:.0f} % of our time"
    )


def both(row: Figures) -> str:
    return f"{row['valid']:.2f} / {row['optimal']:.2f}"


def by_agents(figures: Figures) -> str:
    first, second, third = (f"{row['valid']:.2f}" for row in figures["greedy"]["by agents"])
    return f"{first}, {second} and {third}"


def ppo_row(figures: Figures, how: str) -> str:
    return f"{how} ‡ | " + " | ".join(both(row) for row in figures[how]["by agents"])


def out_of_time(figures: Figures) -> str:
    late = [
        row for row in figures["rows"] if all(peer["candidates"] < row["candidates"] for peer in row["peers"].values())
    ]
    return f"In {len(late)} of {len(figures['rows'])} rows"


GROWN = [*((agents, 8, 0.2) for agents in range(1, 8)), (4, 16, 0.2), (4, 32, 0.2), (4, 8, 0.0), (4, 8, 0.5)]


def growth_row(figures: Figures, kind: tuple[int, int, float]) -> str:
    (row,) = [row for row in figures["rows"] if (row["agents"], row["size"], row["hole_ratio"]) == kind]
    plan, cheapest = row["solve_makespan_ms"], row["solve_sum_of_costs_ms"]
    return (
        f"| {row['agents']}, {row['size']}×{row['size']}, {row['hole_ratio']} | {row['median_ms']:.4f} | {row['slowest_ms']:.2f} | "
        f"{plan['mean']:.3f} | {cheapest['mean']:.2f} ({cheapest['median']:.3f}) |"
    )


def resets(figures: Figures) -> str:
    by_kind = {(row["agents"], row["size"]): row for row in figures["resets"]}
    three, five = by_kind[3, 8], by_kind[5, 5]
    return (
        f"{three['ready_row_us']:.1f} µs…{three['new_row_us']['median']:.0f} µs (median)…"
        f"3 agents on 8×8…{five['new_row_us']['max'] / 1000:.0f} ms at worst…5×5…{three['new_pool_ms']:.1f} ms"
    )


def step_loop(figures: Figures) -> str:
    (row,) = [row for row in figures["step_loop"] if (row["agents"], row["size"]) == (4, 8)]
    return (
        f"{row['num_envs']:,} envs of 4 agents on 8×8…{row['boards_new']['median_us']:.0f} µs (median)…"
        f"{row['boards_there']['median_us']:.0f} µs"
    )


def halves(figures: Figures) -> str:
    rates = [row["half_need_a_wait_per_second"] for row in figures["quotas"]]
    rates = [rate for rate in rates if rate]
    return f"{min(rates):,.0f} to {max(rates):,.0f} instances a second"


BOARDS = [
    *(Claim(SOLVERS, "solvers", lambda f, n=n: peers_row(f, n)) for n in (2, 3, 4, 5)),
    Claim(SOLVERS, "solvers", hardest),
    Claim(SOLVERS, "solvers", out_of_time),
    Claim(SOLVERS, "solvers", lambda f: f"{f['caps']['peer_seconds_per_board']} s…{f['caps']['peer_seconds_per_row']:.0f} s"),
    *(Claim(SOLVERS, "solvers_growth", lambda f, kind=kind: growth_row(f, kind)) for kind in GROWN),
    Claim(SOLVERS, "generator", lambda f: f"{f['suites'][0]['instances']:,} boards…{f['suites'][0]['cpu_seconds']:.1f} s of CPU"),
    Claim(SOLVERS, "generator", halves),
    Claim(SOLVERS, "generator", resets),
    Claim(SOLVERS, "generator", step_loop),
    Claim(INSTANCES, "fuzz_replies", lambda f: f"{f['inputs']:,} replies…{f['slowest_seconds']:.2f} s"),
    Claim(INSTANCES, "fuzz_instance_files", lambda f: f"{f['inputs']:,} instance files…{f['slowest_seconds']:.2f} s"),
]  # fmt: skip

# the papers' boards


def suite_row(figures: Figures, name: str, shown: str, digits: int = 2) -> str:
    rows = {row["group"]["agents"]: row for row in figures[name]["rows"] if row["group"].get("size") == "all"}
    cells = [f"{rows[agents]['valid']:.{digits}f} / {rows[agents]['optimal']:.{digits}f}" for agents in (3, 4, 5)]
    return f"| {shown} | {' | '.join(cells)} |"


SUITE = [
    *(
        Claim(INSTANCES, "evaluate_suite", lambda f, n=n: suite_row(f, f"optimal, as {n}", "optimal plans…", 0))
        for n in ("a solver", "text", "a network")
    ),
    Claim(INSTANCES, "evaluate_suite", lambda f: suite_row(f, "PIBT", "PIBT")),
    Claim(INSTANCES, "papers_row", lambda f: ppo_row(f, "greedy")),
    Claim(INSTANCES, "papers_row", lambda f: ppo_row(f, "sampled")),
    Claim(INSTANCES, "papers_row", lambda f: f"{f['training']['env_steps'] / 1e6:.1f} million env steps"),
    Claim(INSTANCES, "papers_row", lambda f: f"greedy {both(f['greedy']['overall'])}…sampled {both(f['sampled']['overall'])}…"
          f"{f['best of 8, valid']:.2f} / {f['best of 8, optimal']:.2f}"),
    Claim(PAPERS, "papers_row_two_agents", lambda f: f"solves {f['greedy']['overall']['valid']:.2f} % of the boards greedily "
          f"({by_agents(f)} % with three, four and five agents)"),
    Claim(PAPERS, "papers_row_two_agents", lambda f: f"two agents alone, it solves {f['greedy']['overall']['valid']:.2f} % "
          f"({f['greedy']['overall']['optimal']:.2f} % at the least makespan) and {f['best of 8, valid']:.2f} %"),
    Claim(PAPERS, "papers_row", lambda f: f"{f['greedy']['overall']['valid']:.2f} % greedily ({f['greedy']['overall']['optimal']:.2f} % at the least makespan) and {f['best of 8, valid']:.2f} %"),
    Claim(INSTANCES, "evaluate_suite", lambda f: suite_row(f, "greedy, ignoring the others", "greedy…")),
    Claim(INSTANCES, "evaluate_suite", lambda f: suite_row(f, "random walk", "random walk…")),
]  # fmt: skip

# training


def stock_row(figures: Figures, name: str, shown: str) -> str:
    row, better = figures["rows"][name], figures["ours_better_by"][name]
    return (
        f"| {shown} | {row['sampling']['cpu_us_per_step']:.0f} ({better['sampling_cpu_per_step']:.0f}×) | "
        f"{rounded(row['end_to_end']['steps_per_cpu_s'], -1)} ({better['end_to_end_steps_per_cpu_s']:.1f}× fewer) |"
    )


def our_row(figures: Figures) -> str:
    ours = figures["rows"]["ours"]
    return f"| `RLlibTrainee` | {ours['sampling']['cpu_us_per_step']:.1f} | {rounded(ours['end_to_end']['steps_per_cpu_s'], -2)} |"


def until_it_succeeds(figures: Figures, collisions: str) -> tuple[str, str, str]:
    """The fewest and most env steps in thousands, and the seconds of CPU."""
    runs = figures[f"until 80 % success, 5x5, 2 agents, collisions {collisions}"]
    steps = sorted(run["env_steps"] for run in runs)
    (seconds,) = {f"{run['cpu_seconds']:.0f}" for run in runs}
    return rounded(steps[0], -3), rounded(steps[-1], -3), seconds


def four_stages_row(figures: Figures, stage: int, shown: str) -> str:
    one, other = (seed[stage]["valid_on_9x9_with_4_agents"] for seed in figures["four stages"])
    return f"| {shown} | {' | '.join(f'{one[t]:.0f} / {other[t]:.0f}' for t in ('0.0', '0.25', '0.5', '1.0'))} |"


def four_stages_cost(figures: Figures) -> str:
    steps = [sum(stage["env_steps"] for stage in seed) for seed in figures["four stages"]]
    seconds = [seed[-1]["cpu_seconds_so_far"] for seed in figures["four stages"]]
    return f"{rounded(sum(steps) / 2, -3)} env steps, {sum(seconds) / 2:.0f} s of CPU"


def above_uniform(figures: Figures) -> str:
    """One sentence for all three: on this preset they end alike."""
    engineers = {row["arm"]: row["against"]["uniform"] for row in figures["rows"] if row["arm"] != "uniform"}
    assert set(engineers) == {"rules", "half-success", "progress-share"}
    (said,) = {
        f"{100 * row['mean']:+.1f} ({100 * row['low']:+.1f}, {100 * row['high']:+.1f})" for row in engineers.values()
    }
    return f"{said} points above `uniform`"


def beside_uniform(figures: Figures) -> str:
    rows = [(row["arm"], row["against"]["uniform"]) for row in figures["rows"] if row["arm"] != "uniform"]
    said = [f"{100 * row['mean']:+.1f} ({100 * row['low']:+.1f}, {100 * row['high']:+.1f})" for _, row in rows]
    return ", ".join(f"`{name}` {one.replace('-', '−')}" for (name, _), one in zip(rows, said, strict=True)) + " points"


STAGES = ("4×4, 2 agents", "4–6, 2–3 agents", "6–8, 3–4 agents", "9×9, 4 agents")
LEARNING = [
    Claim(TRAINEES, "training", lambda f: f"{f['ours_better_by']['stock MultiAgentEnv']['end_to_end_steps_per_cpu_s']:.1f}× fewer"),
    Claim(TRAINEES, "training", our_row),
    Claim(TRAINEES, "training", lambda f: stock_row(f, "stock MultiAgentEnv", "stock RLlib, `MultiAgentEnv`")),
    Claim(TRAINEES, "training", lambda f: stock_row(f, "stock PettingZoo wrapper", "stock RLlib, PettingZoo wrapper")),
    Claim(TRAINEES, "learning", lambda f: "{}–{} env steps ({} s of CPU)".format(*until_it_succeeds(f, "block"))),
    Claim(TRAINEES, "learning", lambda f: "{}–{} ({} s)".format(*until_it_succeeds(f, "end"))),
    Claim(TRAINEES, "learning", four_stages_cost),
    *(Claim(TRAINEES, "learning", lambda f, n=n, s=s: four_stages_row(f, n, s)) for n, s in enumerate(STAGES)),
    Claim(RUNS, "engineers_scripted", above_uniform),
    Claim(RUNS, "engineers_engineer", beside_uniform),
    Claim(RUNS, "side_by_side", lambda f: f"{f['times_as_fast']} times as fast on two cores"),
]  # fmt: skip

# tool use


def reader(figures: Figures, row: str, part: str = "micro") -> float:
    return 100 * figures["by half"]["not looked at"][row][part]


def recovered(figures: Figures, row: str) -> str:
    low, high = figures["by half"]["not looked at"][row]["interval"]
    return f"{reader(figures, row):.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def both_readers(figures: Figures, row: str) -> str:
    return f"{recovered(figures, f'{row}, by names')} | {recovered(figures, f'{row}, one by one')} |"


def with_and_without(figures: Figures, how: str, between: str = " with the hints") -> str:
    """What a reader mends with the hints, and with the tools' own messages alone."""
    return f"{reader(figures, f'ours, {how}'):.1f} %{between} and {reader(figures, f'stock, {how}'):.1f} %"


def legal_moves(figures: Figures) -> float:
    """In percent, where the first stage ended by its threshold."""
    rate, asked = re.fullmatch(r"legal_rate (\S+) is at least (\S+)", figures["stages"][0]["ended"]).groups()
    assert asked == "0.6"
    return 100 * float(rate)


def last_window(stage: Figures) -> str:
    """The mean of the validations that the rule of convergence looked at last."""
    return re.search(r"progress (?:converged|still rises): \S+ to 0(\.\d+) over", stage["ended"])[1]


def after_each(figures: Figures) -> str:
    """Success in validation at each stage's end."""
    *first, last = (f"{100 * stage['validation']['success_rate']:.3g}" for stage in figures["stages"])
    return f"{', '.join(first)} and {last}"


def ended_by_their_rules(figures: Figures) -> str:
    """After how many episodes the rule ended each stage; fails where a budget did."""
    stages = figures["stages"]
    assert not any(stage["ended"].startswith("the budget") for stage in stages)
    first, second, third = (f"{stage['spent']:,}" for stage in stages)
    return f"after {first}, {second} and {third}"


def fewer(figures: Figures) -> int:
    """Faults that a reader recovers from only where the hint stands beside the message."""
    rows = figures["by half"]["not looked at"]
    beside, instead = rows["ours, one by one"], rows["ours in place of the message, one by one"]
    return round((beside["micro"] - instead["micro"]) * beside["n"])


def silent(figures: Figures, messages: str) -> str:
    """The lower and the higher of both readers."""
    rates = sorted(
        100 * figures["silent harmful faults"][f"{messages}, {how}"]["micro"] for how in ("by names", "one by one")
    )
    return f"{rates[0]:.0f} to {rates[1]:.0f} %"  # fmt: skip


def asks(figures: Figures) -> str:
    rows = figures["where something is missing"].values()
    turns = [row["ours, by names"]["asks"] for row in rows]
    assert all(
        row["ours, by names"] == row["ours, one by one"] == {"asks": n} for row, n in zip(rows, turns, strict=True)
    )
    assert all(
        row["stock, by names"] == row["stock, one by one"] == {"guesses": n} for row, n in zip(rows, turns, strict=True)
    )
    return f"{sum(turns)} turns"


def macro(figures: Figures) -> str:
    variants = figures["by half"]["not looked at"]["ours, by names"]["variants"]
    others = [rate for name, rate in variants.items() if name != "unmet_precondition/later_step"]
    assert len(variants) == 11
    return f"{100 * sum(others) / len(others):.1f} %"


def whole_run(figures: Figures) -> str:
    test = figures["test"]
    assert test["no-op"]["success_rate"] == test["no-op"]["progress"] == [0, 0, 0]
    success, progress = test["after the last stage"]["success_rate"][0], test["after the last stage"]["progress"][0]
    return f"takes {figures['cpu_seconds']:.0f} seconds of CPU…solves {100 * success:.0f} of 100 unseen tasks, with progress {progress:.2f};".replace(
        " 0.", " ."
    )


def two_steps_each(figures: Figures) -> str:
    assert len(figures["stages"]) == 4
    for stage in figures["stages"]:
        assert stage["steps"] == 2
        assert max(stage["groups_with_variance"]) > 0
        assert stage["finite"]
        assert max(stage["grad_norm"]) > 0
    took = figures["cpu_seconds"]
    return f"take {took['pretraining']} and {took['four stages']} seconds of CPU, and in every stage at least one group"


def no_disagreement(figures: Figures, words: str) -> str:
    assert figures["disagreements"] == []
    return words.format(figures["trajectories"])


def all_solved(figures: Figures, words: str = "ground truth {0} of {0}") -> str:
    assert figures["solved"] == figures["progress_1"] == figures["passes"] * figures["tasks"]
    assert figures["episodes_per_cpu_second"] >= 500
    return words.format(figures["tasks"])


def generous(figures: Figures, digits: int) -> str:
    """What silence gets where turns without ground truth are given away; the same on both splits."""
    (value,) = {figures["splits"][split]["no-op"]["generous_progress"][0] for split in ("miss_func", "miss_param")}
    return f"{value:.{digits}f}".removeprefix("0")


# a small language model


def in_percent(cell: Figures, name: str = "") -> str:
    """4.1 (1.2, 7.0), of a rate; signed, of a gain."""
    sign, mean, low, high = ("+", "gain", "gain_low", "gain_high") if name else ("", "mean", "low", "high")
    return f"{100 * cell[mean]:{sign}.1f} ({100 * cell[low]:{sign}.1f}, {100 * cell[high]:{sign}.1f})"


def small_model(figures: Figures, arm: str) -> str:
    """The row of the page's table."""
    row = figures["table"][arm]
    gain = in_percent(row["greedy"], "gain") if "gain" in row["greedy"] else "—"
    others = [f"{100 * row[column]['mean']:.1f}" for column in ("sampled", "best_of_16")]
    return " | ".join(["| " + arm, in_percent(row["greedy"]), gain, *others]) + " |"


def gained(figures: Figures, arm: str) -> str:
    """In words: how far the arm's greedy replies are above those of the model that it began with."""
    gain, low, high = (100 * figures["table"][arm]["greedy"][name] for name in ("gain", "gain_low", "gain_high"))
    return f"gained {gain:.1f} points (95 %: {low:.1f} to {high:.1f})"


def cpu_seconds_of_equal_samples(figures: Figures) -> tuple[float, float]:
    """The least and the most of the arms that have as many samples as GRPO."""
    arms = [figures["runs"][arm] for arm in ("GRPO", "GRPO, random rewards", "rejection fine-tuning")]
    assert len({run["samples"] for runs in arms for run in runs}) == 1
    seconds = [run["cpu_seconds"] for runs in arms for run in runs]
    return min(seconds), max(seconds)


SMALL_MODEL = [
    *(
        Claim(LANGUAGE, "grpo", lambda f, arm=arm: small_model(f, arm))
        for arm in ("warm start", "continued supervision", "rejection fine-tuning", "GRPO, random rewards", "GRPO")
    ),
    Claim(
        PAPERS, "grpo", lambda f: gained(f, "GRPO") + "…" + gained(f, "continued supervision").partition(" points")[0]
    ),
    Claim(LANGUAGE, "grpo", lambda f: "took {:.0f} to {:.0f} CPU seconds".format(*cpu_seconds_of_equal_samples(f))),
]


def known(figures: Figures, own: bool) -> str:
    """The mean area under the curve by a model's own uncertainty, or by that of another."""
    areas = [row["unsure"] for row in figures["auc"] if (row["asked"] == row["fails"]) == own]
    return f"{sum(areas) / len(areas):.3f}".removeprefix("0")


def extremes(figures: Figures, measure: str) -> str:
    """The least and the greatest of the means, in percent."""
    found = [100 * row[measure] for row in figures["means"]]
    return f"{min(found):.0f} to {max(found):.0f}"


INTROSPECTION = [
    Claim(LANGUAGE, "grpo_overhead", lambda f: f"take {100 * f['median_share']:.1f} % of a step's CPU time"),
    Claim(
        LANGUAGE,
        "introspection",
        lambda f: f"under the ROC curve of {known(f, True)}. … predicts them with {known(f, False)}.",
    ),
    Claim(
        LANGUAGE,
        "introspection",
        lambda f: f"({100 * min(f['valid_rates']):.0f} to {100 * max(f['valid_rates']):.0f} % valid)",
    ),
]

SKILLS = ["capitals", "copy", "first", "parity"]


def skill(figures: Figures, task: str) -> str:
    rates = (f"{100 * test['tasks'][task]:.0f}" for test in figures["test"].values())
    return f"| {task} | {' | '.join(rates)} |"


def all_skills(figures: Figures) -> str:
    tests = figures["test"].values()
    rates = (
        "{:.1f} ({:.0f}, {:.0f})".format(100 * test["success"], *(100 * end for end in test["interval"]))
        for test in tests
    )
    return f"| all | {' | '.join(rates)} |"


def at_the_end(figures: Figures, rate: str, said: str) -> str:
    """A sentence on the success of even draws at a rate: before, after the first stage, and at the end."""
    return said.format(*(100 * test["success"] for test in figures["rates"][rate]["test"].values()))


def minutes(figures: Figures, part: str) -> float:
    return sum(spent for name, spent in figures["cpu minutes"].items() if name.startswith(part))


def changed_most(figures: Figures) -> list[str]:
    """The four tasks whose success differs most between the start and the end."""
    before, end = (figures["test"][at]["tasks"] for at in ("before", "end"))
    return sorted(sorted(before, key=lambda task: -abs(end[task] - before[task]))[: len(SKILLS)])


def test_the_tasks_of_the_table_are_those_that_changed_most():
    assert changed_most(figures_of("small_skills")) == SKILLS


def an_update(figures: Figures) -> str:
    """Seconds of CPU and memory: ours with matrix units and without them, and TRL's own step."""
    ours, without, stock = (figures["arms"][arm] for arm in ("ours", "without amx", "every prompt"))
    return (
        f"takes {ours['median']:.0f} s of CPU and {ours['peak_gb']:.1f} GB…{without['median']:.0f} s on the same core without them…"
        f"takes {stock['median']:.0f} s and {stock['peak_gb']:.1f} GB"
    )


REAL_MODEL = [
    Claim(LANGUAGE, "grpo_speed", an_update),
    Claim(LANGUAGE, "grpo_speed", lambda f: f"20 updates of {f['arms']['ours']['median']:.1f} s of CPU"),
    Claim(LANGUAGE, "grpo_speed_avx2", lambda f: "takes {median:.0f} s of CPU and {peak_gb:.1f} GB".format(**f["arms"]["in float32"])),
    Claim(LANGUAGE, "grpo_speed", lambda f: "The two slowest took {:.1f} and {:.1f} s".format(*sorted(f["arms"]["ours"]["seconds"])[-2:])),
    Claim(LANGUAGE, "small_skills", lambda f: f"took {sum(f['cpu minutes'].values()):.1f} CPU minutes. Its first 15 updates took {4 * sum(f['cpu minutes'][f'stage {at}'] for at in range(3)):.1f} s each"),
    *(Claim(LANGUAGE, "small_skills", lambda f, task=task: skill(f, task)) for task in SKILLS),
    Claim(LANGUAGE, "small_skills", all_skills),
    Claim(LANGUAGE, "small_skills", lambda f: f"{f['updates']} updates took {minutes(f, 'stage'):.1f} CPU minutes"),
    Claim(LANGUAGE, "small_skills", lambda f: f"the three tests {minutes(f, 'test'):.1f}"),
    Claim(LANGUAGE, "small_skills", lambda f: f"{f['tokens']['tokens']:,.0f} tokens, {f['tokens']['generated_tokens']:,.0f} of them written by the model"),
    Claim(LANGUAGE, "small_skills_rates", lambda f: at_the_end(f, "0.0001", "instead of the engineer end at {2:.1f} %")),
    Claim(LANGUAGE, "small_skills_rates", lambda f: at_the_end(f, "0.0003", "rise to {1:.1f} % and end at {2:.1f} %")),
    Claim(LANGUAGE, "small_skills", lambda f: f"`{next(iter(f['weights'].values()))[:12]}…`"),
]  # fmt: skip

READERS = [
    Claim(PAPERS, "readers", lambda f: f"all {sum(not row['fallback'] for row in f['rows'])} answers were usable"),
    Claim(PAPERS, "readers", lambda f: f"solved in 10 to 70 % of cases is {extremes(f, 'frontier')} %"),
]

TOOL_USE = [
    *(Claim(TOOLS, f"bfcl_agreement_{version}", lambda f: no_disagreement(f, "{:,} trajectories")) for version in ("v4", "v3-paper")),
    *(Claim(PAPERS, f"bfcl_agreement_{version}", lambda f: no_disagreement(f, "{:,} trajectories")) for version in ("v4", "v3-paper")),
    *(Claim(PAPERS, f"bfcl_ground_truth_{version}", all_solved) for version in ("v4", "v3-paper")),
    *(Claim(TOOLS, f"bfcl_ground_truth_{version}", lambda f: f"{all_solved(f, 'solves all {}')} tasks of both versions") for version in ("v4", "v3-paper")),
    *(Claim(page, "stage_rule_tools", ended_by_their_rules) for page in (TOOLS, PAPERS)),
    *(Claim(page, "stage_rule_lakes", ended_by_their_rules) for page in (RUNS, PAPERS)),
    Claim(PAPERS, "stage_rule_lakes", lambda f: f"{legal_moves(f):.1f} %, with 60 % required"),
    Claim(PAPERS, "stage_rule_tools", lambda f: f"ended at a progress of {last_window(f['stages'][1])}"),
    Claim(PAPERS, "bfcl_four_stages_v4", lambda f: f"spent its budget reached {last_window(f['stages'][1])}"),
    Claim(PAPERS, "bfcl_four_stages_v4", lambda f: f"four stages is {after_each(f)} %"),
    Claim(PAPERS, "bfcl_four_stages_v4", lambda f: f"`syntax`, {100 * f['stages'][0]['validation']['syntax']:.1f} % in validation"),
    Claim(TOOLS, "bfcl_four_stages_v4", whole_run),
    Claim(TOOLS, "fuzz_tool_actions", lambda f: f"{f['inputs']:,} hostile replies…slowest took {f['slowest_cpu_seconds']:.1f} seconds"),
    Claim(TOOLS, "bfcl_language_v4", two_steps_each),
    Claim(TOOLS, "bfcl_memory_v4", lambda f: f"{f['grown_by_kib'] / 1024:.1f} MiB over {f['episodes']:,} episodes"),
    Claim(TOOLS, "bfcl_baselines_v4", lambda f: f"{generous(f, 3)}…miss_func and miss_param"),
    Claim(PAPERS, "bfcl_baselines_v4", lambda f: f"{generous(f, 2)} on two splits"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"| masked | {reader(f, 'masked, by names'):.0f} % | {reader(f, 'masked, one by one'):.0f} % |"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: both_readers(f, "stock")),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: both_readers(f, "ours")),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: both_readers(f, "ours in place of the message")),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: both_readers(f, "ours, replies in XML")),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"in {fewer(f)} of the"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"{recovered(f, 'blind retry')}"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"is called | {reader(f, 'calls every tool that only reads'):.0f} % | |"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"| ceiling | {recovered(f, 'everything looked up again at each complaint')} |"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"{silent(f, 'ours')}…{silent(f, 'stock')}"),
    Claim(TOOLS, "bfcl_actionability_v4", asks),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"{f['by half']['not looked at']['ours, by names']['n']} faults"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"{reader(f, 'ours, by names', 'macro'):.1f} % by names"),
    Claim(TOOLS, "bfcl_actionability_v4", lambda f: f"{reader(f, 'everything looked up again at each complaint', 'macro'):.1f} %"),
    Claim(TOOLS, "bfcl_actionability_v4", macro),
    Claim(TOOLS, "bfcl_actionability_v3-paper", lambda f: f"{recovered(f, 'ours, by names')} by names…{reader(f, 'ours, one by one'):.1f} % one by one…"
          f"{reader(f, 'stock, by names'):.1f} %…{reader(f, 'stock, one by one'):.1f} %"),
    Claim(PAPERS, "bfcl_actionability_v4", lambda f: f"mends {with_and_without(f, 'by names')} with the tools' own messages "
          f"(v4; a second script, which follows one pointer after the other, {with_and_without(f, 'one by one', '')}; one that looks everything "
          f"up again at each complaint {reader(f, 'everything looked up again at each complaint'):.1f} %"),
    Claim(PAPERS, "bfcl_actionability_v3-paper", lambda f: f"on the paper's version {with_and_without(f, 'by names', '')}"),
    Claim(PAPERS, "bfcl_actionability_v4", lambda f: f"Blind retries, as many as the script makes, mend {reader(f, 'blind retry'):.1f} %"),
]  # fmt: skip

# path finding


def planned(figures: Figures, map_name: str, agents: int) -> str:
    tables = (figures["paths-2026"]["PIBT"], figures["paths-2026"]["LaCAM"], figures["lifelong-2026"]["PIBT"])
    pibt, lacam, lifelong = (
        next(row for row in table if (row["map"], row["agents"]) == (map_name, agents)) for table in tables
    )
    cells = [
        f"{row['individual']:.1f} / {row['common']:.0f} | {row['makespan']:.1f} | {row['sum_of_costs']:.0f}"
        for row in (pibt, lacam)
    ]
    return f"| `{map_name}`, {agents} | {cells[0]} | {cells[1]} | {lifelong['throughput']:.2f} |"


PATHS = [
    Claim(INSTANCES, "path_finding", lambda f, map_name=map_name, agents=agents: planned(f, map_name, agents))
    for map_name in ("random-16", "random-32", "maze-33", "rooms-32", "warehouse-64")
    for agents in (8, 64)
]

# beside POGEMA


def in_all_modes(figures: Figures, *names: str) -> str:
    return f"{sum(mode[name] for mode in figures['modes'].values() for name in names):,}"


UNEXPLAINED = tuple(f"unexplained_{what}" for what in ("observed_numbers", "positions", "rewards", "ends"))
BESIDE_POGEMA = [
    Claim(
        "docs/pogema.md", "pogema_parity", lambda f, said=said, names=names: f"| {said} | {in_all_modes(f, *names)} |"
    )
    for said, names in {
        "episodes": ("episodes",),
        "steps of agents": ("agent_steps",),
        "goals reached": ("goals_reached",),
        "observed numbers": ("observed_numbers",),
        'differences where an agent vanished under `"soft"`': ("explained_by_follower",),
        "differences where an agent had left": ("explained_by_left",),
        "other differences": UNEXPLAINED,
    }.items()
]

BEFORE = {  # by row of the page: the part of the results and the name there
    "default lake, 4 agents on 8×8 with 11×11 windows: speed over the earlier one": (
        "default_lake",
        "4 agents, 8×8, 11×11",
    ),
    'the same with `observation="compact"`': ("default_lake", "4 agents, 8×8, compact"),
    "one env by `gym.make`": ("default_lake", "one env by gym.make"),
    "CPU seconds to the first step without compiled code, over the earlier ones": ("cold_compile", "first step"),
    "the same to the first boards and plan": ("cold_compile", "first boards and plan"),
}
LIFELONG = [
    *(
        Claim("docs/pogema.md", "lifelong", lambda f, row=row, name=name: f"{row} | {f['lifelong']['times_pogema'][name]:.0f}× | {f['lifelong']['least']}×")
        for row, name in {
            "agent-steps a second by `gym.make_vec`, over POGEMA's": "ego",
            'the same with `observation="pogema"`': "pogema",
        }.items()
    ),
    *(
        Claim("docs/pogema.md", "lifelong", lambda f, row=row, part=part, name=name: f"{row} | {f[part]['now_over_then'][name]:.3f} | {f[part].get('least', f[part].get('most')):.2f} |")
        for row, (part, name) in BEFORE.items()
    ),
]  # fmt: skip


def test_the_lake_is_as_fast_as_was_asked_for():
    figures = figures_of("lifelong")
    assert min(figures["lifelong"]["times_pogema"].values()) >= figures["lifelong"]["least"]
    assert min(figures["default_lake"]["now_over_then"].values()) >= figures["default_lake"]["least"]
    assert max(figures["cold_compile"]["now_over_then"].values()) <= figures["cold_compile"]["most"]


COUNTING = [
    Claim("docs/training.md", "curriculum_cost", lambda f: f"Counting adds {100 * f['sb3']['counting']:.1f} % to the CPU time of PPO…"
          f"and {100 * f['sb3']['with questions']:.1f} % with a question…It adds {100 * f['sync']['counting']:.1f} % to 1,024 lakes…"
          f"and {100 * f['vector']['counting']:.1f} % (the goal was 1)…A question to a rule takes {f['sb3']['question_ms']:.0f} ms"),
]  # fmt: skip

CLAIMS = [
    *COUNTING,
    *PATHS,
    *BESIDE_POGEMA,
    *LIFELONG,
    *THROUGHPUT,
    *BY_THE_CLOCK,
    *THREADS,
    *BOARDS,
    *SUITE,
    *LEARNING,
    *SMALL_MODEL,
    *INTROSPECTION,
    *REAL_MODEL,
    *READERS,
    *TOOL_USE,
]


@cache
def page(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").replace("**", "").split())


@cache
def figures_of(result: str) -> Figures:
    return json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))["figures"]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{Path(claim.page).stem}-{claim.result}")
def test_a_figure_on_a_page_is_the_stored_one(claim):
    parts = map(re.escape, claim.said(figures_of(claim.result)).split("…"))
    assert re.search(".{0,120}?".join(parts), page(claim.page))
