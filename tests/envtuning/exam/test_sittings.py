"""The exam as a product: the same report as everywhere, equal results however they are made, and files that are not believed."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.lazily import needed

needed("torch", extra="exam")

import torch  # noqa: E402

import engineers  # noqa: E402
from engineers import Completion, ModelEngineer  # noqa: E402
from engineers.knobs import dump, find_knobs  # noqa: E402
from engineers.model.transcript import read_transcript  # noqa: E402
from engineers.proposal import Proposal  # noqa: E402
from engineers.registry import UnknownEngineer  # noqa: E402
from engineers.report import SliceResult  # noqa: E402
from engineers.roles import find_slices, shares_of  # noqa: E402
from envtuning import atomic  # noqa: E402
from envtuning.cli import app_with  # noqa: E402
from envtuning.cli import exam_report as report  # noqa: E402
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum  # noqa: E402
from envtuning.errors import RunError, SpecError  # noqa: E402
from envtuning.exam import sheet  # noqa: E402
from envtuning.exam.families import CODES, NAMED, Family, is_what_it_says  # noqa: E402
from envtuning.exam.hall import KEPT, WITHOUT_A_MODEL, Hall, papers, root_by_root  # noqa: E402
from envtuning.exam.reading import Rates, as_of_others, plainly, rates_of  # noqa: E402
from envtuning.exam.roots import tasks_of  # noqa: E402
from envtuning.exam.scores import part_of, scores  # noqa: E402
from envtuning.exam.session import Session, Shown, Start  # noqa: E402
from envtuning.exam.sitting import BOUNDS, EVEN, Paper, Sitting, examined, reading, replayed, sit, trained  # noqa: E402
from envtuning.exam.trainee import HeldOut  # noqa: E402
from envtuning.loop.run import start  # noqa: E402
from envtuning.runs.log import RunLog  # noqa: E402
from envtuning.runs.spec import RunSpec, load_spec  # noqa: E402
from envtuning.testing import check_trainee, check_world  # noqa: E402
from envtuning.trainees import make_trainee  # noqa: E402
from envtuning.trainees.process_state import set_threads  # noqa: E402
from envtuning.worlds import make_world  # noqa: E402
from envtuning.worlds.world import fingerprints_of  # noqa: E402

ROOT = Path(__file__).parents[3]
SMALL = Family(
    name="small", mastered=2, lacking=2, hopeless=1, half_right=1, coins=1, letters=6, lengths=(3,), width=16, layers=1,
    updates=12, batch=14, pretrain=6, warm=2,
)  # fmt: skip
ROOMY = SMALL.model_copy(
    update={"name": "roomy", "letters": 20, "lengths": (4,)}
)  # so many questions that none is drawn twice
STARTS = [Start(0), Start(1)]
QUIET = Console(file=open(os.devnull, "w"))  # noqa: SIM115


@pytest.fixture(scope="module", autouse=True)
def own_folder(tmp_path_factory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENVTUNING_EXAM", str(tmp_path_factory.mktemp("roots")))
        patch.setitem(NAMED, "small", SMALL)
        patch.setitem(NAMED, "roomy", ROOMY)
        yield


def paper(engineer: str, **given) -> Paper:
    return Paper(**{"engineer": engineer, "family": SMALL, "root": 0, "decisions": 3} | given)


class Half(engineers.Engineer):
    """Keeps each report, and gives the first half of the tasks all data."""

    name = "half"
    seen: ClassVar[list] = []

    def propose(self, report, current, editable=None):
        self.seen.append(report)
        tasks = {
            name: knobs | {"share": float(place < 3)}
            for place, (name, knobs) in enumerate(current.model_dump()["tasks"].items())
        }
        return Proposal(config=type(current).model_validate({"tasks": tasks}), reasons=[], engineer=self.name)


class Hostile(engineers.Engineer):
    """Another way to fail at every question."""

    name = "hostile"
    ways = iter(())

    def propose(self, report, current, editable=None):
        way = [lambda: time.sleep(60), lambda: float("nan"), lambda: "x" * 10_000_000, lambda: 1 / 0][report.stage % 4]
        tasks = {name: {"share": way()} for name in current.model_dump()["tasks"]}
        return Proposal(config=type(current).model_construct(tasks=tasks), reasons=[], engineer=self.name)


def test_the_engineer_reads_exactly_what_training_showed():
    Half.seen.clear()
    asked = paper(f"{__name__}:Half")
    session = Session(SMALL, [asked.start], asked.decisions)
    engineers.make(asked.engineer)  # the caller's choice is trusted
    curriculum = examined(asked, session, None, {})
    shown = session.train(np.ones((1, SMALL.tasks)))
    for half, part in enumerate((slice(0, 28), slice(28, 56))):
        cut = Shown(*(column[:, part] for column in shown))
        curriculum.observe_many(*reading(asked, session.tasks[0])(cut, half))
    curriculum.next()
    [told] = Half.seen
    for row in told.training_results:
        mine = shown.task[0] == int(row.name.removeprefix("task-"))
        assert row.episodes == mine.sum()
        assert row.metrics["success_rate"] == pytest.approx(shown.success[0][mine].mean())
        assert row.metrics["score"] == pytest.approx(shown.score[0][mine].mean())
        first = mine[:28].sum()
        assert (row.halves[0].episodes if row.halves[0] else 0) == first
    assert told.rounds_left == 2
    assert told.blind_scores.keys() == {f"task-{task}" for task in range(SMALL.tasks)}
    assert len(set(told.blind_scores.values())) == 1  # each task's own would tell which are hopeless
    assert "share of the answer's letters" in told.score_in_words


def test_an_engineer_s_shares_are_trained_with_and_replay():
    sitting = sit(paper(f"{__name__}:Half"))
    assert sitting.shares[0] == pytest.approx([1 / 7] * 7)
    assert sitting.shares[1] == sitting.shares[2] == pytest.approx([1 / 3] * 3 + [0] * 4)
    assert replayed(sitting.paper, sitting.shares) == sitting.success
    assert sitting.failures == []


@pytest.mark.parametrize("engineer", [*WITHOUT_A_MODEL, *BOUNDS])
def test_everyone_sits_and_twice_alike(engineer):
    one = sit(paper(engineer))
    assert one == sit(paper(engineer)) == Sitting.model_validate_json(one.model_dump_json())
    assert one.failures == []
    assert all(sum(part) == pytest.approx(1) or engineer in BOUNDS for part in one.shares)


def test_who_only_reads_success_is_told_no_score():
    Half.seen.clear()
    sit(paper(f"{__name__}:Half", reads="success"))
    assert all(row.metrics["score"] == row.metrics["success_rate"] for row in Half.seen[0].training_results)
    assert not Half.seen[0].blind_scores
    assert not Half.seen[0].score_in_words


def shown_of(tasks, count=4_000, seed=0) -> Shown:
    rng = np.random.default_rng(seed)
    task = rng.integers(0, SMALL.tasks, (1, count))
    score = np.clip(task / 10 + rng.normal(0, 0.05, task.shape), 0, 1)
    return Shown(task, score > 0.3, score, np.zeros_like(task, bool))


def test_shuffled_scores_tell_the_kind_and_no_more():
    tasks = tasks_of(SMALL, 0)
    shown = shown_of(tasks)
    told = plainly("shuffled scores", tasks, np.random.default_rng(0))(shown, 0)
    for kind in range(5):
        rows = tasks.kind[shown.task[0]] == kind
        assert told.scores is not None
        assert sorted(told.scores[rows]) == sorted(shown.score[0][rows])
        of = np.unique(shown.task[0][rows])
        means = [told.scores[rows & (shown.task[0] == task)].mean() for task in of]
        assert max(means) - min(means) < 0.03


def test_a_yoked_run_has_its_own_counts_and_the_donors_rates():
    tasks = tasks_of(SMALL, 0)
    donor, own = shown_of(tasks), shown_of(tasks, seed=1)
    own = own._replace(success=~own.success, score=1 - own.score)
    rates = rates_of([[donor]], SMALL.tasks)
    told = as_of_others(rates, tasks, np.random.default_rng(0))(own, 0)
    assert (told.slices == np.array(tasks.names)[own.task[0]]).all()
    for task in range(SMALL.tasks):
        of = own.task[0] == task
        assert told.successes[of].mean() == pytest.approx(donor.success[donor.task == task].mean(), abs=0.08)


def test_the_donor_of_a_model_is_a_rule_so_that_the_model_is_asked_once():
    tasks, shown = tasks_of(SMALL, 0), shown_of(tasks_of(SMALL, 0))
    model, rule = (
        Paper(engineer=name, family=SMALL, root=0, decisions=3, reads="yoked")
        for name in ("server/http://127.0.0.1:9/v1#nobody", "rising")
    )
    of_model, of_rule = (reading(paper, tasks)(shown, 0) for paper in (model, rule))
    assert (of_model.successes == of_rule.successes).all()


def test_rates_of_a_task_without_answers_stay():
    alone = np.array([[False, False]])
    first, second = (
        Shown(np.array([[0, 1]]), np.array([[True, False]]), np.array([[1.0, 0.5]]), alone),
        Shown(np.array([[0, 0]]), np.array([[False, True]]), np.array([[0.0, 1.0]]), alone),
    )
    rates = rates_of([[first, second]], 3)
    assert rates.success.tolist() == [[1, 0, 0.5], [0.5, 0, 0.5]]
    assert rates.score.tolist() == [[1, 0.5, 0.75], [0.5, 0.5, 0.75]]
    assert isinstance(rates, Rates)


def test_a_hostile_engineer_ends_in_a_marked_row(tmp_path):
    name = f"{__name__}:Hostile"
    asked = papers([name], [SMALL], STARTS, decisions=6)
    engineers.shared.own.trust([__name__])
    found = Hall(tmp_path, timeout=0.5).sittings(asked)
    hostile = [one for one in found if one.paper.engineer == name]
    even = [one for one in found if one.paper.engineer == "even"]
    assert [one.success for one in hostile] == [one.success for one in even]  # shares stayed as they were
    assert all(len(one.failures) == 5 for one in hostile)
    assert all(len(why) <= 200 for one in hostile for why in one.failures)
    row = next(one for one in scores(found) if one.engineer == name)
    assert (row.failed, row.decided) == (10, 10)


def constructed(current, tasks):
    return type(current).model_construct(tasks=tasks)


def validated(current, tasks):
    return type(current).model_validate({"tasks": tasks})


ALL = [f"task-{task}" for task in range(SMALL.tasks)]
WRONG_SLICES = {
    "all shares are 0": (validated, {name: {"share": 0.0} for name in ALL}, "all shares are 0"),
    "0, past the validators": (constructed, {name: {"share": 0.0} for name in ALL}, "all shares are 0"),
    "only some": (validated, {ALL[0]: {"share": 1.0}}, "'task-5', 'task-6' are gone: keep them"),
    "none": (validated, {}, "'task-5', 'task-6' are gone: keep them"),
    "one too many": (constructed, {name: {"share": 1.0} for name in [*ALL, "task-99"]}, "tasks.task-99: Extra inputs"),
    "one unknown": (validated, {"task-99": {"share": 1.0}}, "task-99"),
    "below 0": (constructed, {name: {"share": -1.0} for name in ALL}, "greater than or equal to 0"),
    "no numbers": (constructed, {name: {"share": object()} for name in ALL}, "cannot be written as JSON"),
}


class WrongSlices(engineers.Engineer):
    """Proposes tasks and shares that nothing can be trained on."""

    name = "wrong-slices"
    way = staticmethod(validated)
    tasks: ClassVar[dict] = {}

    def propose(self, report, current, editable=None):
        return Proposal(config=self.way(current, self.tasks), reasons=[], engineer=self.name)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("way", "tasks", "why"), WRONG_SLICES.values(), ids=WRONG_SLICES)
def test_wrong_slices_of_a_rule_end_in_a_marked_row(way, tasks, why, monkeypatch):
    monkeypatch.setattr(WrongSlices, "way", staticmethod(way))
    monkeypatch.setattr(WrongSlices, "tasks", tasks)
    name = f"{__name__}:WrongSlices"
    engineers.shared.own.trust([__name__])
    found = [sit(paper(who)) for who in (*BOUNDS, name)]
    assert found[-1].success == found[0].success  # shares stayed as they were
    assert len(found[-1].failures) == 2
    assert all(why in one for one in found[-1].failures)
    row = next(one for one in scores(found) if one.engineer == name)
    assert (row.failed, row.decided) == (2, 2)


class WrongModel:
    """Says the same whatever it is asked."""

    model = "openai/gpt-5-mini"
    said = ""

    def complete(self, messages, schema, *, max_tokens):
        return Completion(self.said, prompt_tokens=10, completion_tokens=10)


def wrong_model(rest: str, **options) -> ModelEngineer:
    return ModelEngineer(WrongModel(), **options)


def turned(shares: dict[str, float]) -> str:
    changes = [{"path": f"tasks.{name}.share", "reason": "so", "value": share} for name, share in shares.items()]
    return json.dumps({"changes": changes})


WRONG_ANSWERS = {
    "all shares are 0": (turned(dict.fromkeys(ALL, 0.0)), "all shares are 0"),
    "one unknown": (turned({"task-99": 1.0}), "task-99"),
    "one below 0": (turned({"task-0": -1.0}), "task-0"),
    "only some": (json.dumps({"tasks": {"task-0": {"share": 1.0}}}), "answer with"),
}


@pytest.mark.parametrize(("said", "why"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_wrong_slices_of_a_model_end_in_a_marked_row(said, why, monkeypatch):
    monkeypatch.setattr(WrongModel, "said", said)
    engineers.shared.own.trust([__name__])
    found = sit(paper(f"{__name__}:wrong_model"))
    assert found.success == sit(paper("even")).success
    assert len(found.failures) == 2
    assert all(why in one for one in found.failures)


OWN = """
import sys

import engineers
from engineers.proposal import Proposal

class Mine(engineers.Engineer):
    name = "mine"

    def propose(self, report, current, editable=None):
        tasks = {name: {"share": share} for share, name in zip((PARTS), current.model_dump()["tasks"])}
        return Proposal(config=type(current).model_validate({"tasks": tasks}), engineer=self.name)
"""


def sat(folder: Path, parts: str, *words: str) -> tuple[str, dict]:
    """What the command says of this engineer, and what it writes."""
    (folder / "exam_mine.py").write_text(OWN.replace("PARTS", parts))
    sys.modules.pop("exam_mine", None)  # as in the next process
    importlib.invalidate_caches()
    given = [
        "--family",
        "small",
        "--engineer",
        "exam_mine:Mine,permuted/exam_mine:Mine",
        "--roots",
        "1",
        "--decisions",
        "3",
    ]
    found = CliRunner().invoke(app_with(["exam"]), ["exam", *given, "--out", "out", "--json", "mine.json", *words])
    assert found.exit_code == 0, found.output
    return found.output, json.loads((folder / "mine.json").read_text())


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    sys.modules.pop("exam_model_mine", None)  # as in a process of its own
    importlib.invalidate_caches()
    return tmp_path


def test_kept_sittings_do_not_outlive_the_code_of_their_engineer(here):
    said, first = sat(here, "1, 0, 0, 1, 0, 0, 0")
    assert said.startswith("5 sittings")
    said, again = sat(here, "1, 0, 0, 1, 0, 0, 0")
    assert said.startswith("0 sittings")
    assert again == first
    said, changed = sat(here, "0, 1, 1, 0, 1, 1, 1")
    assert said.startswith("2 sittings")  # those of the bounds stay
    assert [one["success"] for one in changed["sittings"][:3]] == [one["success"] for one in first["sittings"][:3]]
    for old, new in zip(first["sittings"][3:], changed["sittings"][3:], strict=True):
        assert old["shares"] != new["shares"]
        assert len(new["paper"]["code"]) == 8
    said, before = sat(here, "1, 0, 0, 1, 0, 0, 0")
    assert said.startswith("0 sittings")
    assert before == first


@pytest.mark.parametrize("wrapped", ["", "permuted/", "average/permuted/"])
def test_code_is_told_apart_before_anything_has_imported_it(here, wrapped):
    codes = []
    for parts in ("1, 0", "0, 1"):
        (here / "exam_mine.py").write_text(OWN.replace("PARTS", parts))
        sys.modules.pop("exam_mine", None)  # as in the next process
        importlib.invalidate_caches()
        codes.append(papers([f"{wrapped}exam_mine:Mine"], [SMALL], [Start(0)])[-1].code)
    assert len(set(codes)) == 2
    assert "" not in codes
    with pytest.raises(UnknownEngineer, match="'exam_none' cannot be imported"):
        papers([f"{wrapped}exam_none:Mine"], [SMALL], [Start(0)])


def test_a_model_s_tag_is_no_code(here):
    assert papers(["litellm/ollama/llama3:latest"], [SMALL], [Start(0)])[-1].code == ""


def test_results_from_before_code_was_told_apart_are_read(here, honest):
    old = json.loads(honest.read_text())
    for one in old["sittings"]:
        assert one["paper"].pop("code") == ""
    (here / "old.json").write_text(json.dumps(old))
    assert faults(here / "old.json") == []
    lines = "".join(json.dumps(one) + "\n" for one in old["sittings"])
    atomic.make_folder(here / "out")
    (here / "out" / KEPT).write_text(lines)
    found = Hall(here / "out").sittings(papers(["rising", "thompson"], [SMALL], STARTS, decisions=3))
    assert (here / "out" / KEPT).read_text() == lines
    assert len(found) == len(old["sittings"])


def test_an_engineer_that_calls_exit_has_failed(here):
    said, found = sat(here, "sys.exit(3)")
    assert said.count("2 of 2") == 2  # in the column of what failed
    for one in found["sittings"][3:]:
        assert len(one["failures"]) == 2
        assert "failed (SystemExit: 3 (exam_mine.py, line 11))" in one["failures"][0]
    said, found = sat(here, "report.no_such_part")
    assert "(exam_mine.py, line 11)); the current config is kept" in found["sittings"][3]["failures"][0]


def test_dollars_of_a_model_without_a_price_cannot_be_capped(here):
    pytest.importorskip("openai")
    words = ["exam", "--engineer", "rising,server/http://127.0.0.1:9/v1#nobody", "--max-cost", "0.05"]
    result = CliRunner().invoke(app_with(["exam"]), words)
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert (
        "--max-cost cannot be kept, because no price is known for server/http://127.0.0.1:9/v1#nobody: leave it out"
        in said
    )
    assert not list(here.iterdir())


OWN_MODEL = """
from engineers import Completion, ModelEngineer

class Parrot:
    model = "openai/gpt-5-mini"  # whose price is known

    def complete(self, messages, schema, *, max_tokens):
        shown = messages[-1]["content"]
        return Completion(shown[shown.rindex('{"changes"'):], prompt_tokens=1000, completion_tokens=1000)

def make(rest, **options) -> ModelEngineer:
    return ModelEngineer(Parrot(), context="V1", **options)
"""


def test_dollars_are_capped_for_a_model_of_ones_own_too(here):
    (here / "exam_model_mine.py").write_text(OWN_MODEL)
    words = [
        "exam",
        "--engineer",
        "exam_model_mine:make",
        "--family",
        "small",
        "--roots",
        "1",
        "--decisions",
        "3",
        "--out",
    ]
    failures = []
    for cap in ("1", "0.0001"):
        result = CliRunner().invoke(app_with(["exam"]), [*words, cap, "--max-cost", cap])
        assert result.exit_code == 0, result.output
        *_, last = (here / cap / KEPT).read_text().splitlines()
        failures.append(json.loads(last)["failures"])
    free, capped = failures
    assert free == []
    assert len(capped) == 2
    assert all("the next question may cost" in why for why in capped)


def test_questions_of_a_model_of_ones_own_are_kept_and_replay_without_it(here):
    (here / "exam_model_mine.py").write_text(OWN_MODEL)
    words = ["--family", "small", "--roots", "2", "--decisions", "3"]
    ends = []
    for name, out in (("exam_model_mine:make", "mine"), ("replay/mine/transcripts", "again")):
        result = CliRunner().invoke(app_with(["exam"]), ["exam", "--engineer", name, *words, "--out", out])
        assert result.exit_code == 0, result.output
        ends.append([one.end for one in Hall(here / out).kept().values() if one.paper.engineer == name])
        (here / "exam_model_mine.py").unlink(missing_ok=True)
        assert len(list((here / out / "transcripts").rglob("transcript.jsonl"))) == 2
    assert ends[0] == ends[1]
    assert all(not one.failures for one in Hall(here / "again").kept().values())


def test_calls_that_differ_in_what_is_asked_keep_their_questions_apart(here):
    """In one folder; a replay of the folder finds each, and beside the questions stands what came of them."""
    (here / "exam_model_mine.py").write_text(OWN_MODEL)
    ends, again = {}, {}
    calls = {
        "0-0": (),
        "0-0-success": ("--reads", "success"),
        "0-0-4": ("--decisions", "4"),
        "0-0-4-success": ("--decisions", "4", "--reads", "success"),
    }
    for name, out, found in (("exam_model_mine:make", "mine", ends), ("replay/mine/transcripts", "again", again)):
        for call, words in calls.items():
            given = ["--family", "small", "--roots", "1", "--first", "0", "--engineer", name, "--out", out, *words]
            result = CliRunner().invoke(app_with(["exam"]), ["exam", *given])
            assert result.exit_code == 0, result.output
            sitting = [one for one in Hall(here / out).kept().values() if one.paper.engineer == name][-1]
            assert sitting.failures == []
            found[call] = sitting.end
            [place] = [
                path for path in (here / out / "transcripts").rglob("transcript.jsonl") if path.parent.name == call
            ]
            decided = sitting.paper.decisions - 1
            assert [one.stage for one in read_transcript(place)] == list(range(decided))
            lines = map(json.loads, place.with_name("configs_transcript.jsonl").read_text().splitlines())
            parts = [[knobs["share"] for knobs in one["config"]["tasks"].values()] for one in lines]
            assert [np.divide(part, sum(part)).tolist() for part in parts] == [
                pytest.approx(part) for part in sitting.shares[1:]
            ]
    assert ends == again


def test_a_changed_model_of_ones_own_is_asked_anew(here):
    failed = []
    for written in (OWN_MODEL, OWN_MODEL.replace("shown = messages", "shown = 1 / 0 or messages")):
        (here / "exam_model_mine.py").write_text(written)
        sys.modules.pop("exam_model_mine", None)  # as in the next process
        importlib.invalidate_caches()
        words = ["--engineer", "exam_model_mine:make", "--family", "small", "--roots", "1", "--decisions", "3"]
        result = CliRunner().invoke(app_with(["exam"]), ["exam", *words, "--out", "out"])
        assert result.exit_code == 0, result.output
        *_, last = (here / "out" / KEPT).read_text().splitlines()
        failed.append(len(json.loads(last)["failures"]))
    assert failed == [0, 2]


def test_a_model_s_row_is_told_beside_the_first_rule(here):
    (here / "exam_model_mine.py").write_text(OWN_MODEL)
    said = []
    for names in ("once,exam_model_mine:make", "exam_model_mine:make", "once,rising"):
        words = ["--engineer", names, "--family", "small", "--roots", "3", "--decisions", "3", "--out", "out"]
        result = CliRunner().invoke(app_with(["exam"]), ["exam", *words, "--jobs", "1", "--json", "mine.json"])
        assert result.exit_code == 0, result.output
        said.append(" ".join(result.output.split()))
    both, alone, no_model = said
    assert "exam_model_mine:make, points over the rule once: unknown, because once is not among the engineers." in alone
    assert "points over the rule" not in no_model
    found = {one.paper.engineer: [] for one in Hall(here / "out").kept().values()}
    for one in Hall(here / "out").kept().values():
        found[one.paper.engineer].append(one.end)
    over = 100 * np.mean(np.subtract(found["exam_model_mine:make"], found["once"]))
    [shown] = re.findall(r"exam_model_mine:make, points over the rule once: (\S+) \(\S+ \S+\) on small\.", both)
    assert float(shown) == pytest.approx(over, abs=0.051)


def outcome(folder: Path, *words: str, hash_seed: str = "0") -> bytes:
    command = [sys.executable, "-c", CALL, str(folder), *words]
    env = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True)
    return (folder / "mine.json").read_bytes()


CALL = f"""
import sys
from pathlib import Path
from typing import ClassVar

from envtuning.exam.families import NAMED, Family
from envtuning.cli import app_with
NAMED["small"] = Family.model_validate_json({SMALL.model_dump_json()!r})
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    app_with(["exam"])(["exam", "--family", "small", "--engineer", "rising,thompson,random", "--roots", "3", "--decisions", "3",
                        "--out", str(folder / "out"), "--json", str(folder / "mine.json"), *sys.argv[2:]])
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> bytes:
    """What one process finds."""
    return outcome(tmp_path_factory.mktemp("alone") / "one", "--jobs", "1")


def test_equal_bytes_in_another_process_with_one_worker_or_two(alone, tmp_path):
    assert outcome(tmp_path / "two", "--jobs", "2", hash_seed="7") == alone


def test_untold_an_exam_has_a_worker_for_each_core_unless_a_model_may_be_asked(monkeypatch):
    jobs = {}
    for cores in (1, 2, 64):
        monkeypatch.setattr(report, "available_cores", lambda cores=cores: cores)
        jobs[cores] = report.jobs_for(WITHOUT_A_MODEL)
        assert report.jobs_for(["rising", "thompson"]) == jobs[cores]
        for asks in ("human", "local/somewhere", "openai/gpt-5-mini", "replay/there", "permuted/rising", "mine:make"):
            assert report.jobs_for(["rising", asks]) == 1
    assert jobs == {1: 1, 2: 2, 64: report.MOST_JOBS}


@pytest.mark.ray
@pytest.mark.slow
def test_equal_bytes_on_a_ray_cluster(tmp_path):
    pytest.importorskip("ray")
    few = ("--engineer", "rising", "--roots", "1")
    assert outcome(tmp_path / "one", *few, "--jobs", "1") == outcome(tmp_path / "ray", *few, "--ray")


@pytest.mark.parametrize("words", [("--jobs", "1"), ()], ids=["one worker", "a worker for each core"])
def test_a_killed_exam_continues(alone, words, tmp_path):
    folder = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-c", CALL, str(folder), *words], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    kept = folder / "out" / KEPT
    while process.poll() is None and not (kept.exists() and kept.read_bytes().count(b"\n") > 1):
        time.sleep(0.001)
    process.kill()
    process.wait()
    had = kept.read_bytes()
    assert 1 < had.count(b"\n") < 18
    kept.write_bytes(had.rpartition(b"\n")[0] + b'\n{"paper": {"engin')  # the last line, cut off
    assert outcome(folder, *words) == alone
    assert kept.read_bytes().startswith(had[: had.index(b"\n")])


def test_the_processes_of_an_exam_that_is_asked_to_end_end_with_it(tmp_path):
    def asked_to_end(sitting):
        raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    with pytest.raises(KeyboardInterrupt):
        Hall(tmp_path, jobs=2).sittings(papers(["once"], [SMALL], STARTS, decisions=3), asked_to_end)
    end = time.monotonic() + 5  # left alone, they would begin and work for longer
    while set(multiprocessing.active_children()) - before:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert len(Hall(tmp_path).kept()) == 1


def test_a_sitting_is_kept_when_it_ends_though_one_before_it_goes_on(tmp_path, monkeypatch):
    others, ended = threading.Event(), []

    def slow_at_first(asked, **told):
        if asked.engineer == EVEN:
            assert others.wait(20), "the others were not kept"
        return Sitting(paper=asked, success=[0.5], shares=[])

    def end(one):
        ended.append(one.paper.engineer)
        if len(Hall(tmp_path).kept()) == 2:
            others.set()

    monkeypatch.setattr("envtuning.exam.hall.processes", ThreadPoolExecutor)
    monkeypatch.setattr("envtuning.exam.hall.sit", slow_at_first)
    asked = papers([], [SMALL], STARTS[:1], decisions=3)
    found = Hall(tmp_path, jobs=2).sittings(asked, end)
    assert ended[-1] == EVEN
    assert [one.paper for one in found] == asked  # in the order in which they were asked for


@pytest.mark.parametrize("ray", [False, True])
def test_an_exam_that_is_done_begins_no_process(tmp_path, monkeypatch, ray):
    asked = papers([], [SMALL], STARTS[:1], decisions=3)
    done = Hall(tmp_path).sittings(asked)
    monkeypatch.setattr("envtuning.exam.hall.processes", None)
    monkeypatch.setattr("envtuning.exam.hall._cluster", None)
    assert Hall(tmp_path, jobs=2, ray=ray).sittings(asked) == done


def test_an_exam_says_when_its_roots_are_trained():
    assert report.ahead(18) == "18 sittings; each root is trained before its first one"


@pytest.mark.parametrize("jobs", [1, 2])
def test_sittings_begin_before_the_last_root_is_trained_and_each_root_is_trained_once(jobs, tmp_path, monkeypatch):
    happened, first = [], threading.Event()

    def trained_slowly(family, root):
        if root == 3:
            assert first.wait(20), "no sitting had begun"
        happened.append(f"root {root}")

    def sat(asked, **told):
        happened.append(f"sitting on {asked.root}")
        first.set()
        return Sitting(paper=asked, success=[0.5], shares=[])

    asked = papers([], [SMALL], [Start(root) for root in range(4)], decisions=3)
    works = [(one, partial(sat, one)) for one in asked]
    monkeypatch.setattr("envtuning.exam.hall.root", trained_slowly)
    with ThreadPoolExecutor(2) as pool:
        assert len(list(root_by_root(pool, works, jobs))) == len(asked)
    assert [happened.count(f"root {root}") for root in range(4)] == [1] * 4
    assert all(happened.index(f"root {root}") < happened.index(f"sitting on {root}") for root in range(4))


def test_a_look_at_what_is_kept_leaves_the_line_that_another_exam_is_writing(tmp_path):
    done = sit(paper("even")).model_dump_json()
    half = f"{done}\n{done[:40]}"
    (tmp_path / KEPT).write_text(half)
    assert len(Hall(tmp_path).kept()) == 1
    assert (tmp_path / KEPT).read_text() == half


def test_a_folder_in_place_of_what_is_kept_is_refused_in_a_sentence(tmp_path):
    (tmp_path / KEPT).mkdir()
    with pytest.raises(RunError, match="is damaged"):
        Hall(tmp_path).kept()


def test_a_folder_that_is_no_exam_s_is_refused(tmp_path):
    (tmp_path / KEPT).write_text('{"paper": 3}\n')
    with pytest.raises(RunError, match="is damaged"):
        Hall(tmp_path).sittings(papers(["once"], [SMALL], STARTS, decisions=3))


# Results


def test_the_part_of_the_oracles_gain_is_a_quotient_of_sums():
    gains, ceilings = {"a": np.array([0.1, 0.2, 0.3]), "b": np.zeros(3)}, {"a": np.full(3, 0.4), "b": np.full(3, 0.1)}
    part = part_of(gains, ceilings)
    assert part is not None
    assert part.mean == pytest.approx(0.2 / 0.5)
    assert part.low is not None
    assert part.low < 0.05  # both draws may be of b
    assert part_of({}, {}) is None
    assert part_of(gains, {name: -of for name, of in ceilings.items()}) is None


def test_a_part_of_a_gain_that_is_often_none_has_no_interval():
    """An infinite end would be no number in the file, so an honest file would be refused."""
    part = part_of({"a": np.full(3, 0.1)}, {"a": np.array([0.3, 0.0, 0.0])})
    assert part is not None
    assert part.mean == pytest.approx(1.0)
    assert (part.low, part.high) == (None, None)


def test_the_null_family_does_not_count_in_the_part():
    null = SMALL.model_copy(update={"name": "null"})
    found = [sit(paper(name, family=family, root=root)) for family in (SMALL, null) for root in (0, 1, 2) for name in (*BOUNDS, "once")]  # fmt: skip
    alone = [one for one in found if one.paper.family is SMALL]
    both, only = ({one.engineer: one for one in scores(of)} for of in (found, alone))
    assert both["once"].part == only["once"].part
    assert set(both["once"].families) == {"small", "null"}


@pytest.fixture(scope="module")
def honest(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("honest")
    found = Hall(folder / "out").sittings(papers(["rising", "thompson"], [SMALL], STARTS, decisions=3))
    sheet.write(found, folder / "mine.json")
    return folder / "mine.json"


def faults(path: Path) -> list[str]:
    return [fault.why for fault in sheet.verify(sheet.read(path)) if fault is not None]


def test_honest_results_hold(honest):
    assert faults(honest) == []
    assert report.verified(honest, QUIET)


def test_a_result_is_judged_alike_with_one_worker_or_two(honest, tmp_path):
    found = json.loads(honest.read_text())
    found["sittings"][6]["paper"]["family"] |= {"name": "codes-slow"}
    found["sittings"][4]["success"][0] = 0.123
    found["sittings"][2]["paper"]["root"] = 2**70  # cannot be trained
    (tmp_path / "theirs.json").write_text(json.dumps(found))

    def said(*words: str) -> list[str]:
        result = CliRunner().invoke(app_with(["exam"]), ["exam", "verify", str(tmp_path / "theirs.json"), *words])
        assert result.exit_code == 1, result.output
        return [line for line in result.output.splitlines() if not line.startswith("  …")]  # how far it is

    alone = said("--jobs", "1")
    assert said("--jobs", "2") == alone
    assert said() == alone
    assert re.findall(r"sitting (\d): ", " ".join(alone)) == ["2", "4", "6"]
    assert alone[-1].endswith("4 faults")


HONEST = ("once", "reader", "random", "pools", "give-up", "rules", "learnability", "p(1-p)", "thompson", "half-success")


@pytest.mark.parametrize("reads", ["scores", "success"])
@pytest.mark.parametrize(("place", "engineer"), enumerate(HONEST))
def test_twenty_honest_results_hold(place, engineer, reads, tmp_path):
    """Files of their own: each has another engineer or reading, on one of five roots, with one of two seeds of training."""
    starts = [Start(root=2 + place % 5, training=place % 2)]
    found = Hall(tmp_path / "out").sittings(papers([engineer], [SMALL], starts, decisions=3, reads=reads))
    sheet.write(found, tmp_path / "mine.json")
    assert faults(tmp_path / "mine.json") == []


def tampered(found: dict) -> Iterator[tuple[str, dict]]:
    """More than twenty ways to cheat, each with the name of what was changed."""

    def changed(what: str, change) -> tuple[str, dict]:
        copy = json.loads(json.dumps(found))
        change(copy["sittings"], copy)
        return what, copy

    mine = next(at for at, one in enumerate(found["sittings"]) if one["paper"]["engineer"] == "rising")
    for task in range(4):
        yield changed(
            "success", lambda of, _, task=task: of[mine]["success"].__setitem__(task, of[mine]["success"][task] + 0.005)
        )
    yield changed("all successes", lambda of, _: of[mine].update(success=[1.0] * 7))
    yield changed("fewer tasks", lambda of, _: of[mine]["success"].pop())
    yield changed("more tasks", lambda of, _: of[mine]["success"].append(1.0))
    for stage in range(3):
        yield changed(
            "shares",
            lambda of, _, stage=stage: of[mine]["shares"][stage].__setitem__(0, of[mine]["shares"][stage][0] + 0.01),
        )
    yield changed("a stage more", lambda of, _: of[mine]["shares"].append([1 / 7] * 7))
    yield changed("a share below 0", lambda of, _: of[mine]["shares"][1].__setitem__(0, -1.0))
    yield changed("a hidden failure", lambda of, _: of[mine].update(failures=["refused"]))
    yield changed("a cost", lambda of, _: of[mine]["usage"].update(cost=0.01))
    yield changed("the root", lambda of, _: of[mine]["paper"].update(root=77))
    yield changed("the training", lambda of, _: of[mine]["paper"].update(training=1))
    yield changed("another engineer's work", lambda of, _: of[mine]["paper"].update(engineer="once"))
    yield changed("other options", lambda of, _: of[mine]["paper"].update(options={"keep": 0.5}))
    yield changed("what was read", lambda of, _: of[mine]["paper"].update(reads="success"))
    yield changed("an easier family", lambda of, _: of[mine]["paper"]["family"].update(rate=1e-2))
    yield changed("a family under another's name", lambda of, _: of[mine]["paper"]["family"].update(name="codes-slow"))
    yield changed("the scores", lambda _, all_: all_["scores"][0]["families"]["small"].update(success=0.99))
    yield changed("a weak best open loop", lambda of, _: of[1].update(success=[0.0] * 7))


def test_tampered_results_do_not_hold(honest, tmp_path):
    found, tried = json.loads(honest.read_text()), 0
    for what, copy in tampered(found):
        (tmp_path / "theirs.json").write_text(json.dumps(copy))
        assert any(fault is not None for fault in sheet.verify(sheet.read(tmp_path / "theirs.json"))), what
        tried += 1
    assert tried >= 20


def test_an_engineer_that_chose_the_first_stage_too_did_not_sit(honest):
    """Nobody asks an engineer of one's own again: its shares are trained with, and end where the file says."""
    sitting = sheet.read(honest).sittings[-1].model_copy(deep=True)
    sitting.paper = sitting.paper.model_copy(update={"engineer": "mine:make"})
    assert sheet.fault_of(0, sitting, same=True) is None
    assert sheet.senseless(sitting) == ""
    sitting.shares[0] = [2.0, *[1.0] * 6]
    sitting.success = replayed(sitting.paper, sitting.shares)
    asked = sheet.Sheet(machine=sheet.this_machine(), sittings=[sitting], scores=[])
    assert "its first stage does not draw evenly" in [fault.why for fault in sheet.verify(asked) if fault is not None]


def changed(found: dict, **paper) -> list[str]:
    """What is wrong with the last sitting if its paper asks for this."""
    [*_, last] = json.loads(json.dumps(found))["sittings"]
    last["paper"] |= paper
    asked = sheet.Sheet(machine=sheet.this_machine(), sittings=[Sitting.model_validate(last)], scores=[])
    return [fault.why for fault in sheet.verify(asked) if fault is not None and fault.sitting == 0]


@pytest.mark.parametrize(
    ("paper", "said"),
    [
        (
            {"engineer": "rising", "options": {"nonsense": 1}},
            "cannot be played (SpecError: 'rising' has no option nonsense",
        ),
        ({"engineer": "rising", "options": {"transcript": "t.jsonl"}}, "cannot be played (TypeError: "),
        ({"root": 2**70}, "cannot be played ("),
        ({"decisions": 7, "root": 3}, "its shares are not those"),
        ({"family": SMALL.model_copy(update={"updates": 13}).model_dump(), "decisions": 3}, "its family is not small"),
    ],
)
def test_whatever_a_file_asks_for_is_a_fault_in_a_sentence(honest, paper, said):
    [fault] = changed(json.loads(honest.read_text()), **paper)
    assert said in fault


@pytest.mark.parametrize(
    "name", ["drawn-1 of 3", "drawn-7 of 3", "drawn-0 of 3", "drawn-1 of 03x", "Drawn-1", "drawn-9"]
)
def test_a_family_that_says_it_was_drawn_must_have_been(honest, name):
    forged = SMALL.model_copy(update={"name": name}).model_dump(mode="json")
    assert changed(json.loads(honest.read_text()), family=forged) == [f"its family is not {name}"]


def test_families_of_the_exam_are_what_they_say():
    assert all(is_what_it_says(family) for family in (*NAMED.values(), SMALL))
    assert not is_what_it_says(NAMED["drawn-1"].model_copy(update={"name": "drawn-2"}))


@pytest.mark.parametrize("field", [
    {"letters": 10_000}, {"width": 63}, {"width": 100_000}, {"layers": -1}, {"layers": 1_000}, {"lengths": [0]}, {"lengths": []},
    {"lengths": [4_000]}, {"batch": 10**6}, {"updates": 12 * 10**6}, {"pretrain": 10**9}, {"coins": 10**6}, {"replies": 10**6},
])  # fmt: skip
def test_a_file_cannot_ask_for_absurd_sizes(honest, field, tmp_path):
    found = json.loads(honest.read_text())
    found["sittings"][3]["paper"]["family"] |= field
    (tmp_path / "theirs.json").write_text(json.dumps(found))
    with pytest.raises(RunError, match=f"is no result of an exam: sittings.3.paper.family.{next(iter(field))}"):
        sheet.read(tmp_path / "theirs.json")


def test_a_file_cannot_ask_for_a_training_without_stages(honest, tmp_path):
    found = json.loads(honest.read_text())
    found["sittings"][-1]["paper"]["decisions"], found["sittings"][-1]["shares"] = 0, []
    (tmp_path / "theirs.json").write_text(json.dumps(found))
    with pytest.raises(RunError, match=r"is no result of an exam: .*decisions"):
        report.verified(tmp_path / "theirs.json", QUIET)


def test_a_result_of_another_version_is_refused(honest, tmp_path):
    found = json.loads(honest.read_text()) | {"version": 2}
    (tmp_path / "theirs.json").write_text(json.dumps(found))
    with pytest.raises(RunError, match="is no result of an exam: version"):
        sheet.read(tmp_path / "theirs.json")


def test_on_another_machine_small_differences_are_allowed(honest, tmp_path):
    found = json.loads(honest.read_text())
    found["machine"] = "another"
    found["sittings"][0]["success"][0] += 0.005
    (tmp_path / "theirs.json").write_text(json.dumps(found))
    assert faults(tmp_path / "theirs.json") == ["the scores are not those of the sittings"]
    found["sittings"][0]["success"] = [1.0] * 7
    (tmp_path / "theirs.json").write_text(json.dumps(found))
    assert "more than 0.03" in faults(tmp_path / "theirs.json")[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--family", "coeds"], "is unknown: give one of codes-slow"),
        (["--decisions", "7"], "give one of 2, 3, 4, 5, 6"),
        (["--engineer", "oracle"], "is in every exam"),
        (["--engineer", "rules,rules"], "none twice"),
        (["--family", "codes-slow,codes-slow"], "families codes-slow,codes-slow: give none twice"),
        (["--engineer", "nobody"], "is unknown"),
        (["--reads", "minds"], "give one of scores"),
        (["verify"], "give 'verify FILE'"),
        (["verify", "nothing.json"], "is missing"),
        (["--roots", "0"], "greater than or equal to 1"),
    ],
)
def test_wrong_options_are_told_what_is_allowed(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app_with(["exam"]), ["exam", *words])
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def slowly(work):
    def slow(*given, **named):
        time.sleep(0.3)
        return work(*given, **named)

    return slow


def test_an_exam_in_a_file_is_never_silent(tmp_path, monkeypatch):
    """Neither while it trains, nor while it is played again."""
    monkeypatch.setattr("envtuning.show.pulse.QUIET", 0.1)
    monkeypatch.setattr("envtuning.exam.hall.sit", slowly(sit))
    words = f"--family small --engineer once --roots 1 --decisions 3 --jobs 1 --out {tmp_path / 'out'}".split()
    result = CliRunner().invoke(app_with(["exam"]), ["exam", *words, "--json", str(tmp_path / "mine.json")])
    assert result.exit_code == 0, result.output
    count = len(BOUNDS) + 1
    lines = result.output.splitlines()
    assert any(line.startswith(f"  … {count} sittings; each root is trained before its first one (") for line in lines)
    assert any(line.startswith(f"  … 1 of {count} sittings, about ") for line in lines)
    assert any("the last was " in line and " on root 5000 of small (" in line for line in lines)
    monkeypatch.setattr(sheet, "sit", slowly(sit))
    monkeypatch.setattr(sheet, "replayed", slowly(replayed))
    again = CliRunner().invoke(app_with(["exam"]), ["exam", "verify", str(tmp_path / "mine.json"), "--jobs", "1"])
    assert again.exit_code == 0, again.output
    assert any(line.startswith(f"  … 1 of {count} sittings (") for line in again.output.splitlines())


# The same training as an ordinary run


def spec_of(root: int, engineer: str, **changes) -> RunSpec:
    written = load_spec("exam-codes")
    told = written.model_dump(mode="json") | {
        "world": {"name": "exam", "options": {"family": "roomy", "root": root}},
        "engineer": {"name": engineer},
        "trainee": {"kind": "exam", "options": {"training": 0}},
        "stages": [{"config": {}, "budget": 56}, {"budget": 56}, {"budget": 56}],
        "suites": {"validate": "last", "validation_per_slice": 1, "test_per_slice": 2, "probe_per_slice": 0, "training_per_slice": 0},
    }  # fmt: skip
    return RunSpec.model_validate(told | changes)


class Training(NamedTuple):
    """What a sitting and a run must have alike."""

    shares: list[list[float]]  # by stage
    told: list[list[SliceResult]]  # by stage but the last: the figures of the report
    end: list[float]  # success of each task in the final test


def in_the_exam(asked: Paper, session: Session) -> Training:
    curriculum = examined(asked, session, None, {})
    assert isinstance(curriculum, EngineerCurriculum)
    shares, _ = trained(asked, session, curriculum)
    return Training(shares, [record.training_results for record in curriculum.history], session.test()[0].tolist())


def in_a_run(run: RunLog) -> Training:
    done = run.state.done
    shares = [list(shares_of(dump(stage.trained_on), find_slices(find_knobs(stage.trained_on, ("*",)))).values()) for stage in done]  # fmt: skip
    made = run.plan.trainee.make(
        {"training": 0}, world=run.plan.world, capacity={}, exclude=held_out(run), seed=0, unit="samples"
    )
    made.load(done[-1].path / "checkpoint")
    return Training(shares, [stage.report.training_results for stage in done[:-1]], made.session.test()[0].tolist())


def test_the_learner_of_a_run_computes_with_one_thread_and_leaves_the_process_its_own():
    """So a run that finds its root trained already ends where the one ended that has trained it."""
    world, seen = make_world("exam", family="roomy", root=77), []
    with set_threads(2):
        for _ in range(2):  # with a new root, and with a kept one
            made = make_trainee("exam", world=world, capacity={}, training=0)
            made.train(world.config_type(), 56, seed=0, on_iteration=lambda _: seen.append(torch.get_num_threads()))
            assert torch.get_num_threads() == 2
    assert set(seen) == {1}


@pytest.mark.parametrize("damage", ["nan", "another shape"])
def test_a_damaged_checkpoint_of_the_learner_is_refused(damage, tmp_path):
    world = make_world("exam", family="roomy", root=77)
    made = make_trainee("exam", world=world, capacity={}, training=0)
    made.train(world.config_type(), 56, seed=0)
    made.save(tmp_path)
    made.load(tmp_path)
    state = torch.load(tmp_path / "trainee.pt", weights_only=True)
    moments = state["optimiser"]["state"][0]
    moments["exp_avg"] = torch.full_like(moments["exp_avg"], torch.nan) if damage == "nan" else torch.zeros(2)
    torch.save(state, tmp_path / "trainee.pt")
    with pytest.raises(ValueError, match=r"finite|shape"):
        made.load(tmp_path)


def held_out(run: RunLog) -> list:
    return [run.plan.world.load(path) for path in sorted(run.path.rglob("*.cases"))]


@pytest.mark.parametrize("root", range(4))
@pytest.mark.parametrize("engineer", ["rising", "reader", "rules", "learnability"])
def test_a_run_is_the_same_training_as_a_sitting(root, engineer, tmp_path):
    asked = paper(engineer, root=root, family=ROOMY)
    sitting = in_the_exam(asked, Session(ROOMY, [asked.start], 3))
    assert in_a_run(start(spec_of(root, engineer), tmp_path / "run")) == sitting
    assert sitting.end == sit(asked).success


@pytest.mark.parametrize(
    ("learning", "said"), [("supervised", "before the update that learns from it, without"), ("reward", "sampled at temperature 1, 4 to a question")]
)  # fmt: skip
def test_a_report_says_how_its_family_judges_the_answers_of_training(learning, said, tmp_path, monkeypatch):
    monkeypatch.setitem(
        NAMED,
        "paid",
        ROOMY.model_copy(update={"name": "paid", "learning": learning, "lengths": (2,), "letters": 8, "replies": 4}),
    )
    world = {"name": "exam", "options": {"family": "paid", "root": 0}}
    run = start(spec_of(0, "rising", world=world), tmp_path / "run")
    assert said in run.state.done[0].report.outcomes_in_words


def preset(root: int, engineer: str, **suites) -> RunSpec:
    """``exam-codes`` as it is, but for the root, the engineer, the seed of its draws and the size of the suites."""
    written = load_spec("exam-codes").model_dump(mode="json")
    told = {
        "world": {"name": "exam", "options": {"family": "codes-slow", "root": root}},
        "engineer": {"name": engineer},
        "trainee": {"kind": "exam", "options": {"training": 0}},
        "suites": written["suites"] | suites,
    }
    return RunSpec.model_validate(written | told)


@pytest.mark.slow
@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize("engineer", ["rising", "fixed"])  # it moves shares, and it keeps even draws
def test_the_preset_is_the_same_training_as_a_sitting_on_its_family(root, engineer, tmp_path):
    asked = Paper(engineer=engineer, family=CODES, root=root)
    sitting = in_the_exam(asked, Session(CODES, [asked.start]))
    run = start(preset(root, engineer, test_per_slice=1), tmp_path / "run")  # so few that training asks none of them
    assert in_a_run(run) == sitting
    moved = len(set(map(tuple, sitting.shares))) > 1
    assert moved == (engineer == "rising")
    if not moved:
        assert sit(Paper(engineer="even", family=CODES, root=root)).success == sitting.end


@pytest.mark.slow
def test_the_preset_differs_from_a_sitting_in_the_questions_that_it_holds_out_alone(tmp_path):
    """Of almost 6,000, these are one or two; a sitting that holds out the same is the same training."""
    asked = Paper(engineer="rising", family=CODES, root=0)
    run = start(preset(0, "rising"), tmp_path / "run")
    session = Session(CODES, [asked.start])
    session.tasks = [HeldOut(run.plan.world, fingerprints_of(held_out(run)))]
    found = in_a_run(run)
    assert found == in_the_exam(asked, session)
    assert np.mean(found.end) == pytest.approx(sit(asked).end, abs=0.02)


def test_a_question_that_is_held_out_is_not_trained_on(tmp_path):
    world = make_world("exam", family="small", root=1)
    config = world.config_type()
    cases = world.draw(config, 60, seed=0, purpose="test", exclude=())
    trainee = make_trainee("exam", world=world, capacity={}, exclude=[cases])
    rows = trainee.session.tasks[0].make(np.repeat(np.arange(7), 300), np.random.default_rng(0))
    asked = {world.digest_of(one) for one in world.in_words(rows)}
    assert asked
    assert not asked & cases.fingerprints()
    assert len(asked | cases.fingerprints()) > 1.2 * len(asked)


def test_the_world_keeps_its_promises():
    world = make_world("exam", family="small", root=1)
    check_world(world, world.config_type())
    right = world.lessons(world.config_type(), 50, seed=0, exclude=())
    policy = make_trainee("exam", world=world, capacity={}).policy()
    said = policy.reply([[{"role": "user", "content": lesson.question}] for lesson in right], seed=0)
    assert all(len(reply) == len(lesson.answer) for reply, lesson in zip(said, right, strict=True))
    with pytest.raises(SpecError, match="give one of codes-slow"):
        make_world("exam", family="coeds")


def test_the_policy_s_replies_are_as_right_as_the_session_s_test():
    world = make_world("exam", family="codes-slow", root=0)
    policy = make_trainee("exam", world=world, capacity={}).policy()
    session = Session(CODES, [Start(0)])
    rows = session.tasks[0].make(np.repeat(np.arange(24), 20), np.random.default_rng(1), "test")
    asked = world.in_words(rows)
    said = policy.reply([[{"role": "user", "content": one.question}] for one in asked], seed=0)
    mine = np.mean([reply == one.answer for reply, one in zip(said, asked, strict=True)])
    assert mine == pytest.approx(session.test(20).mean(), abs=0.03)
    assert mine > 0.25


def test_it_is_a_trainee():
    world = make_world("exam", family="small", root=1)
    check_trainee("exam", world, world.config_type(), budget=28, unit="samples")
