"""Loads a model's folder as data: safetensors, and no code. Other features of a format are never used."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from engineers.shared import own, untrusted

# Explicit, because by default transformers asks at the keyboard whether to run a model's code.
WEIGHTS: dict[str, Any] = {"trust_remote_code": False, "use_safetensors": True}
NAMES_CODE = ("auto_map", "megatron_config")  # by which a model's or an adapter's config has a module imported


INDEX = "model.safetensors.index.json"  # of weights in several files
CONFIGS = ("config.json", "adapter_config.json", "tokenizer_config.json", INDEX)


def raise_unless_data(model: str, place: str, *, written: str | None = None, revision: str | None = None) -> None:
    """Raises ``ValueError`` for a model with its own code that only a file names at this place.

    The model is a folder. With a revision it may also be a name on the hub, whose configs are fetched. ``written`` is what stands
    at the place, if it is not the model alone.
    """
    folder = Path(model)
    if own.is_trusted_option(place, written or model):
        return
    paths = [*folder.glob("*"), *folder.glob("*/*")]
    if revision is not None and not folder.is_dir():
        paths = _fetched(model, revision)
    for path in sorted(paths):
        if why := _code_in(path):
            raise ValueError(
                f"{path} {why}, but a model named only in a file is accepted only if it holds data alone: remove it, "
                f"or, if you trust it, add --trust {own.OPTION}{place}"
            )


def _fetched(model: str, revision: str) -> list[Path]:
    from transformers.utils import cached_file

    found = []
    for name in CONFIGS:
        with suppress(OSError):  # there is no such file, or no hub; loading the model will then raise an error
            found.append(Path(cached_file(model, name, revision=revision)))
    return found


def _code_in(path: Path) -> str:
    if path.suffix == ".py":
        return "is code"
    if path.name not in CONFIGS:
        return ""
    try:
        settings = untrusted.parsed(untrusted.read_bytes(path) or b"{}")
    except untrusted.NotReadable as error:
        return str(error)
    if not isinstance(settings, dict):
        return ""
    if path.name == INDEX:
        files = settings.get("weight_map")
        names = map(str, files.values() if isinstance(files, dict) else ())
        others = [name for name in names if not name.endswith(".safetensors")]
        return f"names weights that are not safetensors ({others[0]!r:.100})" if others else ""
    if other := settings.get("base_model_name_or_path"):
        return f"names another model to load ({str(other)!r:.100})"
    named = [name for name in NAMES_CODE if settings.get(name)]
    return f"names code to run ({named[0]})" if named else ""
