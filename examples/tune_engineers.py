"""Search over engineers, seeds and learning rates with Ray Tune; stop it at any time, call it again and it continues.

python examples/tune_engineers.py --preset scripted --out runs/search    # about a minute on two cores
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from ray import tune

from envtuning.studies.tune import trainable
from envtuning.trainees.rllib.ray_session import start_ray


def main(
    preset: str = "scripted", out: str = "runs/search", engineers: str = "rules,fixed,random", seeds: int = 2,
    stages: int | None = None, concurrent: int = 2,
) -> tune.ResultGrid:  # fmt: skip
    start_ray()
    place = Path(out).resolve()
    space = {
        "preset": preset,
        "engineer": tune.grid_search(engineers.split(",")),
        "seed": tune.grid_search(list(range(seeds))),
        "runs": str(place / "runs"),
    }
    if stages is not None:
        space["stages"] = stages
    if preset != "scripted":
        space["trainee"] = {"lr": tune.loguniform(3e-4, 3e-3)}
    experiment = place / "search"
    if tune.Tuner.can_restore(str(experiment)):
        tuner = tune.Tuner.restore(str(experiment), trainable, restart_errored=True, param_space=space)
    else:
        tuner = tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(metric="valid_rate", mode="max", max_concurrent_trials=concurrent),
            run_config=tune.RunConfig(name="search", storage_path=str(place), verbose=1),
        )
    results = tuner.fit()
    for line in by_engineer([result.metrics for result in results if not result.error]):
        print(line)
    return results


def by_engineer(trials: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each engineer, the best mean first. The best single trial would be the luckiest seed."""
    rates: dict[str, list[float]] = {}
    for trial in trials:
        rates.setdefault(trial["config"]["engineer"], []).append(trial["valid_rate"])
    ordered = sorted(rates.items(), key=lambda item: -fmean(item[1]))
    return [
        f"{name}: {fmean(found):.3f} valid, the mean of {len(found)} trials ({min(found):.3f} to {max(found):.3f})"
        for name, found in ordered
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="scripted")
    parser.add_argument("--out", default="runs/search")
    parser.add_argument("--engineers", default="rules,fixed,random")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--stages", type=int)
    parser.add_argument("--concurrent", type=int, default=2)
    main(**vars(parser.parse_args()))
