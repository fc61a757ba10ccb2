"""``MenuEnv``: walks through a stored tree of the atlas."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from envtuning.atlas.published import load
from envtuning.atlas.spec import UNIFORM, Path_
from envtuning.errors import SpecError

COLUMNS = ("validated", "episodes", "probed", "probe's episodes")  # of an observation's slices; episodes in hundreds
MOST_SLICES = 16


class MenuEnv(gymnasium.Env[dict[str, Any], np.int64]):
    """An episode is a walk from the root to a leaf; action i takes the i-th entry of the menu.

    Observation: the report's figures of each slice (``COLUMNS``, in the order of the slices' names), the entries taken so far (1 and their
    place, or 0), and the rounds left. Reward: the stage's gain on validation, minus the gain of the same stage in a walk of ``uniform``, or of
    the mean entry in a menu without ``uniform``. The test is not a reward, but for scores. The environment's seed decides which of the tree's
    seeds an episode has.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  # as gymnasium has it

    def __init__(self, tree: str = "small-corridors", render_mode: str | None = None) -> None:
        self.tree, self.render_mode = load(tree), render_mode
        self.entries = tuple(self.tree.spec.menu)
        slices = {row.name for one in self.tree.seeds for report in one.reports.values() for row in report.results}
        slices |= {
            row.name for one in self.tree.seeds for report in one.reports.values() for row in report.training_results
        }
        if len(slices) > MOST_SLICES:
            raise SpecError(f"{tree} has {len(slices)} slices, at most {MOST_SLICES} are shown")
        self.slices = sorted(slices, key=lambda name: (len(name), name))
        depth = self.tree.spec.depth
        self.action_space = spaces.Discrete(len(self.entries))
        self.observation_space = spaces.Dict(
            {
                "slices": spaces.Box(0.0, 100.0, (len(self.slices), len(COLUMNS)), np.float32),
                "taken": spaces.MultiDiscrete([len(self.entries) + 1] * depth),
                "rounds left": spaces.Discrete(depth + 1),
            }
        )
        self.even: Path_ = ()
        self.uniform = next((name for name, said in self.tree.spec.menu.items() if said == UNIFORM), None)
        self.path: Path_ | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.walked = self.tree.seeds[int(self.np_random.integers(len(self.tree.seeds)))]
        self.path, self.even = (), ()
        return self._observation(), {"seed": self.walked.seed}

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        if self.path is None or len(self.path) == self.tree.spec.depth:
            raise gymnasium.error.ResetNeeded("call reset() to begin a walk")
        before = self.path
        self.path = (*before, self.entries[int(action)])
        gained = self.walked.validated(self.path) - self.walked.validated(before)
        over = len(self.path) == self.tree.spec.depth
        return self._observation(), gained - self._even(before), over, False, {}

    def _even(self, before: Path_) -> float:
        """The gain of even draws in this stage: in their own walk, or as the mean of all entries from here."""
        if self.uniform is None:
            ends = [self.walked.validated((*before, name)) for name in self.entries]
            return fmean(ends) - self.walked.validated(before)
        last, self.even = self.even, (*self.even, self.uniform)
        return self.walked.validated(self.even) - self.walked.validated(last)

    def _observation(self) -> dict[str, Any]:
        assert self.path is not None
        report, depth = self.walked.reports[self.path], self.tree.spec.depth
        slices = np.zeros((len(self.slices), len(COLUMNS)), np.float32)
        for table, rows in enumerate((report.results, report.training_results)):
            for row in rows:
                at = self.slices.index(row.name)
                slices[at, 2 * table : 2 * table + 2] = row.metrics.get(report.objective, 0.0), row.episodes / 100
        taken = [1 + self.entries.index(name) for name in self.path] + [0] * (depth - len(self.path))
        return {"slices": slices, "taken": np.array(taken, np.int64), "rounds left": np.int64(depth - len(self.path))}

    def render(self) -> str | None:  # type: ignore[override]
        """The prompt for the next choice, as a language model would be asked; needs the extra prompt."""
        if self.render_mode != "ansi" or self.path is None:
            return None
        if len(self.path) == self.tree.spec.depth:
            return f"The walk is over: {', '.join(self.path)}."
        from engineers.model.answer_format import AnswerFormat
        from engineers.model.context import context_named
        from engineers.model.prompt import build_prompt
        from envtuning.atlas.menu import as_menu, menu_at

        menu = menu_at(self.walked, self.path)
        report = as_menu(self.walked.report(self.path), menu, self.walked, self.path)
        answer_format = AnswerFormat(menu.model.model_validate(report.config))
        return "\n\n".join(
            message["content"] for message in build_prompt(report, answer_format, context_named("informed")).messages
        )
