"""A model's folder is data: safetensors, and nothing that names code. What else a format can do is never asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engineers import own, untrusted

# Said, and not left to the default, by which transformers asks at the keyboard whether a model's code is to be run.
WEIGHTS: dict[str, Any] = {"trust_remote_code": False, "use_safetensors": True}
NAMES_CODE = ("auto_map", "megatron_config")  # by which a model's or an adapter's config has a module imported


def raise_unless_data(model: str, place: str) -> None:
    """Raises ``ValueError`` for a folder with code of its own that a file names at this place."""
    folder = Path(model)
    if own.is_trusted_option(place) or not folder.is_dir():
        return
    for path in sorted([*folder.glob("*"), *folder.glob("*/*")]):
        if why := _code_in(path):
            raise ValueError(
                f"{path} {why}, and a model's folder that a file names holds data alone: remove it, or, if you trust it, add "
                f"--trust {own.OPTION}{place}"
            )


def _code_in(path: Path) -> str:
    if path.suffix == ".py":
        return "is code"
    if path.name not in ("config.json", "adapter_config.json", "tokenizer_config.json"):
        return ""
    try:
        said = untrusted.parsed(untrusted.read_bytes(path) or b"{}")
    except untrusted.NotReadable as error:
        return str(error)
    if not isinstance(said, dict):
        return ""
    if other := said.get("base_model_name_or_path"):
        return f"names another model to load ({str(other)!r:.100})"
    named = [name for name in NAMES_CODE if said.get(name)]
    return f"names code to run ({named[0]})" if named else ""
