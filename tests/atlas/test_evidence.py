"""Fake engineers in every part: one that reads, one with a habit, one that draws lots; and the commands, end to end."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest
import yaml
from typer.testing import CliRunner

from engineers.model.chat import Completion
from engineers.model.context import context_named
from engineers.model.engineer import ModelEngineer
from envtuning.atlas.build import build
from envtuning.atlas.causes import DEVELOPMENT, EPISODES, HELD_OUT, KIND, falsified, report_of
from envtuning.atlas.evidence import altered, by_weakness, gains, planted
from envtuning.atlas.spec import load_atlas
from envtuning.atlas.store import read_trees
from envtuning.atlas.walk import Chooser, Step, by_name
from envtuning.cli import app
from tests.atlas.conftest import SMALL

MENU = {
    "keep": "first",
    "waits": {"slices": {3: {"share": 1.0, "hole_ratio": 0.25, "wait_ratio": 1.0}}},
    "holes": {"slices": {3: {"share": 1.0, "hole_ratio": 0.4, "wait_ratio": 0.0}}},
    "boards": {"slices": {4: {"share": 0.5, "hole_ratio": 0.1}, 5: {"share": 0.5, "hole_ratio": 0.1}}},
    "agents": {"num_agents": 3, "slices": {3: {"share": 1.0, "hole_ratio": 0.1, "wait_ratio": 0.0}}},
}


@pytest.fixture(scope="module")
def weak(tmp_path_factory):
    """Two trees with the closed-form learner; one is said to lack larger boards, the other waits."""
    folder, found = tmp_path_factory.mktemp("weak"), []
    for diagnosis in ("boards", "waits"):
        said = SMALL | {"name": f"weak-{diagnosis}", "depth": 1, "seeds": [5, 6], "menu": MENU, "diagnosis": diagnosis}
        file = folder / f"{diagnosis}.yaml"
        file.write_text(yaml.safe_dump(said | {"changes": SMALL["changes"] | {"target.num_agents": {2: 0.5, 3: 0.5}}}))
        spec = load_atlas(file)
        build(spec, folder / spec.name, folder / "work")
        found += read_trees(folder / spec.name, spec)
    return found


class Chat:
    model = "fake"

    def __init__(self, choose):
        self.choose = choose

    def complete(self, messages, schema, *, max_tokens):
        [(knob, said)] = schema["properties"]["config"]["properties"].items()
        legend = messages[-1]["content"].split("# The knobs")[1]
        letter = self.choose(messages[-1]["content"], said | {"legend": legend})
        return Completion(json.dumps({"reasons": [], "config": {knob: letter}}), 1, 1, 0.0)


class Mute:
    """Its answers are no configs: the current one goes on."""

    model = "mute"

    def complete(self, messages, schema, *, max_tokens):
        return Completion("", 1, 1, 0.0)


def mute(rest: str = "", **options) -> ModelEngineer:
    return ModelEngineer(Mute(), max_attempts=1, **options)


def reads(prompt, said):
    """Finds the cause in the report's own words, and the entry that answers it in the legend's."""
    waits = [line for line in prompt.splitlines() if "a wait is needed 0 of" in line]
    rows = prompt.split("## Results on validation")[1].split("##")[0]
    lost = dict(re.findall(r"- (\d): [^;\n]*; (.*)", rows))
    if "hole" in " ".join(lost.values()):
        wanted = r"hole ratio 0\.4"
    elif "3" not in lost and "5" in lost:
        wanted = r"5×5 50%"
    elif waits:
        wanted = r"wait ratio 1,"
    else:
        wanted = r"num agents 3"
    return re.search(rf"- (\w): .*{wanted}", said["legend"]).group(1)


def player(choose, **more):
    return Chooser(lambda tree, stage: ModelEngineer(Chat(choose), context="informed"), **more)


def in_all_parts(trees, choose):
    names = list(KIND)
    found = altered(
        trees[:1],
        lambda tree: {cause: report_of(cause, tree.report(())) for cause in names},
        falsified,
        player(choose),
        player(choose, shift=1, knob="variant"),
    )
    return found.same_totals, found.falsified, found.renamed


def test_who_reads_is_right_in_all_parts(weak):
    assert in_all_parts(weak, reads) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("causes", [DEVELOPMENT, HELD_OUT])
def test_reader_names_causes_that_it_was_not_written_on(weak, causes):
    asked = Chooser(by_name("reader", mode="menu"), hide_current=True)
    told = lambda tree: {cause: report_of(cause, tree.report(())) for cause in causes}  # noqa: E731
    found = altered(weak, told, falsified, asked, replace(asked, shift=1, knob="variant"))
    assert (found.same_totals, found.falsified, found.renamed, found.fallbacks) == (1.0, 1.0, 1.0, 0)
    assert set(DEVELOPMENT) | set(HELD_OUT) == set(KIND)


def test_a_habit_is_told_from_reading(weak):
    habit = lambda prompt, said: re.search(r"- (\w): .*hole ratio 0\.4", said["legend"]).group(1)  # noqa: E731
    assert in_all_parts(weak, habit) == (1 / 4, 1.0, 1.0)
    always_a = in_all_parts(weak, lambda prompt, said: "A")
    assert always_a[0] <= 1 / 4
    assert always_a[2] == 0.0  # a habit of letters is moved by other letters


def test_lots_are_right_by_chance_and_keep_nothing(weak):
    rng = random.Random(0)
    found = [in_all_parts(weak, lambda prompt, said: rng.choice(said["enum"])) for _ in range(20)]
    for part in zip(*found, strict=True):
        assert sum(part) / len(part) == pytest.approx(1 / 5, abs=0.15)


def test_planted_weaknesses_are_scored_by_what_following_them_brings(weak):
    class Knows:
        name = "knows"

        def __init__(self, chosen):
            self.chosen = chosen

        def step(self, tree, path):
            return Step(self.chosen(tree), {})

    rows = gains(weak)
    assert rows.keys() == {"boards", "waits"}
    for name, trees in by_weakness(weak).items():
        best = planted(trees, Knows(lambda tree: tree.spec.diagnosis))
        assert best.right == 1.0
        assert best.gain == best.followed == rows[name][name]
        keeps = planted(trees, Knows(lambda tree: "keep"))
        assert (keeps.right, keeps.gain.mean, rows[name]["keep"].mean) == (0.0, 0.0, 0.0)
        assert keeps.best.mean >= max(keeps.followed.mean, keeps.evenly.mean, keeps.evenly_but_keep.mean)


def test_causes_have_equal_totals_and_a_lie_is_one_number(weak):
    base = weak[0].report(())
    for cause in KIND:
        report = report_of(cause, base)
        assert sum(sum(result.failures.values()) for result in report.results) == 2 * EPISODES
        lie = falsified(report)
        before, after = (report.model_dump(), lie.model_dump())
        assert before.pop("results")[:-1] == after.pop("results")[:-1]
        assert before == after
        assert (
            sum(a != b for a, b in zip(str(report.results[-1]).split(), str(lie.results[-1]).split(), strict=True)) == 1
        )


def asked(*arguments):
    """What ``envtuning atlas`` answers."""
    return CliRunner().invoke(app, ["atlas", *map(str, arguments)])


def test_the_commands_end_to_end(stored, tmp_path):
    """Score with its file, and verify."""
    trees = tmp_path / "trees"
    trees.mkdir()
    (trees / "small").symlink_to(stored)
    file, figures = tmp_path / "small.yaml", tmp_path / "figures.json"
    file.write_text(yaml.safe_dump(SMALL))
    own = ("--tree", file, "--folder", trees)
    told = asked("score", "--engineer", "rules", "--engineer", "ladder", *own, "--json", figures)
    assert told.exit_code == 0, told.output
    assert all(name in told.stdout for name in ("rules", "ladder", "best path", "mean path", "Reliability of paths"))
    result = json.loads(figures.read_text())
    assert [one["engineer"] for one in result["standings"]] == ["rules", "ladder"]
    for one in result["standings"]:
        one["tree"] = str(file)
    figures.write_text(json.dumps(result))
    assert asked("verify", figures, "--folder", trees).exit_code == 0
    result["standings"][1]["walks"][0]["success"] = 0.99
    figures.write_text(json.dumps(result))
    refused = asked("verify", figures, "--folder", trees)
    assert refused.exit_code == 1
    assert "ladder on" in refused.output
    assert "seed 1" in refused.output


def test_evidence_is_asked_for_by_a_command(weak, tmp_path):
    folder = weak[0].folder.parent
    figures = tmp_path / "evidence.json"
    trees = [part for name in ("boards", "waits") for part in ("--tree", folder / f"{name}.yaml")]
    told = asked("evidence", *trees, "--folder", folder, "--engineer", f"{__name__}:mute", "--json", figures)
    assert told.exit_code == 0, told.output
    found = json.loads(figures.read_text())
    assert found["gains"].keys() == {"boards", "waits"}
    assert found["engineers"][f"{__name__}:mute"]["altered"]["fallbacks"] > 0


class Nameless:
    """Proposes, but lacks the name that an engineer has."""

    def propose(self, report, current, editable=None):
        raise NotImplementedError


def nameless(rest: str) -> Nameless:
    return Nameless()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("score", "--engineer", "server/x", "--context", "V9"), "'V9' is not a context"),
        (("evidence", "--context", "V9"), "'V9' is not a context"),
        (("score", "--tree", "nope"), "'nope' is neither a file nor a tree: the trees are"),
        (("evidence", "--tree", "corridors"), "corridors has no diagnosis"),
        (("score", "--engineer", "nobody"), "engineer 'nobody' is unknown"),
        (("score", "--engineer", "replay/nope"), "there is no transcript at"),
        (("score", "--folder", "nowhere"), "nowhere has no tree: envtuning atlas build"),
        (("score", "--engineer", f"{__name__}:nameless"), "made a Nameless, which is not an engineer: it needs a name"),
        (("verify", "nope.json"), "no such file"),
        (("build", "nope"), "'nope' is neither a file nor a tree"),
    ],
)
def test_what_the_caller_can_mend_ends_a_command_with_a_sentence(arguments, said, tmp_path):
    told = asked(*arguments, *(("--transcripts", tmp_path) if arguments[0] in ("score", "evidence") else ()))
    assert told.exit_code == 1
    assert said in told.output


def test_a_recorded_walk_is_replayed_without_a_model(stored, spec, tmp_path):
    from envtuning.atlas.distance import Distances
    from envtuning.atlas.rows import row_of
    from envtuning.atlas.walk import player_of, transcript_of

    trees = read_trees(stored, spec)
    rng = random.Random(1)

    def recording(tree, stage):
        return ModelEngineer(
            Chat(lambda prompt, said: rng.choice(said["enum"])), transcript=transcript_of(tmp_path, tree)
        )

    walked = row_of("drawn", trees, Chooser(recording))
    distances = Distances(spec.plan.world)
    again = row_of("drawn", trees, player_of(f"replay/{tmp_path}", "menu", distances))
    assert again.paths == walked.paths
    assert again.tokens == walked.tokens


@pytest.mark.parametrize("mode", ["menu", "free"])
def test_a_replay_refuses_a_question_that_differs_and_no_other(mode, tmp_path):
    """Deep enough for reports whose history names who wrote a config: three stages."""

    from engineers.model.transcript import read_transcript
    from envtuning.atlas.distance import Distances
    from envtuning.atlas.published import load
    from envtuning.atlas.walk import player_of, transcript_of, walk

    stored = load("small-corridors")
    tree, distances = stored.seeds[0], Distances(stored.spec.plan.world)

    def refused(player):
        steps = walk(tree, player).steps
        return [any("differs" in said for said in step.refusals) for step in steps]

    walk(tree, player_of(f"{__name__}:mute", mode, distances, transcripts=tmp_path))
    replay = player_of(f"replay/{tmp_path}", mode, distances)
    assert refused(replay) == [False, False, False]
    recorded = read_transcript(transcript_of(tmp_path, tree))
    other = [one.model_copy(update={"context": context_named("V1")}).model_dump_json() + "\n" for one in recorded]
    transcript_of(tmp_path, tree).write_text("".join(other))
    assert refused(player_of(f"replay/{tmp_path}", mode, distances)) == [True, True, True]
