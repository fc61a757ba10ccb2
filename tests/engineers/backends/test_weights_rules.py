"""A model that only a file names is data alone: no code, and weights in safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engineers.backends.weights import raise_unless_data


def test_an_index_names_safetensors_alone(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}), encoding="utf-8")
    raise_unless_data(str(tmp_path), "engineer.name")
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "evil.bin"}}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"index\.json names weights that are not safetensors \('evil\.bin'\)"):
        raise_unless_data(str(tmp_path), "engineer.name")
