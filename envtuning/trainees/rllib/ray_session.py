"""Ray for one machine or many: the same call, only the address differs."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext

from engineers.current_folder import is_imported_from

OBJECT_STORE = 200 * 1024**2  # bytes; a rollout of experience is a few tens of megabytes


def start_ray() -> None:
    """Use the Ray of this process, or the cluster that RAY_ADDRESS names, or start a small one of one's own on this machine.

    Another Ray on this machine, or the address file that a killed one left behind, is none of ours. Raises ``ConnectionError``
    where the named cluster does not answer.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # its advice would bury what a run prints
    if ray.is_initialized():
        return
    if named := os.environ.get("RAY_ADDRESS"):
        try:
            with _our_sigterm(), _out_of_a_strangers_folder():
                ray.init(log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConnectionError(
                f"RAY_ADDRESS={named}: no Ray answers there ({error}): start it, or unset RAY_ADDRESS and the run has one of its own"
            ) from error
        return
    with _our_sigterm(), _out_of_a_strangers_folder():
        ray.init(
            address="local",
            include_dashboard=False,
            object_store_memory=OBJECT_STORE,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )


@contextmanager
def _out_of_a_strangers_folder() -> Iterator[None]:
    """Ray's workers import from the folder that Ray was started in, before all others, also where this process does not."""
    with nullcontext() if is_imported_from() else chdir(sys.prefix):
        yield


@contextmanager
def _our_sigterm() -> Iterator[None]:
    """Ray sets its own handler of SIGTERM, which drains the node for long; at an ordinary end Ray stops all the same.

    While Ray starts, its handler leaves by ``SystemExit``: this process's handler is called in its place.
    """
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        if callable(ours):
            ours(signal.SIGTERM, None)
        raise
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)
