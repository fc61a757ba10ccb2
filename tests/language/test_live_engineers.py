"""The model under training as engineer: it answers within the schema, as its weights have it, and training notices nothing."""

from __future__ import annotations

import pytest

import mapf_frozenlake as mfl
from engineers.report import SliceResult, StageReport
from envtuning.trainees.language.live_engineers import live_engineer
from envtuning.trainees.language.trainee import GRPOTrainee
from envtuning.worlds.lakes.world import LakeWorld
from mapf_frozenlake import plan_prompt
from tests.language.conftest import QUICK
from tests.lazily import Lazy, needed

needed("torch", "trl", "llguidance", extra="grpo")
torch = Lazy("torch")

CONFIG = mfl.LakeConfig(
    num_agents=2, slices={3: {"share": 0.5, "hole_ratio": 0.2}, 4: {"share": 0.5, "hole_ratio": 0.2}}, reward="shaped"
)
WORLD = LakeWorld(mode="plan", style="short")
TALK = [{"role": "user", "content": plan_prompt(next(iter(mfl.generate(CONFIG, n=1, seed=0))), "short")}]


@pytest.fixture(scope="module")
def trainee(tiny):
    one = GRPOTrainee(world=WORLD, seed=0, model=str(tiny), grpo=QUICK | {"learning_rate": 2e-2}, torch_threads=1)
    yield one
    one.close()


@pytest.fixture
def report():
    results = [SliceResult(name=size, episodes=50, metrics={"valid_rate": 0.4}, failures={"hole": 30}) for size in "34"]
    return StageReport(objective="valid_rate", stage=1, config=CONFIG.model_dump(mode="json"), results=results)


def ask(trainee, report, name="checkpoint", **options):
    return live_engineer(name, trainee, max_tokens=1_500, **{"seed": 7, **options}).propose(report, CONFIG)


def weights(trainee):
    return {name: value.clone() for name, value in trainee.language_model()[0].state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", ["checkpoint", "base"])
def test_even_a_model_that_knows_nothing_of_it_writes_a_config(trainee, report, name):
    proposal = ask(trainee, report, name)
    assert not proposal.fallback, proposal.refusals
    twice = [one for refusal in proposal.refusals for one in refusal.removeprefix("changes: ").split("; ")]
    assert all(one.endswith("is changed twice") for one in twice)  # what a schema cannot rule out, and nothing else
    assert mfl.LakeConfig.model_validate(proposal.config.model_dump()) == proposal.config
    assert proposal.engineer == name


def test_the_answer_changes_with_the_weights_and_comes_back_with_them(trainee, report, tmp_path):
    def answers(name="checkpoint"):
        """By several seeds: an answer of one seed may change nothing, whatever the weights are."""
        return [ask(trainee, report, name, seed=seed).config for seed in range(4)]

    trainee.save(tmp_path / "a")
    before, base = answers(), answers("base")
    trainee.train(CONFIG, 32, seed=1)
    assert answers() != before
    assert answers("base") == base
    trainee.load(tmp_path / "a")
    torch.rand(5)
    assert answers() == before


def test_training_is_the_same_bit_by_bit_whether_somebody_asked_or_not(trainee, report, tmp_path):
    trainee.save(tmp_path / "a")

    def two_stages(asked):
        trainee.load(tmp_path / "a")
        trainee.train(CONFIG, 32, seed=1)
        if asked:
            for name in ("checkpoint", "base"):
                ask(trainee, report, name)
        history = []
        trainee.train(CONFIG, 32, seed=2, on_iteration=history.append)
        return history, weights(trainee)

    (quiet, first), (asked, second) = two_stages(False), two_stages(True)
    assert quiet == asked
    assert same(first, second)


def test_an_answer_has_a_time_limit_of_its_own(trainee, report):
    proposal = ask(trainee, report, time_limit=0.0001)
    assert proposal.fallback
    assert proposal.config == CONFIG
    assert proposal.usage.attempts == 1
    assert "no whole reply within time_limit=0.0001 s" in proposal.refusals[0]


def test_certainty_is_the_probability_of_the_greedy_reply(trainee):
    from benchmarks.introspection import certainty

    policy, (model, _) = trainee.policy(), trainee.language_model()
    ids = first = policy.prompt(TALK)
    [written] = policy.sample([ids])
    assert policy.told(first, written).text == policy.reply([TALK])[0].text
    total = 0.0
    for token in written:
        with torch.no_grad():
            total += float(torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0, -1].float(), -1)[token])
        ids = [*ids, token]
    log_probability, entropy = certainty(model, first, written)
    assert log_probability == pytest.approx(total, abs=1e-3)
    assert entropy >= 0


def test_a_fresh_process_with_the_same_weights_answers_the_same(trainee, report, tmp_path, tiny):
    """A trainer wraps the forward pass at its first step, and the wrapped pass rounds otherwise."""
    trainee.train(CONFIG, 32, seed=3)
    trainee.save(tmp_path / "a")
    fresh = GRPOTrainee(world=WORLD, seed=9, model=str(tiny), grpo=QUICK | {"learning_rate": 2e-2}, torch_threads=1)
    fresh.load(tmp_path / "a")
    from benchmarks.introspection import certainty

    ids = fresh.policy().prompt(TALK)
    [written] = fresh.policy().sample([ids])
    assert [written] == trainee.policy().sample([ids])
    assert certainty(fresh.language_model()[0], ids, written) == certainty(trainee.language_model()[0], ids, written)
    assert ask(fresh, report).config == ask(trainee, report).config
    fresh.close()
