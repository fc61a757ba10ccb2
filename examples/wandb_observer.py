"""A run of the loop in Weights & Biases, live: `pip install wandb`, then

    envtuning run small-corridors --observer examples.wandb_observer:WandbObserver

``WANDB_MODE=offline`` keeps everything in the folder ``wandb``; ``wandb sync`` sends it later.
"""

from __future__ import annotations

import wandb

from engineers.report import Incident
from envtuning.loop.observer import Observer, Progress
from envtuning.runs.log import RunLog
from envtuning.runs.state import Stage


class WandbObserver(Observer):
    """Training and validation over what was spent; each stage's config; what went wrong as text."""

    def run_began(self, run: RunLog) -> None:
        self.run = run
        self.log = wandb.init(
            project="envtuning", name=run.name, config=run.plan.spec.model_dump(mode="json"), resume="allow"
        )

    def stage_began(self, stage: Stage, allowance: int) -> None:
        self.spent_before = self.run.state.spent.get(self.run.plan.unit, 0)
        config = stage.chosen.config.model_dump(mode="json")
        self.log.config.update({f"stage {stage.number}": config}, allow_val_change=True)

    def progressed(self, progress: Progress) -> None:
        metrics = {f"training/{name}": value for name, value in progress.metrics.items()}
        self.log.log(metrics | {"stage": progress.stage}, step=self.spent_before + progress.spent)

    def validated(self, stage: Stage, metrics: dict[str, float]) -> None:
        self.log.log({f"validation/{name}": value for name, value in metrics.items()})

    def went_wrong(self, incident: Incident) -> None:
        self.log.alert(title=incident.kind, text=incident.message)

    def run_left(self) -> None:
        self.log.finish()
