"""The measure of actionability: its split is fixed, its ends are 0 and nearly 1, and a reader learns only from messages."""

import hashlib
import json
import random
import shutil

import pytest

from benchmarks.bfcl.abstention import abstention, gaps
from benchmarks.bfcl.actionability import masked
from benchmarks.bfcl.faults import VARIANTS
from benchmarks.bfcl.forks import with_tools
from benchmarks.bfcl.halves import first_tools, first_variants
from benchmarks.bfcl.measure import Condition, draw, draw_samples, play_plan, recovered
from benchmarks.bfcl.readers import READERS, Desk, blindly, by_names, complains, one_by_one, told_everything
from benchmarks.bfcl.statistics import summary
from benchmarks.bfcl.traces import kinds_in, reweighted
from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.package import PackageError
from envtuning.worlds.bfcl.splits import by_scenario
from envtuning.worlds.bfcl.tasks import load_tasks
from envtuning.worlds.bfcl.tools import Toolbox

CALM = random.Random(0)


@pytest.fixture(scope="module")
def samples(v4):
    return draw_samples(v4, by_scenario().tasks(v4, "validation"), per_task=2, seed=0)


def rate(package, samples, reader, augmenter=None, messages=None):
    condition = (
        Condition("row", reader, augmenter) if messages is None else Condition("row", reader, augmenter, messages)
    )
    return summary(samples, recovered(package, samples, condition))["micro"]


def test_the_split_of_faults_and_tools_is_the_one_that_was_drawn_before_the_rules(v4):
    assert len(first_variants()) == len(VARIANTS) / 2
    drawn = ",".join([*sorted(first_variants()), *sorted(first_tools(v4))])
    assert hashlib.sha256(drawn.encode()).hexdigest()[:16] == "c0bc6f50035a6ac7"


def test_every_variant_fits_somewhere(v4):
    found = {v: any(draw(v4, task, v, random.Random(0)) for task in load_tasks(v4, "base")) for v in VARIANTS}
    assert all(found.values())


def test_what_a_masked_message_tells_is_nothing_and_no_message_can_do_better_than_the_ceiling(v4, samples):
    seen = [sample for sample in samples if sample.visible]
    assert len(seen) > 100
    assert rate(v4, seen, by_names, messages=masked) == 0
    assert rate(v4, seen, one_by_one, messages=masked) == 0
    stock = rate(v4, seen, by_names)
    assert 0.1 < stock < rate(v4, seen, told_everything)
    assert rate(v4, seen, told_everything) > 0.95
    assert rate(v4, seen, blindly) < rate(v4, seen, told_everything)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_plan_without_a_fault_is_not_spoilt_by_reading(v4, reader):
    for task in load_tasks(v4, "base")[::10]:
        assert play_plan(v4, task, None, Condition("row", reader), random.Random(0)).solved


def desk(**named):
    meant = Call("mv", (), {"source": "a.txt", "destination": "docs"})
    return Desk(
        Call("mv", (), named), meant, (Call("cd", (), {"folder": "x"}),), frozenset({"mv", "cd", "ls"}), ("ls",)
    )


def test_readers_go_where_the_message_points_and_nowhere_else():
    wrong = desk(source="a.txt", destination="other")
    for reader in READERS.values():
        assert reader("Error: failed", wrong, CALM) is None
        assert reader("Error: look at destination", wrong, CALM).again == wrong.meant
        assert reader("Error: cd first", wrong, CALM).first == wrong.left_out
        assert reader("Error: source?", wrong, CALM) is None
        assert reader("Error: no source? ask the user", wrong, CALM).asks
    assert one_by_one("Error: 'other' is no folder", wrong, CALM).again == wrong.meant
    assert by_names("Error: 'other' is no folder", wrong, CALM) is None


def test_naming_everything_points_at_nothing():
    wrong = Desk(
        Call("t", (), {"a1": 1, "b1": 1, "c1": 1, "d1": 1}),
        Call("t", (), {"a1": 1, "b1": 1, "c1": 1, "d1": 2}),
        (),
        frozenset(),
        (),
    )
    for reader in READERS.values():
        assert reader("Error: check a1, b1, c1, d1", wrong, CALM) is None
        assert reader("Error: check d1", wrong, CALM).again == wrong.meant


def test_asking_where_nothing_is_missing_recovers_nothing(v4, samples):
    seen = [sample for sample in samples if sample.visible][:40]
    assert rate(v4, seen, by_names, augmenter=lambda event: "Ask the user." if event.error else None) <= rate(
        v4, seen, by_names
    )


def test_where_something_is_missing_stock_messages_lead_to_guesses(v4):
    found = gaps(v4, load_tasks(v4, "miss_func")) + gaps(v4, load_tasks(v4, "miss_param"))
    assert len(found) > 350
    told = Condition("told to ask", by_names, lambda event: "Ask the user." if complains(event.result) else None)
    for gap in found[::20]:
        assert abstention(v4, gap, Condition("stock", by_names)) == "guesses"
        assert abstention(v4, gap, told) == "asks"


def test_a_fork_s_tools_can_be_measured_beside_the_stock_ones(v4, samples, tmp_path):
    """Here a copy of the stock tools in which one message says which argument it is about."""
    folder = tmp_path / "some_fork" / "tools"
    shutil.copytree(v4.root / "bfcl_eval" / "eval_checker" / "multi_turn_eval" / "func_source_code", folder)
    file = folder / "trading_bot.py"
    stock = 'f"Order with ID {order_id} not found."'
    assert stock in file.read_text()
    file.write_text(file.read_text().replace(stock, 'f"Order with ID {order_id} not found: check order_id."'))
    fork = with_tools(v4, folder)
    task = next(task for task in load_tasks(v4, "base") if "cancel_order" in str(task.ground_truth))
    said = Toolbox(fork, task).run(Call("cancel_order", (), {"order_id": 1}))
    assert "check order_id" in said.text
    assert "check order_id" not in Toolbox(v4, task).run(Call("cancel_order", (), {"order_id": 1})).text
    assert len(recovered(fork, samples[:10], Condition("fork", by_names))) == 10
    with pytest.raises(PackageError, match=r"math_api\.py"):
        with_tools(v4, tmp_path)


def test_real_traces_weight_the_rows_by_what_went_wrong_in_them(v4, tmp_path):
    said = ["[cd(folder='document', deep=True)]", "[cd()]", "[cd()]", "[chdir(folder='x')]", "[cd(folder='document')]"]
    file = tmp_path / "episodes.json"
    file.write_text(json.dumps([{"trace": {"task": "multi_turn_base_0", "replies": said}}]))
    counts = kinds_in(v4, file)
    assert counts == {"unexpected_argument": 1, "missing_argument": 2, "wrong_tool": 1}
    rates = {
        "missing_argument/first": 1.0,
        "missing_argument/last": 0.5,
        "wrong_tool/other": 0.0,
        "wrong_id/off_by_one": 0.3,
    }
    assert reweighted(rates, counts) == 0.5
    assert reweighted({}, counts) is None
