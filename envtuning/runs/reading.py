"""A run's file as data: YAML or JSON from any source, read within bounds. Nothing in it is executed."""

from __future__ import annotations

import datetime
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engineers.redaction import is_secret_name
from engineers.shared.extras import needs
from engineers.shared.untrusted import NotReadable

try:
    import yaml
except ImportError as error:
    raise needs("a run", error) from None

LONGEST = 1_000_000  # characters of a file
DEEPEST = 50  # levels of nesting
LONGEST_NUMBER = 400  # characters of a number; the largest float has 309 digits
MOST = 100_000  # values, with the repetitions by YAML's anchors
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_mapping(text: str) -> dict[str, Any]:
    """The mapping in a YAML or JSON text. Raises ``NotReadable``."""
    data = _read(text, _json if text.lstrip().startswith("{") else _yaml)
    if not isinstance(data, dict):
        raise NotReadable(f"holds {type(data).__name__}, not a mapping: write names with values, as in name: value")
    return data


def read_value(text: str) -> Any:
    """One YAML value, as after ``--set key=``. Raises ``NotReadable``."""
    return _read(text, _yaml)


def _read(text: str, load: Callable[[str], Any]) -> Any:
    if len(text) > LONGEST:
        raise NotReadable(f"has {len(text):,} characters, at most {LONGEST:,} are read")
    try:
        value = load(text)
    except RecursionError:
        raise NotReadable(f"is nested too deeply: at most {DEEPEST} levels are read") from None
    except NotReadable:
        raise
    except (ValueError, yaml.YAMLError) as error:  # also a number of thousands of digits, a date that there is not
        raise NotReadable(f"is neither YAML nor JSON: {error}") from error
    raise_unless_bounded(value)
    return value


def raise_unless_bounded(data: Any) -> None:
    """Raises ``NotReadable`` for data that is nested too deep, or that YAML's anchors make too large."""
    waiting, count = [(data, 1)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > DEEPEST:
            raise NotReadable(f"is nested too deeply: at most {DEEPEST} levels are read")
        if count > MOST:
            raise NotReadable(f"holds more than {MOST:,} values, counting those that anchors repeat: write fewer")
        for leaf in (value, *value) if isinstance(value, dict) else (value,):
            _raise_unless_writable(leaf)
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple | set) else ()
        waiting += [(one, depth + 1) for one in inner]


def _raise_unless_writable(leaf: Any) -> None:
    if isinstance(leaf, str) and not leaf.isascii() and LONE_SURROGATE.search(leaf):
        raise NotReadable(f"holds half of a character ({leaf!r:.60}): write the character itself")
    if isinstance(leaf, int) and abs(leaf) > sys.float_info.max:
        raise NotReadable(
            f"holds a number of {int(leaf.bit_length() * math.log10(2)) + 1} digits: give one below 1e308"
        )


def storable(options: dict[str, Any]) -> dict[str, Any]:
    """The options. Raises ``ValueError`` for a value that a file cannot hold unchanged."""
    for place, value in _places(options):
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{place}={value}: give a finite number, because a file cannot hold this one")
        if isinstance(value, bytes | set | datetime.date | datetime.time):
            raise ValueError(f"{place} is of type {type(value).__name__}: give numbers, texts, lists or mappings")
    return options


def without_secrets(options: dict[str, Any]) -> dict[str, Any]:
    """The options. Raises ``ValueError`` for a secret, because a run's files are plain text."""
    for place, value in _places(options):
        last = place.rpartition(".")[2].replace("-", "_").split("_")[-1]  # of its words, as `key_of` is no key
        if isinstance(value, str) and value and is_secret_name(last):
            raise ValueError(
                f"{place}: a run's files are plain text, so no key goes there; put it into the provider's environment "
                "variable"
            )
    return options


def _places(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every value by its dotted place, outer values before inner ones."""
    waiting: list[tuple[str, Any]] = [(str(name), value) for name, value in options.items()]
    while waiting:
        place, value = waiting.pop()
        yield place, value
        inner = (
            value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else ()
        )
        waiting += [(f"{place}.{name}", one) for name, one in inner]


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise NotReadable(f"has the key {name!r:.60} twice in one mapping: write it once")
        found[name] = value
    return found


def _no_constant(name: str) -> float:
    raise NotReadable(f"has the number {name}: give a finite one")


class _Loader(yaml.SafeLoader):
    """YAML's safe loader without what surprises: equal keys, of which it takes the last one; merge keys, which repeat mappings before
    anybody counts them; and numbers to base 60, such as 1:30.
    """

    def flatten_mapping(self, node: Any) -> None:
        if merge := next((key for key, _ in node.value if key.tag == "tag:yaml.org,2002:merge"), None):
            raise NotReadable(f"has the merge key << (line {merge.start_mark.line + 1}): write the values out")

    def construct_number(self, node: Any) -> int | float:
        if len(node.value) > LONGEST_NUMBER:
            raise NotReadable(
                f"has a number of {len(node.value):,} characters (line {node.start_mark.line + 1}): give a shorter one"
            )
        if ":" in node.value:
            raise NotReadable(
                f"has {node.value!r:.60} (line {node.start_mark.line + 1}), which YAML reads as a number to base 60: put it in quotes"
            )
        integer = node.tag == "tag:yaml.org,2002:int"
        found: int | float = self.construct_yaml_int(node) if integer else self.construct_yaml_float(node)
        return found

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key, _ in node.value:
            name = (key.tag, str(key.value))
            if name in seen:
                raise NotReadable(
                    f"has the key {str(key.value)!r:.60} twice in one mapping (line {key.start_mark.line + 1}): write it once"
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_number)
_Loader.add_implicit_resolver(  # as in YAML 1.2: 3e-4 is a number although it has no dot
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$"), list("-+.0123456789")
)


def _yaml(text: str) -> Any:
    return yaml.load(text, Loader=_Loader)
