"""The engineers that need neither a model nor an option."""

PLAIN = (
    "fixed",
    "random",
    "uniform",
    "rules",
    "half-success",
    "progress-share",
    "failure-share",
    "give-up",
    "learning-progress",
    "learnability",
    "reader",
    "learnt",
)
