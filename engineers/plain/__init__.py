"""Engineers without a model: functions of the report, the current config and a seed."""

from engineers.plain.base import Design, PlainEngineer

__all__ = ["Design", "PlainEngineer"]
