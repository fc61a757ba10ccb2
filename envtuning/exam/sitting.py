"""A sitting: one engineer decides about one training. The engineer reads the product's own report, by ``EngineerCurriculum``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from engineers.engineer import Engineer
from engineers.proposal import Usage
from engineers.registry import BACKENDS, PLAIN_ENGINEERS
from engineers.roles import shares_in
from envtuning.curriculum.curriculum import Curriculum
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.curriculum.samplers import Learnability, Pools, Sampler, Thompson
from envtuning.exam.bounds import FOUND, Arm, Even, trained_by
from envtuning.exam.families import DECISIONS, Family
from envtuning.exam.reading import AWAY, DONORS, Reads, Told, as_of_others, plainly, rates_of
from envtuning.exam.session import Session, Shown, Start
from envtuning.exam.tasks import Tasks, names_of
from envtuning.trainees.process_state import set_threads
from envtuning.worlds.text_world import Task, TaskKnobs, config_of

EVEN, OPEN_LOOP, ORACLE = "even", "best open loop", "oracle"
BOUNDS = (EVEN, OPEN_LOOP, ORACLE)
SAMPLERS: dict[str, type[Sampler]] = {"p(1-p)": Learnability, "thompson": Thompson, "pools": Pools}
NEVER_ASK = (*BOUNDS, *SAMPLERS, *PLAIN_ENGINEERS)  # a model

ENVIRONMENT = (
    "A small transformer learns {tasks} tasks, one slice each. A question has the name of its task and a few letters; the answer is "
    "letters, too. At the start some tasks are mastered, some can be learnt, and some are out of reach; nothing but the results tells which. "
    "Tasks share little, and a task without data is forgotten. In the end all tasks count alike."
)
SCORE = "the share of the answer's letters that are right, each judged after the right letters before it"
HOW_JUDGED = {
    "supervised": "Each question of training is new; its answer is judged before the update that learns from it, without sampling.",
    "reward": "Answers are sampled at temperature 1, {replies} to a question, and judged before the update that learns from them.",
}


class Paper(BaseModel):
    """What is asked of whom: everything that a sitting depends on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engineer: str  # of ``engineers.make``, of ``SAMPLERS`` or of ``BOUNDS``
    code: str = ""  # a fingerprint of an engineer of one's own, whose sittings do not outlive a change of it
    options: dict[str, Any] = Field(default_factory=dict)
    family: Family
    root: int = Field(ge=0)
    training: int = Field(0, ge=0)
    decisions: int = Field(DECISIONS, ge=1)
    reads: Reads = "scores"

    @property
    def start(self) -> Start:
        return Start(self.root, self.training)

    @property
    def key(self) -> str:
        return self.model_dump_json()


class Sitting(BaseModel):
    """How a training ended under an engineer."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    paper: Paper
    success: list[float]  # of each task in the end
    shares: list[list[float]]  # of the tasks, by stage
    failures: list[str] = Field(default_factory=list)  # decisions that were refused or not taken, and why
    usage: Usage = Usage()

    @property
    def end(self) -> float:
        return float(np.mean(self.success))


@set_threads(1)  # more threads would change sums, and cost more than they gain
def sit(paper: Paper, transcript: Path | None = None, limits: Mapping[str, Any] | None = None) -> Sitting:
    """Train under the engineer's decisions. Equal papers have equal sittings on one kind of machine.

    ``transcript`` keeps a model's questions and answers; ``limits`` are further arguments of ``EngineerCurriculum``.
    """
    session = Session(paper.family, [paper.start], paper.decisions)
    if paper.engineer in BOUNDS:
        shares = trained_by(arm_of(paper), session)
        return Sitting(paper=paper, success=session.test()[0].tolist(), shares=shares)
    curriculum = examined(paper, session, transcript, limits or {})
    shares, _ = trained(paper, session, curriculum)
    sitting = Sitting(paper=paper, success=session.test()[0].tolist(), shares=shares)
    if isinstance(curriculum, EngineerCurriculum):
        sitting.failures = [incident.message[:200] for incident in curriculum.incidents]
        sitting.usage = Usage.total(one.usage for one in curriculum.proposals)
    return sitting


def trained(paper: Paper, session: Session, curriculum: Curriculum) -> tuple[list[list[float]], list[Shown]]:
    """The shares of all stages, and what each half of a stage showed."""
    told, shares, seen = reading(paper, session.tasks[0]), list[list[float]](), list[Shown]()
    for _ in range(paper.decisions):
        shares.append(list(shares_in(curriculum.config).values()))
        for half in halves(session.train(np.array(shares[-1:]))):
            seen.append(half)
            curriculum.observe_many(*told(half, len(seen) - 1))
        curriculum.next()
    return shares, seen


def reading(paper: Paper, tasks: Tasks) -> Told:
    rng = np.random.default_rng([paper.root, paper.training, 6])
    if paper.reads not in DONORS:
        return plainly(paper.reads, tasks, rng)
    others: dict[str, Any] = {"reads": "scores"}
    if asks_a_model(paper.engineer):  # which must not be asked about the donor's run, too: it could compare
        others |= {"engineer": "rising", "options": {}}
    donors = []
    for number in range(DONORS[paper.reads]):
        donor = paper.model_copy(update={"root": paper.root + AWAY + number, **others})
        session = Session(donor.family, [donor.start], donor.decisions)
        donors.append(trained(donor, session, examined(donor, session, None, {}))[1])
    return as_of_others(rates_of(donors, paper.family.tasks), tasks, rng)


def asks_a_model(engineer: str) -> bool:
    """Whether its backend may. One of one's own is not known to, nor is it in ``NEVER_ASK``: these two are no opposites."""
    return engineer.partition("/")[0] in BACKENDS.keys() - PLAIN_ENGINEERS.keys()


@set_threads(1)
def replayed(paper: Paper, shares: Sequence[Sequence[float]]) -> list[float]:
    """Success of each task after a training with these shares of the stages."""
    session = Session(paper.family, [paper.start], paper.decisions)
    for part in shares:
        session.train(np.array([part]))
    return session.test()[0].tolist()


def examined(
    paper: Paper, session: Session, transcript: Path | None, limits: Mapping[str, Any], engineer: Engineer | None = None, at: int = 0
) -> Curriculum:  # fmt: skip
    """The engineer or the sampler, which is asked after each stage but the last. ``at``: the run's place in the session."""
    family, tasks = paper.family, session.tasks[at]
    config = config_type(family.tasks)()
    answers = session.updates * family.answers
    if paper.engineer in SAMPLERS:
        return SAMPLERS[paper.engineer](config, every=answers, **paper.options)
    return EngineerCurriculum(
        engineer or paper.engineer,
        config,
        target=config,
        every=answers,
        editable=["tasks.*.share"],
        max_questions=paper.decisions - 1,
        transcript=transcript,
        environment=ENVIRONMENT.format(tasks=family.tasks),
        score_in_words=SCORE if paper.reads != "success" else "",
        blind_scores=tasks.blind_told if paper.reads != "success" else {},
        outcomes_in_words=HOW_JUDGED[family.learning].format(replies=family.replies),
        seed=paper.training,
        **limits,
        **paper.options,
    )


@cache
def config_type(tasks: int) -> type[BaseModel]:
    """A config of so many tasks, each with its share of the data; the session draws their questions."""
    return config_of({name: Task(TaskKnobs, lambda rng, knobs: ("", "")) for name in names_of(tasks)})


def halves(shown: Shown) -> tuple[Shown, ...]:
    """A stage's outcomes in two parts: the report compares them."""
    middle = shown.task.shape[1] // 2
    return tuple(shown.cut(answers=of) for of in (slice(middle), slice(middle, None)))


def arm_of(paper: Paper) -> Arm:
    """Even draws; for the other bounds the best setting of the family, or that of ``codes-slow`` where none was searched."""
    if paper.engineer == EVEN:
        return Even()
    open_loop, oracle = FOUND.get(paper.family.name, FOUND["codes-slow"])
    return open_loop if paper.engineer == OPEN_LOOP else oracle
