"""The families of the exam: what a small transformer has mastered, lacks and cannot learn, and the budget that it gets.

A root is a transformer trained on what it has mastered. Its tasks differ from root to root, and their names do not reveal them.
``DEVELOPMENT`` is for writing and tuning engineers. ``HELD_OUT`` has the kinds that every exam needs, and families that were drawn from a
declared distribution by a seed that was fixed after the code.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from envtuning.errors import SpecError

Content = Literal["codes", "pairs", "algorithms", "reasoning"]
Learning = Literal["supervised", "reward"]
DECISIONS = 6  # stages of a run, unless told


class Family(BaseModel):
    """A family of roots, the learner, and the budget of a run.

    Its upper limits are far above the families in use: a result's file may ask for anything, and ``verify`` plays it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(max_length=100)
    content: Content = Field("codes", description="What a task's answer is made of.")
    mastered: int = Field(8, ge=1, le=100, description="Tasks that a root answers.")
    lacking: int = Field(8, ge=0, le=100, description="Tasks that can be learnt.")
    hopeless: int = Field(8, ge=0, le=100, description="Tasks in which each letter depends on the whole question.")
    half_right: int = Field(0, ge=0, le=100, description="Tasks of which the first half of the answer can be learnt.")
    coins: int = Field(0, ge=0, le=100, description="Tasks with two answers, either of which is right by chance.")
    letters: int = Field(26, ge=4, le=100, description="Size of the alphabet.")
    lengths: tuple[Annotated[int, Field(ge=1, le=20)], ...] = Field(
        (4,), min_length=1, description="Letters of a question; task i has lengths[i modulo their number]."
    )
    width: int = Field(64, ge=4, le=256, multiple_of=4, description="Of the transformer, which has four heads.")
    layers: int = Field(2, ge=1, le=8)
    learning: Learning = "supervised"
    replies: int = Field(16, ge=1, le=64, description="By reward: answers sampled to a question, and compared.")
    taught: tuple[int, int] = Field((2, 5), description="By reward: letters of a lacking code that a root knows.")
    rate: float = Field(3e-4, gt=0, le=1)
    warm: int = Field(30, ge=0, le=1_000, description="Updates over which the rate rises.")
    carry: bool = Field(True, description="Whether the optimiser continues from stage to stage, or starts anew.")
    updates: int = Field(360, ge=1, le=5_000, description="Of a run, in all stages.")
    batch: int = Field(16, ge=1, le=256, description="Questions of an update.")
    pretrain: int = Field(600, ge=1, le=10_000, description="Updates of a root, on what it has mastered.")

    @model_validator(mode="after")
    def _whole(self) -> Family:
        if self.learning == "reward" and self.content != "codes":
            raise ValueError(f"content={self.content!r} with learning='reward': roots are taught parts of codes only")
        return self

    @property
    def counts(self) -> tuple[int, ...]:
        """Tasks by kind, in the order of ``KINDS``."""
        return (self.mastered, self.lacking, self.hopeless, self.half_right, self.coins)

    @property
    def tasks(self) -> int:
        return sum(self.counts)

    @property
    def answers(self) -> int:
        """Answers of an update."""
        return self.batch * (self.replies if self.learning == "reward" else 1)

    @property
    def root(self) -> str:
        """What its roots depend on, as a folder's name."""
        parts = (self.content, *self.counts, self.letters, *self.lengths, self.width, self.layers, self.pretrain)
        taught = self.taught if self.learning == "reward" else ()
        return "-".join(map(str, (*parts, *taught)))

    def stage(self, decisions: int) -> int:
        """Updates of one of so many stages. Raises ``SpecError`` if the budget cannot be cut so."""
        if decisions < 2 or self.updates % decisions:
            fits = [n for n in range(2, self.updates + 1) if self.updates % n == 0]
            raise SpecError(
                f"decisions={decisions}: the {self.updates} updates of {self.name} are cut into equal stages; "
                f"give one of {', '.join(map(str, fits[:12]))}"
            )
        return self.updates // decisions


KINDS = ("mastered", "lacking", "hopeless", "half right", "coin")
MASTERED, LACKING, HOPELESS, HALF_RIGHT, COIN = range(len(KINDS))

CODES = Family(name="codes-slow")
DEVELOPMENT = (
    CODES,
    Family(
        name="algorithms-hopeless", content="algorithms", letters=12, lengths=(4, 6), rate=1e-3, warm=10, carry=False,
        pretrain=1200,
    ),
)  # fmt: skip
REQUIRED = (
    Family(name="half-right", hopeless=0, half_right=8),
    Family(name="coins", lacking=6, hopeless=5, coins=5),
    Family(
        name="by-reward", learning="reward", letters=8, lengths=(2,), mastered=8, lacking=6, hopeless=5, coins=5, warm=10,
    ),
    Family(
        name="reasoning", content="reasoning", mastered=3, lacking=7, hopeless=0, batch=32, rate=1e-3, pretrain=400,
    ),
    Family(name="null", mastered=12, lacking=0, hopeless=6, coins=6),
)  # fmt: skip
NULL = "null"  # nothing can be learnt: whoever leaves even draws can only lose
DRAWN = 6  # families of an exam that are drawn


def drawn(seed: int, count: int = DRAWN) -> tuple[Family, ...]:
    """Families from the exam's distribution."""
    return tuple(_draw(np.random.default_rng([seed, 31, place]), f"drawn-{place + 1}") for place in range(count))


def _draw(rng: np.random.Generator, name: str) -> Family:
    """Twenty-four tasks. Budgets and rates stand around those of ``codes-slow``, where even draws just miss."""
    content = rng.choice(["codes", "codes", "pairs", "algorithms"])
    reward = content == "codes" and rng.random() < 1 / 3
    coins = int(rng.choice([0, 0, 3]))
    lacking, out_of_reach = (int(rng.integers(4, 11)) for _ in range(2))
    half = int(rng.choice([0, 0, out_of_reach]))
    common = {
        "name": name,
        "content": str(content),
        "mastered": 24 - coins - lacking - out_of_reach,
        "lacking": lacking,
        "hopeless": out_of_reach - half,
        "half_right": half,
        "coins": coins,
        "width": int(rng.choice([48, 64, 96])),
        "layers": int(rng.choice([2, 3])),
        "updates": int(rng.choice([240, 360, 540])),
        "rate": float(rng.choice([2e-4, 3e-4, 5e-4])),
    }
    if reward:
        return Family(**common, learning="reward", letters=8, lengths=(2,), warm=10)
    sizes = {
        "codes": {"letters": int(rng.choice([18, 26, 32])), "lengths": (int(rng.integers(3, 6)),)},
        "pairs": {"letters": 12, "lengths": (4,), "batch": 48, "pretrain": 1500},
        "algorithms": {"letters": 12, "lengths": (4, 6), "pretrain": 1200},
    }
    return Family(**common, **sizes[str(content)])


SEED = 0x815FADC1  # the last commit before it was fixed
HELD_OUT = (*REQUIRED, *drawn(SEED))
NAMED: dict[str, Family] = {family.name: family for family in (*DEVELOPMENT, *HELD_OUT)}


def named(name: str) -> Family:
    """Raises ``SpecError`` with the names that there are."""
    if name not in NAMED:
        raise SpecError(f"family {name!r:.60} is unknown: give one of {', '.join(NAMED)}")
    return NAMED[name]


def is_what_it_says(family: Family) -> bool:
    """Whether a family with a name that the exam reserves (its own, or one with "drawn") is the exam's family of that name."""
    return NAMED.get(family.name) == family or not (family.name in NAMED or "drawn" in family.name.lower())
