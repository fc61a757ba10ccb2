"""Engineers by name: the built-in ones, third parties', and what a wrong name is told."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

import engineers
from engineers import Engineer, UnknownEngineer, available, registry
from engineers.fixed import FixedEngineer


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownEngineer) as error:
        engineers.make("grok")
    assert all(name in str(error.value) for name in available())


@pytest.mark.parametrize("backend", ["openai", "gemini", "litellm", "local", "server", "replay"])
def test_a_backend_that_needs_a_model_says_how_to_name_one(backend):
    with pytest.raises(UnknownEngineer, match=f"write it as '{backend}/"):
        engineers.make(backend)


@pytest.mark.parametrize("name", ["fixed", "random", "uniform", "rules", "learnability", "bandit", "human"])
def test_common_options_may_be_given_to_any_engineer(name, tmp_path):
    options = {"seed": 1, "context": "V4", "transcript": tmp_path / "t.jsonl", "max_cost": 1.0, "max_attempts": 2}
    more = {"space": {}, "feasible": lambda config: None, "max_drop": 0.5, "max_total_tokens": 10}
    engineer = engineers.make(name, **options, **more)
    assert isinstance(engineer, Engineer)
    assert engineer.name == name


@pytest.mark.parametrize("name", ["fixed", "random", "uniform", "rules", "learnability", "bandit"])
def test_nothing_that_is_named_is_silently_ignored(name):
    with pytest.raises(UnknownEngineer, match=f"{name} takes nothing after the slash"):
        engineers.make(f"{name}/gpt-5-mini")


def test_a_misspelt_option_is_an_error():
    with pytest.raises(TypeError, match="'rules' has no option sede; it has feasible, max_drop, space, thresholds"):
        engineers.make("rules", sede=1)


@pytest.fixture
def third_party(monkeypatch):
    points = [EntryPoint("acme", "engineers.fixed:make", engineers.registry.ENTRY_POINT_GROUP)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "engineers.backends" else [])


def test_third_parties_join_by_an_entry_point(third_party):
    assert available()["acme"] == "engineers.fixed:make"
    assert isinstance(engineers.make("acme/anything"), FixedEngineer)
    with pytest.raises(UnknownEngineer, match="acme"):
        engineers.make("nobody")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("openai/m", "openai", "openai"), ("litellm/p/m", "litellm", "litellm"), ("human", "jinja2", "prompt")],
)
def test_a_missing_extra_names_its_install_command(monkeypatch, name, module, extra):
    from engineers.backends import making

    real = making._is_installed
    monkeypatch.setattr(making, "_is_installed", lambda wanted: wanted.split(".")[0] != module and real(wanted))
    with pytest.raises(ImportError, match=rf"pip install .mapf-frozenlake\[{extra}\]"):
        engineers.make(name)
