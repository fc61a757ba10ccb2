"""``make``: engineers by name. A name is a backend and, after a slash, that backend's model or file: ``openai/gpt-5-mini``.

An engineer of your own needs no name: ``package.module:factory`` or ``package.module:Class`` says where it is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from engineers.common_options import COMMON_FROM_FILE, COMMON_OPTIONS, raise_unless_numbers
from engineers.controls import ControlledEngineer, average, permuted, read_run
from engineers.engineer import Engineer, as_engineer
from engineers.from_file import PLAIN, allowed_in, not_allowed, raise_unless_allowed, reads
from engineers.guard import Guard
from engineers.model.context import Context, context_named
from engineers.shared.errors import UserError
from engineers.shared.own import chosen, code_of, declares, is_trusted_option, object_at, raise_unless_importable
from engineers.tiers import Tier

ENTRY_POINT_GROUP = "engineers.backends"

# Engineers without a model: name -> module:class, imported at first use. They take keyword options and nothing after the slash.
PLAIN_ENGINEERS: dict[str, str] = {
    "fixed": "engineers.plain.fixed:FixedEngineer",
    "random": "engineers.plain.random_search:RandomEngineer",
    "uniform": "engineers.plain.uniform:UniformEngineer",
    "rules": "engineers.plain.rules:RulesEngineer",
    "half-success": "engineers.plain.half_success:HalfSuccessEngineer",
    "progress-share": "engineers.plain.progress_share:ProgressShareEngineer",
    "failure-share": "engineers.plain.share_engineers:FailureShareEngineer",
    "give-up": "engineers.plain.share_engineers:GiveUpEngineer",
    "learning-progress": "engineers.plain.share_engineers:LearningProgressEngineer",
    "learnability": "engineers.plain.share_engineers:LearnabilityEngineer",
    "reader": "engineers.plain.reader:ReaderEngineer",
    "rising": "engineers.plain.rising:RisingEngineer",
    "steady": "engineers.plain.rising:SteadyEngineer",
    "once": "engineers.plain.rising:OnceEngineer",
    "schedule": "engineers.plain.schedule:ScheduleEngineer",
    "ladder": "engineers.plain.schedule:LadderEngineer",
    "target-only": "engineers.plain.open_loop:TargetOnlyEngineer",
    "warm-target": "engineers.plain.open_loop:WarmTargetEngineer",
    "mixture": "engineers.plain.open_loop:MixtureEngineer",
    "near-uniform": "engineers.plain.open_loop:NearUniformEngineer",
}

# Every backend of this package. A factory takes the text after the slash and keyword options.
BACKENDS: dict[str, str] = PLAIN_ENGINEERS | {
    "average": "engineers.registry:make_average",
    "permuted": "engineers.registry:make_permuted",
    "human": "engineers.human:make",
    "replay": "engineers.model.replay:make",
    "openai": "engineers.backends.openai:make",
    "gemini": "engineers.backends.gemini:make",
    "litellm": "engineers.backends.litellm:make",
    "server": "engineers.backends.compatible_server:make",
    "local": "engineers.backends.local:make",
}

DEFAULT_ENGINEER = "steady"

NEEDS_MODEL = {
    "openai": "openai/gpt-5-mini",
    "gemini": "gemini/gemini-2.5-flash",
    "litellm": "litellm/anthropic/claude-haiku-4-5",
    "server": "server/http://localhost:8000/v1#model",
    "local": "local/Qwen/Qwen3-4B",
    "replay": "replay/transcript.jsonl",
    "average": "average/rules",
    "permuted": "permuted/rules",
}

# Backends that ask a model over a network or on this machine, and bound each question by their option ``timeout``.
TIMED = ("openai", "gemini", "litellm", "server", "local")

IN_A_RUN = ("checkpoint", "base")  # the loop makes them, on its trainee's own model

CONTEXT_UNLESS_GIVEN = {"human": "full"}

POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


class UnknownEngineer(UserError, ValueError):
    """No backend has this name; the message lists those that exist."""


def make(name: str, **options: Any) -> Engineer:
    """The engineer of this name. Raises ``UnknownEngineer``, or ``ImportError`` with the command that installs its extra.

    ``feasible`` and ``max_drop`` are short for ``guard=Guard(feasible, max_drop)``. Any engineer accepts the ``COMMON_OPTIONS``,
    so that a loop can treat all engineers alike; an engineer accepts other options only if it has them. A factory gets the text
    after the slash and the options; a class gets only the options. The caller chose the name, so its module is trusted.
    """
    chosen("engineer", {"name": name}, options)
    return named_in_a_file(name, options)


def named_in_a_file(name: str, options: dict[str, Any]) -> Engineer:
    """The same for a name that the caller has from a file: it is made only if the user trusts its module."""
    backend, _, model = name.partition("/")
    if limits := {limit: options.pop(limit) for limit in ("feasible", "max_drop") if limit in options}:
        if "guard" in options:
            raise TypeError(f"{name!r}: give either guard or {' and '.join(limits)}")
        options["guard"] = Guard(**limits)
    factory = _factory(name)
    if backend in NEEDS_MODEL and not model:
        raise UnknownEngineer(f"{name!r} needs more after {backend}: write it as {NEEDS_MODEL[backend]!r}")
    is_class = isinstance(factory, type)
    if model and is_class:
        raise UnknownEngineer(f"{name!r}: {backend} takes nothing after the slash, only keyword options")
    parameters = list(inspect.signature(factory).parameters.values())
    if not is_class and not (parameters and parameters[0].kind in POSITIONAL):
        raise TypeError(
            f"{name!r}: {backend} does not take the text after the slash as its first argument: write make(rest, …)"
        )
    options = _without_unused(name, factory, options)
    raise_unless_numbers(factory, options)
    try:
        made = factory(**options) if is_class else factory(model, **options)
    except SystemExit as error:  # of somebody's own code: it would end the command without a word
        raise UnknownEngineer(
            f"{name!r} called exit({error.code!r}) while it was made: let it raise an error"
        ) from error
    try:
        return as_engineer(made)
    except TypeError as error:
        raise TypeError(f"{name!r} made {error}") from error


def make_average(engineer: str, *, reports: str | Path, **options: Any) -> ControlledEngineer:
    """A control: ENGINEER sees the mean outcomes of other runs, from the file ``reports``."""
    return average(named_in_a_file(engineer, options), read_run(Path(reports)))


@reads({"permutation": PLAIN})
def make_permuted(engineer: str, *, permutation: int = 0, **options: Any) -> ControlledEngineer:
    """A control: ENGINEER sees its outcomes under the names of other slices, exchanged by the permutation of this number."""
    return permuted(named_in_a_file(engineer, options), permutation)


def _without_unused(name: str, factory: Callable[..., Engineer], options: dict[str, Any]) -> dict[str, Any]:
    """The options without common ones that this engineer does not take. Raises ``TypeError`` for others that it does not take."""
    taken = _taken(factory)
    if taken is None:
        return options
    kept = {key: value for key, value in options.items() if key in taken or key not in COMMON_OPTIONS}
    if strangers := sorted(kept.keys() - taken):
        raise TypeError(f"{name!r} has no option {', '.join(strangers)}; it has {', '.join(sorted(taken)) or 'none'}")
    return kept


def needs_trainee(name: str) -> bool:
    """Whether it asks the model under training: then its maker passes the ``trainee``, and a ``timeout`` for a reply."""
    return getattr(_factory(name), "needs_trainee", False)


def raise_unless_from_file(name: str, options: Mapping[str, Any]) -> None:
    """Raises ``NotAllowed`` for an option in a run's file that this engineer takes only from its user."""
    backend, _, rest = name.partition("/")
    factory = _factory(name)
    allowed = allowed_in(factory, backend if ":" in backend else available()[backend])
    if allowed is None:
        return
    free = getattr(factory, "rest_from_file", False) or isinstance(factory, type) or not rest
    if not free and not is_trusted_option("engineer.name", name):
        raise not_allowed("engineer.name", name)
    taken = _taken(factory)
    # ``make`` refuses the others
    known = {name: value for name, value in options.items() if taken is None or name in taken}
    raise_unless_allowed("engineer.options", known, {**COMMON_FROM_FILE, **allowed})


def tier_named(name: str, **options: Any) -> Tier:
    """The tier of the engineer of this name with these options. Loads no model."""
    backend, _, rest = name.partition("/")
    if backend == "average":
        return Tier.FAMILY
    if backend == "permuted":
        return tier_named(rest, **{name: value for name, value in options.items() if name != "permutation"})
    if backend in PLAIN_ENGINEERS or backend == "replay" or ":" in backend:
        return named_in_a_file(name, options).tier
    context = options.get("context", CONTEXT_UNLESS_GIVEN.get(backend, "informed"))
    return (Context(**context) if isinstance(context, Mapping) else context_named(context)).tier


def own_code(name: str) -> str:
    """The fingerprint of an engineer of one's own (``code_of``), which is imported for it; empty for others. The caller chose the name."""
    chosen("engineer", {"name": name})
    backend, _, rest = name.partition("/")
    while backend in ("average", "permuted"):  # what they control may be one's own
        backend, _, rest = rest.partition("/")
    if ":" in backend:
        _imported(backend)
    return code_of(name)


def available() -> dict[str, str]:
    """Every backend's name and the ``module:factory`` that makes it, third parties' included."""
    return BACKENDS | {name: point.value for name, point in _third_parties().items() if name not in BACKENDS}


def what_it_does(backend: str) -> str:
    """The first sentence about an engineer of this package; of a third party's, which is not imported for this, where it is."""
    if backend not in BACKENDS:
        return available()[backend]
    said = inspect.cleandoc(object_at(BACKENDS[backend]).__doc__ or "").replace("``", "")
    return " ".join(re.split(r"(?<=\.)\s", said)[0].split())


def _factory(name: str) -> Callable[..., Engineer]:
    backend = name.partition("/")[0]
    if backend in BACKENDS:
        return object_at(BACKENDS[backend])
    # Before the entry points: to find these is to read the metadata of every installed package.
    if ":" in backend:
        return _imported(backend)
    if point := _third_parties().get(backend):
        if not is_trusted_option("engineer.name", name):
            raise_unless_importable(point.module)
        return point.load()
    if backend in IN_A_RUN:
        raise UnknownEngineer(
            f"engineer {backend!r} asks the model under training, so it exists in a run whose trainee is grpo alone: "
            f"give another engineer here, such as {NEEDS_MODEL['local']!r}"
        )
    close = "".join(f" (did you mean {one}?)" for one in get_close_matches(backend, available(), 1))
    raise UnknownEngineer(
        f"engineer {backend!r} is unknown{close}: give one of {', '.join(available())}, or your own as 'package.module:factory'"
    )


def _imported(place: str) -> Callable[..., Engineer]:
    """The object at ``package.module:factory``."""
    try:
        found = object_at(place)
    except ImportError as error:
        raise UnknownEngineer(
            f"engineer {place!r}: {error}: "
            "write 'package.module:factory' of an installed package or of a file in the current directory"
        ) from error
    if not declares(found, Engineer):
        raise UnknownEngineer(
            f"{place!r} is not declared as an engineer: name a class that derives from engineers.Engineer, or a function whose "
            "return annotation is such a class: def make(rest: str) -> Engineer"
        )
    return found


def _third_parties() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _taken(factory: Callable[..., Engineer]) -> set[str] | None:
    """The options that a factory names; None if it takes any."""
    if hasattr(factory, "named_options"):
        return factory.named_options()
    parameters = list(inspect.signature(factory).parameters.values())
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return {parameter.name for parameter in parameters[0 if isinstance(factory, type) else 1 :]}
