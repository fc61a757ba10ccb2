"""MAPF-FrozenLake: multi-agent path finding on a frozen lake, for Gymnasium, vector, PettingZoo and text training."""

from mapf_frozenlake.config import LakeConfig, Slice
from mapf_frozenlake.errors import GenerationError, LakeError, SolverBudgetExceeded
from mapf_frozenlake.generator import InstancePool, check_config, generate
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.types import Action, Event, FailureKind, Instance, Plan, Solution, Verdict, Violation

__version__ = "0.1.0"

__all__ = [
    "Action",
    "Event",
    "FailureKind",
    "GenerationError",
    "Instance",
    "InstancePool",
    "InstanceSet",
    "LakeConfig",
    "LakeError",
    "Plan",
    "Slice",
    "Solution",
    "SolverBudgetExceeded",
    "Verdict",
    "Violation",
    "check_config",
    "generate",
]
