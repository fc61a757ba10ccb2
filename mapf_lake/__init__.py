"""The lake for verifiers: ``vf-eval mapf-lake``. It looks a taskset up by the name of a package, which is why this one is so small.

Task k is board k of (``lake``, ``seed``): every process deals the same, without end, or the first ``tasks`` of them. Samplers that need
a finite set, such as prime-rl's ``DifficultyPoolSampler``, tell tasks apart by their ``key``: config, slice and board. The reward is the
one that the config names, by the judge's verdict on the reply's plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import count

from pydantic import Field

from mapf_frozenlake import LakeConfig, Verdict, generate
from mapf_frozenlake.text import TextStyle
from mapf_frozenlake.text.trl import judged_reply, prompt_row

try:
    import verifiers.v1 as vf
except ImportError as error:
    raise ImportError(
        'mapf_lake needs verifiers: pip install "mapf-frozenlake[verifiers]", or in a checkout pip install -e ".[verifiers]"',
        name=error.name,
    ) from None

__all__ = ["LakeTaskset"]


class LakeData(vf.TaskData):
    """A board, and what its judgement needs."""

    text: str
    reward: str
    makespan: int | None
    slice: str
    config: str  # digest of the lakes' config and seed
    board: int


class LakeTask(vf.Task[LakeData]):
    """One reply with every agent's plan."""

    @property
    def key(self) -> str:
        return f"{self.data.config}/{self.data.slice}/{self.data.board}"

    @vf.reward
    async def judged(self, trace: vf.Trace) -> float:
        return self._judge(trace)[0]

    @vf.metric
    async def verdict(self, trace: vf.Trace) -> dict[str, float]:
        verdict = self._judge(trace)[1]
        return {"valid": float(verdict.valid), "optimal": float(verdict.optimal or 0)}

    def _judge(self, trace: vf.Trace) -> tuple[float, Verdict]:
        return judged_reply(trace.last_reply, self.data.model_dump(include={"text", "reward", "makespan"}))


class LakeTasksetConfig(vf.TasksetConfig):
    """``--env.taskset.lake.num_agents 3 --env.taskset.lake.slices '{"5": {"hole_ratio": 0.3}}' --env.taskset.seed 1``."""

    lake: LakeConfig = LakeConfig()
    seed: int = 0
    tasks: int = Field(0, ge=0)  # 0: without end
    style: TextStyle = "paper"


class LakeTaskset(vf.Taskset[LakeTask, LakeTasksetConfig]):
    def __init__(self, config: LakeTasksetConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.tasks == 0

    def load(self) -> Iterator[LakeTask]:
        lake = self.config.lake
        digest = sha256(f"{lake.model_dump_json()} {self.config.seed}".encode()).hexdigest()[:12]
        for board in range(self.config.tasks) if self.config.tasks else count():
            [instance] = generate(lake, n=1, seed=self.config.seed, first=board)
            row = prompt_row(instance, lake.reward, self.config.style)
            told = {
                "name": f"board {board}",
                "config": digest,
                "board": board,
                "prompt": row["prompt"],
                **row["metadata"],
            }
            yield LakeTask(LakeData(**told), self.config.task)
