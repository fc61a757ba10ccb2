"""Draws instances that meet a config exactly, and keeps the pool that training envs use."""

from mapf_frozenlake.generator.generate import Limits, check_config, generate
from mapf_frozenlake.generator.pool import InstancePool
from mapf_frozenlake.generator.symmetry import canonical_key, canonical_keys

__all__ = ["InstancePool", "Limits", "canonical_key", "canonical_keys", "check_config", "generate"]
