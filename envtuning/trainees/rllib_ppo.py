"""PPO on batches instead of episodes: native sampling in, RLlib's stock Learner behind it, everything else RLlib's own."""

from __future__ import annotations

import math
from typing import Any

from ray.rllib.algorithms.ppo import PPO
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch, concat_samples
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_RESULTS,
    LEARNER_UPDATE_TIMER,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
)

from envtuning.trainee import WorkerLost


class LakePPO(PPO):
    """RLlib's PPO whose EnvRunners return experience ready to learn from (see ``LakeEnvRunner``)."""

    def training_step(self) -> None:
        """Sample on every runner, learn, hand the new weights out."""
        with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            experience = self._sample()
        with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            self._learn(experience)
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self.env_runner_group.sync_weights(
                from_worker_or_learner_group=self.learner_group, policies=[DEFAULT_MODULE_ID], inference_only=True
            )

    def _sample(self) -> SampleBatch:
        group = self.env_runner_group
        remote = group.num_remote_env_runners()
        parts = group.foreach_env_runner(
            _sample_once, local_env_runner=remote == 0, timeout_seconds=self.config.sample_timeout_s if remote else None
        )
        if not parts:
            raise WorkerLost(
                f"none of the {remote} EnvRunners answered within {self.config.sample_timeout_s} s: load the last "
                "checkpoint into a new trainee"
            )
        batches, outcomes, metrics = zip(*parts)
        self.metrics.aggregate(list(metrics), key=ENV_RUNNER_RESULTS)
        self.outcomes = {key: sum(part.get(key, 0) for part in outcomes) for key in {k for o in outcomes for k in o}}
        self.outcomes["workers_lost"] = max(remote, 1) - len(parts)
        experience = concat_samples(list(batches))
        advantages = experience["advantages"]
        experience["advantages"] = (advantages - advantages.mean()) / max(1e-4, advantages.std())
        return experience

    def _learn(self, experience: SampleBatch) -> None:
        learners = max(1, self.config.num_learners)
        if spare := len(experience) % learners:  # learners in step need shares of one size
            experience = experience[:-spare]
        share = len(experience) // learners
        results = self.learner_group.update(
            batch=MultiAgentBatch({DEFAULT_MODULE_ID: experience}, self.outcomes["env_steps"]),
            timesteps={
                NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME))
            },
            num_epochs=self.config.num_epochs,
            minibatch_size=self.config.minibatch_size,
            shuffle_batch_per_epoch=self.config.shuffle_batch_per_epoch,
            num_total_minibatches=self.config.num_epochs * math.ceil(share / self.config.minibatch_size),
        )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)


def _sample_once(env_runner: Any) -> tuple[SampleBatch, dict[str, float], Any]:
    return env_runner.sample(), dict(env_runner.outcomes), env_runner.get_metrics()
