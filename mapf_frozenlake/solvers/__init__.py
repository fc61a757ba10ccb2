"""Exact solvers, certificates and experts for instances; docs/solvers.md has their two algorithms on one screen."""

from mapf_frozenlake.solvers.certify import Certificates, certify_batch
from mapf_frozenlake.solvers.experts import distance_fields, pibt
from mapf_frozenlake.solvers.solve import solve, solve_batch

__all__ = ["Certificates", "certify_batch", "distance_fields", "pibt", "solve", "solve_batch"]
