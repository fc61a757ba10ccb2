"""The switches of the four stages: each takes away what it says, and nothing else."""

from benchmarks.bfcl.ablations import SWITCHES, WHOLE_BUDGET
from benchmarks.bfcl.trained import spec_of
from envtuning.runs.plan import Plan
from envtuning.worlds.bfcl.package import SPLITS


def specs():
    return {name: spec_of("v4", changes) for name, changes in SWITCHES.items()}


def test_each_switch_takes_one_part_away():
    whole, *others = specs().values()
    configs = {name: Plan.of(spec).configs for name, spec in specs().items()}
    feedback = {name: [config.feedback for config in these] for name, these in configs.items()}
    rewards = {name: [config.reward for config in these] for name, these in configs.items()}
    assert feedback["four stages"] == ["standard", "augmented", "augmented", "standard"]
    assert rewards["four stages"] == ["syntax", "progress", "progress", "progress"]
    assert feedback["no feedback"] == ["standard"] * 4
    assert rewards["no feedback"] == rewards["four stages"]
    assert rewards["binary reward"] == ["syntax", "binary", "binary", "binary"]
    assert feedback["binary reward"] == feedback["four stages"]
    assert specs()["no KL"].trainee.options == {"kl": 0.0}
    assert specs()["no KL"].stages == whole.stages
    for spec in others:
        assert spec.target == whole.target
        assert spec.suites == whole.suites
        assert spec.budget == WHOLE_BUDGET == whole.budget


def test_the_single_stage_is_the_last_one_with_everybody_s_budget():
    (single,) = specs()["single stage"].stages
    (config,) = Plan.of(specs()["single stage"]).configs
    assert config == Plan.of(specs()["four stages"]).configs[-1]
    assert set(config.slices) == set(SPLITS)
    assert single.budget == WHOLE_BUDGET
