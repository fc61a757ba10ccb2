"""Fuzzing of everything that reads text or files from outside. One module per target, each with ``run(n, seed) -> dict``."""
