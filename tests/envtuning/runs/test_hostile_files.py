"""A run's file is somebody's text: each trick in it is told in one sentence, and no code of its own runs on its word."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from threading import Thread

import pytest

from engineers import registry
from engineers.from_file import raise_unless_allowed
from engineers.registry import raise_unless_from_file
from engineers.shared.extras import _is_installed
from engineers.shared.own import also_trusting
from engineers.shared.terminal import TextConsole, visible
from engineers.shared.untrusted import NotReadable
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.reading import read_mapping
from envtuning.runs.spec import EngineerSpec, SpecError, load_spec, preset_names
from envtuning.studies.preregistered import load_study
from envtuning.studies.study import folder_name
from envtuning.trainees import LIVE, TraineeKind
from envtuning.worlds.registry import UnknownWorld, make_world
from tests.envtuning.commands import called
from tests.lazily import needed

BASE = "extends: scripted\n"


def refused(tmp_path: Path, text: str, *more: object) -> str:
    """What is said of a run's file with this text. It is one line, nothing is trained, and the exit code is 1."""
    file = tmp_path / "it.yaml"
    file.write_text(text, encoding="utf-8")
    code, output = called("run", file, *more, "--out", tmp_path / "run")
    assert code == 1
    assert output.startswith("error: ")
    assert output.count("\n") == 1 or "YAML" in output, output  # YAML's own words have line breaks
    assert not (tmp_path / "run").exists()
    return output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ("a: " + "[" * 60 + "]" * 60, "nested too deeply"),
        (BASE + f"seed: {'7' * 5000}", "has a number of 5,000 characters"),
        ('{"extends": "scripted", "seed": ' + "7" * 5000 + "}", "neither YAML nor JSON"),
        (BASE + f"seed: {'7' * 40}", "seed"),
        (BASE + f"name: {'x' * 300}", "name"),
        (BASE + "suites: {validation_per_slice: 1000000000000}", "validation_per_slice"),
        (BASE + "total: 1" + "0" * 30, "total"),
        (BASE + "name: a\nname: b", "'name' twice in one mapping (line 3)"),
        ('{"extends": "scripted", "name": "a", "name": "b"}', "'name' twice in one mapping"),
        (BASE + "engineer: {name: random, options: {space: {a: [.nan, 1]}}}", "space.a.0=nan: give a finite number"),
        ('{"extends": "scripted", "engineer": {"name": "rules", "options": {"x": NaN}}}', "has the number NaN"),
        (BASE + "trainee: {kind: scripted, options: {speed: .inf}}", "speed=inf"),
        (BASE + "trainee: {kind: scripted, options: {speed: 2020-01-01}}", "speed is of type date"),
        (BASE + "engineer: {name: openai/x, options: {api_key: sk-planted-0123456789}}", "no key goes there"),
        (BASE + "engineer: {name: openai/x, options: {request: {extra_headers: {Authorization: planted}}}}", "no key goes"),
        (BASE + "editable: [slices.*.temperature]", "editable: "),
        (BASE + "extends: [1]", "twice"),
        ("extends: [1]", "extends [1]"),
        ("x" * 2_000_000, "at most 1,000,000 are read"),
        (
            "a: &a [1,2,3,4,5,6,7,8,9]\n"
            + "\n".join(f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]" for a, b in zip("abcdefgh", "bcdefghi")),
            "more than 100,000 values",
        ),
    ],
)  # fmt: skip
def test_a_trick_in_a_runs_file_is_told_in_a_sentence(tmp_path, text, says):
    said = refused(tmp_path, text)
    assert says in said
    assert "planted" not in said
    assert len(said) < 2_000


def test_too_many_seeds_or_stages_on_the_command_line_are_told_at_once():
    for words in (["--seeds", "1" + "0" * 12], ["--seeds", "7" * 5000], ["--stages", "1" + "0" * 12]):
        code, output = called("run", "scripted", *words)
        assert code == 1
        assert "error: " in output
        assert len(output) < 300


def test_a_key_stands_once_in_a_mapping_and_mappings_are_not_merged():
    with pytest.raises(NotReadable, match="'x' twice"):
        read_mapping("b: {x: 1, 'x': 2}")
    bomb = "a0: &a0 {x: 1}\n"
    bomb += "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 9))
    began = time.process_time()
    with pytest.raises(NotReadable, match=r"merge key << \(line 2\): write the values out"):
        read_mapping(bomb)
    with pytest.raises(NotReadable, match="has a number of 399,999 characters"):
        read_mapping("seed: " + ":".join(["1"] * 200_000))
    assert time.process_time() - began < 5
    assert read_mapping("a: '1:30'\nb: 0x10\nc: -1.5e3\nd: 1_000") == {"a": "1:30", "b": 16, "c": -1500.0, "d": 1000}


@pytest.mark.parametrize("body", ["raise OSError('gone')", "import sys; sys.exit(0)", "1 / 0"])
def test_a_module_that_raises_or_exits_is_told_in_a_sentence(tmp_path, monkeypatch, body):
    (tmp_path / "rude_module.py").write_text(body)
    monkeypatch.chdir(tmp_path)
    for text in (
        "world: rude_module:World",
        "trainee: {kind: 'rude_module:T'}",
        "engineer: {name: 'rude_module:make'}",
    ):
        sys.modules.pop("rude_module", None)
        said = refused(tmp_path, BASE + text, "--trust", "rude_module")
        assert "'rude_module' cannot be imported (its code raised" in said


def test_a_world_that_exits_while_it_is_made_is_told_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rude_world.py").write_text(
        "import sys\nfrom envtuning.worlds.world import World\ndef make() -> World:\n    sys.exit(0)\n"
    )
    with pytest.raises(UnknownWorld, match="cannot be made with these options: SystemExit: 0"):
        make_world("rude_world:make")


# Trust


PROOF = "from pathlib import Path\nPath('it_ran').touch()\n"


@pytest.mark.parametrize(
    "text", ["world: planted_code:World", "trainee: {kind: 'planted_code:T'}", "engineer: {name: 'planted_code:make'}"]
)
def test_no_module_is_imported_on_a_files_word(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted_code.py").write_text(PROOF)
    sys.modules.pop("planted_code", None)
    assert "--trust planted_code" in refused(tmp_path, BASE + text)
    assert not (tmp_path / "it_ran").exists()
    refused(tmp_path, BASE + text, "--trust", "planted_code")  # imported now, and found to be nothing of the kind
    assert (tmp_path / "it_ran").exists()


def test_an_installed_backend_is_not_imported_on_a_files_word_either(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "planted_backend.py").write_text(PROOF + "from engineers.plain.fixed import FixedEngineer as Own\n")
    point = EntryPoint("acme", "planted_backend:Own", registry.ENTRY_POINT_GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    text = BASE + "engineer: {name: acme}"
    assert "--trust planted_backend" in refused(tmp_path, text)
    assert not (tmp_path / "it_ran").exists()
    for word in (("--trust", "planted_backend"), ("--engineer", "acme")):
        sys.modules.pop("planted_backend", None)
        (tmp_path / "it_ran").unlink(missing_ok=True)
        code, output = called("run", tmp_path / "it.yaml", *word, "--stages", 2, "--out", f"by{word[0]}")
        assert code == 0, output
        assert (tmp_path / "it_ran").exists()


GRPO = BASE + "unit: samples\ntrainee: {kind: grpo, options: "  # the rest of its options, and }


@pytest.mark.parametrize(
    "section",
    [
        {"world": {"name": "lakes", "options": {"name": "other"}}},
        *(
            {"trainee": {"kind": "scripted", "options": {own: 1}}}
            for own in ("kind", "world", "capacity", "seed", "unit")
        ),
        {"engineer": {"name": "rules", "options": {"name": "other"}}},
    ],
)
def test_an_option_called_like_an_argument_of_the_runs_own_is_told_in_a_sentence(tmp_path, section):
    refused(tmp_path, BASE + json.dumps(section)[1:-1])
    run = RunLog.create(tmp_path / "run", Plan.of(load_spec("scripted")))
    record = json.loads((run.path / "run.json").read_text())
    record["spec"] |= section
    (run.path / "run.json").write_text(json.dumps(record))
    run.files.note(run.path / "run.json")
    code, output = called("resume", run.path)
    assert (code, "error: " in output) == (1, True)


def test_no_reward_is_imported_on_a_files_word(tmp_path, monkeypatch):
    needed("torch", "transformers", "trl", "datasets", extra="grpo")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted_reward.py").write_text(PROOF + "def f(**columns): ...\n")
    said = refused(tmp_path, GRPO + "{model: some/model, reward: 'planted_reward:f'}}")
    assert "--trust planted_reward" in said
    for place in ("os:system", "envtuning.cli.base:app", "engineers:make"):  # our own modules hold no rewards
        assert "--trust " + place.partition(":")[0] in refused(tmp_path, GRPO + f"{{model: m/m, reward: '{place}'}}}}")
    assert not (tmp_path / "it_ran").exists()
    assert "planted_reward" not in sys.modules


def test_neither_resume_nor_show_nor_report_imports_on_a_folders_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = RunLog.create(tmp_path / "run", Plan.of(load_spec("scripted")))
    record = json.loads((run.path / "run.json").read_text())
    record["spec"]["world"] = {"name": "planted_code:World", "options": {}}
    (run.path / "run.json").write_text(json.dumps(record))
    run.files.note(run.path / "run.json")  # who changes a file can change its checksum
    (tmp_path / "planted_code.py").write_text(PROOF)
    sys.modules.pop("planted_code", None)
    for command in ("resume", "show", "report", "replay", "tensorboard"):
        code, output = called(command, run.path)
        assert code == 1
        assert "--trust planted_code" in output
    assert not (tmp_path / "it_ran").exists()


@pytest.mark.parametrize(
    "name", ["os:system", "os:system/touch it_ran", "subprocess:run", "engineers.cli:main", "json:JSONDecoder"]
)
def test_what_does_not_say_that_it_is_an_engineer_or_a_world_is_never_called(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    module = name.partition(":")[0]
    for more in ((), ("--trust", module)):
        refused(tmp_path, BASE + f"engineer: {{name: '{name}'}}", *more)
        refused(tmp_path, BASE + f"world: '{name.partition('/')[0]}'", *more)
        refused(tmp_path, BASE + f"trainee: {{kind: '{name.partition('/')[0]}'}}", *more)
    assert not (tmp_path / "it_ran").exists()


@pytest.mark.parametrize(
    ("engineer", "options"),
    [
        ("openai/gpt-5-mini", {"base_url": "http://evil.example/v1"}),
        ("gemini/x", {"base_url": "http://evil.example"}),
        ("litellm/openai/x", {"base_url": "http://evil.example"}),
        ("openai/x", {"base_url": "https://api.openai.com@evil.example/v1"}),
        ("server/http://evil.example/v1#m", {}),
    ],
)
def test_a_key_goes_to_no_host_on_a_files_word(tmp_path, monkeypatch, engineer, options):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ENGINEERS_SERVER_API_KEY"):
        monkeypatch.setenv(name, "planted-key-0123456789")
    library = engineer.partition("/")[0].replace("server", "openai").replace("gemini", "google.genai")
    if not _is_installed(library):
        pytest.skip(f"needs {library}")
    text = BASE + json.dumps({"engineer": {"name": engineer, "options": options}})[1:-1]
    said = refused(tmp_path, text)
    assert "would go to evil.example" in said
    assert "planted" not in said


@pytest.mark.parametrize("trust", ["gentle", "models.example.org", "host:models.example.org", "host:gentle"])
def test_a_host_whose_name_begins_like_a_trusted_name_gets_no_key(tmp_path, monkeypatch, trust):
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
    name = trust.removeprefix("host:")
    text = BASE + f"engineer: {{name: openai/x, options: {{base_url: 'https://{name}.evil.example/v1'}}}}"
    assert f"--trust host:{name}.evil.example" in refused(tmp_path, text, "--trust", trust)


def test_a_key_in_options_is_refused_in_python_too():
    with pytest.raises(ValueError, match="no key goes there"):
        EngineerSpec(name="openai/x", options={"api_key": "sk-0123456789"})
    assert EngineerSpec(name="openai/x", options={"max_tokens": 5, "keys": 3}).options == {"max_tokens": 5, "keys": 3}


@pytest.mark.skipif(os.name == "nt", reason="pipes as POSIX has them")
def test_a_studys_file_that_is_a_pipe_or_endless_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 40)
    for name in ("pipe", "large"):
        with pytest.raises(SpecError, match=name):
            load_study(tmp_path / name)
    with pytest.raises(SpecError, match="large"):
        load_spec(tmp_path / "large")


# Options


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("engineer: {name: rules, options: {transcript: ./bashrc}}", "transcript"),
        ("engineer: {name: rules, options: {ledger: ./bashrc}}", "ledger"),
        ("engineer: {name: human, options: {desk: ./desk}}", "desk"),
        ("engineer: {name: rules, options: {guard: null}}", "guard"),
    ],
)
def test_what_is_the_runs_own_is_in_no_options(tmp_path, monkeypatch, text, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bashrc").write_text("mine\n")
    for more in ((), ("--trust", f"option:engineer.options.{place}")):
        assert f"{place} is set by the run" in refused(tmp_path, BASE + text, *more)
    assert (tmp_path / "bashrc").read_text() == "mine\n"
    assert not (tmp_path / "desk").exists()


@pytest.mark.parametrize(
    ("text", "place", "library"),
    [
        ("engineer: {name: human/desk}", "engineer.name", "jinja2"),
        ("engineer: {name: 'engineers.human:make/desk'}", "engineer.name", "jinja2"),
        ("engineer: {name: 'engineers.registry:make/human/desk'}", "engineer.name", "jinja2"),
        ("engineer: {name: human, options: {say: print}}", "engineer.options.say", "jinja2"),
        ("engineer: {name: average/rules, options: {reports: ./reports.json}}", "engineer.name", "jinja2"),
        (
            "engineer: {name: 'permuted/openai/x', options: {base_url: 'http://evil.example'}}",
            "engineer.name",
            "jinja2",
        ),
        (
            "engineer: {name: openai/x, options: {request: {extra_headers: {a: b}}}}",
            "engineer.options.request.extra_headers",
            "openai",
        ),
        (
            "engineer: {name: openai/x, options: {request: {stop: {a: b}}}}",
            "engineer.options.request.stop",
            "openai",
        ),
        (
            "engineer: {name: 'engineers.backends.openai:make/x', options: {request: {timeout: 1}}}",
            "engineer.options.request.timeout",
            "openai",
        ),
        (
            "engineer: {name: gemini/x, options: {request: {http_options: {base_url: 'http://evil.example'}}}}",
            "engineer.options.request.http_options",
            "google.genai",
        ),
        (
            "engineer: {name: local/some/model, options: {arguments: {attn_implementation: some/code}}}",
            "engineer.options.arguments.attn_implementation",
            "llguidance",
        ),
        ("world: {name: tools, options: {path: ./wheel}}", "world.options.path", "jinja2"),
        (
            "world: {name: 'envtuning.worlds.bfcl.world:BFCLWorld', options: {path: ./wheel}}",
            "world.options.path",
            "jinja2",
        ),
    ],
)
def test_an_option_that_may_run_or_send_or_write_is_not_taken_from_a_file(tmp_path, monkeypatch, text, place, library):
    if not _is_installed(library):
        pytest.skip(f"needs {library}")
    monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
    monkeypatch.setenv("GEMINI_API_KEY", "planted-key-0123456789")
    monkeypatch.chdir(tmp_path)
    said = refused(tmp_path, BASE + text)
    assert f"{place}=" in said
    assert f"--trust option:{place}" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it.yaml"]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("{model: m/m, processes: 2, launch: [stranger.py]}", "launch"),
        ("{model: m/m, grpo: {model_init_kwargs: {trust_remote_code: true}}}", "grpo.model_init_kwargs"),
        ("{model: m/m, grpo: {trust_remote_code: true}}", "grpo.trust_remote_code"),
        ("{model: m/m, grpo: {push_to_hub: true}}", "grpo.push_to_hub"),
        ("{model: m/m, grpo: {deepspeed: stranger.json}}", "grpo.deepspeed"),
        ("{model: m/m, lora: {megatron_core: stranger, megatron_config: {a: 1}}}", "lora.megatron_core"),
    ],
)
def test_what_the_libraries_of_grpo_run_is_not_taken_from_a_file(tmp_path, monkeypatch, options, place):
    needed("torch", "transformers", "trl", "datasets", extra="grpo")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stranger.py").write_text(PROOF)
    for kind in ("grpo", "'envtuning.trainees.language.trainee:GRPOTrainee'"):
        said = refused(tmp_path, GRPO.replace("grpo", kind) + options + "}")
        assert f"--trust option:trainee.options.{place}" in said
    assert not (tmp_path / "it_ran").exists()
    assert "stranger" not in sys.modules


def test_sb3_writes_no_log_on_a_files_word(tmp_path):
    needed("stable_baselines3", "torch", extra="sb3")
    text = BASE + "trainee: {kind: sb3, options: {tensorboard_log: ./logs}}"
    assert "--trust option:trainee.options.tensorboard_log" in refused(tmp_path, text)


def test_a_models_folder_with_code_of_its_own_is_not_run(tmp_path, monkeypatch, capfd):
    needed("torch", "transformers", "llguidance", extra="local")
    from engineers.backends.local import LocalChat
    from engineers.model.chat import Rejected

    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    auto = {
        "AutoConfig": "stranger.Config",
        "AutoModelForCausalLM": "stranger.Model",
        "AutoTokenizer": "stranger.Tokens",
    }
    (folder / "config.json").write_text(json.dumps({"model_type": "stranger", "auto_map": auto}))
    (folder / "stranger.py").write_text(PROOF)
    text = BASE + "engineer: {name: local/./folder, options: {arguments: {trust_remote_code: true}}}"
    assert "--trust option:engineer.options.arguments.trust_remote_code" in refused(tmp_path, text)
    assert "holds data alone" in refused(tmp_path, BASE + "engineer: {name: local/./folder}")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("transformers asked at the keyboard"))
    for names in ((), ("option:engineer.name",)):  # a file's model, and a user's
        with also_trusting(names):
            with pytest.raises(Rejected, match="cannot be loaded" if names else "holds data alone"):
                LocalChat(str(folder)).load_now()
            (folder / "stranger.py").rename(tmp_path / "later.py")
            with pytest.raises(Rejected, match="cannot be loaded" if names else "holds data alone"):
                LocalChat(str(folder)).load_now()
            (tmp_path / "later.py").rename(folder / "stranger.py")
    assert not (tmp_path / "it_ran").exists()
    assert "run the custom code" not in "".join(capfd.readouterr())


def test_no_request_goes_where_a_file_hides_an_address(tmp_path, monkeypatch):
    """The key went to ``model_list`` of litellm, which is neither base_url nor api_base."""
    needed("litellm", extra="litellm")
    heard = []

    class Ear(BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(self.headers.get("Authorization"))
            self.send_error(500)

    with HTTPServer(("127.0.0.1", 0), Ear) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_API_KEY", "planted-key-0123456789")
        listed = {
            "model_name": "x",
            "litellm_params": {"model": "openai/x", "api_base": f"http://127.0.0.1:{server.server_port}"},
        }
        engineer = {"name": "litellm/openai/x", "options": {"request": {"model_list": [listed]}}}
        said = refused(tmp_path, BASE + json.dumps({"engineer": engineer})[1:-1])
        server.shutdown()
    assert "--trust option:engineer.options.request.model_list" in said
    assert heard == []


def test_a_context_that_is_none_is_told_in_a_sentence(tmp_path):
    said = refused(tmp_path, BASE + "engineer: {name: human, options: {context: {templates: /etc}}}")
    assert "templates" in said


def test_what_the_command_line_sets_is_taken_and_so_is_what_it_trusts(tmp_path):
    (tmp_path / "it.yaml").write_text(
        BASE + "engineer: {name: fixed}\nstages:\n  - {budget: 4000, config: {slices: {3: {}}}}\n"
    )
    code, output = called("run", tmp_path / "it.yaml", "--set", "trainee.options.nothing=1", "--out", tmp_path / "run")
    assert code == 1
    assert "--trust" not in output  # only that there is no such option
    (tmp_path / "it.yaml").write_text(BASE + "world: {name: tools, options: {path: ./wheel}}")
    assert "--trust option:world.options.path" in called("run", tmp_path / "it.yaml")[1]
    assert "--trust" not in called("run", tmp_path / "it.yaml", "--trust", "option:world")[1]


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_sets_only_what_any_file_may(name):
    spec = load_spec(name)
    raise_unless_from_file(LIVE.get(spec.engineer.name, spec.engineer.name), spec.engineer.options)
    raise_unless_allowed(
        "trainee.options", spec.trainee.options, TraineeKind.named(spec.trainee.kind).factory.from_file
    )


# Paths and links


@pytest.mark.parametrize("name", ["..", ".", ".bashrc", "../other", "a/b", ""])
def test_a_runs_name_is_of_a_folder_of_its_own(tmp_path, name):
    assert "name" in refused(tmp_path, BASE + f"name: '{name}'")


def test_an_arms_folder_is_below_its_study():
    assert [folder_name(arm) for arm in ("..", ".", "../x", "a/b", "rules", "a..b")] == [
        "_.", "_", "_._x", "a_b", "rules", "a..b",
    ]  # fmt: skip


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    "place",
    [
        "..owner.draft",
        ".lock",
        "report.html",
        "desk/stage-0/report.md",
        "stages/00/transcript.jsonl",
        "validation.cases",
    ],
)
def test_nothing_is_opened_through_a_link_that_leads_out_of_the_run(tmp_path, monkeypatch, place, inside):
    """One that stays inside leads to a file of the run's own."""
    monkeypatch.chdir(tmp_path)
    run = RunLog.create(tmp_path / "run", Plan.of(load_spec("scripted", changes={"stages.0.budget": 500})))
    victim = (run.path if inside else tmp_path) / "bashrc"
    victim.write_text("mine\n")
    link = run.path / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(victim)
    if inside:
        assert RunLog.open(run.path).plan.spec.name == "scripted"
        return
    before = sorted(run.path.rglob("*"))
    for command in ("resume", "show", "report", "replay", "tensorboard"):
        code, output = called(command, run.path)
        assert code == 1
        assert f"{link} is a link to {victim}, outside of the run" in output
    assert victim.read_text() == "mine\n"
    assert sorted(run.path.rglob("*")) == before


def test_a_folder_of_links_is_no_place_for_a_new_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bashrc").write_text("mine\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "..owner.draft").symlink_to("../bashrc")
    code, output = called("run", "scripted", "--out", tmp_path / "run")
    assert (code, "outside of the run" in output) == (1, True)
    assert (tmp_path / "bashrc").read_text() == "mine\n"


def test_a_folder_that_is_a_link_is_not_entered(tmp_path):
    run = RunLog.create(tmp_path / "run", Plan.of(load_spec("scripted")))
    (tmp_path / "home").mkdir()
    (run.path / "stages").symlink_to("../home", target_is_directory=True)
    with pytest.raises(RunError, match="outside of the run"):
        RunLog.open(run.path)
    (run.path / "stages").unlink()
    (tmp_path / "latest").symlink_to("run")  # the run itself may be called by a link
    assert RunLog.open(tmp_path / "latest").name == "latest"


@pytest.mark.parametrize("place", ["rules", "rules/seed0", ".turn", "comparison.json"])
def test_no_arm_is_entered_through_a_link_that_leads_out_of_the_comparison(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    link = tmp_path / "runs" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(home / "bashrc" if place == ".turn" else home)
    (home / "bashrc").write_text("mine\n")
    words = ("scripted", "--engineers", "rules", "--seeds", 1, "--stages", 2)
    for command in (("compare", *words, "--out", "runs"), ("show", "runs"), ("report", "runs")):
        code, output = called(*command)
        assert code == 1
        assert f"runs/{place} is a link to" in output
    assert [path.name for path in home.iterdir()] == ["bashrc"]
    assert (home / "bashrc").read_text() == "mine\n"


def test_a_further_test_set_is_stored_in_the_studys_folder(tmp_path, monkeypatch):
    """``beyond-`` is the folder of an arm, so the path of the cases led out of it."""
    monkeypatch.chdir(tmp_path)
    arms = {"beyond-": {"engineer": {"name": "fixed"}}}
    study = {"name": "s", "question": "", "preset": "scripted", "seeds": [0], "arms": arms}
    (tmp_path / "s.yaml").write_text(json.dumps(study | {"beyond": {"/../../../outside": {"num_agents": 3}}}))
    code, output = called("compare", "s.yaml", "--out", "runs")
    assert (code, "beyond./../../../outside" in output) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["s.yaml"]


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_draft_that_is_a_link_is_written_anew(tmp_path, link):
    """Pages and tables are written into folders that are no runs, too."""
    (tmp_path / "bashrc").write_text("mine\n")
    link(tmp_path / "bashrc", tmp_path / ".report.html.draft")
    atomic.write_text(tmp_path / "report.html", "ours")
    assert (tmp_path / "bashrc").read_text() == "mine\n"
    assert (tmp_path / "report.html").read_text() == "ours"
    (tmp_path / "page.html").symlink_to("bashrc")
    atomic.write_text(tmp_path / "page.html", "ours")
    assert (tmp_path / "bashrc").read_text() == "mine\n"


# What a terminal is told


HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x00d\x9b31me\u202eevil\u2066f\rg"


def test_what_would_steer_a_terminal_is_written_out():
    assert visible("tab\tline\näöü – 日本 ✓") == "tab\tline\näöü – 日本 ✓"
    shown = visible(HOSTILE)
    assert shown == r"a\x1b[2Jb\x1b]0;title\x07c\x00d\x9b31me\u202eevil\u2066f\rg"


def test_a_console_prints_hostile_text_as_text(capsys):
    from rich.table import Table
    from rich.text import Text

    console = TextConsole(markup=False, force_terminal=True, width=200)
    table = Table("x")
    table.add_row(HOSTILE)
    for shown in (HOSTILE, Text(HOSTILE, style="bold"), table):
        console.print(shown, highlight=False)
    said = capsys.readouterr().out
    assert said.count(r"\x1b]0;title") == 3
    for steering in ("\x1b]", "\x1b[2J", "\x00", "\x07", "\x9b", "\u202e", "\u2066", "\r"):
        assert steering not in said
    assert "\x1b[1m" in said  # its own colours pass


@pytest.mark.parametrize("hostile", [True, False])
def test_a_name_on_the_hub_names_no_other_model_either(tmp_path, monkeypatch, hostile):
    needed("torch", "transformers", "llguidance", extra="local")
    from engineers.backends.local import LocalChat
    from engineers.model.chat import Rejected

    asked = []

    def fetched(model, name, revision):
        asked.append((model, name, revision))
        if not hostile or name != "adapter_config.json":
            raise OSError(f"{model} has no {name}")
        (tmp_path / name).write_text(json.dumps({"base_model_name_or_path": "stranger/repo"}))
        return str(tmp_path / name)

    monkeypatch.setattr("transformers.utils.cached_file", fetched)
    monkeypatch.setattr(
        "transformers.AutoTokenizer.from_pretrained", lambda *_, **__: pytest.fail("loaded") if hostile else 1 / 0
    )
    with pytest.raises(Rejected, match="stranger/repo" if hostile else "ZeroDivisionError"):
        LocalChat("some/model", arguments={"revision": "abc"}).load_now()
    assert ("some/model", "adapter_config.json", "abc") in asked


def test_a_models_folder_names_no_other_model(tmp_path, monkeypatch):
    """An adapter's config would have a model of the stranger's choice looked up at the hub, with the user's token."""
    needed("torch", "transformers", "llguidance", extra="local")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "stranger/repo"}))
    assert "stranger/repo" in refused(tmp_path, BASE + "engineer: {name: local/./folder}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed: 1:1:1.5", "'1:1:1.5' .line 2., which YAML reads as a number to base 60: put it in quotes"),
        ("seed: 0x" + "F" * 6_000, "has a number of 6,002 characters .line 2.: give a shorter one"),
        (
            "trainee: {kind: scripted, options: {speed: 0x" + "F" * 300 + "}}",
            "holds a number of 36[0-9] digits: give one below 1e308",
        ),
        ('description: "\\ud800"', "holds half of a character"),
        ("world: {name: lakes, options: {space: x}}", "world 'lakes' cannot be made with these options"),
        ("engineer: {name: random, options: {space: x}}", "space is 'x': give a mapping from knobs to .low, high."),
        (
            "engineer: {name: random, options: {space: {slices.3.hole_ratio: 5}}}",
            "'slices.3.hole_ratio' is 5: give two numbers",
        ),
    ],
)
def test_values_that_nothing_can_use_are_refused_before_training(tmp_path, text, said):
    assert re.search(said, refused(tmp_path, BASE + text))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "{kind: scripted, options: {speed: x}}",
            "'scripted' cannot be made with these options: speed='x': give a number",
        ),
        (
            "{kind: sb3, options: {device: evil}}",
            "'sb3' cannot be made with these options (RuntimeError: Expected one of",
        ),
    ],
)
def test_options_that_a_trainee_cannot_use_are_told_once(tmp_path, options, said):
    needed("stable_baselines3", "torch", extra="sb3")
    file = tmp_path / "it.yaml"
    file.write_text(f"{BASE}trainee: {options}", encoding="utf-8")
    code, output = called("run", file, "--out", tmp_path / "run")
    assert code == 1
    assert said in output
    assert "Traceback" not in output
