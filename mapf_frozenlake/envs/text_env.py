"""``MAPFFrozenLakeText-v0``: the lake in words. Strings in, strings out; a bad reply is data, never a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

from mapf_frozenlake.augmenter import LakeAugmenter, LakeEvent, PlanEvent, TurnEvent, augment
from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import Recordable, outcome
from mapf_frozenlake.envs.gym_env import understand_reset
from mapf_frozenlake.envs.options import Sizes, as_config, given_among, options_from
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.judge import judge
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.render import ansi
from mapf_frozenlake.text import (
    STYLES,
    ParseError,
    TextStyle,
    parse_moves,
    parse_plan,
    plan_prompt,
    state_text,
    turns_prompt,
)
from mapf_frozenlake.text.rewards import plan_reward
from mapf_frozenlake.types import Action, Certificate, Collisions, FailureKind, Instance, OnGoal
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.rewards import RewardFunction

Mode = Literal["plan", "turns"]
MAX_OBSERVATION, MAX_ACTION = 200_000, 1_000  # characters; longer replies are read, too
CHARACTERS = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))  # all characters of the lake's own texts


class AnyText(spaces.Text):
    """Every string up to ``max_length``; samples consist of ``CHARACTERS``."""

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length


@create_shared_memory.register
def _refuse_shared_memory(space: AnyText, n: int = 1, ctx: Any = None) -> Any:
    """``AsyncVectorEnv`` reads its shared memory once before it holds a text; the error names the argument to pass."""
    raise CustomSpaceError("text cannot go through shared memory: give shared_memory=False")


class MAPFFrozenLakeTextEnv(Recordable, gym.Env[str, str]):
    """One lake as text, for one controller of all agents.

    ``mode="plan"``: the observation is the whole task, and the action is a reply with every agent's moves; one step, judged by
    ``judge``. ``mode="turns"``: an action is a reply with one move for each agent; a reply that cannot be read gets
    reward 0, and all agents wait. With the config's ``feedback`` the next observation explains what went wrong, in the words
    of ``augmenter``; without it, it only describes the state. ``info`` has ``parse_error`` (None if the reply was read), ``actions``, and when
    the episode is over ``success``, ``valid``, ``optimal`` and ``failure``; in plan mode also ``verdict``. In turns mode ``valid``
    is False, too, once a reply could not be read, and ``failure`` is "parse_error". ``AsyncVectorEnv`` needs ``shared_memory=False`` for text.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        mode: Mode = "plan",
        style: TextStyle = "paper",
        render_mode: str | None = None,
        augmenter: LakeAugmenter = augment,
        *,
        size: Sizes | None = None,
        num_agents: int | Mapping[int, float] | None = None,
        hole_ratio: float | None = None,
        wait_ratio: float | None = None,
        min_distance: int | None = None,
        map_family: MapFamily | None = None,
        loops: float | None = None,
        room_size: int | None = None,
        shelf_length: int | None = None,
        aisle: int | None = None,
        config: LakeConfig | Mapping[str, Any] | str | None = None,
        desc: str | Sequence[str] | None = None,
        instance: Instance | Mapping[str, Any] | str | None = None,
        is_slippery: bool | None = None,
        success_rate: float | None = None,
        on_goal: OnGoal | None = None,
        collisions: Collisions | None = None,
        horizon: int | None = None,
        reward: str | RewardFunction | None = None,
        feedback: bool | None = None,
        hint_strength: float | None = None,
        max_size: int | None = None,
        max_agents: int | None = None,
        pool_size: int | None = None,
        certify: Certificate | None = None,
        exclude: Any = None,
        num_threads: int | None = 1,
        **unknown: Any,
    ) -> None:
        given = given_among(locals())
        if mode not in get_args(Mode):
            raise LakeError(f"mode={mode!r}: give 'plan' or 'turns'")
        if style not in STYLES:
            raise LakeError(f"style={style!r}: give one of {', '.join(map(repr, STYLES))}")
        if render_mode not in (None, "ansi"):
            raise LakeError(f"render_mode={render_mode!r}: the text interface renders 'ansi' only; give that or None")
        if mode == "plan" and callable(reward):
            raise LakeError("reward is a callable, which pays single steps: name a reward, or use mode='turns'")
        options = options_from(given | {"observation": "compact"}, also=("mode", "style", "augmenter"))
        self.mode = mode
        self._refuse(options["config"])
        self.style, self.render_mode, self.augmenter = style, render_mode, augmenter
        self.batch = LakeBatch(autoreset="disabled", **options)
        self.observation_space = AnyText(MAX_OBSERVATION, min_length=0, charset=CHARACTERS)
        self.action_space = AnyText(MAX_ACTION, min_length=0, charset=CHARACTERS)
        self.instance: Instance | None = None  # of the running episode
        self._rules: LakeConfig = options["config"]  # likewise
        self._over = True
        self._unread = 0  # replies of this episode that could not be read

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin the next episode; with a seed, the first of that seed. Options: ``instance`` and ``config``, at once."""
        super().reset(seed=seed)
        if seed is not None:
            self.batch.seed([seed])
        instance, config = understand_reset(options)
        if config is not None:
            self.set_config(config)
        self.batch.reset(instances=instance)
        self.instance = self.batch.instance(0)
        self._rules = self.batch.get_config()
        self._over, self._unread = False, 0
        if self.mode == "plan":
            return plan_prompt(self.instance, self.style), {}
        return turns_prompt(self.instance, int(self.batch.horizon[0]), self.style, self._rules.on_goal), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.instance is None or self._over:
            raise LakeError("no episode is running: call reset first")
        if not isinstance(action, str):
            raise LakeError(f"an action of type {type(action).__name__}: give the reply as a string")
        if self.mode == "plan":
            return self._judge_plan(action, self.instance)
        return self._take_turn(action, self.instance)

    def set_config(self, config: LakeConfig | Mapping[str, Any]) -> None:
        """Use this config from the next reset on."""
        config = as_config(config)
        self._refuse(config)
        self.batch.set_config(config)

    def get_config(self) -> LakeConfig:
        return self.batch.get_config()

    set_task, get_task = set_config, get_config  # RLlib's names

    def render(self) -> str:  # type: ignore[override]
        if self.render_mode is None:
            raise LakeError("render_mode=None: make the env with render_mode='ansi' to render")
        if self.instance is None:
            raise LakeError("render before reset: there is no episode to show; call reset first")
        return ansi(self.batch.snapshot(0))

    def _judge_plan(self, reply: str, instance: Instance) -> tuple[str, float, bool, bool, dict[str, Any]]:
        plan = parse_plan(reply, instance.num_agents)
        verdict = judge(instance, plan)
        self._over = True
        read = not isinstance(plan, ParseError)
        info = {
            "parse_error": None if read else str(plan),
            "actions": plan if read else None,
            "verdict": verdict,
            "success": verdict.valid,
            "is_success": verdict.valid,
            "valid": verdict.valid,
            "score": verdict.score,
            "optimal": verdict.optimal,
            "slice": self.batch.current_slices[0],
            "failure": None if verdict.failure is None else verdict.failure.value,
        }
        result = "The plan is valid." if verdict.valid else "The plan is not valid."
        hint = self._hint(PlanEvent(reply, result, not verdict.valid, instance, plan, verdict))
        # The hint replaces the bare result, because it has the same facts.
        return hint or result, plan_reward(self._rules.reward, instance, plan, verdict), True, False, info

    def _take_turn(self, reply: str, instance: Instance) -> tuple[str, float, bool, bool, dict[str, Any]]:
        batch, agents = self.batch, instance.num_agents
        read = parse_moves(reply, agents)
        unread = isinstance(read, ParseError)
        self._unread += unread
        joint = np.full(batch.max_agents, Action.WAIT, dtype=np.int64)
        if not isinstance(read, ParseError):
            joint[:agents] = read
        before, aims = batch.positions[0, :agents], batch.goals[0, :agents]
        _, _, terminated, truncated, events = batch.step(joint[None])
        self._over = bool(terminated[0] or truncated[0])
        info: dict[str, Any] = {"parse_error": str(read) if unread else None, "actions": None if unread else read}
        info["events"] = events[0].copy()
        if self._over:
            info |= outcome(batch)
            if self._unread:
                optimal = None if info["optimal"] is None else False
                info |= {"valid": False, "score": 0.0, "optimal": optimal, "failure": FailureKind.PARSE_ERROR.value}
        goals = batch.goals[0, :agents] if self._rules.on_goal == "next" else None
        step, horizon = int(batch.step_count[0]), int(batch.horizon[0])
        result = state_text(instance, batch.positions[0, :agents], step, horizon, self.style, goals)
        moves, happened = read if isinstance(read, ParseError) else joint[:agents], info["events"][:agents]
        error = unread or bool(happened.any())
        hint = self._hint(TurnEvent(reply, result, error, instance, before, aims, moves, happened))
        observation = f"{hint}\n{result}" if hint else result
        paid = 0.0 if unread else float(batch.team_reward[0])
        return observation, paid, bool(terminated[0]), bool(truncated[0]), info

    def _refuse(self, config: LakeConfig) -> None:
        if config.is_slippery:
            raise LakeError(
                "is_slippery=True: the text interface has no slippery ice; use is_slippery=False, or MAPFFrozenLake-v0"
            )
        if config.collisions not in ("block", "end"):
            raise LakeError(
                f"collisions={config.collisions!r}: the texts describe the lake's own rules; use 'block' or 'end', or MAPFFrozenLake-v0"
            )
        if self.mode == "plan" and config.on_goal != "wait":
            raise LakeError(
                f"on_goal={config.on_goal!r} is played step by step, but mode='plan' judges a whole plan by on_goal='wait': "
                "use mode='turns'"
            )

    def _hint(self, event: LakeEvent) -> str | None:
        return self.augmenter(event) if self._rules.feedback else None
