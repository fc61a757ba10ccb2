"""How the environment behaves, and a test for each fault of the public code ("Public fault") that it must not have."""

import gc
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from benchmarks.bfcl import memory
from benchmarks.bfcl.baselines import generous_progress
from benchmarks.bfcl.official import official_verdict
from benchmarks.bfcl.policies import POLICIES
from benchmarks.bfcl.scripts import run_script
from benchmarks.fuzz import tool_actions
from envtuning.worlds.bfcl.calls import Call, as_reply, read_call
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import SPLITS, PackageError, load
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.tasks import find_task, load_tasks
from envtuning.worlds.bfcl.tools import Toolbox


@pytest.fixture(scope="module")
def tasks(v4):
    return [task for split in SPLITS for task in load_tasks(v4, split)]


def scores(package, task, policy):
    return run_script(Conversation(package, task), POLICIES[policy](package, task, random.Random(0))).scores()


def test_gymnasium_accepts_it(v4):
    env = gym.make("BFCLMultiTurn-v0", split="miss_func")
    check_env(env.unwrapped, skip_render_check=True)


def test_same_seed_same_task_and_options_name_one(v4):
    env = gym.make("BFCLMultiTurn-v0")
    first = [env.reset(seed=3)[1]["task"], *(env.reset()[1]["task"] for _ in range(5))]
    again = [env.reset(seed=3)[1]["task"], *(env.reset()[1]["task"] for _ in range(5))]
    assert first == again
    assert len(set(first)) > 1
    _, info = env.reset(options={"task": "multi_turn_miss_param_17"})
    assert info["task"] == "multi_turn_miss_param_17"
    with pytest.raises(ValueError, match="multi_turn_base_17"):
        env.reset(options={"task": "nonsense"})
    with pytest.raises(ValueError, match="give one of 'base'"):
        gym.make("BFCLMultiTurn-v0", split="bass")


def test_one_version_per_process(v4):
    with pytest.raises(PackageError, match="process of its own"):
        load("v3-paper")


def test_held_back_tools_appear_with_the_official_sentence(v4):
    task = find_task(v4, "multi_turn_miss_func_0")  # sort appears in turn 3
    talk = Conversation(v4, task, tool_style="short")
    for turn in range(3):
        assert "sort" not in [tool["name"] for tool in talk.tools], turn
        talk.act(DONE)
    assert "sort" in [tool["name"] for tool in talk.tools]
    assert talk.said == "sort(file_name)\nI have updated some more functions you can choose from. What about now?"
    assert "cp" not in [tool["name"] for tool in talk.tools]  # excluded_function


def test_a_tool_that_is_not_offered_runs_as_officially_or_is_refused_and_reported(v4):
    task = find_task(v4, "multi_turn_miss_func_0")
    ran = Conversation(v4, task)
    ran.act("[sort(file_name='x')]")
    assert "No such file" in ran.said
    assert ran.scores()["unlisted_calls"] == 1
    assert not ran.departures
    refused = Conversation(v4, task, unlisted="refuse")
    refused.act("[sort(file_name='x')]")
    assert "not defined" in refused.said
    assert refused.departures


def test_stopping_after_the_first_turn_is_not_paid_as_the_whole(v4, tasks):
    """Public fault: the mean ran over the turns that were reached, so one right turn scored 1.0."""
    for task in tasks[:50]:
        reached = scores(v4, task, "first turn only")
        assert reached["progress"] == pytest.approx(1 / task.checked_turns)


def test_the_limit_of_steps_ends_the_episode_unsolved_and_unpaid_for_the_rest(v4):
    task = find_task(v4, "multi_turn_base_0")
    talk = run_script(Conversation(v4, task), [[as_reply(task.ground_truth[0])], ["[pwd()]"] * 30])
    assert talk.over
    assert len(talk.records) == 2
    assert len(talk.records[1].steps) == v4.step_limit + 1
    assert talk.scores()["success"] == 0
    assert talk.scores()["progress"] == pytest.approx(1 / task.checked_turns)
    assert official_verdict(v4, task, talk.trajectory)["error_type"] == "multi_turn:force_terminated"
    within = run_script(
        Conversation(v4, task), [["[pwd()]"] * 20, *[[as_reply(calls)] for calls in task.ground_truth[1:]]]
    )
    assert len(within.records) == task.turns


def test_saying_nothing_is_worth_nothing(v4, tasks):
    """Public fault: turns without ground truth were given away, .235 on two splits."""
    free = {split: [] for split in SPLITS}
    for task in tasks:
        talk = run_script(Conversation(v4, task, tool_style="none"), [])
        reached = talk.scores()
        assert reached["progress"] == reached["syntax"] == reached["success"] == 0
        free[task.split].append(generous_progress(talk.records))
    means = {split: sum(values) / len(values) for split, values in free.items()}
    assert means["miss_func"] == pytest.approx(0.235, abs=0.001)
    assert means["miss_param"] == pytest.approx(0.235, abs=0.001)


def test_an_episode_of_errors_gets_no_format_reward(v4, tasks):
    """Public fault: nothing but {"error": …} got the best format reward."""
    for task in tasks[:20]:
        talk = run_script(Conversation(v4, task, reward="syntax"), [['{"error": "I cannot"}']] * task.turns)
        assert talk.scores()["syntax"] == 0


def test_instances_are_never_found_again_by_identity_or_name(v4):
    """Public fault: ground truths keyed by id() were reused; the stock executor keeps instances in module globals for ever."""
    task = find_task(v4, "multi_turn_base_0")
    before = set(vars(v4.executor))
    for _ in range(3):
        talk = Conversation(v4, task)
        talk.act("[mkdir(dir_name='left_behind')]")
        assert "File exists" not in talk.said
    assert set(vars(v4.executor)) == before
    addresses: list[int] = []
    for task in load_tasks(v4, "base")[:40]:
        talk = run_script(Conversation(v4, task, tool_style="none"), [[as_reply(calls)] for calls in task.ground_truth])
        assert talk.scores()["success"] == 1, task.id
        addresses.append(id(talk.truth_instances()))
        del talk
    assert len(set(addresses)) < len(addresses)  # addresses came back, and no ground truth with them


@pytest.mark.parametrize("reward", ["progress", "syntax", "binary"])
def test_rewards_add_up_to_the_episode_s_score(v4, tasks, reward):
    for task in random.Random(1).sample(tasks, 60):
        for policy in ("ground truth", "drop one call", "random"):
            talk = Conversation(v4, task, reward=reward, tool_style="none")
            paid = 0.0
            for replies in POLICIES[policy](v4, task, random.Random(2)):
                paid += sum(talk.act(reply) for reply in [*replies, DONE])
            wanted = talk.scores()["success" if reward == "binary" else reward]
            assert paid == pytest.approx(wanted)


def test_nothing_leaks_from_one_episode_to_the_next(v4):
    """A tool's default list, a shared credit card and the process's precision are all as before."""
    import decimal

    import mpmath

    tweeting = next(task for task in load_tasks(v4, "base") if "TwitterAPI" in task.classes)
    for _ in range(2):
        box = Toolbox(v4, tweeting)
        instance = box.instances["TwitterAPI"]
        instance.authenticated = True
        posted = box.run(read_call("post_tweet(content='x')"))
        assert '"mentions": []' in posted.text
        box.run(Call("mention", (), {"tweet_id": instance.tweet_counter - 1, "mentioned_usernames": ["@a"]}))
        assert instance.tweets[instance.tweet_counter - 1]["mentions"] == ["@a"]
    travelling = next(task for task in load_tasks(v4, "long_context") if "TravelAPI" in task.classes)
    balances = []
    for _ in range(2):
        instance = Toolbox(v4, travelling).instances["TravelAPI"]
        balances.append({card: entry.get("balance") for card, entry in instance.credit_card_list.items()})
        for entry in instance.credit_card_list.values():
            entry["balance"] = -1
    assert balances[0] == balances[1]
    counting = next(task for task in load_tasks(v4, "base") if "MathAPI" in task.classes)
    precision = decimal.getcontext().prec, mpmath.mp.dps
    Toolbox(v4, counting).run(read_call("square_root(number=2, precision=50)"))
    Toolbox(v4, counting).run(read_call("logarithm(value=2, base=10, precision=50)"))
    assert (decimal.getcontext().prec, mpmath.mp.dps) == precision


@pytest.fixture
def often_switched():
    """Threads take turns at nearly every instruction."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_switched")
def test_episodes_in_threads_share_no_precision_and_leave_no_filter_of_warnings(v4):
    """As in a server of OpenEnv, where each session has a thread."""
    import warnings

    import mpmath

    task = next(task for task in load_tasks(v4, "base") if "MathAPI" in task.classes)
    before = mpmath.mp.dps, list(warnings.filters)

    def results(precision):
        box = Toolbox(v4, task)
        call = f"logarithm(value=7, base=3, precision={precision})"
        return {box.run(read_call(call)).text for _ in range(1_000)}

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(results, (5, 20, 40, 60)))
    assert list(map(len, found)) == [1, 1, 1, 1]
    assert (mpmath.mp.dps, list(warnings.filters)) == before


# Enters a folder that was removed, and doubles the paths in it: ``root`` does not show them.
REMOVED = [
    "mkdir(dir_name='a')", "cd(folder='a')", "mkdir(dir_name='b')", "cd(folder='..')", "cp(source='a', destination='c')",
    "rm(file_name='a')", "cd(folder='c')", "cd(folder='b')", "cd(folder='..')", "mkdir(dir_name='d')",
    *(call for n in range(14) for call in (f"cp(source='d', destination='{n}')", f"mv(source='{n}', destination='d')")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tool_class", "calls"),
    [
        ("MathAPI", ["power(base=9, exponent=10000000000)"]),
        ("MathAPI", ["square_root(number=2, precision=1000000000)"]),
        ("MathAPI", ["logarithm(value=2, base=10, precision=1000000000)"]),
        ("MathAPI", ["round_number(number=5, decimal_places=-1000000000)"]),
        ("GorillaFileSystem", ["mkdir(dir_name='a')", "cp(source='a', destination='a')", "find(path='.')"]),
        ("GorillaFileSystem", ["mkdir(dir_name='a')", "cp(source='a', destination='a')", "du()"]),
        ("GorillaFileSystem", [*REMOVED, "find(path='.')"]),
    ],
)
def test_arguments_that_hang_are_bounded_before_the_call_and_reported(v4, tool_class, calls):
    task = next(task for task in load_tasks(v4, "base") if tool_class in task.classes)
    box = Toolbox(v4, task)
    results = [box.run(read_call(call)) for call in calls]
    assert results[-1].error
    assert results[-1].departure
    assert results[-1].text.count(":") >= 2  # says the bound and the remedy


WILD = {
    "TravelAPI": "compute_exchange_rate(base_currency='USD', target_currency='RMB', value=1e308)",
    "TradingBot": f"fund_account(amount={10**300})",
    "VehicleControlAPI": f"gallon_to_liter(gallon={10**400})",
    "TicketAPI": "create_ticket(title=['x'], priority='5')",
    "MessageAPI": "send_message(receiver_id=None, message={'a': [1]})",
    "TwitterAPI": "mention(tweet_id=1, mentioned_usernames='everybody')",
    "MathAPI": "power(base=-2.5, exponent=0.5)",
    "GorillaFileSystem": "tail(file_name=5, lines=-1000000000000)",
}


@pytest.mark.parametrize("tool_class", WILD)
def test_each_tool_class_takes_wild_arguments_as_the_official_executor_does(v4, tool_class):
    task = next(task for task in load_tasks(v4, "base") if tool_class in task.classes)
    call = WILD[tool_class]
    ours = Toolbox(v4, task).run(read_call(call)).text
    config = {name: __import__("json").loads(text) for name, text in task.state_json.items()}
    theirs, _ = v4.executor.execute_multi_turn_func_call([call], config, list(task.classes), "wild", task.id)
    for name in [name for name in vars(v4.executor) if name.startswith("wild_")]:
        del vars(v4.executor)[name]
    assert ours == theirs[0]


def test_hostile_actions(v4):
    """Public fault: the stock backend gives the agent's text to ``eval``. Here nothing is evaluated and nothing takes a second, in 5,000
    replies; in 100,000 by ``make fuzz``."""
    gc.collect()
    gc.freeze()  # or a look through all that other tests have imported counts as the agent's
    outcome = tool_actions.run(5_000, seed=1)
    assert outcome["errors"] > 1_000
    assert outcome["results"] > 300


def test_memory_is_given_back(v4):
    """After few episodes not every document was read yet: here what a leak of an episode's tools would take, 10,000 under prove."""
    assert memory.run("v4", episodes=400, settled_after=400)["grown_by_kib"] < 3_000


@pytest.mark.prove
def test_memory_is_flat_over_10000_episodes(v4):
    assert memory.run("v4", episodes=10_000)["grown_by_kib"] < 3_000
