"""Engineers by name: the built-in ones, third parties', and what a wrong name is told."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

import engineers
from engineers import Engineer, UnknownEngineer, available, registry
from engineers.common_options import COMMON_OPTIONS, require_common
from engineers.plain.fixed import FixedEngineer
from engineers.shared.extras import require
from engineers.tiers import Tier


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownEngineer) as error:
        engineers.make("grok")
    assert all(name in str(error.value) for name in available())


@pytest.mark.parametrize("name", ["checkpoint", "base"])
def test_an_engineer_of_a_run_says_that_it_exists_there(name):
    with pytest.raises(
        UnknownEngineer, match=f"engineer '{name}' asks the model under training, so it exists in a run"
    ):
        engineers.make(name)


@pytest.mark.parametrize("backend", ["openai", "gemini", "litellm", "local", "server", "replay"])
def test_a_backend_that_needs_a_model_says_how_to_name_one(backend):
    with pytest.raises(UnknownEngineer, match=f"write it as '{backend}/"):
        engineers.make(backend)


@pytest.mark.parametrize("name", [*registry.PLAIN_ENGINEERS, "human"])
def test_common_options_may_be_given_to_any_engineer(name, tmp_path):
    options = {"seed": 1, "context": "V4", "transcript": tmp_path / "t.jsonl", "max_cost": 1.0, "max_attempts": 2}
    more = {"space": {}, "feasible": lambda config: None, "max_drop": 0.5, "max_total_tokens": 10}
    engineer = engineers.make(name, **options, **more)
    assert isinstance(engineer, Engineer)
    assert engineer.name == name


@pytest.mark.parametrize("name", registry.PLAIN_ENGINEERS)
def test_nothing_that_is_named_is_silently_ignored(name):
    with pytest.raises(UnknownEngineer, match=f"{name} takes nothing after the slash"):
        engineers.make(f"{name}/gpt-5-mini")


def test_a_misspelt_option_is_an_error():
    with pytest.raises(TypeError, match="'rules' has no option sede; it has guard, seed, space, thresholds"):
        engineers.make("rules", sede=1)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("reader", {"floor": "a"}, "option floor='a': give a number"),
        ("steady", {"keep": "a"}, "option keep='a': give a number"),  # of the class that it derives from
        ("permuted/rising", {"sure": None}, "option sure=None: give a number"),
        ("rules", {"seed": "abc"}, "option seed='abc': give a number"),
        ("human", {"poll": "a"}, "option poll='a': give a number"),
        ("schedule", {"parts": 0.3}, "option parts=0.3: give a list of numbers"),
        ("ladder", {"parts": "0.3"}, "option parts='0.3': give a list of numbers"),
    ],
)
def test_an_option_of_a_wrong_type_is_told_with_what_to_give(name, options, said):
    with pytest.raises(TypeError) as refused:
        engineers.make(name, **options)
    assert str(refused.value) == said


def test_the_guards_parts_may_be_given_by_themselves():
    def feasible(config):
        return None

    short = engineers.make("rules", feasible=feasible, max_drop=0.5)
    assert short.guard == engineers.Guard(feasible, 0.5)
    assert engineers.make("rules").guard == engineers.Guard()
    with pytest.raises(TypeError, match="give either guard or max_drop"):
        engineers.make("rules", guard=engineers.Guard(), max_drop=0.5)


def acme(rest: str) -> Engineer:
    return FixedEngineer()


@pytest.fixture
def third_party(monkeypatch):
    points = [EntryPoint("acme", f"{__name__}:acme", engineers.registry.ENTRY_POINT_GROUP)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "engineers.backends" else [])


def test_third_parties_join_by_an_entry_point(third_party):
    assert available()["acme"] == f"{__name__}:acme"
    assert registry.what_it_does("acme") == f"{__name__}:acme"  # where it is: to list it does not import it
    assert isinstance(engineers.make("acme/anything"), FixedEngineer)
    with pytest.raises(UnknownEngineer, match="acme"):
        engineers.make("nobody")


COMMON = {
    "seed": 1,
    "space": {},
    "guard": engineers.Guard(max_drop=0.5),
    "context": "V4",
    "transcript": "t.jsonl",
    "ledger": "asked.jsonl",
    "desk": "desk",
    "max_attempts": 2,
    "max_cost": 1.0,
    "max_total_tokens": 10,
}

OWN = """
import engineers
from engineers.plain.base import Design, PlainEngineer

class Plain(PlainEngineer):
    name = "plain"
    def design(self, report, current, knobs):
        return Design()

class Paced(Plain):
    def __init__(self, *, pace=1, **options):
        super().__init__(**options)
        self.pace = pace

class Bare(Plain):
    def __init__(self, seed=0):
        super().__init__(seed=seed)

class Mute:
    model = "mute"
    def complete(self, messages, schema, *, max_tokens):
        raise engineers.ChatError("mute")

def make(rest, **options) -> engineers.Engineer:
    return Plain(**options)

def paced(rest, **options) -> engineers.Engineer:
    return Paced(**options)

def mute(rest, **options) -> engineers.Engineer:
    return engineers.ModelEngineer(Mute(), name=f"mute/{rest}", **options)

def leaver(rest, **options) -> engineers.Engineer:
    raise SystemExit(3)

def deaf(rest, *, seed=0) -> engineers.Engineer:
    return Plain(seed=seed)

def nothing(rest, **options) -> engineers.Engineer:
    return Mute()

def slashless(**options) -> engineers.Engineer:
    return Plain(**options)

NUMBER = 3
"""


@pytest.fixture
def own(monkeypatch, tmp_path):
    """A file in the current directory, as one writes it to try an engineer."""
    (tmp_path / "own_engineers.py").write_text(OWN)
    (tmp_path / "own_broken.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield
    sys.modules.pop("own_engineers", None)


def test_the_common_options_are_those_of_this_test():
    assert set(COMMON) == set(COMMON_OPTIONS)


@pytest.mark.parametrize("place", ["make", "paced", "mute/of me", "deaf", "Plain", "Paced", "Bare"])
@pytest.mark.parametrize("by", ["place", "entry point"])
def test_an_engineer_of_ones_own_takes_every_common_option(own, monkeypatch, place, by):
    factory, _, rest = place.partition("/")
    name = f"own_engineers:{place}"
    if by == "entry point":
        monkeypatch.syspath_prepend(".")
        point = EntryPoint("own", f"own_engineers:{factory}", registry.ENTRY_POINT_GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [point])
        name = f"own/{rest}"
    made = engineers.make(name, **COMMON)
    assert isinstance(made, Engineer)
    assert made.name == ("mute/of me" if rest else "plain")
    assert rest or made.seed == 1


@pytest.mark.parametrize("place", ["make", "paced", "mute", "deaf", "Plain", "Paced", "Bare"])
def test_an_engineer_of_ones_own_has_no_misspelt_option(own, place):
    with pytest.raises(TypeError, match="has no option sede"):
        engineers.make(f"own_engineers:{place}", sede=1)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        (
            "own_nowhere:make",
            UnknownEngineer,
            r"'own_nowhere' cannot be imported \(No module named 'own_nowhere'; .*\): write",
        ),
        ("own_broken:make", UnknownEngineer, r"'own_broken' cannot be imported \(No module named 'no_such_package'\)"),
        (":make", UnknownEngineer, "':make' cannot be imported"),
        (".own:make", UnknownEngineer, "'.own' cannot be imported"),
        ("own_engineers:mkae", UnknownEngineer, "own_engineers has no 'mkae'"),
        ("own_engineers:", UnknownEngineer, "'own_engineers:' cannot be imported"),
        ("own_engineers:NUMBER", UnknownEngineer, "'own_engineers:NUMBER' is not declared"),
        ("own_engineers:Plain/x", UnknownEngineer, "own_engineers:Plain takes nothing after the slash"),
        ("own_engineers:nothing", TypeError, "made a Mute, which is not an engineer: derive its class"),
        ("own_engineers:leaver", UnknownEngineer, r"called exit\(3\) while it was made"),
        ("own_engineers:slashless", TypeError, r"first argument.* write make\(rest, …\)"),
    ],
)
def test_what_is_no_engineer_of_ones_own_says_why(own, name, error, said):
    with pytest.raises(error, match=said):
        engineers.make(name)


@pytest.mark.parametrize("name", ["fixed", "rules", "human", "own_engineers:mute"])
def test_a_config_that_is_still_a_dict_says_to_validate_it(own, name, report):
    with pytest.raises(TypeError, match=r"is a dict, .* LakeConfig.model_validate\(report.config\)"):
        engineers.make(name).propose(report, current=report.config)


def test_several_missing_modules_are_missing():
    with pytest.raises(
        ImportError, match=r"^no_a and no_b are not installed: pip install \"mapf-frozenlake\[prompt\]\","
    ):
        require("no_a", "no_b", extra="prompt")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("openai/m", "openai", "openai"), ("litellm/p/m", "litellm", "litellm"), ("human", "jinja2", "prompt")],
)
def test_a_missing_extra_names_its_install_command(monkeypatch, name, module, extra):
    from engineers.shared import extras

    real = extras._is_installed
    monkeypatch.setattr(extras, "_is_installed", lambda wanted: wanted.split(".")[0] != module and real(wanted))
    with pytest.raises(ImportError, match=rf"pip install .mapf-frozenlake\[{extra}\]"):
        engineers.make(name)


def test_what_is_not_common_is_said_to_be_none_of_an_engineers_options():
    require_common("Mine", COMMON)
    with pytest.raises(TypeError, match=r"^Mine has no option pace, sede$"):
        require_common("Mine", COMMON | {"sede": 1, "pace": 2})


def test_one_missing_module_is_missing():
    with pytest.raises(
        ImportError, match=r"^no_a is not installed: pip install .*, or in a checkout pip install"
    ) as said:
        require("json", "no_a", extra="prompt")
    assert said.value.name == "no_a"
    with pytest.raises(ImportError, match=r"^no_a\.b is not installed"):  # its parent is not there either
        require("no_a.b", extra="prompt")
    require("json", "os.path", extra="prompt")


@pytest.mark.parametrize(
    ("name", "options", "tier"),
    [
        ("fixed", {}, Tier.NOTHING), ("uniform", {}, Tier.NOTHING), ("random", {}, Tier.NOTHING),
        ("schedule", {"parts": [0.5]}, Tier.FAMILY), ("average/rules", {}, Tier.FAMILY),
        ("rules", {}, Tier.SLICE_SUCCESS), ("half-success", {}, Tier.SLICE_SUCCESS), ("progress-share", {}, Tier.SLICE_SUCCESS), ("failure-share", {}, Tier.SLICE_SUCCESS), ("give-up", {}, Tier.SLICE_SUCCESS), ("reader", {}, Tier.REPORT),
        ("permuted/rules", {}, Tier.SLICE_SUCCESS), ("permuted/rules", {"permutation": 3}, Tier.SLICE_SUCCESS), ("openai/gpt", {}, Tier.REPORT), ("openai/gpt", {"context": "full"}, Tier.CASES),
        ("gemini/pro", {"context": {"cases": True}}, Tier.CASES), ("human", {}, Tier.CASES), ("human", {"context": "V1"}, Tier.REPORT),
    ],
)  # fmt: skip
def test_what_an_engineer_knows_is_known_by_its_name(name, options, tier):
    assert registry.tier_named(name, **options) == tier


@pytest.mark.parametrize(("context", "tier"), [("V6", Tier.REPORT), ("full", Tier.CASES)])
def test_an_engineer_with_a_context_knows_what_the_context_shows(context, tier, tmp_path):
    assert engineers.make("human", context=context, desk=tmp_path).tier == tier
