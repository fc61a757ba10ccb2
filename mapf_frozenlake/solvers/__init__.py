"""Exact solvers, certificates and experts for instances."""

from mapf_frozenlake.solvers.certify import Certificates, certify_batch
from mapf_frozenlake.solvers.solve import solve, solve_batch

__all__ = ["Certificates", "certify_batch", "solve", "solve_batch"]
