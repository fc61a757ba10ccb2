"""``Toolbox``: one episode's tool instances. They can be called only by a whitelisted name, with literal arguments.

The instances belong to the toolbox and are freed with it; two toolboxes share nothing. A call's result is turned into text at once,
as in the official executor, so that a later call cannot change an earlier result.
"""

from __future__ import annotations

import copy
import decimal
import inspect
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

from envtuning.worlds.bfcl.bounds import over_bounds
from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.tasks import Task

# Attributes that the long-context scenario fills with the module's own dicts. They are copied; otherwise a booking in one episode
# would be charged to a card in the next.
SHARED_BY_THE_PACKAGE = {"TravelAPI": ("credit_card_list", "booking_record")}

_PRECISION = threading.Lock()


@dataclass(frozen=True)
class Result:
    """The outcome of a call."""

    text: str  # as the official executor prints it
    error: bool  # whether the text reports an error
    departure: str = ""  # why the call was not run as the official executor would have run it


class Toolbox:
    """The tools of one task in their first state."""

    def __init__(self, package: Package, task: Task) -> None:
        self.package = package
        self.instances: dict[str, Any] = {}
        self._methods: dict[str, tuple[str, Any, dict[str, tuple[int, Any]]]] = {}
        for class_name in task.classes:
            tool_class = package.tool_class(class_name)
            instance = tool_class()
            if class_name not in package.stateless:
                instance._load_scenario(json.loads(task.state_json[class_name]), long_context=task.long_context)
                if task.long_context:
                    for attribute in SHARED_BY_THE_PACKAGE.get(class_name, ()):
                        own = {key: dict(entry) for key, entry in getattr(instance, attribute).items()}
                        setattr(instance, attribute, own)
            self.instances[class_name] = instance
            for name, defaults in _public_methods(tool_class).items():
                # If two classes have a tool of this name, the later one counts.
                self._methods[name] = (class_name, instance, defaults)

    @property
    def names(self) -> list[str]:
        """The names of all tools that can be called."""
        return list(self._methods)

    def run(self, call: Call) -> Result:
        """Call the tool. An error inside it becomes the result's text; nothing that an agent writes makes this raise."""
        if call.name not in self._methods:
            departure = f"{call.name}: Python's own, and no tool" if self.package.executor_finds(call.name) else ""
            return Result(f"Error during execution: name '{call.name}' is not defined", True, departure)
        class_name, instance, defaults = self._methods[call.name]
        method = getattr(instance, call.name)
        if (reason := over_bounds(class_name, instance, call)) is not None:
            return Result(f"Error during execution: {reason}", True, f"{call.name}: {reason}")
        named = dict(call.named)
        for parameter, (place, default) in defaults.items():
            if parameter not in named and place >= len(call.positional):
                named[parameter] = default  # the method's own default is one list that all episodes share
        # Copies, because the tools keep their arguments.
        positional, named = copy.deepcopy(call.positional), copy.deepcopy(named)
        try:
            with _own_precision() if class_name == "MathAPI" else nullcontext():
                returned = method(*positional, **named)
                text = _as_text(returned)
        except Exception as error:  # the agent's mistake, in the benchmark's own words
            return Result(f"Error during execution: {_message(error)}", True)
        return Result(text, is_error(returned))


@cache
def _public_methods(tool_class: type) -> dict[str, dict[str, tuple[int, Any]]]:
    """The whitelist: a class's public methods, each with the parameters whose default a call could change."""
    methods: dict[str, dict[str, tuple[int, Any]]] = {}
    for name, method in inspect.getmembers(tool_class, predicate=inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = list(inspect.signature(method).parameters.values())[1:]
        methods[name] = {
            parameter.name: (place, copy.copy(parameter.default))
            for place, parameter in enumerate(parameters)
            if isinstance(parameter.default, list | dict | set)
        }
    return methods


@cache
def parameters_of(tool_class: type, name: str) -> list[str]:
    """The names of a tool's parameters, in order."""
    return list(inspect.signature(getattr(tool_class, name)).parameters)[1:]


def is_error(returned: Any) -> bool:
    """Whether a tool reports that the call failed."""
    if isinstance(returned, dict):
        return "error" in returned
    if isinstance(returned, list) and len(returned) == 1:
        return is_error(returned[0]) or (isinstance(returned[0], str) and returned[0].startswith("Error:"))
    return False


def _as_text(returned: Any) -> str:
    """The text that the official executor prints for a result: the response checker compares these texts."""
    if isinstance(returned, str):
        return returned
    if isinstance(returned, dict):
        try:
            return json.dumps(returned)
        except (TypeError, ValueError, RecursionError):  # JSON has no Decimal and no mpf
            return str(returned)
    return str(returned)


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # an argument with a number that is too long to print
        return type(error).__name__


@contextmanager
def _own_precision() -> Iterator[None]:
    """The maths tool sets the precision of decimal and mpmath for the whole process: it is restored before another thread's call."""
    import mpmath

    with _PRECISION, decimal.localcontext(), mpmath.workdps(mpmath.mp.dps):
        yield
