"""``RLlibTrainee`` keeps the promises of ``Trainee``: on local and remote runners and learners, after deaths and restores."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mapf_frozenlake as mfl
from envtuning.trainees import make_trainee
from envtuning.trainees.base import Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.world import InfeasibleConfig
from mapf_frozenlake import GenerationError
from tests.lazily import Lazy, needed

needed("ray", "torch", extra="rllib")
ray, torch, curriculum = Lazy("ray"), Lazy("torch"), Lazy("envtuning.curriculum.rllib_callback")

pytestmark = pytest.mark.ray

EASY = mfl.LakeConfig.single(3, num_agents=1, reward="shaped")
WEIGHTS, POLICY = "rl_module", "default_policy"  # as RLlib names the part and its only module
HARD = mfl.LakeConfig.single(5, num_agents=2, reward="progress", collisions="end")
ROOM = {"max_size": 5, "max_agents": 2}
SMALL = {"capacity": ROOM, "num_envs": 16, "rollout": 16, "minibatch": 128, "hidden": (32,), "window": 5}
REMOTE = SMALL | {"num_env_runners": 2, "cpus_per_env_runner": 0.5}


@pytest.fixture
def make(ray_session):
    made = []

    def build(**options):
        made.append(make_trainee("rllib", **{"seed": 0} | options))
        return made[-1]

    yield build
    for trainee in made:
        trainee.close()


@pytest.fixture(scope="module")
def remote(ray_session):
    trainee = make_trainee("rllib", seed=0, **REMOTE)
    yield trainee
    trainee.close()


def learner_state(trainee):
    """Weights and optimiser moments, flat: {path: array}."""
    group = trainee.algorithm.learner_group
    state = group.get_state(components=["learner/rl_module", "learner/optimizer"])["learner"]
    return dict(leaves({part: state[part] for part in ("rl_module", "optimizer")}))


def runner_weights(trainee):
    states = trainee.algorithm.env_runner_group.foreach_env_runner(lambda r: r.get_state(WEIGHTS))
    return [dict(leaves(state[WEIGHTS])) for state in states]


def leaves(tree, path=""):
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}/{key}")
    elif isinstance(tree, (list, tuple)):
        yield from leaves(dict(enumerate(tree)), path)
    else:
        yield path, np.asarray(tree)


def assert_identical(one, other):
    assert one.keys() == other.keys()
    assert len(one) > 0
    for path, array in one.items():
        np.testing.assert_array_equal(array, other[path], err_msg=path)


def runner_configs(trainee):
    return trainee.algorithm.env_runner_group.foreach_env_runner(
        lambda runner: None if runner.env is None else runner.env.get_config()
    )


def test_is_a_trainee(make):
    trainee = make(**SMALL)
    assert isinstance(trainee, Trainee)
    seen = []
    metrics = trainee.train(EASY, 500, seed=0, on_iteration=seen.append)
    assert metrics["env_steps"] == sum(done["env_steps"] for done in seen) >= 500
    assert all({"env_steps", "success_rate", "valid_rate", "grad_norm", "entropy"} <= done.keys() for done in seen)
    assert metrics["grad_norm"] > 0
    policy = trainee.policy()
    lakes = mfl.LakeBatch(HARD, 8, **policy.env_kwargs)
    actions = policy.act(lakes.reset())
    assert actions.shape == (8, 2)
    masks = lakes.action_masks()
    assert masks[np.arange(8)[:, None], np.arange(2), actions].all()


def test_rllibs_learner_takes_the_step_that_ppo_takes(make):
    from envtuning.trainees.ppo import PPOLearner
    from envtuning.trainees.rllib.ppo import _joined

    trainee = make(**SMALL | {"epochs": 1, "minibatch": 64})
    curriculum.RLlibCurriculumCallback.swap(trainee.algorithm, HARD)
    experience = trainee.algorithm._sample()[0][:64]
    alone = PPOLearner(trainee.copied_network(), trainee.options)
    alone.learn({name: np.array(column) for name, column in experience.items()}, torch.Generator())
    trainee.algorithm._learn(_joined([experience]))
    stepped = trainee.copied_network().state_dict()
    assert stepped.keys() == alone.network.state_dict().keys()
    for name, weight in alone.network.state_dict().items():
        torch.testing.assert_close(stepped[name], weight, rtol=0, atol=1e-5)  # of a step of 1e-3


def test_its_policy_is_evaluated(make):
    trainee = make(**SMALL)
    boards = mfl.generate(HARD, n=12, seed=5)
    tables = [mfl.evaluate(trainee.policy(), boards) for _ in range(2)]
    assert tables[0].to_json() == tables[1].to_json()


def test_swap_leaves_weights_and_optimiser_bit_identical(make):
    trainee = make(**SMALL)
    trainee.train(EASY, 500, seed=0)
    before = learner_state(trainee)
    curriculum.RLlibCurriculumCallback.swap(trainee.algorithm, HARD)
    assert_identical(before, learner_state(trainee))
    assert runner_configs(trainee) == [HARD]
    trainee.train(HARD, 500, seed=1)
    assert any(not np.array_equal(array, before[path]) for path, array in learner_state(trainee).items())


def test_swap_on_remote_runners(remote):
    remote.train(EASY, 500, seed=0)
    before = learner_state(remote)
    curriculum.RLlibCurriculumCallback.swap(remote.algorithm, HARD)
    assert_identical(before, learner_state(remote))
    assert runner_configs(remote) == [None, HARD, HARD]  # the local runner has no lakes where remote ones sample


@pytest.mark.slow
def test_killed_runner_comes_back_on_the_current_config(remote):
    remote.train(EASY, 500, seed=0)
    curriculum.RLlibCurriculumCallback.swap(remote.algorithm, HARD)
    group = remote.algorithm.env_runner_group
    ray.kill(group._worker_manager.actors()[1], no_restart=False)
    lost: list[float] = []
    workers: list[float] = []
    deadline = time.monotonic() + 240  # a new runner imports Ray and torch first, slowly on a busy machine
    while time.monotonic() < deadline and not (sum(lost) > 0 and workers[-1] == 2):
        metrics = remote._once()
        lost.append(metrics.get("workers_lost", 0))
        workers.append(metrics["workers"])
        time.sleep(0.5)  # the new runner needs the cores
    assert sum(lost) == 1, "the death was not noticed, or more than once"
    assert workers[-1] == 2, "the runner was not replaced"
    assert runner_configs(remote) == [None, HARD, HARD]
    learned = dict(leaves(remote.algorithm.learner_group.get_weights()[POLICY]))
    for weights in runner_weights(remote):
        assert_identical(learned, weights)


UNDRAWABLE = mfl.LakeConfig.single(3, num_agents=2, hole_ratio=0.6, wait_ratio=1.0, min_distance=4, collisions="end")


@pytest.mark.parametrize("where", ["local", "remote"])
def test_a_config_that_cannot_be_drawn_is_no_lost_runner(make, remote, where):
    trainee = remote if where == "remote" else make(**SMALL)
    with pytest.raises(InfeasibleConfig, match="no board that needs a wait"):
        trainee.train(UNDRAWABLE, 100, seed=0)
    assert trainee.train(EASY, 500, seed=0)["env_steps"] > 0, "the runners are still in service"


def test_boards_that_run_out_later_make_a_config_infeasible_too(make, remote):
    def none_left(*_):
        raise GenerationError("none is left")

    def run_out(runner):
        if runner.env is not None:
            runner.sampler.sample = none_left

    remote.train(EASY, 500, seed=0)
    remote.algorithm.env_runner_group.foreach_env_runner(run_out)
    with pytest.raises(GenerationError, match="none is left"):
        remote._once()
    assert remote.train(EASY, 500, seed=0)["workers"] == 2


def test_a_runner_for_which_there_is_no_place_is_told_in_a_sentence(make):
    wanted = {"num_env_runners": 1, "cpus_per_env_runner": 5, "build_timeout": 0.5}
    said = r"0 of num_env_runners=1 were up within build_timeout=0\.5 s, each on cpus_per_env_runner=5, and Ray has 4 CPUs, .* free"
    with pytest.raises(WorkerLost, match=said):
        make(**SMALL | wanted)


def test_restored_remote_runners_sample_with_the_restored_weights(make, remote, tmp_path):
    """RLlib itself leaves remote runners on their first weights after a restore."""
    trained = make(**SMALL | {"seed": 7})
    trained.train(HARD, 500, seed=0)
    trained.save(tmp_path)
    remote.load(tmp_path)
    assert_identical(learner_state(trained), learner_state(remote))
    saved = dict(leaves(trained.algorithm.learner_group.get_weights()[POLICY]))
    for weights in runner_weights(remote):
        assert_identical(saved, weights)
    remote.algorithm.env_runner_group.foreach_env_runner(lambda r: r.env and r.begin(3))
    samples = remote.algorithm._sample()
    assert len(samples) == 2
    for sample in samples:  # the chances they acted by are the restored network's
        logits, _ = trained.policy().network.policy_and_value(torch.from_numpy(sample["obs"].copy()))
        np.testing.assert_allclose(sample["action_dist_inputs"], logits.detach().numpy(), rtol=1e-4, atol=1e-4)


def test_going_back_to_an_older_checkpoint(make, tmp_path):
    """RLlib itself keeps the newer weights when older ones are restored into the same Algorithm."""
    trainee = make(**SMALL)
    trainee.train(EASY, 500, seed=0)
    trainee.save(tmp_path)
    saved = learner_state(trainee)
    trainee.train(EASY, 1000, seed=1)
    trainee.load(tmp_path)
    assert_identical(saved, learner_state(trainee))
    weights = dict(leaves(trainee.algorithm.learner_group.get_weights()[POLICY]))
    assert_identical(weights, runner_weights(trainee)[0])


def test_stage_started_again_ends_the_same(make, tmp_path):
    """What a stage ends in depends on the loaded folder, config, budget and seed alone, not on what was done before."""
    first = make(**SMALL)
    first.train(EASY, 600, seed=0)
    first.save(tmp_path)
    ended = first.train(HARD, 600, seed=1)
    state = learner_state(first)

    np.random.seed(99)  # noqa: NPY002
    again = make(**SMALL | {"seed": 5})
    again.train(HARD, 3000, seed=3)  # more updates than the checkpoint has: RLlib would call its weights older
    again.load(tmp_path)
    assert again.train(HARD, 600, seed=1) == ended
    assert_identical(state, learner_state(again))
    assert first.train(HARD, 600, seed=2) != ended


def test_seed_of_the_weights(make):
    states = [learner_state(make(**SMALL | {"seed": seed})) for seed in (1, 1, 2)]
    assert_identical(states[0], states[1])
    assert any(not np.array_equal(array, states[2][path]) for path, array in states[0].items())


def test_leaves_global_randomness_alone(make):
    trainee = make(**SMALL)
    np.random.seed(4)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(4)  # noqa: NPY002
    trainee.train(EASY, 100, seed=0)
    assert np.random.random() == expected  # noqa: NPY002


def test_divergence_is_said(make):
    trainee = make(**SMALL | {"lr": 1e18, "grad_clip": 1e30})
    told = []
    with pytest.raises(TrainingDiverged, match="finite"):
        trainee.train(EASY, 20_000, seed=0, on_iteration=told.append)
    assert told[-1]["env_steps"] > 0  # what the diverged iteration took is known, so it can be charged


def test_config_beyond_the_room_is_refused(make):
    with pytest.raises(mfl.LakeError, match="max_size"):
        make(**SMALL).train(mfl.LakeConfig.single(6), 100, seed=0)


def boards_at_reset(trainee, config):
    """Keys of what the lakes of the local runner begin on."""
    curriculum.RLlibCurriculumCallback.swap(trainee.algorithm, config)
    runner = trainee.algorithm.env_runner
    found = set()
    for seed in range(20):
        runner.begin(seed)
        for lake in range(runner.env.num_envs):
            agents = runner.env.active[lake]
            starts, goals = runner.env.positions[lake][agents], runner.env.goals[lake][agents]
            found.add(mfl.Instance(holes=runner.env.holes(lake), starts=starts, goals=goals).key())
    return found


def test_held_out_boards_are_not_trained_on(make):
    held_out = mfl.generate(EASY, n=20, seed=0)
    keys = {held_out[j].key() for j in range(len(held_out))}
    assert boards_at_reset(make(**SMALL), EASY) & keys
    assert not boards_at_reset(make(**SMALL | {"exclude": (held_out,)}), EASY) & keys


@pytest.mark.slow
@pytest.mark.prove  # two more processes that import Ray and torch, for what RLlib itself keeps in step
def test_two_remote_learners_stay_in_step(make):
    trainee = make(**SMALL | {"num_learners": 2, "cpus_per_learner": 0.5})
    before = learner_state(trainee)
    curriculum.RLlibCurriculumCallback.swap(trainee.algorithm, HARD)
    assert_identical(before, learner_state(trainee))
    metrics = trainee.train(EASY, 600, seed=0)
    assert metrics["grad_norm"] > 0
    states = trainee.algorithm.learner_group.foreach_learner(lambda learner: learner.module.get_state())
    one, other = (dict(leaves(result.get())) for result in states)
    assert_identical(one, other)
    assert_identical(dict(leaves(states.result_or_errors[0].get()[POLICY])), runner_weights(trainee)[0])


@pytest.mark.prove  # the PPO trainee, which shares sampler and network, learns in `make test`
def test_learns_two_agents_on_5x5_in_seconds(make):
    trainee = make(capacity=ROOM)
    config = mfl.LakeConfig.single(5, num_agents=2, hole_ratio=0.2, reward="shaped")
    assert trainee.train(config, 100_000, seed=0)["success_rate"] >= 0.8
