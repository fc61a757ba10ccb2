"""What the loop and a group of workers must know alike to talk to each other."""

from __future__ import annotations

# Environment variables of a worker:
ADDRESS, KEY = "ENVTUNING_WORKERS_ADDRESS", "ENVTUNING_WORKERS_KEY"
PLACES = "ENVTUNING_WORKERS_PATH"  # the loop's import path, so that the workers find the same modules


class StretchStopped(RuntimeError):
    """The loop has stopped this stretch of training. It is defined here because the loop cannot unpickle a class of a worker's main module."""
