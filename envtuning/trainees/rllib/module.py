"""The agents' network as an RLModule."""

from __future__ import annotations

from typing import Any

from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule
from torch import Tensor

from envtuning.trainees.lakes.network import AgentNetwork
from mapf_frozenlake.world.layout import EgoLayout


class LakeModule(TorchRLModule, ValueFunctionAPI, AgentNetwork):
    """``model_config``: ``window`` and ``hints`` of the observation (``EgoLayout``), and ``network`` (``LakeOptions.network``)."""

    def setup(self) -> None:
        config: Any = self.model_config
        self.build(EgoLayout(config["window"], config["hints"]), **config["network"])

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        logits, embedding = self.logits(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: embedding}

    def compute_values(self, batch: dict[str, Any], embeddings: Tensor | None = None) -> Tensor:
        return self.value_of(self.logits(batch[Columns.OBS])[1] if embeddings is None else embeddings)
