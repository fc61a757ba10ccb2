"""A model's folder is data: safetensors, and nothing that names code. What else a format can do is never asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engineers import own, untrusted

# Said, and not left to the default, by which transformers asks at the keyboard whether a model's code is to be run.
WEIGHTS: dict[str, Any] = {"trust_remote_code": False, "use_safetensors": True}
NAMES_CODE = (
    "auto_map",
    "megatron_config",
)  # fields of a model's and an adapter's config by which a module is imported


def raise_unless_data(model: str) -> None:
    """Raises ``ValueError`` for a folder that a file names and that has code of its own."""
    folder = Path(model)
    if own.trusted() is None or not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".py":
            raise ValueError(
                f"{path} is code, and a model's folder that a file names holds data alone: remove it if you do not need it"
            )
        if path.name in ("config.json", "adapter_config.json", "tokenizer_config.json"):
            try:
                said = untrusted.parsed(untrusted.read_bytes(path) or b"{}")
            except untrusted.NotReadable as error:
                raise ValueError(f"{path} {error}: bring the model's folder back from a copy") from error
            if named := [name for name in NAMES_CODE if isinstance(said, dict) and said.get(name)]:
                raise ValueError(
                    f"{path} names code to run ({named[0]}), and a model's folder that a file names holds data alone"
                )
