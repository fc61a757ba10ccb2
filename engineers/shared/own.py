"""A user's own code, named as ``package.module:object``: from an installed package or a file in the current directory.

Importing a module runs its code. So a name is trusted only if the user gave it: on the command line, as an argument in Python, or
with ``trust``. A name that stands only in a file, which another person may have written, is refused. That is how every process
begins, and ``trust`` only adds to it.
There are three kinds of names: ``package.module``, ``host:models.example.org`` and ``option:trainee.options.launch``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

KNOWN = ("engineers", "envtuning", "mapf_frozenlake", "stable_baselines3")  # packages that need no permission
HOST, OPTION = "host:", "option:"  # prefixes of the names of hosts and options
ADDRESS = re.compile(  # an address that every HTTP library reads in the same way: ASCII, at most one @, no backslash
    r"https?://(?:[\w.~%:-]*@)?(?P<host>\w(?:[\w.-]*\w)?|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:/[\w.~%+:/-]*)?(?:\?[\w.~%&=-]*)?",
    re.ASCII | re.IGNORECASE,
)
ADDRESSES = re.compile(r"https?://[^\s'\",}#]+")  # addresses in a longer text
# the module of each package.module:object in a name such as permuted/my.module:make
MODULES = re.compile(r"(?:^|/)\s*([\w.]+):[^\W\d]")
_trusted: frozenset[str] = frozenset()
_in_files: frozenset[str] = frozenset()  # modules and hosts that files named, which the user did not trust by then


class NotTrusted(ImportError):
    """Only a file names the module."""


def trust(names: Iterable[str]) -> None:
    """From now on a file may name these modules, hosts and options, too."""
    global _trusted
    _trusted |= {names} if isinstance(names, str) else frozenset(names)


@contextmanager
def also_trusting(names: Iterable[str]) -> Iterator[None]:
    """Trust these names, and whatever is trusted inside, until the end of the block."""
    global _trusted, _in_files
    before = _trusted, _in_files
    trust(names)
    try:
        yield
    finally:
        _trusted, _in_files = before


def trusted() -> frozenset[str]:
    """All that is trusted, to pass on to a process that this one starts."""
    return _trusted


def chosen(section: str, given: Mapping[str, Any], other: Any = None) -> None:
    """Trust what a caller in Python gives for a section of a run's file: these values at these places, and the modules and hosts in them.

    Those in ``other`` are trusted, too. But nothing is if one of these modules or hosts came from a file: the caller only passes it on.
    """
    names = chosen_in([given, other])
    if not names & _in_files:
        trust(names | {_with_value(f"{section}.{place}", value) for place, value in given.items()})


def note_file(content: Any) -> None:
    """The modules and hosts in a file's content count as named only in a file, unless they are trusted already."""
    global _in_files
    _in_files |= chosen_in(content) - _trusted


def chosen_in(value: Any) -> set[str]:
    """The names of the modules and hosts in a text, or in the texts of a list or mapping, however deep.

    Known packages need no trust. If one had it, files could set every option of what it holds.
    """
    found: set[str] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            hosts = (host_of(address) for address in ADDRESSES.findall(one))
            modules = set(MODULES.findall(ADDRESSES.sub("", one)))
            found |= {HOST + host for host in hosts if host} | {
                name for name in modules if name.partition(".")[0] not in KNOWN
            }
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
    return found


def code_of(name: str) -> str:
    """A fingerprint of the files of the modules that an engineer's name names, once they are imported; empty if it names none.

    Of ``gentle:make`` it is that of ``gentle.py``. Files that this one imports do not count.
    """
    modules = sorted(one for one in chosen_in(name) if not one.startswith(HOST))
    files = [Path(getattr(sys.modules.get(one), "__file__", None) or "") for one in modules]
    contents = [file.read_bytes() for file in files if file.is_file()]
    return hashlib.sha256(b"".join(contents)).hexdigest()[:8] if contents else ""


def is_trusted(name: str, kind: str = "") -> bool:
    """Whether the user named this module or a package that it is in; with a ``kind``, this option or the section that it is in."""
    parts = name.split(".")
    return any(kind + ".".join(parts[:end]) in _trusted for end in range(1, len(parts) + 1))


def is_trusted_option(place: str, value: Any = ...) -> bool:
    """Whether the user named this option, or the section of the run's file that it stands in, or gave this very value."""
    return is_trusted(place, OPTION) or (value is not ... and _with_value(place, value) in _trusted)


def is_trusted_host(host: str) -> bool:
    """Whether the user named this very host, or with a leading dot (``host:.example.org``) a domain that it is in."""
    hosts = {name.removeprefix(HOST).lower() for name in _trusted if name.startswith(HOST)}
    return host.lower() in hosts or any(name.startswith(".") and host.lower().endswith(name) for name in hosts)


def host_of(address: str) -> str | None:
    """The host of a plain ``http(s)://host:port/path``; None for an ambiguous address."""
    found = ADDRESS.fullmatch(address)
    return found["host"].strip("[]").lower() if found else None


def _with_value(place: str, value: Any) -> str:
    return f"{OPTION}{place}={json.dumps(value, default=repr)}"


def raise_unless_importable(module: str, known: Collection[str] = KNOWN) -> None:
    """Raises ``NotTrusted`` for a module that only a file names, unless it belongs to a known package."""
    if is_trusted(module) or module.partition(".")[0] in known:
        return
    raise NotTrusted(
        f"{module!r} is named only in a file, and importing it runs its code: if you trust it, add --trust {module} "
        f"(in Python: trust=[{module!r}])",
        name=module,
    )


def object_at(place: str, known: Collection[str] = KNOWN) -> Any:
    """The object at ``package.module:object``. Raises ``ImportError`` whose message fits after a caller's own words.

    Modules that the user trusts are also searched in the current directory, after all other places; an installed command
    would not look there. The error's ``name`` is the missing module, as in Python's own error.
    """
    module_name, _, attribute = place.partition(":")
    if not module_name or not attribute:
        raise ImportError(f"{place!r} cannot be imported (write package.module:object)", name=module_name)
    raise_unless_importable(module_name, known)
    here = str(Path.cwd())
    if is_trusted(module_name) and here not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        module = import_module(module_name)
    except ImportError as error:
        searched = f"; it is neither installed nor in {here}" if error.name == module_name else ""
        raise ImportError(f"{module_name!r} cannot be imported ({error}{searched})", name=error.name) from error
    except (ValueError, TypeError) as error:  # an empty or a relative module name
        raise ImportError(f"{module_name!r} cannot be imported ({error})", name=module_name) from error
    except (Exception, SystemExit) as error:  # its code raised an error or called exit
        cause = f"its code raised {type(error).__name__}: {error}"
        raise ImportError(f"{module_name!r} cannot be imported ({cause})", name=module_name) from error
    if not hasattr(module, attribute):
        raise ImportError(
            f"{module_name} has no {attribute!r} ({module_name} is {_place_of(module)})", name=module_name
        )
    return getattr(module, attribute)


def _place_of(module: ModuleType) -> str:
    if file := getattr(module, "__file__", None):
        return str(file)
    folders = list(getattr(module, "__path__", ()))  # a folder without an __init__.py counts as a module
    return f"the folder {folders[0]}" if folders else "a module of Python itself"


def declares(found: Any, kind: type) -> bool:
    """Whether this is a class of that kind, or a function whose return annotation says that it makes one.

    A callable is not enough, because ``os.system`` is one.
    """
    made = declared_by(found)
    if isinstance(made, str):  # an annotation that cannot be looked up here
        return made.strip("\"'").partition("[")[0].rpartition(".")[2] == kind.__name__
    return isinstance(made, type) and issubclass(made, kind)


def declared_by(found: Any) -> Any:
    """The class itself, or what a function's return annotation says that it makes."""
    made = found if isinstance(found, type) else _said_to_return(found)
    return getattr(made, "__origin__", made)


def _said_to_return(function: Any) -> Any:
    written = getattr(function, "__annotations__", {}).get("return")
    try:
        return get_type_hints(function).get("return", written)
    except Exception:  # names that exist only for the type checker
        return written
