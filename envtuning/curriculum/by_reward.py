"""``ByReward``: the success of episodes whose infos do not say it, and a warning where their rewards cannot say it either."""

from __future__ import annotations

from typing import Any

import numpy as np

from envtuning.own_code import warn

ENDS = 20  # episodes, after which it is known whether rewards tell successes
NEARLY_ALL = 0.9  # of them
LOOKS = 10  # at steps after an end


class ByReward:
    """An episode is a success if it terminated with a reward above 0. One per door.

    Warns, once, where nearly all of the first ``ENDS`` episodes are, though other steps pay, too: in CartPole, each fall is. So it does where
    none is, and every step costs: in Acrobot, no goal is. An environment that pays at its goal alone gives no warning, however often it is reached.
    """

    def __init__(self) -> None:
        # So many steps that end no episode are still to be shown to ``saw``; none where infos say the success.
        self.looks = 0
        self._others_pay = self._settled = False
        self._all_cost = False  # the other steps that were seen
        self._ends = self._won = 0

    def won(self, terminated: Any, reward: Any) -> Any:
        """The success of an episode that is over, or an array of them."""
        won = terminated & (reward > 0)
        if not self._settled:
            self._count(np.size(won), int(np.sum(won)))
        return won

    def saw(self, rewards: Any) -> None:
        """The rewards of steps that end no episode."""
        self.looks -= 1
        paid = np.asarray(rewards)
        if np.any(paid > 0):
            self._others_pay, self.looks = True, 0
        self._all_cost = bool(np.all(paid < 0)) if paid.size else self._all_cost

    def _count(self, ends: int, won: int) -> None:
        first = not self._ends  # which may be many at once, before any other step was seen
        self._ends, self._won = self._ends + ends, self._won + won
        if first or self._ends < ENDS:
            self.looks = 0 if self._others_pay else LOOKS
            return
        self._settled, self.looks = True, 0
        if self._others_pay and self._won >= NEARLY_ALL * self._ends:
            warn(
                f"infos do not say which episodes succeed, so those count that terminated with a reward above 0: {self._won} of the first "
                f'{self._ends}, as other steps pay, too. If a fall is no success, set info["is_success"] in an episode\'s last info'
            )
        elif self._all_cost and not self._won:
            warn(
                f"infos do not say which episodes succeed, so those count that terminated with a reward above 0: none of the first {self._ends}, "
                'as every step costs. Set info["is_success"] in an episode\'s last info'
            )
