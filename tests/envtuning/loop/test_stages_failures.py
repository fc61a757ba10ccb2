"""What goes wrong in a stage or between two is recorded, and the run continues with what worked, or says what to do."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

import engineers
import envtuning.runs.plan
from engineers import Proposal
from envtuning.errors import RunError, SpecError
from envtuning.loop import run as loop
from envtuning.runs.checked import Files
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import EngineerSpec, RunSpec, SuiteSpec, load_spec
from envtuning.runs.tasks import next_task
from envtuning.studies.preregistered import StudySpec
from envtuning.studies.study import raise_unless_comparable
from envtuning.trainees import TraineeKind
from envtuning.trainees.base import TrainingDiverged
from envtuning.trainees.scripted import ScriptedTrainee
from envtuning.worlds.world import InfeasibleConfig
from mapf_frozenlake import LakeConfig

SMALL = SuiteSpec(validation_per_slice=4, test_per_slice=0, probe_per_slice=2, failure_cases=2, validate="every 100000")
TESTED = SMALL.model_copy(update={"test_per_slice": 1})


@pytest.fixture
def spec() -> RunSpec:
    return load_spec("scripted").with_rounds(3).model_copy(update={"suites": SMALL})


@pytest.fixture
def trainee(monkeypatch, spec):
    """Puts a trainee class in the place of the spec's."""

    def use(cls: type) -> RunSpec:
        monkeypatch.setattr(TraineeKind, "make", lambda kind, options, unit, **given: cls(**given, **options))
        return spec

    return use


class Faulty(ScriptedTrainee):
    """Fails in the stages' training calls that its class says, once for each entry."""

    faults: dict[int, list[object]]  # by stage: what happens at the next attempts
    made = 0

    def __init__(self, **arguments) -> None:
        super().__init__(**arguments)
        type(self).made += 1
        self.stage = -1

    def load(self, folder: Path) -> None:
        super().load(folder)
        self.stage = 0 if folder.name == "start" else int(folder.parent.name) + 1

    def train(self, config, budget, *, seed, on_iteration=None):
        waiting = self.faults.get(self.stage, [])
        if not waiting:
            return super().train(config, budget, seed=seed, on_iteration=on_iteration)
        super().train(config, 500, seed=seed, on_iteration=on_iteration)  # some steps are spent before it happens
        fault = waiting.pop(0)
        if isinstance(fault, BaseException):
            raise fault
        on_iteration({"env_steps": 500.0} | fault)
        return {}


def faulty(**faults: list[object]) -> type[Faulty]:
    return type("FaultyOne", (Faulty,), {"faults": {int(name[1:]): what for name, what in faults.items()}, "made": 0})


def incidents(run: RunLog) -> list[tuple[int, str]]:
    return [(incident.stage, incident.kind) for incident in run.state.incidents()]


def configs(run: RunLog) -> list[dict]:
    return [stage.report.config for stage in run.state.done]


@pytest.mark.parametrize(
    "fault",
    [TrainingDiverged("loss became nan"), {"grad_norm": math.nan}, {"loss": math.inf}],
    ids=["raised", "nan gradient", "infinite loss"],
)
def test_a_diverged_stage_goes_on_with_the_last_good_checkpoint_and_config(trainee, tmp_path, fault):
    run = loop.start(trainee(faulty(s1=[fault])), tmp_path / "run")
    assert next_task(run.plan, run.state) is None
    assert incidents(run) == [(1, "diverged")]
    first, second, _ = configs(run)
    assert second == first  # the last good config, not the proposed one
    assert run.state.stages[1].chosen.config != LakeConfig.model_validate(second)  # what was proposed stays on record
    assert run.state.stages[1].config == LakeConfig.model_validate(second)
    done = run.state.stages[1].done
    assert done.attempts == 2
    assert (
        done.spent["env_steps"] > done.trained["env_steps"] + done.validated["env_steps"]
    )  # the failed attempt is charged
    report = run.state.stages[1].report
    assert "last good" in report.incidents[0].message
    assert [line["kind"] for line in run.state.stages[1].metrics()].count("incident") == 1


def test_a_diverged_first_stage_is_tried_again_from_the_untrained_trainee(trainee, tmp_path):
    run = loop.start(trainee(faulty(s0=[TrainingDiverged("nan")])), tmp_path / "run")
    assert incidents(run) == [(0, "diverged")]
    assert configs(run)[0] == run.state.stages[0].chosen.config.model_dump(mode="json")


def test_a_stage_that_keeps_diverging_stops_the_run_with_what_to_do_and_resumes_once_mended(trainee, tmp_path):
    broken = faulty(s1=[TrainingDiverged("nan")] * 3)
    spec = trainee(broken)
    with pytest.raises(RunError, match=r"stage 1 failed 3 times .*nan.*envtuning resume"):
        loop.start(spec, tmp_path / "run")
    run = RunLog.open(tmp_path / "run")
    assert len(run.state.done) == 1
    run = loop.resume(run.path)  # the faults are used up: somebody mended the cause
    assert next_task(run.plan, run.state) is None


def test_a_worker_that_was_replaced_is_recorded_and_training_goes_on(trainee, tmp_path):
    run = loop.start(trainee(faulty(s0=[{"workers_lost": 1.0, "grad_norm": 1.0}])), tmp_path / "run")
    assert incidents(run) == [(0, "worker_lost")]
    assert run.state.stages[0].done.attempts == 1


def test_a_first_config_that_cannot_be_drawn_stops_the_run_and_says_why(trainee, tmp_path):
    with pytest.raises(RunError, match="stage 0's config cannot be drawn: 0 of 1000 boards"):
        loop.start(trainee(faulty(s0=[InfeasibleConfig("0 of 1000 boards")])), tmp_path / "run")


class Engineer(engineers.Engineer):
    """Answers by a function of (report, current)."""

    name = "test"

    def __init__(self, answer) -> None:
        self.answer = answer

    def propose(self, report, current, editable=None):
        return self.answer(report, current)


@pytest.fixture
def engineer(monkeypatch):
    def use(answer) -> None:
        monkeypatch.setattr(envtuning.loop.ask, "make_engineer", lambda run, stage: Engineer(answer))

    return use


def raising(report, current):
    raise RuntimeError("the network is down, asked with sk-planted-0123456789abcdef")


def leaving(report, current):
    raise SystemExit(3)


def never(report, current):
    time.sleep(60)


def locked_knob(report, current):
    return Proposal(config=current.model_copy(update={"collisions": "block"}))


def gave_up(report, current):
    return Proposal(config=current, fallback=True, refusals=["share: 3 is above 1"])


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (raising, "engineer_failed", "the network is down"),
        (leaving, "engineer_failed", "failed (SystemExit: 3 (test_stages_failures.py, line "),
        (never, "engineer_failed", "no answer within 0.2 s"),
        (gave_up, "engineer_failed", "share: 3 is above 1"),
        (locked_knob, "refused_proposal", "collisions"),
    ],
)
def test_an_engineer_that_fails_or_is_refused_leaves_the_current_config(spec, engineer, tmp_path, answer, kind, says):
    engineer(answer)
    patient = spec.engineer.model_copy(update={"timeout": 0.2 if answer is never else 60.0})
    run = loop.start(spec.model_copy(update={"engineer": patient}), tmp_path / "run")
    assert next_task(run.plan, run.state) is None
    assert [incident.kind for incident in run.state.incidents()] == [kind, kind]
    first, second, third = configs(run)
    assert first == second == third
    told = run.state.stages[1].report.incidents
    assert [incident.stage for incident in told] == [0]
    assert says in told[0].message
    assert "sk-planted" not in told[0].message
    assert "current config is kept" in told[0].message


def test_where_an_engineer_failed_is_kept_beside_the_incident_without_what_is_secret(spec, engineer, tmp_path):
    engineer(raising)
    run = loop.start(spec, tmp_path / "run")
    kept = (run.state.stages[0].path / "engineer_failed.txt").read_text()
    assert "Traceback (most recent call last)" in kept  # a test may run while its runner handles an error
    assert "in raising" in kept
    assert "sk-planted" not in kept
    assert "(engineer_failed.txt says where)" in run.state.incidents()[0].message


def test_dropping_a_working_slice_at_once_is_refused_unless_the_limit_is_off(spec, engineer, tmp_path):
    def drop(report, current):
        slices = {size: piece.model_copy(update={"share": float(size == 5)}) for size, piece in current.slices.items()}
        return Proposal(config=current.model_copy(update={"slices": slices}))

    engineer(drop)
    long = spec.stages[0].model_copy(update={"budget": 40_000})  # long enough that its slices work
    limited = spec.model_copy(update={"stages": (long, *spec.stages[1:2])})
    run = loop.start(limited, tmp_path / "limited")
    assert incidents(run) == [(0, "refused_proposal")]
    assert "keep at least" in run.state.incidents()[0].message
    free = limited.model_copy(update={"guard": spec.guard.model_copy(update={"max_drop": None})})
    assert incidents(loop.start(free, tmp_path / "free")) == []


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("oracle", {}, "'oracle' is unknown"),
        ("openai/gpt-5-mini", {}, "OPENAI_API_KEY"),
        ("rules", {"temper": 1}, "no option temper"),
    ],
)
def test_an_engineer_that_cannot_be_asked_stops_the_run_before_anything_is_trained(
    spec, tmp_path, monkeypatch, name, options, says
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    engineer = spec.engineer.model_copy(update={"name": name, "options": options})
    wrong = spec.model_copy(update={"engineer": engineer})
    with pytest.raises(SpecError, match=says):
        loop.start(wrong, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    run = RunLog.create(tmp_path / "elsewhere", Plan.of(wrong))  # as a run that was begun where it could be asked
    with pytest.raises(SpecError, match=says):
        loop.resume(run.path)
    assert run.state.stages == ()


@pytest.mark.parametrize("name", ["rules", "half-success", "progress-share", "uniform", "schedule"])
def test_an_engineer_that_can_do_nothing_with_the_config_stops_the_run_before_anything_is_trained(spec, tmp_path, name):
    """Else it would silently equal fixed."""
    closed = spec.model_copy(update={"editable": ("reward",), "engineer": EngineerSpec(name=name)})
    says = (
        f"{name} can do nothing with this LakeConfig: it turns the shares of two slices or more, .* editable is reward;"
    )
    with pytest.raises(SpecError, match=says):
        loop.start(closed, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(SpecError, match=says):
        raise_unless_comparable(
            StudySpec.of(closed.model_copy(update={"suites": TESTED}), ["fixed", name], [0]).specs()
        )
    run = RunLog.create(tmp_path / "elsewhere", Plan.of(closed))
    with pytest.raises(SpecError, match=says):
        loop.resume(run.path)


@pytest.mark.parametrize("name", ["fixed", "random"])
def test_who_changes_nothing_by_intent_or_can_turn_a_choice_begins(spec, name):
    closed = spec.model_copy(update={"editable": ("reward",), "engineer": EngineerSpec(name=name)})
    resolve(closed)


def test_an_answer_on_the_disk_is_never_asked_for_again(spec, engineer, tmp_path):
    asked = []

    def count(report, current):
        asked.append(report.stage)
        return Proposal(config=current)

    engineer(count)
    run = loop.start(spec, tmp_path / "run")
    assert asked == [0, 1]
    (run.state.stages[2].path / "done.json").unlink()
    loop.resume(run.path)
    assert asked == [0, 1]


def test_replies_that_came_before_a_kill_are_not_asked_for_again(spec, tmp_path, monkeypatch):
    """The process dies between the model's reply and the recorded proposal; the reply in the transcript counts."""
    from engineers import Completion, ModelEngineer

    questions = []

    class Model:
        model = "test-model"

        def complete(self, messages, schema, *, max_tokens):
            questions.append(messages)
            return Completion("{" if len(questions) == 1 else json.dumps(example(schema)), 10, 5, 0.25)

    def make(name, options):
        options = {key: options.get(key) for key in ("transcript", "guard")}
        return ModelEngineer(Model(), context="V1", **options)

    monkeypatch.setattr(envtuning.runs.plan, "engineer_in_a_file", make)
    two = spec.with_rounds(2)
    run = RunLog.create(tmp_path / "run", Plan.of(two))
    real = Files.write_text

    def die(files, path, text):
        if path == run.stage_path(1) / "config.json":
            raise KeyboardInterrupt
        real(files, path, text)

    monkeypatch.setattr(Files, "write_text", die)
    with pytest.raises(KeyboardInterrupt):
        loop.continue_run(run)
    assert len(questions) == 2  # a bad reply, a good one
    monkeypatch.setattr(Files, "write_text", real)
    run = loop.resume(run.path)
    assert len(questions) == 2
    answer = run.state.stages[1].chosen
    assert answer.incidents == []
    assert answer.proposal.usage.attempts == 2
    assert [line["number"] for line in run.state.stages[0].transcript()] == [0, 1]
    assert not (run.state.stages[0].path / "asked_before.jsonl").exists()


@pytest.mark.filterwarnings("error:question")  # one that differs from the recorded one
@pytest.mark.parametrize("context", ["V1", "informed"])
def test_a_run_with_a_model_is_played_back_without_the_model(spec, tmp_path, monkeypatch, context):
    from engineers import Completion, ModelEngineer

    class Model:
        model = "test-model"

        def complete(self, messages, schema, *, max_tokens):
            return Completion(json.dumps(example(schema)), 10, 5, 0.25)

    spec = spec.model_copy(
        update={"stages": (*spec.stages, spec.stages[-1]), "total": None}
    )  # one after a stage that it wrote
    with monkeypatch.context() as patch:
        patch.setattr(
            envtuning.runs.plan,
            "engineer_in_a_file",
            lambda name, options: ModelEngineer(Model(), context=context, transcript=options.get("transcript")),
        )
        original = loop.start(spec, tmp_path / "original" / "run")
    again = spec.engineer.replaced_by(f"replay/{original.path}")
    replayed = loop.start(spec.model_copy(update={"engineer": again}), tmp_path / "again" / "run")
    assert configs(replayed) == configs(original)
    assert configs(original)[1] != configs(original)[0]  # the model did change something
    assert replayed.state.incidents() == original.state.incidents()
    assert [stage.report.results for stage in replayed.state.stages] == [
        stage.report.results for stage in original.state.stages
    ]


def example(schema: dict) -> object:
    """Something that fits a strict schema: lists of one, lower bounds, first alternatives."""
    if "anyOf" in schema:
        return example(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
    if kind == "object":
        return {name: example(part) for name, part in schema["properties"].items()}
    if kind == "array":
        return [example(schema["items"])]
    return schema.get("minimum", 0) + 0.2 if kind == "number" else "because"


def test_a_key_in_the_environment_reaches_no_file_of_the_run(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789abcdef")
    run = loop.start(spec, tmp_path / "run")
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) > 15
    assert not any(b"sk-planted" in path.read_bytes() for path in files)
