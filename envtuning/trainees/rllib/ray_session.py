"""Ray for one machine or many: the same call, only the address differs."""

from __future__ import annotations

import logging
import os

OBJECT_STORE = 200 * 1024**2  # bytes; a rollout of experience is a few tens of megabytes


def start_ray() -> None:
    """Use the Ray that runs, or the cluster that RAY_ADDRESS names, or start a small one on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # its advice would bury what a run prints
    if ray.is_initialized():
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level=logging.ERROR)
    else:
        ray.init(
            include_dashboard=False,
            object_store_memory=OBJECT_STORE,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
