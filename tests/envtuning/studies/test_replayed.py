"""A folder of runs whose engineer was asked is replayed in ``compare`` without it: the same configs, and no other question answered."""

from __future__ import annotations

import pytest

from engineers.model.chat import Completion
from engineers.model.engineer import ModelEngineer
from engineers.registry import tier_named
from engineers.tiers import Tier
from envtuning.runs.log import RunLog
from envtuning.studies.compare import compare
from envtuning.studies.study import folder_name
from tests.answers import answer_of
from tests.envtuning.counting_runs import spec_of

FIRST = (0.5, 0.9)  # levels that runs begin with: their questions differ


class Counting:
    """Answers with a level that depends on how often it was asked, by anybody."""

    model = "fake/counting"
    asked = 0

    def complete(self, messages, schema, *, max_tokens):
        type(self).asked += 1
        level = round(0.01 * type(self).asked, 2)
        return Completion(answer_of({"level": level}), 1, 1, 0.0)


def counting(rest: str = "", **options) -> ModelEngineer:
    return ModelEngineer(Counting(), context="V1", **options)


ASKED = f"{__name__}:counting"


def spec(first):
    return spec_of({"config": {"level": first}}, {}, {})


def levels(out, arm):
    run = RunLog.open(out / folder_name(arm) / "seed0")
    return [stage.chosen.config.level for stage in run.state.stages]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    out = tmp_path_factory.mktemp("asked")
    for first in FIRST:
        compare(spec(first), [ASKED], [0], out / str(first))
    return out


def test_compare_replays_a_folder_of_many_runs(asked, tmp_path):
    replay = f"replay/{asked}"
    for first in FIRST:
        again = compare(spec(first), [replay], [0], tmp_path / str(first))
        assert [one.fallbacks for one in again.runs] == [0]
        assert levels(tmp_path / str(first), replay) == levels(asked / str(first), ASKED)
    assert Counting.asked == 2 * len(FIRST), "nobody was asked again"
    assert tier_named(replay) == Tier.REPORT, "what its context showed"


def test_a_run_that_asks_something_else_gets_no_answer(asked, tmp_path):
    other = compare(spec(0.7), [f"replay/{asked}"], [0], tmp_path)
    assert [one.fallbacks for one in other.runs] == [2]
    assert levels(tmp_path, f"replay/{asked}") == [0.7, 0.7, 0.7]
