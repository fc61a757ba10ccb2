"""The callbacks of other libraries' trainers, with plain objects in the trainers' place: who is given which config, and when."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.lazily import needed


class Lake:
    def __init__(self):
        self.configs = []

    def set_config(self, config):
        self.configs.append(config)


class Group:
    """Runners of which the first, in this process, has no environment."""

    def __init__(self):
        self.runners, self.asked = [SimpleNamespace(env=None), SimpleNamespace(env=Lake())], []

    def foreach_env_runner(self, do, **options):
        self.asked.append(options)
        for runner in self.runners:
            do(runner)


@pytest.fixture
def callback():
    needed("ray", extra="rllib")
    from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback

    return RLlibCurriculumCallback


@pytest.mark.ray  # beside the tests that import the same
class TestRLlib:
    def algorithm(self, callbacks, evaluating=False):
        return SimpleNamespace(
            callbacks=callbacks, env_runner_group=Group(), eval_env_runner_group=Group() if evaluating else None
        )

    def test_a_swap_reaches_every_runner_and_waits_as_long_as_it_is_told_to(self, callback):
        one = callback()
        for callbacks in (one, [object(), one]):
            algorithm = self.algorithm(callbacks, evaluating=True)
            callback.swap(algorithm, "hard", timeout_seconds=7)
            assert one.config == "hard"
            for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
                assert group.asked == [{"timeout_seconds": 7}]
                assert group.runners[1].env.configs == ["hard"]
                assert group.runners[1].curriculum_config == "hard"
                assert not hasattr(group.runners[0], "curriculum_config")
        callback.swap(self.algorithm(one), "hard")  # without runners that evaluate
        for callbacks in ([], [object()], object()):
            with pytest.raises(LookupError, match=r"add \.callbacks\(RLlibCurriculumCallback\) to its config"):
                callback.swap(self.algorithm(callbacks), "hard")

    def test_what_follows_a_result_is_the_curriculums_answer(self, callback):
        said = iter([None, "hard"])
        one = callback.following(lambda result: next(said))()
        algorithm = self.algorithm(one)
        for _ in range(2):
            one.on_train_result(algorithm=algorithm, result={})
        assert algorithm.env_runner_group.runners[1].env.configs == ["hard"]
        callback().on_train_result(algorithm=algorithm, result={})  # nobody to ask

    def test_a_rebuilt_environment_and_a_restarted_runner_get_the_current_config(self, callback):
        applied = []
        one = callback.following(apply=lambda env, config: applied.append((env, config)))()
        group = Group()
        one.on_env_runners_recreated(env_runner_group=group, env_runner_indices=[2])
        one.on_environment_created(env_runner=group.runners[1])
        assert (group.asked, applied) == ([], [])  # before the first swap there is none
        one.config = "hard"
        one.on_env_runners_recreated(env_runner_group=group, env_runner_indices=[2])
        assert group.asked == [{"remote_worker_ids": [2], "local_env_runner": False}]
        one.on_environment_created(env_runner=group.runners[1])
        assert applied == [(group.runners[1].env, "hard")] * 2
        algorithm = self.algorithm(one)
        callback.swap(algorithm, "harder")
        assert applied[2:] == [(algorithm.env_runner_group.runners[1].env, "harder")]


def test_trl_asks_the_curriculum_for_each_logged_value_of_its_metric():
    needed("transformers", extra="grpo")
    from envtuning.curriculum.trl_callback import TRLCurriculumCallback

    lake, asked = Lake(), []

    def curriculum(value):
        asked.append(value)
        return "hard" if value == 0 else None

    one = TRLCurriculumCallback(lake, curriculum, metric="rate")
    for logs in (None, {}, {"loss": 1.0}, {"rate": "0.5"}, {"rate": 0}):
        one.on_log(None, None, None, logs=logs)
    assert (asked, lake.configs) == ([0.5, 0.0], ["hard"])
    assert TRLCurriculumCallback(lake, curriculum).metric == "valid_rate"


def test_trl_does_not_tell_of_the_batch_that_was_fetched_before_a_swap():
    needed("transformers", extra="grpo")
    from envtuning.curriculum.trl_callback import TRLCurriculumCallback

    lake, asked = Lake(), []

    def curriculum(value):
        asked.append(value)
        return "hard" if value > 0.5 else None

    one = TRLCurriculumCallback(lake, curriculum, metric="rate")
    for rate in (0.9, 0.8, None, 0.1, 0.7, None, 0.6, 0.2):
        one.on_log(None, None, None, logs={} if rate is None else {"rate": rate})
    assert (asked, lake.configs) == ([0.9, 0.1, 0.7, 0.2], ["hard", "hard"])
