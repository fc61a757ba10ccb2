"""Which trainee learns in which world: the table of docs/trainees.md, each cell of which trains for a moment or is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envtuning.errors import SpecError
from envtuning.trainees import KINDS, TraineeKind, make_trainee
from envtuning.worlds import make_world
from tests.bfcl.conftest import available
from tests.envtuning.gym_worlds import CorridorWorld
from tests.envtuning.text_worlds import GuessWorld
from tests.lazily import needed

PAGE = Path(__file__).parents[3] / "docs" / "trainees.md"
LAKE = {"num_agents": 2, "reward": "shaped", "horizon": 3, "slices": {3: {"hole_ratio": 0.2}}}
WORLDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "`lakes`": (make_world("lakes", style="short"), LAKE),
    "`lakes`, `mode: turns`": (make_world("lakes", mode="turns", style="short"), LAKE),
    "`tools`": (make_world("tools"), {}),
    "a `TextWorld`": (make_world("examples.five_tasks:world"), {"tasks": {"copy": {}}}),
    "a `TalkWorld`": (GuessWorld(), {"pieces": {40: {}}}),
    "a `GymWorld`": (CorridorWorld(), {"slices": {6: {}}}),
}
LAKES = {"num_envs": 4, "rollout": 16, "hidden": [8], "minibatch": 64}
GRPO = {
    "per_device_train_batch_size": 4, "gradient_accumulation_steps": 1, "steps_per_generation": 1, "num_generations": 2,
    "max_completion_length": 4,
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "ppo": LAKES,
    "rllib": LAKES,
    "sb3": {"num_envs": 2, "n_steps": 16, "batch_size": 16},
    "grpo": {"model": "a-model", "grpo": GRPO, "torch_threads": 1},
    "lm": {"width": 16, "layers": 1, "heads": 2, "batch": 4},
    "scripted": {},
    "exam": {},
}
UNIT = {"exam": "samples", "grpo": "samples", "lm": "samples"}
CELLS = [(kind, world) for kind in KINDS for world in WORLDS]
ELSEWHERE = {("grpo", "`tools`")}  # tests/bfcl/test_language.py trains it, in a minute


def learns(kind: str, heading: str) -> bool:
    """Whether a run of this trainee in this world is begun."""
    world, config = WORLDS[heading]
    target = world.config_type.model_validate(config)
    try:
        TraineeKind.named(kind).check(OPTIONS[kind], world, target, UNIT.get(kind, "env_steps"))
    except SpecError:
        return False
    return True


def table() -> str:
    rows = [("trainee", "its policy", *WORLDS), ("---",) * (len(WORLDS) + 2)]
    for kind in KINDS:
        cells = ("yes" if learns(kind, world) else "–" for world in WORLDS)
        rows.append((f"`{kind}`", TraineeKind.named(kind).form, *cells))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def shown(kind: str, heading: str) -> bool:
    """What the page says of a cell."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    headings = next((line for line in lines if line[:2] == ["trainee", "its policy"]), [])
    row = next(line for line in lines if line[0] == f"`{kind}`" and len(line) == len(headings))
    return row[headings.index(heading)] == "yes"


def trains(kind: str, heading: str, **options: Any) -> None:
    """A moment of training, and a game of what came of it."""
    world, given = WORLDS[heading]
    config = world.config_type.model_validate(given)
    held_out = world.draw(config, 2, seed=1, purpose="validation", exclude=())
    made = {"world": world, "capacity": world.capacity([config]), "exclude": (held_out,), **OPTIONS[kind], **options}
    trainee = make_trainee(kind, **made)
    try:
        spent = trainee.train(config, 16, seed=1)[UNIT.get(kind, "env_steps")]
        episodes = world.play(trainee.policy(), held_out, config, seed=2)
    finally:
        trainee.close()
    assert spent >= 16
    assert [episode.failure for episode in episodes if episode.failure == "policy_error"] == []
    assert len(episodes) == len(held_out)


def test_the_page_has_the_table_of_this_code():
    needed("ray", "trl", "stable_baselines3", extra="rllib")
    assert table() in PAGE.read_text(encoding="utf-8"), table()


@pytest.mark.parametrize(("kind", "heading"), [cell for cell in CELLS if not shown(*cell)])
def test_what_does_not_learn_there_is_refused_before_the_run(kind, heading):
    needed("ray", "trl", "stable_baselines3", extra="rllib")
    assert not learns(kind, heading)


ON = [cell for cell in CELLS if shown(*cell) and cell not in ELSEWHERE]


@pytest.mark.parametrize(("kind", "heading"), [cell for cell in ON if cell[0] not in ("rllib", "lm", "grpo")])
def test_what_learns_there_trains(kind, heading):
    needed("torch", "stable_baselines3", extra="sb3")
    if heading == "`tools`" and not available("v4"):
        pytest.skip("bfcl-eval is absent: make tools-data")
    trains(kind, heading)


@pytest.mark.ray
@pytest.mark.parametrize("heading", [heading for kind, heading in ON if kind == "rllib"])
def test_rllib_trains(heading, ray_session):
    trains("rllib", heading)


@pytest.fixture(scope="session")
def untaught(tmp_path_factory):
    """The folder of a language model that knows nothing."""
    needed("trl", extra="grpo")
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import sign_tokenizer

    folder, tokenizer = tmp_path_factory.mktemp("models") / "untaught", sign_tokenizer()
    small_model(tokenizer, 0, width=16, layers=1, heads=2).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("kind", "heading"), [cell for cell in ON if cell[0] in ("lm", "grpo")])
def test_a_language_model_trains(kind, heading, untaught):
    trains(kind, heading, **({"model": str(untaught)} if kind == "grpo" else {}))
