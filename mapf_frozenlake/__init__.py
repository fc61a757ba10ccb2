"""MAPF-FrozenLake: multi-agent path finding on a frozen lake, for Gymnasium, vector, PettingZoo and text training."""

from typing import TYPE_CHECKING, Any

import mapf_frozenlake.compiling
import mapf_frozenlake.kernel_cache  # noqa: F401  both before the first kernel is made
from mapf_frozenlake.config import LakeConfig, Slice
from mapf_frozenlake.envs.parallel_vec_env import parallel_vec_env
from mapf_frozenlake.envs.registration import register_envs
from mapf_frozenlake.errors import GenerationError, LakeError, SolverBudgetExceeded
from mapf_frozenlake.evaluation import PROTOCOLS, EvaluationTable, OnlinePIBT, PathProtocol, PathTable, evaluate
from mapf_frozenlake.evaluation.pogema_policy import pogema_policy
from mapf_frozenlake.evaluation.rllib_policy import rllib_policy
from mapf_frozenlake.evaluation.sb3_policy import sb3_policy
from mapf_frozenlake.feedback import explain
from mapf_frozenlake.generator import InstancePool, check_config, generate
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import judge, judge_batch
from mapf_frozenlake.maps import from_desc, load_movingai, save_movingai
from mapf_frozenlake.solvers import distance_fields, pibt, solve, solve_batch
from mapf_frozenlake.suite import load_suite, validation_suite
from mapf_frozenlake.text import ParseError, format_plan, from_text, parse_plan, plan_prompt, to_text
from mapf_frozenlake.text.dataset import score_answer, text_dataset
from mapf_frozenlake.types import Action, Event, FailureKind, Instance, Plan, Solution, Verdict, Violation
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.move import joint_move

if TYPE_CHECKING:
    from mapf_frozenlake.mapf_frozenlake_v0 import parallel_env

__version__ = "0.1.0"

__all__ = [
    "PROTOCOLS",
    "Action",
    "EvaluationTable",
    "Event",
    "FailureKind",
    "GenerationError",
    "Instance",
    "InstancePool",
    "InstanceSet",
    "LakeBatch",
    "LakeConfig",
    "LakeError",
    "OnlinePIBT",
    "ParseError",
    "PathProtocol",
    "PathTable",
    "Plan",
    "Slice",
    "Solution",
    "SolverBudgetExceeded",
    "Verdict",
    "Violation",
    "check_config",
    "distance_fields",
    "evaluate",
    "explain",
    "format_plan",
    "from_desc",
    "from_text",
    "generate",
    "joint_move",
    "judge",
    "judge_batch",
    "load_movingai",
    "load_suite",
    "parallel_env",
    "parallel_vec_env",
    "parse_plan",
    "pibt",
    "plan_prompt",
    "pogema_policy",
    "rllib_policy",
    "save_movingai",
    "sb3_policy",
    "score_answer",
    "solve",
    "solve_batch",
    "text_dataset",
    "to_text",
    "validation_suite",
]

register_envs()


def __getattr__(name: str) -> Any:
    """Imports PettingZoo and Stable-Baselines3 only when their interfaces are used."""
    if name == "parallel_env":
        from mapf_frozenlake.mapf_frozenlake_v0 import parallel_env

        return parallel_env
    if name == "sb3_vec_env":
        try:
            from mapf_frozenlake.envs.sb3_vec_env import MAPFFrozenLakeSB3VecEnv
        except ImportError as error:
            raise ImportError("sb3_vec_env needs Stable-Baselines3: pip install stable-baselines3") from error
        return MAPFFrozenLakeSB3VecEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """For completion, which imports neither."""
    return sorted({*globals(), *__all__, "sb3_vec_env"})
