"""The libraries of the field, each run against the lake in an environment of its own: ``python -m clients``."""
