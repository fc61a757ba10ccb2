"""A small tree with the closed-form learner, built once."""

from __future__ import annotations

import pytest
import yaml

from envtuning.atlas.build import build
from envtuning.atlas.spec import load_atlas
from envtuning.atlas.store import read_trees

SMALL = {
    "name": "small",
    "preset": "scripted",
    "changes": {
        "suites.validation_per_slice": 6,
        "suites.test_per_slice": 12,
        "suites.probe_per_slice": 2,
        "suites.validate_every": None,
        "suites.failure_cases": 1,
    },
    "seeds": [1, 2],
    "depth": 2,
    "root_budget": 2000,
    "stage_budget": 3000,
    "menu": {
        "easy": "first",
        "target": "target",
        "crowded": {"slices": {5: {"share": 1.0, "hole_ratio": 0.5, "wait_ratio": 1.0}}},
        "any": "uniform",
    },
}


@pytest.fixture(scope="session")
def spec(tmp_path_factory):
    file = tmp_path_factory.mktemp("atlas") / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    return load_atlas(file)


@pytest.fixture(scope="session")
def stored(spec, tmp_path_factory):
    """The folder of the tree's seeds."""
    folder = tmp_path_factory.mktemp("stored")
    build(spec, folder, tmp_path_factory.mktemp("work"))
    return folder


@pytest.fixture(scope="session")
def trees(spec, stored):
    return read_trees(stored, spec)
