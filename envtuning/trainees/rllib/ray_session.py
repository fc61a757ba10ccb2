"""Starts Ray for one machine or many: only the address differs."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext

from engineers.shared.current_folder import is_imported_from

OBJECT_STORE = 200 * 1024**2  # bytes; a rollout of experience is a few tens of megabytes


def start_ray() -> None:
    """Use the Ray of this process, or the cluster at RAY_ADDRESS, or else start a small one on this machine.

    Another Ray on this machine, or the address file of a killed one, is ignored. Raises ``ConnectionError`` if the named
    cluster does not answer.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # its advice would hide the run's own output
    if ray.is_initialized():
        return
    named = os.environ.get("RAY_ADDRESS")
    here = {"address": "local", "include_dashboard": False, "object_store_memory": OBJECT_STORE}
    try:
        with _our_sigterm(), _out_of_a_strangers_folder():
            ray.init(**({} if named else here), log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        if not named:
            raise
        raise ConnectionError(
            f"RAY_ADDRESS={named}: no Ray answers there ({error}): start it, or unset RAY_ADDRESS so that the run starts its own"
        ) from error


@contextmanager
def _out_of_a_strangers_folder() -> Iterator[None]:
    """Ray's workers import first from the folder in which Ray was started, even if this process does not. So start it elsewhere."""
    with nullcontext() if is_imported_from() else chdir(sys.prefix):
        yield


@contextmanager
def _our_sigterm() -> Iterator[None]:
    """Keep this process's handler of SIGTERM: Ray's own one drains the node, which takes long. Ray also stops at an ordinary end.

    While Ray starts, its handler raises ``SystemExit``; then this process's handler is called instead.
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
