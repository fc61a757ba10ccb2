"""``check_world`` and ``check_trainee`` test your own world and trainee, as Gymnasium's ``check_env`` tests environments.

Both raise ``BrokenPromise`` with one sentence about the first broken promise, and return None if all are kept.
"""

from envtuning.testing.promises import BrokenPromise
from envtuning.testing.trainees import check_trainee
from envtuning.testing.worlds import check_world

__all__ = ["BrokenPromise", "check_trainee", "check_world"]
