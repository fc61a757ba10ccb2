"""The callbacks of other libraries' trainers, with plain objects in the trainers' place: who is given which config, and when."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import pytest

import mapf_frozenlake  # noqa: F401  its environments
from engineers import make
from envtuning.errors import SpecError
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
        return [do(runner) for runner in self.runners]


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

    def test_what_is_no_curriculum_is_refused_at_once(self, callback):
        for given, said in (("rules", "curriculum is a str: give a Ladder"), (make("rules"), "is an engineer, not a")):
            with pytest.raises(SpecError, match=said):
                callback.following(given)
        callback.following(lambda result: None)

    def test_a_swap_reaches_every_runner_and_waits_as_long_as_it_is_told_to(self, callback):
        one = callback()
        for callbacks in (one, [object(), one]):
            algorithm = self.algorithm(callbacks, evaluating=True)
            callback.swap(algorithm, "hard", timeout_seconds=7)
            assert one.config == "hard"
            for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
                assert group.asked == [{"timeout_seconds": 7}]
                assert group.runners[1].env.configs == ["hard"]
                assert [runner.curriculum_notes.config for runner in group.runners] == [None, "hard"]
        callback.swap(self.algorithm(one), "hard")  # without runners that evaluate
        for callbacks in ([], [object()], object()):
            with pytest.raises(LookupError, match=r"add \.callbacks\(RLlibCurriculumCallback\) to its config"):
                callback.swap(self.algorithm(callbacks), "hard")

    def test_what_follows_a_result_is_the_curriculums_answer(self, callback):
        said = iter([None, "hard"])
        one = callback.following(lambda result: next(said))()
        algorithm = self.algorithm(one)
        for _ in range(2):
            one.on_train_result(algorithm=algorithm, result={"training_iteration": 1})
        assert algorithm.env_runner_group.runners[1].env.configs == ["hard"]
        callback().on_train_result(algorithm=algorithm, result={"training_iteration": 1})  # nobody to ask

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

    def test_a_ladder_is_told_of_the_episodes_that_began_with_the_config_in_force(self, callback):
        from envtuning import Ladder

        logged = []
        logger = SimpleNamespace(log_value=lambda *given, **how: logged.append((given, how)))
        one = callback.following(Ladder(["easy", "hard"], threshold=1.0, window=2))()  # by `valid`
        algorithm = self.algorithm(one)
        algorithm.env_runner = None
        one.on_algorithm_init(algorithm=algorithm)
        runner = algorithm.env_runner_group.runners[1]
        assert runner.env.configs == ["easy"]
        runner.config = SimpleNamespace(metrics_num_episodes_for_smoothing=7, in_evaluation=False)

        def episode(name, **info):
            return SimpleNamespace(id_=name, get_infos=lambda at: info, get_rewards=lambda at: 0.0, is_terminated=True)

        def end(name, valid):
            over = episode(name, success=True, valid=valid)
            one.on_episode_end(episode=over, env_runner=runner, metrics_logger=logger)

        for name in "abcd":
            one.on_episode_start(episode=episode(name), env_runner=runner)
        end("a", False)
        end("b", True)
        one.on_train_result(algorithm=algorithm, result={"training_iteration": 1})
        assert runner.env.configs == ["easy"]  # one of the last two
        end("c", True)
        one.on_train_result(algorithm=algorithm, result={"training_iteration": 2})
        assert runner.env.configs == ["easy", "hard"]
        end("d", True)  # begun before the swap
        one.on_episode_start(episode=episode("e"), env_runner=runner)
        end("e", True)
        assert [outcome.success for outcome in runner.curriculum_notes.ended] == [True]
        assert runner.curriculum_notes.begun == {}
        assert logged[:2] == [(("success", 1.0), {"window": 7}), (("valid", 0.0), {"window": 7})]
        runner.config.in_evaluation = True
        one.on_episode_start(episode=episode("f"), env_runner=runner)
        end("f", True)
        assert len(runner.curriculum_notes.ended) == 1

    def test_an_environment_that_has_the_same_curriculum_is_refused(self, callback):
        from envtuning import CurriculumEnv, Ladder

        ladder, algorithm = Ladder(["easy", "hard"]), self.algorithm(None)
        lakes = gym.make("MAPFFrozenLake-v0")
        algorithm.env_runner = SimpleNamespace(env=CurriculumEnv(lakes, ladder, apply=lambda env, config: None))
        with pytest.raises(SpecError, match="would count twice, as a CurriculumEnv below has the same Ladder"):
            callback.following(ladder)().on_algorithm_init(algorithm=algorithm)
        algorithm.callbacks = callback.following(Ladder(["easy", "hard"]))()
        algorithm.callbacks.on_algorithm_init(algorithm=algorithm)

    def test_slices_that_have_other_names_now_are_mapped(self, callback, tmp_path):
        import mapf_frozenlake as mfl
        from envtuning import Pools

        def sampler(*sizes):
            return Pools(mfl.LakeConfig(slices={size: {"share": size / 10} for size in sizes}, num_agents=1))

        sampler(3, 4).save(tmp_path / "curriculum.json")
        algorithm = self.algorithm(one := callback(sampler(3, 5)))
        algorithm.iteration = 1
        callback.restore(algorithm, tmp_path, renamed={"4": "5"})
        assert one.config.slices[5].share == 0.4

    def test_an_episode_without_words_of_success_is_one_by_its_reward(self, callback):
        from envtuning import Ladder

        one = callback(Ladder(["easy", "hard"]))
        runner = SimpleNamespace(
            env=Lake(), config=SimpleNamespace(metrics_num_episodes_for_smoothing=7, in_evaluation=False)
        )
        for number, (ended, reward) in enumerate(
            [(True, 1.0), (True, 0.0), (False, 1.0), (True, {"a": 0.5, "b": 0.0})]
        ):
            info = {"a": {}, "b": {}} if isinstance(reward, dict) else {}
            over = SimpleNamespace(id_=number, get_infos=lambda at, info=info: info, get_rewards=lambda at, reward=reward: reward, is_terminated=ended)  # fmt: skip
            if isinstance(reward, dict):
                over.agent_episodes = {"a": None, "b": None}
            one.on_episode_start(episode=over, env_runner=runner)
            one.on_episode_end(episode=over, env_runner=runner, metrics_logger=None)
        assert [outcome.success for outcome in runner.curriculum_notes.ended] == [True, False, False, True]

    @pytest.mark.parametrize("rewards", [[1.0, 1.0], {"a": [1.0, 1.0], "b": [0.0, 0.0]}])
    def test_where_every_step_pays_the_success_by_reward_is_doubted(self, callback, rewards):
        from envtuning import Ladder

        one = callback(Ladder(["easy", "hard"]))
        runner = SimpleNamespace(
            env=Lake(), config=SimpleNamespace(metrics_num_episodes_for_smoothing=7, in_evaluation=False)
        )

        def of(at):
            return {agent: told[at] for agent, told in rewards.items()} if isinstance(rewards, dict) else rewards[at]

        def ends(number):
            over = SimpleNamespace(id_=number, get_infos=lambda at: {}, get_rewards=of, is_terminated=True)
            one.on_episode_start(episode=over, env_runner=runner)
            one.on_episode_end(episode=over, env_runner=runner, metrics_logger=None)

        for number in range(19):
            ends(number)
        with pytest.warns(
            UserWarning, match=r"20 of the first 20, as other steps pay, too.*set info\[\"is_success\"\]"
        ):
            ends(19)
