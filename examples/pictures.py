"""Draws the README's picture (five agents cross a lake by an optimal plan in which somebody must wait), and one of each map family.

python -m examples.pictures    # seconds
"""

from pathlib import Path

import mapf_frozenlake as mfl
from mapf_frozenlake.render import plan_frames, save_animation

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def main() -> None:
    config = mfl.LakeConfig.single(8, 5, hole_ratio=0.25, wait_ratio=1.0, min_distance=6)
    instance = mfl.generate(config, n=1, seed=7)[0]
    plan = mfl.solve(instance).plan
    IMAGES.mkdir(parents=True, exist_ok=True)
    print(save_animation(IMAGES / "lake.svg", plan_frames(instance, plan)))
    for family in ("maze", "rooms", "warehouse"):
        instance = mfl.generate(
            mfl.LakeConfig.single(13, 6, map_family=family, min_distance=10, shelf_length=4), n=1, seed=1
        )[0]
        print(save_animation(IMAGES / f"{family}.svg", plan_frames(instance, mfl.pibt(instance).plan)))


if __name__ == "__main__":
    main()
