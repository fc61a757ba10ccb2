"""Every curriculum: its state, saved under way and read by a new one, goes on as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mapf_frozenlake as mfl
from envtuning import EngineerCurriculum, Ladder
from envtuning.curriculum.curriculum import Curriculum, FunctionCurriculum
from envtuning.curriculum.samplers import Learnability, Pools, Thompson
from envtuning.errors import RunError
from envtuning.outcomes import Outcome


def lakes(share: float) -> mfl.LakeConfig:
    return mfl.LakeConfig(slices={2: {"share": share}, 3: {"share": 1 - share}}, num_agents=1)


STAGES = [lakes(0.75), lakes(0.5), lakes(0.25)]
MADE: dict[str, Callable[[], Curriculum]] = {
    "Ladder of models": lambda: Ladder(STAGES, threshold=0.5, window=10),
    "Ladder of dicts": lambda: Ladder([{"holes": 0.1}, {"holes": 0.2}, {"holes": 0.3}], threshold=0.5, window=10),
    "Ladder of what is no JSON": lambda: Ladder([abs, min, max], threshold=0.5, window=10),
    "Ladder of several kinds": lambda: Ladder([STAGES[0], {"holes": 0.2}, STAGES[2]], threshold=0.5, window=10),
    "EngineerCurriculum": lambda: EngineerCurriculum("rules", STAGES[0], target=STAGES[2], every=10),
    "Learnability": lambda: Learnability(STAGES[0], every=10),
    "Thompson": lambda: Thompson(STAGES[0], every=10),
    "Pools": lambda: Pools(STAGES[0], every=10),
    "FunctionCurriculum": lambda: FunctionCurriculum(lambda success: {"holes": 0.2} if success else {"holes": 0.1}),
    "FunctionCurriculum of models": lambda: FunctionCurriculum(lambda success: STAGES[success]),
}


def kinds(parent: type[Curriculum] = Curriculum) -> Iterator[type[Curriculum]]:
    for kind in parent.__subclasses__():
        if kind.__module__.startswith("envtuning.") and not kind.__abstractmethods__:
            yield kind
        yield from kinds(kind)


def test_every_kind_of_curriculum_is_here():
    assert {type(make()) for make in MADE.values()} == set(kinds())


class Steps(Curriculum):
    """Of a user: it keeps the first config."""

    config = STAGES[0]

    def observe(self, outcome: Outcome) -> None:
        pass

    def decide(self) -> None:
        return None


def test_a_state_without_the_config_is_refused(tmp_path: Path):
    steps = Steps()
    (tmp_path / "state.json").write_text(json.dumps(steps.state_dict() | {"config": None, "version": 7}))
    with pytest.raises(RunError, match="is not the state of this curriculum"):
        steps.load(tmp_path / "state.json")
    assert (steps.config, steps.version) == (STAGES[0], 0)


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("other", MADE)
def test_the_state_of_another_kind_is_refused_by_its_name(made: str, other: str):
    curriculum, saved = MADE[made](), MADE[other]()
    if type(curriculum) is type(saved):
        return
    with pytest.raises(RunError, match=f"this is the state of a {type(saved).__name__}, and the curriculum is a"):
        curriculum.load_state_dict(saved.state_dict())


def fed(curriculum: Curriculum, first: int, last: int) -> None:
    for number in range(first, last):
        curriculum.observe(Outcome(str(2 + number % 2), number % 3 > 0, float(number % 3 > 0)))
        curriculum.next()


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("before", [0, 4, 14])  # new, within the first stage, within the second
def test_a_saved_state_goes_on_in_a_new_curriculum(made: str, before: int, tmp_path: Path):
    whole, part, after = MADE[made](), MADE[made](), MADE[made]()
    fed(whole, 0, 40)
    fed(part, 0, before)
    part.save(tmp_path / "state.json")
    after.load(tmp_path / "state.json")
    assert after.config == part.config
    fed(after, before, 40)
    assert after.config == whole.config
    assert after.state_dict() == whole.state_dict()
    assert whole.version >= 2


@pytest.mark.parametrize("made", MADE)
def test_a_refused_state_has_changed_nothing(made: str, tmp_path: Path):
    saved, curriculum = MADE[made](), MADE[made]()
    fed(saved, 0, 14)
    fed(curriculum, 0, 4)
    before = curriculum.state_dict()
    unread = {"engineer", *curriculum.settings()}
    if "Ladder" in made or made == "FunctionCurriculum":  # the rung says it, or it may be anything
        unread |= {"config"}
    for part in saved.state_dict().keys() - unread:
        (tmp_path / "state.json").write_text(json.dumps(saved.state_dict() | {part: "damaged"}))
        with pytest.raises(RunError):
            curriculum.load(tmp_path / "state.json")
        assert curriculum.state_dict() == before, part


@pytest.mark.parametrize(
    ("wrote", "reads", "said"),
    [
        (
            MADE["EngineerCurriculum"],
            EngineerCurriculum("rules", STAGES[0], target=STAGES[2], every=20),
            "every=10, and every=20",
        ),
        (MADE["Pools"], Pools(STAGES[0], every=20), "every=10, and every=20"),
        (MADE["Ladder of models"], Ladder(STAGES, threshold=0.5, window=20), "window=10, and window=20"),
        (MADE["Ladder of models"], Ladder(STAGES, threshold=0.6, window=10), r"threshold=0\.5, and threshold=0\.6"),
        (
            lambda: EngineerCurriculum("rules", STAGES[0], target=STAGES[2], every=10, unit="steps"),
            MADE["EngineerCurriculum"](),
            "unit='steps', and unit='episodes'",
        ),
    ],
)
def test_a_state_that_was_written_with_another_setting_is_warned_of(
    wrote: Callable[[], Curriculum], reads: Curriculum, said: str
):
    with pytest.warns(UserWarning, match=f"^this state was written with {said} continues it$") as told:
        reads.load_state_dict(wrote().state_dict())
    assert len(told) == 1


@pytest.mark.parametrize(("made", "part"), [("Pools", "rates"), ("Thompson", "won"), ("Thompson", "lost")])
def test_a_state_with_too_few_numbers_is_refused(made: str, part: str, tmp_path: Path):
    curriculum = MADE[made]()
    before = curriculum.state_dict()
    (tmp_path / "state.json").write_text(json.dumps(before | {"version": 3, part: [0.25]}))
    with pytest.raises(RunError, match=f"{part} has no number for each slice"):
        curriculum.load(tmp_path / "state.json")
    assert curriculum.state_dict() == before
