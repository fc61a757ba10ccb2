"""The loop: choose a config, train on it, validate, report, ask the engineer, and go round.

Read in this order: ``run`` (the loop itself), ``stage`` (one stage), ``validation``, ``report``, ``ask``, ``transitions``.
"""

from envtuning.loop.run import create, go, resume, start

__all__ = ["create", "go", "resume", "start"]
