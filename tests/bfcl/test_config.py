"""What a stage of tool use may ask for: each field's bounds, and the config that is meant where nothing is said."""

import pytest
from pydantic import ValidationError

from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES


def test_where_nothing_is_said_all_tasks_are_drawn_alike_with_the_tools_own_messages():
    assert BFCLConfig().model_dump() == {
        "slices": {split: {"share": 1.0} for split in SPLITS},
        "tools": dict.fromkeys(TOOL_CLASSES, 1.0),
        "max_turns": 8,
        "feedback": "standard",
        "hints": {},
        "reward": "progress",
        "pool_size": 0,
        "epochs": 1,
        "tool_style": "json",
        "reply_format": "readable",
    }


def config(path, value):
    """A config with this value at ``field`` or ``field.key``; ``share`` is that of a split."""
    field, _, key = path.partition(".")
    if field == "share":
        return BFCLConfig.model_validate({"slices": {"base": {"share": value}, "miss_func": {"share": 0.5}}})
    return BFCLConfig.model_validate({field: {key: value} if key else value})


@pytest.mark.parametrize(
    ("path", "allowed", "refused"),
    [
        ("share", (0.0, 1.0), (-1e-9, 1 + 1e-9, float("nan"))),
        ("tools.MathAPI", (0.0, 1.0), (-1e-9, 1 + 1e-9, float("nan"))),
        ("max_turns", (1, 8), (0, 9)),
        ("hints.cd: {}", ("", "x" * 400), ("x" * 401,)),
        ("pool_size", (0, 320), (-1, 321)),
        ("epochs", (1, 100), (0, 101)),
        ("slices.nowhere", (), ({"share": 1.0},)),
        ("slices.base", ({"share": 1.0},), ({"share": 1.0, "weight": 1.0}, {"share": 0.0})),
        ("turns", (), (3,)),
    ],
)
def test_a_field_takes_what_is_within_its_bounds(path, allowed, refused):
    for value in allowed:
        config(path, value)
    for value in refused:
        with pytest.raises(ValidationError):
            config(path, value)


def test_a_config_is_not_changed_once_it_is_made():
    with pytest.raises(ValidationError, match="frozen"):
        BFCLConfig().max_turns = 2
