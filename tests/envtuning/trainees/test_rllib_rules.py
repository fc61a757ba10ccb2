"""What the RLlib trainee does around RLlib, with plain objects in its place: who is asked, counted, waited for and given up."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from envtuning.trainees.base import WorkerLost
from envtuning.trainees.visited import Visited
from tests.lazily import Lazy, needed

needed("ray", "torch", extra="rllib")
torch, sample_batch = Lazy("torch"), Lazy("ray.rllib.policy.sample_batch")
options, runners = Lazy("envtuning.trainees.rllib.options"), Lazy("envtuning.trainees.rllib.runner")

pytestmark = pytest.mark.ray  # beside the tests that import the same


@pytest.fixture
def ppo():
    return import_module("envtuning.trainees.rllib.ppo")


@pytest.fixture
def trainees():
    return import_module("envtuning.trainees.rllib.trainee")


def batch(advantages):
    column = np.array(advantages, np.float32)
    return sample_batch.SampleBatch({"advantages": column, "obs": np.arange(len(column), dtype=np.float32)})


class Metrics:
    """Stands for RLlib's logger: what was aggregated under which name, and what was timed."""

    def __init__(self):
        self.aggregated, self.timed, self.logged = {}, [], []

    @contextmanager
    def log_time(self, name):
        self.timed.append(name[1])
        yield

    def aggregate(self, results, *, key):
        self.aggregated[key] = results

    def peek(self, key):
        return 77

    def log_value(self, name, value, *, reduce):
        self.logged.append((name, value, reduce))

    def reduce(self):
        return self.logged


class Group:
    """EnvRunners 1, 2, … of which some are out of service and some do not answer; 0 is the local one."""

    def __init__(self, healthy, answering, runner=lambda index: SimpleNamespace()):
        self.healthy, self.answering, self.runner = healthy, answering, runner
        self.asked, self.out, self.synced = [], {}, []
        self._worker_manager = SimpleNamespace(
            set_actor_state=lambda index, *, healthy: self.out.update({index: healthy}),
            actors=lambda: {1: "first", 2: "second"},
            clear=lambda: self.asked.append("cleared"),
        )

    def healthy_env_runner_ids(self):
        return self.healthy

    def num_remote_env_runners(self):
        return 3 if self.healthy else 0

    def foreach_env_runner(self, do, *, timeout_seconds):
        self.asked.append(timeout_seconds)
        return [do(SimpleNamespace(worker_index=index, **vars(self.runner(index)))) for index in self.answering]

    def sync_weights(self, **options):
        self.synced.append(options)


def algorithm(group, **config):
    kind = import_module("envtuning.trainees.rllib.ppo").LakePPO
    made = kind.__new__(kind)
    made.env_runner_group, made.metrics = group, Metrics()
    made.config = SimpleNamespace(sample_timeout_s=9.5, num_learners=0, num_epochs=3, minibatch_size=4, **config)
    made.config.shuffle_batch_per_epoch = True
    made.updates = []
    made.learner_group = SimpleNamespace(update=lambda **told: made.updates.append(told) or "learnt")
    return made


# --- sampling


@pytest.mark.parametrize(
    ("healthy", "answering", "timeout", "out"),
    [
        ([], [0], None, {}),  # this process alone is waited for
        ([1, 2, 3], [0, 1, 2, 3], 7.0, {}),
        ([1, 2, 3], [0, 2], 7.0, {1: False, 3: False}),
        ([2], [0], 7.0, {2: False}),
    ],
)
def test_who_does_not_answer_in_time_is_out_of_service(healthy, answering, timeout, out):
    group = Group(healthy, answering)
    assert algorithm(group).ask_runners(lambda runner: 10 * runner.worker_index, 7.0) == [10 * one for one in answering]
    assert (group.asked, group.out) == ([timeout], out)


def sampling(index):
    """A runner whose rollouts say who made them; the local one has no lakes where remote ones have."""
    return SimpleNamespace(
        env=None if index == 0 else "lakes",
        sample=lambda: batch([index, index]),
        outcomes={"env_steps": 10.0 * index, "episodes": 1.0},
        get_metrics=lambda: f"metrics of {index}",
        sampler=SimpleNamespace(ended=f"ended in {index}"),
    )


def test_a_sample_is_what_every_runner_that_answered_saw_and_the_lost_are_counted():
    made = algorithm(Group([1, 2, 3], [0, 1, 3], sampling))
    assert [list(one["advantages"]) for one in made._sample()] == [[1, 1], [3, 3]]
    assert made.outcomes == {"env_steps": 40.0, "episodes": 2.0, "workers": 2, "workers_lost": 1}
    assert made.ended == ["ended in 1", "ended in 3"]
    assert made.metrics.aggregated == {"env_runners": ["metrics of 1", "metrics of 3"]}
    alone = algorithm(Group([], [5], sampling))
    assert len(alone._sample()) == 1
    assert alone.outcomes == {"env_steps": 50.0, "episodes": 1.0}  # nobody to lose


def test_advantages_of_all_runners_together_have_mean_0_and_deviation_1(ppo):
    joined = ppo._joined([batch([0.5, 0.5]), batch([0.9, 0.9])])
    np.testing.assert_allclose(joined["advantages"], [-1, -1, 1, 1], rtol=1e-5)
    assert list(joined["obs"]) == [0, 1, 0, 1]
    assert list(ppo._joined([batch([0.5, 0.5])])["advantages"]) == [0, 0]
    np.testing.assert_allclose(ppo._joined([batch([1e-5, 3e-5])])["advantages"], [-0.1, 0.1], rtol=1e-4)


@pytest.mark.parametrize(
    ("learners", "rows", "learnt", "minibatches"),
    [(0, 8, 8, 6), (0, 9, 9, 9), (1, 9, 9, 9), (2, 9, 8, 3), (2, 8, 8, 3), (3, 11, 9, 3)],
)
def test_learners_in_step_get_shares_of_one_size(learners, rows, learnt, minibatches):
    """Minibatches of 4, three times over."""
    made = algorithm(Group([], [0]))
    made.config.num_learners, made.outcomes = learners, {"env_steps": 50.0}
    made._learn(batch(range(rows)))
    (told,) = made.updates
    data = told.pop("batch")
    assert len(data.policy_batches["default_policy"]) == learnt
    assert data.env_steps() == 50
    assert told == {
        "timesteps": {"num_env_steps_sampled_lifetime": 77},
        "num_epochs": 3,
        "minibatch_size": 4,
        "shuffle_batch_per_epoch": True,
        "num_total_minibatches": minibatches,
    }
    assert made.metrics.aggregated == {"learners": "learnt"}


def test_an_iteration_samples_learns_and_hands_the_weights_out():
    made = algorithm(Group([1], [0, 1], sampling))
    made.training_step()
    assert len(made.updates) == 1
    assert made.metrics.timed == ["env_runner_sampling_timer", "learner_update_timer", "synch_weights"]
    weights = {"from_worker_or_learner_group": made.learner_group, "policies": ["default_policy"]}
    assert made.env_runner_group.synced == [weights | {"inference_only": True}]
    nobody = algorithm(Group([1], [0], sampling))
    nobody.training_step()
    assert (nobody.updates, nobody.env_runner_group.synced) == ([], [])


# --- a runner


def test_a_runner_begins_by_the_configs_seed_where_nobody_told_it_to_and_counts_its_steps(monkeypatch):
    for seed, begun in ((None, 0), (5, 5)):
        runner = runners.LakeEnvRunner.__new__(runners.LakeEnvRunner)
        runner.config, runner.options = SimpleNamespace(seed=seed), "options"
        runner.sampler, runner.module, told = None, "network", []
        sampler = SimpleNamespace(experience=lambda *given: ({"obs": np.array(given)}, {"env_steps": 30.0}))

        def begin(seed, told=told, runner=runner, sampler=sampler):
            told.append(seed)
            runner.sampler = sampler

        monkeypatch.setattr(runner, "begin", begin)
        assert [list(runner.sample()["obs"]) for _ in range(2)] == [["network", "options"]] * 2
        assert told == [begun]
    runner.metrics, runner.num_env_steps_sampled_lifetime = Metrics(), 100
    logged = [("num_env_steps_sampled", 30, "sum"), ("num_env_steps_sampled_lifetime", 30, "lifetime_sum")]
    assert runner.get_metrics() == logged
    assert runner.num_env_steps_sampled_lifetime == 130


def test_a_lake_has_the_spaces_of_one_agent():
    lakes = runners.AgentBatch(num_envs=3, observation="ego", window=5, max_size=5, max_agents=2)
    space = lakes.single_observation_space
    assert (space.low.min(), space.low.max(), space.high.min(), space.high.max()) == (-1, -1, 1, 1)
    assert (space.shape, lakes.single_action_space.n, lakes.unwrapped) == ((lakes.layout.size,), 5, lakes)


# --- building


class Building:
    """Stands for LakePPO: its constructor takes its time, fails, or never has any runner."""

    seconds, error, group, up = 0.0, None, True, 2

    def __init__(self, settings):
        if self.error:
            raise self.error
        if self.group:
            self.env_runner_group = Group([1, 2], [])
        time.sleep(self.seconds)
        self.stopped = []

    def ask_runners(self, do, timeout):
        assert do("a runner") is None
        assert 1.0 <= timeout <= 2.0
        return [None] * (1 + self.up)


@pytest.fixture
def build(trainees, monkeypatch):
    """build(seconds=…) builds a trainee's algorithm of two runners within 0.3 s; it has the runners killed and the stopped."""
    found = SimpleNamespace(killed=[], stopped=[])
    monkeypatch.setattr(trainees.ray, "kill", found.killed.append)
    monkeypatch.setattr(trainees.ray, "cluster_resources", lambda: {"CPU": 4.0})
    monkeypatch.setattr(trainees.ray, "available_resources", lambda: {"CPU": 1.5})
    monkeypatch.setattr(trainees, "_stop", found.stopped.append)

    def run(**how):
        monkeypatch.setattr(trainees, "LakePPO", type("Built", (Building,), how))
        trainee = trainees.RLlibTrainee.__new__(trainees.RLlibTrainee)
        trainee.options = options.RLlibOptions(num_env_runners=2, cpus_per_env_runner=0.5, build_timeout=0.3)
        return trainee._built("settings")

    run.found = found
    return run


def test_an_algorithm_whose_runners_are_all_up_is_taken(build):
    assert build().env_runner_group.healthy == [1, 2]
    assert build.found == SimpleNamespace(killed=[], stopped=[])


def test_what_building_raises_is_raised(build):
    with pytest.raises(KeyError, match="no such setting"):
        build(error=KeyError("no such setting"))


@pytest.mark.parametrize(
    ("how", "up", "killed", "stopped"),
    [
        ({"group": False}, 0, [], 0),  # not even a place for the first
        ({"up": 1}, 1, ["first", "second"], 1),
        ({"up": 2, "seconds": 0.5}, 2, ["first", "second"], 1),  # it ends when what it waits for is killed
        ({"up": 2, "seconds": 1.5}, 2, ["first", "second"], 0),
    ],
)
def test_runners_that_are_not_up_in_time_are_killed_and_counted(build, how, up, killed, stopped):
    said = (
        rf"^{up} of num_env_runners=2 were up within build_timeout=0\.3 s, each on cpus_per_env_runner=0\.5, and Ray has 4 "
        r"CPUs, 1\.5 of them free: bring a lost node back"
    )
    with pytest.raises(WorkerLost, match=said):
        build(**how)
    assert build.found.killed == killed
    assert len(build.found.stopped) == stopped


# --- an iteration, and what is kept


LEARNT = {
    "gradients_default_optimizer_global_norm": 1, "total_loss": 2, "policy_loss": 3, "vf_loss": 4, "vf_explained_var": 5,
    "entropy": 6, "something_else": 7,
}  # fmt: skip


def iterating(trainees, monkeypatch, *outcomes, clock=(0.0,), timeout=10.0):
    """A trainee whose algorithm's iterations end like these, by a clock; and how long it slept."""
    slept, times, coming = [], iter(clock), iter(outcomes)
    monkeypatch.setattr(trainees, "time", SimpleNamespace(monotonic=lambda: next(times), sleep=slept.append))
    trainee = trainees.RLlibTrainee.__new__(trainees.RLlibTrainee)
    trainee.options = options.RLlibOptions(sample_timeout=timeout, num_env_runners=2)
    trainee.visited = Visited()

    class Algorithm:
        def train(self):
            self.outcomes, self.ended = defaultdict(float, next(coming)), []
            return {"learners": {"default_policy": LEARNT}}

    trainee.algorithm = Algorithm()
    return trainee, slept


def test_an_iterations_metrics_have_our_names(trainees, monkeypatch):
    trainee, slept = iterating(
        trainees, monkeypatch, {"env_steps": 1.0, "episodes": 4.0, "successes": 3.0, "valid": 1.0}
    )
    metrics = trainee._once()
    learnt = {"grad_norm": 1, "loss": 2, "policy_loss": 3, "value_loss": 4, "explained_variance": 5, "entropy": 6}
    assert learnt.items() <= metrics.items()
    assert (metrics["env_steps"], metrics["success_rate"], metrics["valid_rate"]) == (1, 0.75, 0.25)
    assert not {"workers", "workers_lost"} & metrics.keys()
    assert slept == []


def test_an_iteration_waits_for_lost_runners_to_come_back_and_counts_each_loss(trainees, monkeypatch):
    nobody = {"workers": 0, "workers_lost": 1.0}
    again = {"env_steps": 8.0, "workers": 2}
    trainee, slept = iterating(trainees, monkeypatch, nobody, nobody, again, clock=(5.0, 14.0, 15.0))
    metrics = trainee._once()
    assert (metrics["workers"], metrics["workers_lost"], slept) == (2, 2.0, [1, 1])
    trainee, _ = iterating(trainees, monkeypatch, nobody, nobody, again, clock=(5.0, 14.0, 15.5))
    with pytest.raises(WorkerLost, match=r"none of 2 EnvRunners came back within sample_timeout=10\.0 s: make a new"):
        trainee._once()


def test_a_checkpoint_holds_tensors_and_plain_numbers(trainees):
    array = np.arange(3.0)
    tensor = trainees._as_tensor(array)
    array[0] = 9.0
    assert tensor.tolist() == [0.0, 1.0, 2.0]
    for leaf, plain in ((np.float32(0.5), 0.5), (np.int64(3), 3), ("adam", "adam"), (None, None), (True, True)):
        assert (trainees._as_tensor(leaf), type(trainees._as_tensor(leaf))) == (plain, type(plain))


def test_a_restored_state_counts_as_the_newest(trainees):
    told = SimpleNamespace(_weights_seq_no=99, set_state=lambda state: setattr(told, "state", state))
    trainees.privates.set_state(told, state={"w": 1})
    assert (told._weights_seq_no, told.state) == (0, {"w": 1})


def test_a_checkpoint_is_gone_on_from_with_the_options_learning_rate(trainees):
    optimiser = torch.optim.Adam([torch.zeros(2, requires_grad=True)], lr=0.5)
    learner = SimpleNamespace(_named_optimizers={"default": optimiser}, set_state=lambda state: None)
    trainees._restore_learner(learner, state={}, lr=0.25)
    assert [group["lr"] for group in optimiser.param_groups] == [0.25]


def test_a_runner_without_lakes_has_nothing_to_begin(trainees):
    begun = []
    for env in ("lakes", None):
        trainees._begin(SimpleNamespace(env=env, begin=begun.append), seed=7)
    assert begun == [7]


@pytest.mark.parametrize(("weight", "finite"), [(1.0, True), (np.inf, False), (np.nan, False)])
def test_a_weight_that_is_no_number_is_seen(trainees, weight, finite):
    parameters = [torch.zeros(2), torch.tensor([0.0, weight])]
    learner = SimpleNamespace(module={"default_policy": SimpleNamespace(parameters=lambda: parameters)})
    assert trainees._has_finite_weights(learner) is finite


def test_a_learner_shuffles_by_the_stages_seed(trainees):
    drawn = []
    for seed in (1, 1, 2):
        trainees._seed_shuffling(None, seed=seed)
        drawn.append(np.random.random())  # noqa: NPY002
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_closed_trainee_leaves_no_runner_and_no_empty_folder(trainees, tmp_path):
    for name, kept in (("empty", False), ("used", True)):
        folder = tmp_path / name
        folder.mkdir()
        if kept:
            (folder / "somebodys.txt").write_text("")
        closed = SimpleNamespace(env_runner_group=Group([], []), logdir=str(folder), stop=lambda: None)
        closed.stop = lambda closed=closed: closed.env_runner_group.asked.append("stopped")
        trainees._stop(closed)
        assert closed.env_runner_group.asked == ["cleared", "stopped"]  # so that it waits for no lost runner
        assert folder.exists() is kept
