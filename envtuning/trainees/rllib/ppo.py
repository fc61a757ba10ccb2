"""PPO on batches instead of episodes: native sampling, then RLlib's stock Learner; the rest is RLlib's own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

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

from envtuning.trainees.lakes.sampler import Ended
from envtuning.trainees.privates.rllib import take_out_of_service
from mapf_frozenlake import GenerationError


class Sampled(NamedTuple):
    """A runner's rollout."""

    experience: SampleBatch
    outcomes: dict[str, float]
    metrics: Any  # RLlib's
    ended: Ended


class LakePPO(PPO):
    """RLlib's PPO whose EnvRunners return experience ready to learn from (see ``LakeEnvRunner``)."""

    # Of the last iteration, summed over the runners: env_steps, episodes, …; remote: workers, workers_lost.
    outcomes: dict[str, float]
    ended: list[Ended]  # the episodes that ended in it, by runner

    def training_step(self) -> None:
        """Sample on every runner, learn, and send out the new weights. Without any sample, do nothing until the next iteration."""
        with self.metrics.log_time((TIMERS, ENV_RUNNER_SAMPLING_TIMER)):
            samples = self._sample()
        if not samples:
            return
        with self.metrics.log_time((TIMERS, LEARNER_UPDATE_TIMER)):
            self._learn(_joined(samples))
        with self.metrics.log_time((TIMERS, SYNCH_WORKER_WEIGHTS_TIMER)):
            self.env_runner_group.sync_weights(
                from_worker_or_learner_group=self.learner_group, policies=[DEFAULT_MODULE_ID], inference_only=True
            )

    def ask_runners(self, do: Callable[[Any], Any], timeout: float) -> list[Any]:
        """The results of ``do`` on the local runner and on each remote one in service.

        Raises ``GenerationError`` if one of them cannot draw boards.

        A runner that is dead, or silent for ``timeout`` seconds (for example because no place is free for its restart), is out of
        service until RLlib has reached and updated it. Until then this neither waits for it nor counts it as lost again.
        """
        group = self.env_runner_group
        asked = set(group.healthy_env_runner_ids())
        answers = group.foreach_env_runner(partial(_with_index, do=do), timeout_seconds=timeout if asked else None)
        for silent in asked - {index for index, _ in answers}:
            take_out_of_service(group, silent)
        for _, answer in answers:
            if isinstance(answer, GenerationError):
                raise answer
        return [answer for _, answer in answers]

    def _sample(self) -> list[SampleBatch]:
        """One rollout from every runner that answers in time."""
        group = self.env_runner_group
        remote = group.num_remote_env_runners()
        asked = len(group.healthy_env_runner_ids())
        answers = self.ask_runners(_sample_once, self.config.sample_timeout_s)
        sampled: list[Sampled] = [answer for answer in answers if answer is not None]
        self.outcomes, self.ended = defaultdict(float), [one.ended for one in sampled]
        if remote:
            self.outcomes |= {"workers": len(sampled), "workers_lost": asked - len(sampled)}
        for one in sampled:
            for name, count in one.outcomes.items():
                self.outcomes[name] += count
        self.metrics.aggregate([one.metrics for one in sampled], key=ENV_RUNNER_RESULTS)
        return [one.experience for one in sampled]

    def _learn(self, experience: SampleBatch) -> None:
        learners = max(1, self.config.num_learners)
        if spare := len(experience) % learners:  # Learners in step need parts of equal size
            experience = experience[:-spare]
        share = len(experience) // learners
        results = self.learner_group.update(
            batch=MultiAgentBatch({DEFAULT_MODULE_ID: experience}, int(self.outcomes["env_steps"])),
            timesteps={
                NUM_ENV_STEPS_SAMPLED_LIFETIME: self.metrics.peek((ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME))
            },
            num_epochs=self.config.num_epochs,
            minibatch_size=self.config.minibatch_size,
            shuffle_batch_per_epoch=self.config.shuffle_batch_per_epoch,
            num_total_minibatches=self.config.num_epochs * math.ceil(share / self.config.minibatch_size),
        )
        self.metrics.aggregate(results, key=LEARNER_RESULTS)


def _with_index(env_runner: Any, *, do: Callable[[Any], Any]) -> tuple[int, Any]:
    """Returns a ``GenerationError`` instead of raising it: RLlib treats a remote runner that raises as lost."""
    try:
        return env_runner.worker_index, do(env_runner)
    except GenerationError as error:
        return env_runner.worker_index, error


def _sample_once(env_runner: Any) -> Sampled | None:
    """A sample; None from the local runner if remote ones sample."""
    if env_runner.env is None:
        return None
    experience = env_runner.sample()
    return Sampled(experience, dict(env_runner.outcomes), env_runner.get_metrics(), env_runner.sampler.ended)


def _joined(samples: list[SampleBatch]) -> SampleBatch:
    """All runners' experience, with advantages scaled to mean 0 and deviation 1."""
    experience = concat_samples(samples)
    advantages = experience["advantages"]
    experience["advantages"] = (advantages - advantages.mean()) / max(1e-4, advantages.std())
    return experience
