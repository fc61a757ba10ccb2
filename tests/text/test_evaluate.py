"""``evaluate``: the three forms agree, the counts add up, and nothing that was paid for is asked twice."""

import itertools
import json
import os
import random
import threading
import time

import numpy as np
import pytest

import mapf_frozenlake as mfl
from benchmarks import evaluate_suite
from mapf_frozenlake import Instance, LakeError, Solution, SolverBudgetExceeded
from mapf_frozenlake.evaluation.reference import paper_rows
from mapf_frozenlake.evaluation.table import wilson
from mapf_frozenlake.solvers import solve
from mapf_frozenlake.suite import load_suite
from tests.text.lakes import lake

CONFIG = mfl.LakeConfig(slices={3: {"share": 0.5}, 4: {"share": 0.5, "hole_ratio": 0.3}}, num_agents={1: 1.0, 2: 1.0})


@pytest.fixture(scope="module")
def suite():
    return mfl.generate(CONFIG, n=24, seed=4)


class Recorder:
    """A text policy that counts what it is asked, and may break."""

    name = "recorder"

    def __init__(self, breaks_at=None):
        self.prompts, self.breaks_at, self.lock = [], breaks_at, threading.Lock()

    def __call__(self, prompt: str) -> str:
        with self.lock:
            if len(self.prompts) == self.breaks_at:
                raise ConnectionError("the line is dead")
            self.prompts.append(prompt)
        return mfl.format_plan(solve(mfl.from_text(prompt)).plan)


class Waits:
    """A network whose agents never move."""

    env_kwargs = {"observation": "ego", "window": 5}  # noqa: RUF012

    def act(self, observation):
        return np.full(observation.shape[:2], 4)


@pytest.mark.slow
def test_the_quick_suite_in_all_forms():
    tables = {name: table for name, (table, _) in evaluate_suite.run(load_suite("quick")).items()}
    for name in ("optimal, as a solver", "optimal, as text", "optimal, as a network"):
        assert (tables[name].overall.valid, tables[name].overall.optimal) == (100.0, 100.0)
        assert tables[name].overall.regret == 0
    assert tables["PIBT"].overall.valid > tables["greedy, ignoring the others"].overall.valid
    assert 0 < tables["greedy, ignoring the others"].overall.valid < 50
    assert set(tables["greedy, ignoring the others"].overall.failures) == {"conflict"}
    table = tables["PIBT"]
    assert [row.group for row in table.by_wait_subset] == [{"wait_subset": ratio} for ratio in (0.25, 0.5, 0.75)]
    assert [row.group["hole_ratio"] for row in table.by_hole_ratio] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert len(table.rows) == 21 + 3 + 1


def test_the_counts_add_up(suite):
    rng = np.random.default_rng(0)
    table = mfl.evaluate(
        lambda lake: rng.integers(0, 5, (lake.num_agents, 4)).tolist(), suite, form="solver", name="dice"
    )
    for rows in (table.by("agents", "size"), table.by_wait_subset, table.by_hole_ratio):
        assert sum(row.n for row in rows) == len(suite)
        assert sum(round(row.valid * row.n / 100) for row in rows) == sum(record.valid for record in table.per_instance)
    for row in table.rows:
        assert round(row.valid * row.n / 100) + sum(row.failures.values()) == row.n
        assert row.valid_interval[0] <= row.valid <= row.valid_interval[1]
        assert row.optimal <= row.valid
    assert table.rows[-1] == table.overall


def test_what_is_known_of_every_instance(suite):
    table = mfl.evaluate(solve, suite)
    assert [record.index for record in table.per_instance] == list(range(len(suite)))
    for record, instance in zip(table.per_instance, suite):
        assert (record.agents, record.size) == (instance.num_agents, instance.height)
        assert record.makespan == record.least_makespan == instance.makespan
        assert mfl.judge(instance, record.plan).sum_of_costs == record.sum_of_costs


def test_unknown_optimum_is_not_a_rate():
    board = lake(["...", "..."], [(0, 0)], [(0, 2)])
    row = mfl.evaluate(solve, [board]).overall
    assert (row.valid, row.optimal, row.regret) == (100.0, None, None)
    assert "optimum unknown" in str(mfl.evaluate(solve, [board]))


def test_regret_counts_steps_over_the_least():
    board = lake(["...", "..."], [(0, 0)], [(0, 2)], makespan=2)
    table = mfl.evaluate(lambda _: [[4, 4, 4, 2, 2]], [board], form="solver")
    assert (table.overall.valid, table.overall.optimal, table.overall.regret) == (100.0, 0.0, 3.0)


@pytest.mark.parametrize("answer", [None, Solution(feasible=False), [[]]])
def test_no_plan_misses_the_goal(answer):
    board = lake(["...", "..."], [(0, 0)], [(0, 2)], makespan=2)
    assert mfl.evaluate(lambda _: answer, [board], form="solver").overall.failures == {"goal_missed": 1}


def test_a_solver_out_of_budget_is_data(suite):
    def gives_up(instance: Instance):
        raise SolverBudgetExceeded("budget=1")

    assert mfl.evaluate(gives_up, suite).overall.failures == {"goal_missed": len(suite)}


class TestForms:
    def test_by_annotation(self, suite):
        def plans(instance: Instance):
            return solve(instance)

        assert mfl.evaluate(plans, suite).overall.valid == 100
        assert mfl.evaluate(Recorder(), suite).overall.valid == 100

    def test_unclear(self, suite):
        with pytest.raises(LakeError, match="pass form='solver'"):
            mfl.evaluate(lambda x: x, suite)
        with pytest.raises(LakeError, match="form='solve': give one of 'solver', 'text', 'neural'"):
            mfl.evaluate(solve, suite, form="solve")
        with pytest.raises(LakeError, match="needs an object with act"):
            mfl.evaluate(solve, suite, form="neural")

    def test_neural_policies_get_the_observation_they_ask_for(self, suite):
        shapes = set()

        class Looks(Waits):
            env_kwargs = Waits.env_kwargs | {"max_size": 6, "max_agents": 3}

            def act(self, observation):
                shapes.add(observation.shape[:2])
                return super().act(observation)

        table = mfl.evaluate(Looks(), suite, config=mfl.LakeConfig.single(3, 1, horizon=5))
        assert table.overall.failures == {"goal_missed": len(suite)}
        assert shapes == {(len(suite), 3)}
        assert {len(record.plan[0]) for record in table.per_instance} == {5}

    def test_of_a_config_the_rules_count_alone(self, suite):
        for boards in (mfl.LakeConfig.single(9, 5, horizon=3), mfl.LakeConfig.single(2, 1, horizon=3)):
            table = mfl.evaluate(Waits(), suite, config=boards)
            assert {len(record.plan[0]) for record in table.per_instance} == {3}

    def test_the_answers_of_a_network_belong_to_its_name_and_its_rules(self, suite, tmp_path):
        path, short, long = tmp_path / "a.jsonl", *(mfl.LakeConfig.single(4, 2, horizon=steps) for steps in (2, 9))
        with pytest.raises(LakeError, match="resume= with a network needs name="):
            mfl.evaluate(Waits(), suite, resume=path)
        table = mfl.evaluate(Waits(), suite, resume=path, name="step 100", config=short)
        assert mfl.evaluate(Waits(), suite, resume=path, name="step 100", config=short) == table
        with pytest.raises(LakeError, match=r"holds answers with config\.horizon=2, this run has 9:"):
            mfl.evaluate(Waits(), suite, resume=path, name="step 100", config=long)
        other_boards = mfl.LakeConfig.single(5, 3, hole_ratio=0.1, horizon=2)
        assert mfl.evaluate(Waits(), suite, resume=path, name="step 100", config=other_boards) == table
        with pytest.raises(LakeError, match="policy='step 100'"):
            mfl.evaluate(Waits(), suite, resume=path, name="step 200", config=short)

    def test_no_config_and_one_of_the_usual_rules_are_the_same_to_an_answers_file(self, suite, tmp_path):
        given = {"resume": tmp_path / "a.jsonl", "name": "step 100"}
        table = mfl.evaluate(Waits(), suite, **given)
        assert mfl.evaluate(Waits(), suite, config=mfl.LakeConfig.single(5, 3), **given) == table

    def test_a_text_policy_must_give_strings(self, suite):
        with pytest.raises(LakeError, match="replied with int"):
            mfl.evaluate(lambda prompt: 3, suite, form="text")
        nothing = mfl.evaluate(lambda prompt: None, suite, form="text")
        assert nothing.overall.failures == {"parse_error": len(suite)}
        assert "empty" in nothing.per_instance[0].parse_error

    def test_batches(self, suite):
        sizes = []

        def policy(prompts: list[str]) -> list[str]:
            sizes.append(len(prompts))
            return [Recorder()(prompt) for prompt in prompts]

        assert mfl.evaluate(policy, suite, batch_size=10).overall.valid == 100
        assert sizes == [10, 10, 4]
        with pytest.raises(LakeError, match="9 replies to 10 prompts"):
            mfl.evaluate(lambda prompts: prompts[1:], suite, form="text", batch_size=10)

    def test_threads_change_nothing(self, suite):
        one, many = mfl.evaluate(Recorder(), suite), mfl.evaluate(Recorder(), suite, max_workers=8)
        assert one == many


class TestResume:
    def test_what_is_there_is_not_asked_again(self, suite, tmp_path):
        path = tmp_path / "answers.jsonl"
        with pytest.raises(ConnectionError):
            mfl.evaluate(Recorder(breaks_at=10), suite, resume=path)
        again = Recorder()
        table = mfl.evaluate(again, suite, resume=path)
        assert len(again.prompts) == len(suite) - 10
        assert table == mfl.evaluate(Recorder(), suite)
        assert mfl.evaluate(Recorder(breaks_at=0), suite, resume=path) == table

    @pytest.mark.parametrize("cut", [1, 7, 30])
    def test_a_line_cut_off_by_a_kill(self, suite, tmp_path, cut):
        path = tmp_path / "answers.jsonl"
        whole = mfl.evaluate(Recorder(), suite, resume=path)
        path.write_bytes(path.read_bytes()[:-cut])
        again = Recorder()
        assert mfl.evaluate(again, suite, resume=path) == whole
        assert len(again.prompts) == (0 if cut == 1 else 1)  # the line's end alone is no answer
        assert len(path.read_bytes().splitlines()) == len(suite) + 1

    def test_every_prefix_of_the_file_can_be_resumed(self, suite, tmp_path):
        path, few = tmp_path / "answers.jsonl", suite[:3]
        whole = mfl.evaluate(Recorder(), few, resume=path)
        data = path.read_bytes()
        for length in range(0, len(data), 9):
            path.write_bytes(data[:length])
            assert mfl.evaluate(Recorder(), few, resume=path) == whole

    def test_threads_keep_their_answers(self, suite, tmp_path):
        path = tmp_path / "answers.jsonl"
        with pytest.raises(ConnectionError):
            mfl.evaluate(Recorder(breaks_at=12), suite, resume=path, max_workers=4)
        again = Recorder()
        assert mfl.evaluate(again, suite, resume=path, max_workers=4).overall.valid == 100
        assert len(again.prompts) <= len(suite) - 8

    def test_answers_on_their_way_when_a_question_fails_are_kept(self, suite, tmp_path):
        """They may have been paid for."""
        path, recorder, paid = tmp_path / "answers.jsonl", Recorder(), []
        on_its_way, fails = threading.Event(), threading.Event()

        def policy(prompt):
            if prompt == prompts[5]:
                on_its_way.wait(5)
                fails.set()
                raise ConnectionError
            if prompt in prompts[6:9]:
                on_its_way.set()
                fails.wait(5)
                time.sleep(0.02)  # the failure is heard first
            paid.append(prompt)
            return recorder(prompt)

        prompts = [mfl.plan_prompt(instance) for instance in suite]
        with pytest.raises(ConnectionError):
            mfl.evaluate(policy, suite, form="text", name="recorder", resume=path, max_workers=4)
        again = Recorder()
        mfl.evaluate(again, suite, form="text", resume=path)
        assert 5 < len(paid) < 12
        assert len(again.prompts) == len(suite) - len(paid)

    def test_another_suite_is_refused(self, suite, tmp_path):
        path = tmp_path / "answers.jsonl"
        mfl.evaluate(Recorder(), suite, resume=path)
        with pytest.raises(LakeError, match="give another resume= path"):
            mfl.evaluate(Recorder(), suite[:5], resume=path)
        with pytest.raises(LakeError, match="policy='recorder'"):
            mfl.evaluate(Recorder(), suite, resume=path, name="other")
        with pytest.raises(LakeError, match="prompt="):
            mfl.evaluate(Recorder(), suite, resume=path, prompt=mfl.to_text)

    @pytest.mark.parametrize(
        "line", ["{", "[]", '{"index": 99, "answer": ""}', '{"index": 0, "answer": 3}', "[" * 5000]
    )
    def test_a_broken_line_in_the_middle(self, suite, tmp_path, line):
        path = tmp_path / "answers.jsonl"
        mfl.evaluate(Recorder(), suite, resume=path)
        lines = path.read_text().splitlines()
        path.write_text("\n".join([*lines[:3], line, *lines[4:]]) + "\n")
        with pytest.raises(LakeError, match=r"line 4.*delete the line"):
            mfl.evaluate(Recorder(), suite, resume=path)

    @pytest.mark.parametrize("end", [b"\r", b"\r\n"])
    def test_answers_whose_lines_an_editor_ended_otherwise_are_not_asked_again(self, suite, tmp_path, end):
        path = tmp_path / "answers.jsonl"
        with pytest.raises(ConnectionError):
            mfl.evaluate(Recorder(breaks_at=10), suite, resume=path)
        path.write_bytes(path.read_bytes().replace(b"\n", end))
        again = Recorder()
        mfl.evaluate(again, suite, resume=path)
        assert len(again.prompts) == len(suite) - 10
        assert len(path.read_bytes().splitlines()) == len(suite) + 1

    @pytest.mark.parametrize(
        "theirs",
        [b"notes of mine", b"notes\nof mine\n", b'{"a": 1}', b'{"a": 1}\n', b"[1]\n", b"\n\n", b"\x89PNG\r\n\x1a\n", b"\0", b"7",
         b'{"index": ', "[" * 5000 + "\n", b"\xef\xbb\xbf{}\n"],
    )  # fmt: skip
    def test_a_file_of_somebodys_is_refused_and_stays_as_it_is(self, suite, tmp_path, theirs):
        path, theirs = tmp_path / "notes", theirs if isinstance(theirs, bytes) else theirs.encode()
        path.write_bytes(theirs)
        with pytest.raises(LakeError, match="notes holds no answers of an evaluation: give another resume= path"):
            mfl.evaluate(Recorder(), suite, resume=path)
        assert path.read_bytes() == theirs

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("kind", ["folder", "pipe", "loop"])
    def test_what_is_no_file_is_refused(self, suite, tmp_path, kind):
        path = tmp_path / "answers.jsonl"
        {"folder": os.mkdir, "pipe": os.mkfifo, "loop": lambda path: os.symlink(path, path)}[kind](path)
        with pytest.raises(LakeError, match="give another resume= path"):
            mfl.evaluate(Recorder(), suite, resume=path)

    def test_what_is_added_at_the_end_by_somebody_is_refused_and_stays(self, suite, tmp_path):
        path = tmp_path / "answers.jsonl"
        mfl.evaluate(Recorder(), suite, resume=path)
        for added in (b"notes of mine", b'{"mine": 1}', b"notes\n"):
            with path.open("ab") as file:
                file.write(added)
            before = path.read_bytes()
            with pytest.raises(LakeError, match=r"line 26: .*delete the line"):
                mfl.evaluate(Recorder(), suite, resume=path)
            assert path.read_bytes() == before
            path.write_bytes(before[: -len(added)])

    def corruptions(self, count, seed, suite, path):
        """So many files with a byte, a line or the end changed; how many were refused. The others give the same table."""
        whole, told = mfl.evaluate(Recorder(), suite, resume=path), 0
        data = path.read_bytes()
        for number in range(count):
            rng, damaged = random.Random(f"{seed}/{number}"), bytearray(data)
            kind = rng.choice(["bit", "digit", "cut", "line"])
            if kind == "bit":
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            elif kind == "digit":
                place = rng.choice([place for place, byte in enumerate(damaged) if 48 <= byte < 58])
                damaged[place] = 48 + (damaged[place] - 48 + rng.randrange(1, 10)) % 10
            elif kind == "cut":
                damaged = damaged[: rng.randrange(len(damaged))]
            else:
                lines = data.splitlines(keepends=True)
                lines[rng.randrange(len(lines))] = rng.choice(
                    [b"", b"null\n", b"[" * 5000, b'{"index": 1e400}\n', b'{"index": NaN}\n']
                )
                damaged = b"".join(lines)
            path.write_bytes(damaged)
            try:
                assert mfl.evaluate(Recorder(), suite, resume=path) == whole, f"{kind} {number}"
            except LakeError:
                told += 1
                assert path.read_bytes() == damaged
        return told

    def test_corruptions_are_told_or_change_nothing(self, suite, tmp_path):
        assert self.corruptions(50, 0, suite, tmp_path / "answers.jsonl") > 20

    @pytest.mark.prove
    def test_a_thousand_corruptions_are_told_or_change_nothing(self, suite, tmp_path):
        assert self.corruptions(1000, 1, suite, tmp_path / "answers.jsonl") > 400

    def test_progress(self, suite):
        seen = []
        mfl.evaluate(solve, suite, progress=lambda done, of: seen.append((done, of)))
        assert seen == [(done, len(suite)) for done in range(1, len(suite) + 1)]


class TestTable:
    def test_groups_of_what_some_do_not_have_come_last(self, suite):
        turn = itertools.count()
        table = mfl.evaluate(lambda prompt: Recorder()(prompt) if next(turn) % 2 else "no plan", suite, form="text")
        assert 0 < table.overall.valid < 100
        for field in ("regret", "makespan", "wait_subset"):
            groups = [row.group[field] for row in table.by(field)]
            assert groups == [*sorted(group for group in groups if group is not None), *([None] * (None in groups))]

    def test_reference_rows_are_marked_as_theirs(self, suite):
        table = mfl.evaluate(solve, load_suite("quick")[:12]).with_reference()
        assert all(row.reported for row in table.reference)
        assert "Qwen3-4B + GRPO + Ours †" in str(table)
        assert "not measured here" in str(table)
        assert "†" not in str(mfl.evaluate(solve, suite))

    def test_reference_can_be_of_some_models(self, suite):
        table = mfl.evaluate(solve, suite)
        assert {row.who for row in table.with_reference("+ ours", "grok").reference} == {
            "Grok-4.2",
            "Qwen3-4B + GRPO + Ours",
        }
        with pytest.raises(LakeError, match=r"no model 'Llama': its models are GPT-5\.4, Grok-4\.2"):
            table.with_reference("Grok", "Llama")

    def test_reference_has_every_published_cell(self):
        rows = paper_rows()
        assert len(rows) == 7 * (8 + 7 + 6 + 3)
        best = {(row.group["agents"], row.group["size"]): row for row in rows if row.who == "Qwen3-4B + GRPO + Ours"}
        assert (best[3, "all"].valid, best[3, "all"].optimal) == (51.67, 31.67)
        assert (best[5, 10].valid, best[5, 10].optimal) == (8.0, 5.33)

    def test_json(self, suite):
        content = json.loads(mfl.evaluate(Recorder(), suite).to_json())
        assert content["overall"]["valid"] == 100.0
        assert len(content["per_instance"]) == len(suite)
        assert "per_instance" not in json.loads(mfl.evaluate(solve, suite).to_json(per_instance=False))

    def test_markdown_has_a_table_per_section(self, suite):
        text = mfl.evaluate(solve, suite).to_markdown()
        assert text.count("**By ") == len(mfl.evaluate(solve, suite).sections())
        widths = {line.count("|") for line in text.splitlines() if line.startswith("|") and "agents" in line}
        assert len(widths) == 1

    @pytest.mark.parametrize(
        ("successes", "n", "low", "high"),
        [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (81, 263, 0.2553, 0.3662), (0, 0, 0, 1)],
    )
    def test_wilson(self, successes, n, low, high):
        assert wilson(successes, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("kwargs", "message"), [({"max_workers": 0}, "max_workers=0"), ({"batch_size": 0}, "batch_size=0")]
)
def test_bad_arguments(suite, kwargs, message):
    with pytest.raises(LakeError, match=message):
        mfl.evaluate(Recorder(), suite, **kwargs)


@pytest.mark.parametrize("mode", ["finish", "next"])
def test_a_network_is_not_played_by_other_goals_than_it_is_judged_by(suite, mode):
    with pytest.raises(LakeError, match=f"on_goal='{mode}' in config: .* leave it out, or evaluate on a PathProtocol"):
        mfl.evaluate(Waits(), suite, config=mfl.LakeConfig(on_goal=mode))


def test_an_empty_suite(suite):
    with pytest.raises(LakeError, match="the suite is empty"):
        mfl.evaluate(solve, suite[:0])


@pytest.mark.parametrize("given", ["quick", "suite"])
def test_swapped_arguments(suite, given):
    with pytest.raises(LakeError, match=r"the suite is of type function: give evaluate\(policy, suite\)"):
        mfl.evaluate(suite if given == "suite" else given, solve)


def test_a_suite_by_its_name():
    assert mfl.evaluate(solve, "quick").overall.n == 126


@pytest.mark.parametrize(("plan", "why"), [([[0.5], [1], [1]], "action 0.5 in step 0"), (5, "a plan of type int")])
def test_a_solver_that_gives_no_plan_is_told_so(plan, why):
    with pytest.raises(mfl.LakeError, match=why):
        mfl.evaluate(lambda instance: plan, mfl.load_suite("quick")[:1], form="solver")
