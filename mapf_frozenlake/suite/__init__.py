"""Benchmark suites: shipped instance sets that are used for figures, and never for training.

``mapf-frozenlake-3150`` has the shape of the benchmark of "From Trainee to Trainer": 3 agents on 3×3 to 10×10, 4 on 4×4 to
10×10, 5 on 5×5 to 10×10, and per such cell three subsets of 50 of which a quarter, a half and three quarters need a wait,
hole ratios 0.1 to 0.5 spread evenly. ``quick`` has the same shape with 2 in place of 50, and shares no board with it.
"""

from mapf_frozenlake.suite.load import SUITES, load_suite
from mapf_frozenlake.suite.validation import validation_suite

__all__ = ["SUITES", "load_suite", "validation_suite"]
