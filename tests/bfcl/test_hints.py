"""Hints: what the rules say and leave unsaid, that judging never sees them, and what a written hint must pass."""

import json
import random
import time

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.bfcl import templates
from benchmarks.bfcl.measure import Condition, draw_samples, play_plan, recovered
from benchmarks.bfcl.readers import READERS
from benchmarks.bfcl.scripts import perturbed, run_script
from benchmarks.bfcl.statistics import summary
from benchmarks.bfcl.templates import common_templates
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.hints import WrittenHints, augment
from envtuning.worlds.bfcl.hints.check import ground_truth_tokens, refusals, telling_words
from envtuning.worlds.bfcl.hints.rules import MAX_HINT
from envtuning.worlds.bfcl.hints.written import is_template, template_of
from envtuning.worlds.bfcl.splits import by_scenario
from envtuning.worlds.bfcl.tasks import find_task, load_tasks
from tests.answers import answer_of
from tests.engineers.conftest import ScriptedChat

CD = "cd: cd: {}: No such file or directory"


def hint(package, task_id, reply):
    talk = Conversation(package, find_task(package, task_id), augmenter=augment, tool_style="none")
    talk.act(reply)
    return talk.said.partition("\nHint: ")[2]


@pytest.mark.parametrize(
    ("task", "reply", "said"),
    [
        (
            "multi_turn_base_0",
            "[mv(source='a.txt')]",
            "destination is missing: give it; if the user has not said it, ask.",
        ),
        ("multi_turn_base_0", "[cd(folder='document', verbose=True)]", "Leave out or rename verbose: cd takes folder."),
        ("multi_turn_base_0", "[chdir(folder='document')]", "did you mean cd"),
        (
            "multi_turn_base_0",
            "[mv(source='x/a.txt', destination='y')]",
            "source must be a name in the current directory",
        ),
        ("multi_turn_base_0", "[grep(file_name='final_report.pdf', pattern='x')]", "Check file_name"),
        ("multi_turn_base_0", "[pwd()]", ""),
        ("multi_turn_base_50", "[startEngine(ignitionMode='start')]", "ignitionMode must be one of START, STOP"),
        ("multi_turn_base_50", "[startEngine(ignitionMode='START')]", "First call pressBrakePedal"),
        ("multi_turn_base_50", "[fillFuelTank(fuelAmount='ten')]", "fuelAmount must be a number"),
        ("multi_turn_base_50", "[adjustClimateControl(temperature=20, mode='freeze')]", "mode must be one of auto"),
        ("multi_turn_base_100", "[get_order_details(order_id=1)]", "order_id"),
        ("multi_turn_base_0", "[cd('nowhere')]", "Check folder"),
        ("multi_turn_base_0", "[mv('a', 'b')]", "Check source, destination"),
        ("multi_turn_base_0", "[sort('a')]", "Check file_name"),
        ("multi_turn_base_0", "[rmdir('document')]", "Empty dir_name first"),
        ("multi_turn_base_110", "[fund_account(-5)]", "Check amount against what the user said."),
        (
            "multi_turn_base_150",
            "[get_flight_cost(travel_from='San Francisco', travel_to='LAX', travel_date='2024-11-12', travel_class='first')]",
            "travel_from: get_nearest_airport_by_city or list_all_airports tells it",
        ),
    ],
)
def test_rules_say_where_to_look(v4, task, reply, said):
    shown = hint(v4, task, reply)
    assert said in shown if said else shown == ""
    assert len(shown) <= MAX_HINT


@pytest.mark.parametrize(
    ("task", "named", "positional"),
    [
        ("multi_turn_base_0", "[mv(source='a', destination='b')]", "[mv('a', 'b')]"),
        ("multi_turn_base_0", "[cat(file_name=5)]", "[cat(5)]"),
        ("multi_turn_base_0", "[mv(source='x/a', destination='b')]", "[mv('x/a', 'b')]"),
    ],
)
def test_a_hint_is_the_same_with_arguments_by_place_and_by_name(v4, task, named, positional):
    assert hint(v4, task, named) == hint(v4, task, positional) != ""


def test_a_value_that_is_refused_calls_for_no_other_tool(v4):
    """Funding must be positive: to withdraw instead is the opposite of what was asked."""
    for task, reply in (
        ("multi_turn_base_110", "[fund_account(amount=-5)]"),
        ("multi_turn_base_50", "[pressBrakePedal(pedalPosition=3)]"),
    ):
        assert "First call" not in hint(v4, task, reply)
        assert "not have been made" not in hint(v4, task, reply)


def test_hints_change_what_is_read_and_nothing_that_is_judged(v4):
    generator = random.Random(0)
    hinted = 0
    for task in random.Random(1).sample(load_tasks(v4, "base"), 60):
        script = perturbed(v4, task, generator)
        plain, augmented = (
            run_script(Conversation(v4, task, augmenter=augmenter, tool_style="none"), script)
            for augmenter in (None, augment)
        )
        assert plain.results == augmented.results
        assert plain.trajectory == augmented.trajectory
        assert plain.scores() == augmented.scores()
        assert plain.hints == 0
        hinted += augmented.hints
    assert hinted > 20


def test_ground_truth_draws_next_to_no_hints(v4):
    """Where nothing is wrong, the rules keep silent: a hint to a right call would teach to doubt."""
    calls = hints = 0
    for task in load_tasks(v4, "base"):
        talk = Conversation(v4, task, augmenter=augment, tool_style="none")
        run_script(talk, [[f"[{', '.join(turn)}]"] if turn else [] for turn in task.ground_truth])
        calls, hints = calls + len(talk.earlier), hints + talk.hints
    assert hints < 0.02 * calls


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_reading_hints_spoils_no_plan_that_was_right(v4, reader):
    for task in load_tasks(v4, "base")[::10]:
        assert play_plan(v4, task, None, Condition("row", reader, augment), random.Random(0)).solved


def test_on_test_scenarios_hints_recover_what_stock_messages_do_not(v4):
    tasks = random.Random(0).sample(by_scenario().tasks(v4, "test"), 40)
    seen = [sample for sample in draw_samples(v4, tasks, per_task=3, seed=2) if sample.visible]
    for name, reader in READERS.items():
        stock, ours = (
            summary(seen, recovered(v4, seen, Condition(name, reader, augmenter)))["micro"]
            for augmenter in (None, augment)
        )
        assert ours > 0.85
        assert ours > stock + 0.25


def test_templates_blank_values_and_are_stable(v4):
    assert (
        template_of("cancel_order", '{"error": "Order with ID 12446 not found."}')
        == "cancel_order: Order with ID {} not found."
    )
    assert template_of("cat", '{"error": "cat: \'a b.txt\': Is a directory"}') == "cat: cat: {}: Is a directory"
    missing = "Error during execution: GorillaFileSystem.mv() missing 1 required positional argument: 'destination'"
    assert is_template(template_of("mv", missing))
    for nothing_said in ("cd", "cd: ", ": gone"):
        assert is_template(nothing_said) == (nothing_said == ": gone")
    for template in common_templates(v4, 40):
        assert is_template(template)


@given(st.text(max_size=100) | st.text("{}[]'\" 0a.:()", max_size=30))
@example("{\r0")
def test_a_template_s_template_is_itself(message):
    key = template_of("cd", f"Error during execution: {message}")
    if len(key) < 200 and key.partition(": ")[2]:
        assert is_template(key)


def test_a_long_word_is_blanked_in_no_time():
    long = "x" * 19_000
    began = time.process_time()
    assert (
        template_of("get_order_details", f"Error during execution: {long} {long}7")
        == f"get_order_details: {long}"[:200]
    )
    assert time.process_time() - began < 0.5


def test_written_hints_stand_in_for_the_rules_where_they_are_written(v4):
    key = "cd: cd: {}: No such file or directory"
    task = find_task(v4, "multi_turn_base_0")
    for hints, said in (({key: "Use ls."}, "Hint: Use ls."), ({key: ""}, "reached with"), ({}, "reached with")):
        talk = Conversation(v4, task, augmenter=WrittenHints(hints), tool_style="none")
        talk.act("[cd(folder='nowhere')]")
        assert said in talk.said or (said == "reached with" and "Check folder" in talk.said)


def test_written_hints_are_checked(v4):
    key = "cd: cd: {}: No such file or directory"
    assert refusals(v4, {key: "Check folder with ls; go up with cd."}) == []
    assert "gives away final_report.pdf" in refusals(v4, {key: "Try final_report.pdf."})[0]
    assert "is not a tool" in refusals(v4, {"fly: {} failed": "x"})[0]
    assert "holds a value" in refusals(v4, {"cd: cd: 'docs': No such file or directory": "x"})[0]
    assert "characters" in refusals(v4, {key: "x" * 1_000})[0]
    assert "hints: write at most" in refusals(v4, {f"cd: {n}": "" for n in range(200)})[0]


def test_an_engineer_writes_hints_and_is_told_which_are_refused(v4):
    """The stock road: the config's own schema, a model's reply, the world's check."""
    from engineers import StageReport, make
    from engineers.model.engineer import ModelEngineer

    assert "hints.*" in BFCLConfig.editable
    config = BFCLConfig(feedback="augmented", hints={CD: ""})
    report = StageReport(stage=0, config=config.model_dump(mode="json"), objective="success_rate")

    def written(hint):
        chat = ScriptedChat(answer_of({f"hints.{CD}": hint}))
        proposal = ModelEngineer(chat).propose(report, current=config)
        assert "hints" in json.dumps(chat.asked[0])
        return proposal.config

    told = written("Check folder with ls; go up with cd.")
    assert told.hints == {CD: "Check folder with ls; go up with cd."}
    assert refusals(v4, told.hints) == []
    assert "gives away" in refusals(v4, written("Try final_report.pdf.").hints)[0]
    assert make("rules").propose(report, current=BFCLConfig()).config  # without keys there is nothing to write


def test_the_keys_to_write_hints_for_are_printed_as_a_config_takes_them(v4, capsys):
    templates.main(["--most", "3"])
    config = BFCLConfig.model_validate(yaml.safe_load(capsys.readouterr().out))
    assert list(config.hints) == common_templates(v4, 3)
    assert set(config.hints.values()) == {""}


def test_what_tells_a_value():
    assert telling_words("See report_2.pdf, order 12446 or AAPL for @bob.") == {"report_2.pdf", "12446", "aapl", "@bob"}
    assert telling_words("Check the folder with ls, at most 5 times.") == set()


def test_rules_give_no_ground_truth_away(v4):
    """What a rule says is the agent's own words, the documents' and the result's."""
    tokens = ground_truth_tokens(v4)
    for task in load_tasks(v4, "base")[::4]:
        talk = Conversation(v4, task, augmenter=augment, tool_style="none")
        for replies in perturbed(v4, task, random.Random(task.id)):
            for reply in replies:
                if talk.over:
                    break
                talk.act(reply)
                for line in talk.said.splitlines():
                    if line.startswith("Hint: "):
                        own = telling_words(reply) | telling_words(talk.said.replace(line, ""))
                        assert not (telling_words(line) & tokens) - own
