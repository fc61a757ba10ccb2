"""``gym.make("EngineerExam-v0", family=…)`` and ``gym.make_vec``: environments in which engineers are trained. An episode is a training.

They stand on the exam as its command does: nothing in the exam needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch
from gymnasium.error import ResetNeeded
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from engineers import Engineer, Proposal
from engineers.model.answer_format import answer_format_of
from engineers.model.context import context_named
from engineers.model.prompt import build_prompt
from engineers.roles import shares_in
from envtuning.curriculum.curriculum import Curriculum
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.errors import SpecError
from envtuning.exam.bounds import EVEN_ENDS
from envtuning.exam.families import DECISIONS, NAMED, Family, named
from envtuning.exam.hall import available_cores
from envtuning.exam.session import Session, Shown, Start
from envtuning.exam.sitting import Paper, examined, halves, reading
from envtuning.exam.training import Floats
from envtuning.trainees.process_state import set_threads

ByName = dict[str, Any]
ROOTS = 200  # an episode begins at one of so many roots, which are trained when they are first used


class Seen(NamedTuple):
    """What one learner's stage showed, as an environment returns it."""

    observation: ByName
    reward: float
    over: bool
    info: ByName


class Trainings:
    """What both environments share: learners of a family, each with an engineer whose answers are the actions."""

    def __init__(
        self, learners: int, family: str | Family, decisions: int, roots: int, baseline: float | None, num_threads: int | None
    ) -> None:  # fmt: skip
        self.family = named(family) if isinstance(family, str) else family
        self.family.stage(decisions)
        self.learners, self.decisions, self.roots = learners, decisions, roots
        self.baseline = even_end(self.family) if baseline is None else baseline
        counts = [learners, roots, 1 if num_threads is None else num_threads]
        if not all(isinstance(one, int | np.integer) and one >= 1 for one in counts):
            raise SpecError(
                f"num_envs={learners}, roots={roots}, num_threads={num_threads}: each must be a whole number of at least 1"
            )
        self.threads = min(num_threads or available_cores(), learners)
        self.groups: list[_Group] = []  # one for each thread
        n, most = self.family.tasks, self.family.stage(decisions) * self.family.answers
        by_half = gym.spaces.Box(0.0, 1.0, (2, n))  # of the last stage; 0 where there were no answers
        self.observations = gym.spaces.Dict(
            {"answers": gym.spaces.Box(0.0, most, (2, n)), "success": by_half, "score": by_half,
             "shares": gym.spaces.Box(0.0, 1.0, (n,)), "stage": gym.spaces.Discrete(decisions + 1)}
        )  # fmt: skip
        self.actions = gym.spaces.Box(0.0, 1.0, (n,))

    @property
    def over(self) -> bool:
        """Whether all have ended. They begin together, and have equally many stages."""
        if not self.groups:
            raise ResetNeeded("no training has begun: call reset first")
        return self.groups[0].session.stage == self.decisions

    def begin(self, draws: Sequence[np.random.Generator], options: ByName | None) -> list[Seen]:
        """The first stage, which draws evenly."""
        drawn = np.array([[draw.integers(of) for of in (self.roots, 2**31)] for draw in draws])
        chosen = dict(zip(Start._fields, drawn.T, strict=True)) | self._checked(options or {})
        columns = [np.broadcast_to(chosen[name], self.learners).tolist() for name in Start._fields]
        starts = [Start(*one) for one in zip(*columns, strict=True)]
        cuts = np.array_split(np.arange(self.learners), self.threads)
        with set_threads(1):  # more would change sums, and cost more than they gain
            self.groups = [_Group(self.family, [starts[at] for at in cut], self.decisions) for cut in cuts]
            seen = self._trained(np.ones((self.learners, self.family.tasks)))
        return [one._replace(info=one.info | start._asdict()) for one, start in zip(seen, starts, strict=True)]

    def _checked(self, options: ByName) -> ByName:
        for name, given in options.items():
            if name not in Start._fields:
                raise SpecError(f"options has {name!r}: give {' and '.join(map(repr, Start._fields))} alone")
            value = np.asarray(given)
            if value.dtype.kind not in "iu" or value.shape not in ((), (self.learners,)) or value.min() < 0:
                each = f", or {self.learners} of them" if self.learners > 1 else ""
                raise SpecError(f"options[{name!r}]={given!r:.60}: give a whole number of at least 0{each}")
        return options

    def stage(self, actions: Floats) -> list[Seen]:
        """The next stage, on these weights of the tasks: learner, task."""
        weights, n = np.asarray(actions, float), self.family.tasks
        if weights.shape != (self.learners, n) or not (weights >= 0).all() or np.isinf(weights.sum()):
            rows = f"{self.learners} rows of " if self.learners > 1 else ""
            raise SpecError(f"action {actions!r:.60}: give {rows}{n} finite weights of at least 0, one for each task")
        with set_threads(1):
            return self._trained(np.where(weights.sum(1, keepdims=True) > 0, weights, 1.0))

    def _trained(self, weights: Floats) -> list[Seen]:
        work = (self.groups, np.array_split(weights, self.threads), repeat(self.baseline))
        if self.threads == 1:
            return next(map(_Group.stage, *work))
        with ThreadPoolExecutor(self.threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return [one for seen in pool.map(_Group.stage, *work) for one in seen]


class EngineerExamEnv(gym.Env[ByName, Floats]):
    """Observation: the last stage's report in numbers; ``info["report"]`` is what a language model reads, word for word. It is no part of the
    observation because few algorithms take a space of text. Action: weights of the tasks in the next stage.

    The reward comes at the end: success over all tasks, less ``baseline``. By default that is where even draws ended on the exam's roots
    of this family, in six stages (``EVEN_ENDS``). Episodes begin at the first ``roots`` roots; exams use none of the first 200.
    """

    def __init__(
        self, family: str | Family = "codes-slow", decisions: int = DECISIONS, roots: int = ROOTS, baseline: float | None = None
    ) -> None:  # fmt: skip
        self.trainings = Trainings(1, family, decisions, roots, baseline, num_threads=1)
        self.observation_space, self.action_space = self.trainings.observations, self.trainings.actions

    def reset(self, *, seed: int | None = None, options: ByName | None = None) -> tuple[ByName, ByName]:
        """The first stage draws evenly. ``options={"root": 7, "training": 1}`` chooses the training."""
        super().reset(seed=seed)
        [seen] = self.trainings.begin([self.np_random], options)
        return seen.observation, seen.info

    def step(self, action: Floats) -> tuple[ByName, float, bool, bool, ByName]:
        if self.trainings.over:
            raise ResetNeeded("the training is over: call reset")
        [seen] = self.trainings.stage(np.asarray(action)[None])
        return seen.observation, seen.reward, seen.over, False, seen.info


class EngineerExamVectorEnv(VectorEnv[ByName, Floats, NDArray[Any]]):
    """Trainings side by side, which cost less than one after another. ``gym.make_vec("EngineerExam-v0", num_envs=8)`` makes it.

    Its arguments are those of ``EngineerExamEnv``; ``num_threads`` share the trainings, by default one for each core. An episode is that
    of ``EngineerExamEnv`` with the same seed: bit for bit in a supervised family, and up to rounding by reward. All episodes end in the
    same step, and the next step begins new ones.
    """

    metadata: ByName = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  as in the base class

    def __init__(
        self, num_envs: int = 1, family: str | Family = "codes-slow", decisions: int = DECISIONS, roots: int = ROOTS,
        baseline: float | None = None, num_threads: int | None = None,
    ) -> None:  # fmt: skip
        self.num_envs = num_envs
        self.trainings = Trainings(num_envs, family, decisions, roots, baseline, num_threads)
        self.single_observation_space, self.single_action_space = self.trainings.observations, self.trainings.actions
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.draws = [np_random()[0] for _ in range(num_envs)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: ByName | None = None
    ) -> tuple[ByName, ByName]:
        """As in ``EngineerExamEnv``. A seed is counted up from one training to the next; ``options`` may hold a value for each."""
        if isinstance(seed, int | np.integer):
            seed = range(int(seed), int(seed) + self.num_envs)
        if seed is not None and len(seed) != self.num_envs:
            raise SpecError(f"seed={seed!r:.60}: give one number, or {self.num_envs}, one for each training")
        for place, one in enumerate(() if seed is None else seed):
            if one is not None:
                self.draws[place] = np_random(one)[0]
        observations, *_, infos = self._side_by_side(self.trainings.begin(self.draws, options))
        return observations, infos

    def step(self, actions: Floats) -> tuple[ByName, NDArray[Any], NDArray[Any], NDArray[Any], ByName]:
        again = self.trainings.over
        seen = self.trainings.begin(self.draws, None) if again else self.trainings.stage(actions)
        return self._side_by_side(seen)

    def _side_by_side(self, seen: Sequence[Seen]) -> tuple[ByName, NDArray[Any], NDArray[Any], NDArray[Any], ByName]:
        observations, rewards, over, infos = zip(*seen, strict=True)
        space, together = self.single_observation_space, dict[str, Any]()
        for place, info in enumerate(infos):
            together = self._add_info(together, info, place)
        batch = concatenate(space, observations, create_empty_array(space, self.num_envs))
        return batch, np.array(rewards), np.array(over), np.zeros(self.num_envs, bool), together  # type: ignore[return-value]


class _Group:
    """Learners that train side by side in one thread. Each has the report of a sitting, from the same curriculum."""

    def __init__(self, family: Family, starts: Sequence[Start], decisions: int) -> None:
        self.session = Session(family, starts, decisions)
        self.engineers = [_Given() for _ in starts]
        given = {"engineer": _Given.name, "family": family, "decisions": decisions}
        papers = [Paper(**given, **start._asdict()) for start in starts]
        self.curricula = [
            examined(paper, self.session, None, {"timeout": None}, engineer, at)
            for at, (paper, engineer) in enumerate(zip(papers, self.engineers, strict=True))
        ]
        self.told = [reading(paper, tasks) for paper, tasks in zip(papers, self.session.tasks, strict=True)]

    def stage(self, weights: Floats, baseline: float) -> list[Seen]:
        if self.session.stage:  # the first stage draws evenly
            for engineer, curriculum, own in zip(self.engineers, self.curricula, weights, strict=True):
                engineer.weights = own
                curriculum.next()
        shares = np.array([list(shares_in(curriculum.config).values()) for curriculum in self.curricula])
        shown = self.session.train(shares)
        seen = [self._seen(at, shares[at], shown) for at in range(len(weights))]
        if self.session.stage < self.session.stages:
            return seen
        ended = self.session.test()
        return [
            Seen(one.observation, float(own.mean()) - baseline, True, one.info | {"success": float(own.mean()), "success_by_task": own})
            for one, own in zip(seen, ended, strict=True)
        ]  # fmt: skip

    def _seen(self, at: int, shares: Floats, shown: Shown) -> Seen:
        n, sums = self.session.family.tasks, []
        for number, half in enumerate(halves(shown.cut(runs=slice(at, at + 1)))):
            self.curricula[at].observe_many(*self.told[at](half, number))
            sums.append([np.bincount(half.task[0], of, n) for of in (None, half.success[0], half.score[0])])
        answers, success, score = np.array(sums, np.float32).transpose(1, 0, 2)
        rates = {name: of / np.maximum(answers, 1) for name, of in (("success", success), ("score", score))}
        stage = {"shares": shares.astype(np.float32), "stage": self.session.stage}
        return Seen({"answers": answers, **rates, **stage}, 0.0, False, {"report": as_text(self.curricula[at])})


class _Given(Engineer):
    """Answers with the weights that it was given: the action."""

    name = "action"
    weights: Floats

    def propose(self, report: Any, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
        parts = (self.weights / max(1.0, self.weights.max())).tolist()  # a share is at most 1
        tasks = {name: {"share": part} for name, part in zip(shares_in(current), parts, strict=True)}
        return Proposal(config=type(current).model_validate({"tasks": tasks}), reasons=[], engineer=self.name)


def as_text(curriculum: Curriculum) -> str:
    """What a language model would be asked now: the system's message, and the report with the question."""
    assert isinstance(curriculum, EngineerCurriculum)  # samplers read no report
    answers = answer_format_of(curriculum.config, curriculum.editable, {})
    asked = build_prompt(curriculum.report, answers, context_named("informed"))
    return "\n\n".join(message["content"] for message in asked.messages)


def even_end(family: Family) -> float:
    """Where even draws ended on the exam's roots of this family. Raises ``SpecError`` for a family of your own."""
    if NAMED.get(family.name) != family or family.name not in EVEN_ENDS:
        raise SpecError(
            f"family {family.name}: nobody has measured where even draws end on it, so give baseline=…; with 0.0, the reward is success itself"
        )
    return EVEN_ENDS[family.name]
