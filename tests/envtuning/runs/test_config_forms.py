"""A run keeps its configs as JSON. Whatever form a config's class has, every later step gets the config that was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer

from envtuning import loop
from envtuning.runs.log import RunLog
from envtuning.runs.spec import SpecError, load_spec
from tests.envtuning.counting_world import CountWorld

SAID: dict[str, Any] = {"description": "How hard it is.", "ge": 0.0, "le": 1.0}


class Aliased(BaseModel):
    """Its files have other names than its fields."""

    level: float = Field(0.1, alias="theLevel", **SAID)


class Computing(BaseModel):
    """Its JSON would have a key that it does not read."""

    model_config = ConfigDict(extra="forbid")
    level: float = Field(0.1, **SAID)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> float:
        return 2 * self.level


class Strict(BaseModel):
    """Takes a tuple for a tuple, but from JSON, which has none."""

    model_config = ConfigDict(strict=True)
    level: float = Field(0.1, **SAID)
    span: tuple[int, int] = Field((1, 2), description="From and to.")


class Forgetful(BaseModel):
    """What it writes is not what it holds."""

    level: float = Field(0.1, **SAID)

    @field_serializer("level")
    def _rounded(self, level: float) -> float:
        return round(level, 1)


class OwnWorld(CountWorld):
    """Its configs have no hint that validation would take from training."""

    def validated_as(self, target: Any, config: Any) -> Any:
        return target


class AliasedWorld(OwnWorld):
    config_type = Aliased


class ComputingWorld(OwnWorld):
    config_type = Computing


class StrictWorld(OwnWorld):
    config_type = Strict


class ForgetfulWorld(OwnWorld):
    config_type = Forgetful


def file_of(folder: Path, world: str, target: dict[str, Any], first: dict[str, Any]) -> Path:
    file = folder / "mine.yaml"
    text = {
        "world": f"{__name__}:{world}",
        "trainee": {"kind": "tests.envtuning.counting_world:CountTrainee"},
        "engineer": {"name": "rules"},
        "target": target,
        "stages": [{"budget": 1000, "config": first}, {"budget": 1000}],
        "suites": {"validation_per_slice": 4, "test_per_slice": 2, "probe_per_slice": 2, "validate": "stages"},
    }
    file.write_text(yaml.safe_dump(text))
    return file


@pytest.mark.parametrize(
    ("world", "target", "first"),
    [
        ("AliasedWorld", {"theLevel": 0.4}, {"theLevel": 0.3}),
        ("ComputingWorld", {"level": 0.4}, {"level": 0.3}),
        ("StrictWorld", {"level": 0.4, "span": [3, 4]}, {"level": 0.3, "span": [5, 6]}),
    ],
)
def test_what_a_run_trains_and_tests_on_is_what_its_file_says(tmp_path, world, target, first):
    spec = load_spec(file_of(tmp_path, world, target, first))
    CountWorld.played.clear()
    run = loop.start(spec, tmp_path / "run")
    made = run.plan.configs[0]
    assert (run.plan.target.level, made.level) == (0.4, 0.3)
    assert {config.level for _, config in CountWorld.played if config is not None} <= {0.4, 0.3}
    again = RunLog.open(run.path)
    assert again.plan.spec == run.plan.spec
    assert again.state.stages[0].chosen.config == made
    report = again.state.stages[0].report
    assert report.target == target
    assert report.config == first
    chosen = again.state.stages[1].chosen
    assert chosen.config.model_copy(update={"level": 0.3}) == made
    assert chosen.config == chosen.proposal.config


def test_a_config_that_forgets_what_it_holds_is_refused_before_anything_is_trained(tmp_path):
    spec = load_spec(file_of(tmp_path, "ForgetfulWorld", {"level": 0.44}, {"level": 0.3}))
    with pytest.raises(SpecError, match="target: the config cannot be restored from its own JSON"):
        loop.start(spec, tmp_path / "run")
    assert not (tmp_path / "run").exists()
