"""The preset ``small-skills`` and the same tasks under a user's own trainer, both with a tiny model."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from envtuning.cli import app
from envtuning.runs.log import RunLog
from envtuning.runs.spec import load_spec
from envtuning.worlds import make_world
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
learning = Lazy("envtuning.trainees.language.learner")


def test_the_preset_has_every_task_and_takes_the_updates_that_it_says():
    spec, tasks = load_spec("small-skills"), set(make_world("small-skills").tasks)
    assert set(spec.target["tasks"]) == set(spec.stages[0].config["tasks"]) == tasks
    assert len(tasks) == 18
    assert spec.budget == 20 * spec.trainee.options["grpo"]["per_device_train_batch_size"]


def test_the_preset_runs_with_a_model_of_one_s_own(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").symlink_to(model)
    small = {"trainee.options.model": "./mine", "suites.validation_per_slice": 1, "suites.test_per_slice": 2}
    small |= {f"stages.{number}.budget": 64 for number in range(2)}
    changes = [part for key, value in small.items() for part in ("--set", f"{key}={value}")]
    ended = CliRunner().invoke(app, ["run", "small-skills", "--stages", "2", "--out", "run", *changes])
    assert ended.exit_code == 0, ended.output
    state = RunLog.open("run").state
    first, second = state.stages
    assert first.done.trained["samples"] == second.done.trained["samples"] == 64
    assert second.chosen.engineer == "steady"
    assert not second.chosen.proposal.fallback
    assert {row.name for row in first.report.training_results} <= set(make_world("small-skills").tasks)
    assert sum(row.episodes for row in state.test.start) == sum(row.episodes for row in state.test.last) == 2 * 18
    assert "before the first stage" in ended.output


def test_a_run_without_the_model_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["run", "small-skills"])
    assert ended.exit_code == 1
    said = " ".join(ended.output.split())
    assert "there is no model in ./models/qwen2.5-coder-0.5b" in said
    assert "`envtuning weights smollm2 --out FOLDER`" in said


def test_the_same_tasks_and_engineer_under_a_user_s_own_trainer(model, tmp_path):
    from examples.own_trl_skills import GRPO, train

    preset = load_spec("small-skills")
    assert GRPO.items() <= preset.trainee.options["grpo"].items()
    assert "lora" not in preset.trainee.options  # the trainee's own adapters
    quiet = {"report_to": "none", "output_dir": str(tmp_path / "out"), "disable_tqdm": True}
    trainer, curriculum = train(str(model), 3, every=64, **quiet)
    assert (
        curriculum.target.model_dump()
        == make_world("small-skills").config_type.model_validate(preset.target).model_dump()
    )
    assert curriculum.stage >= 1
    adapters = trainer.model.peft_config["default"]
    assert (adapters.r, adapters.lora_alpha) == (learning.ADAPTERS["r"], learning.ADAPTERS["lora_alpha"])
    names = {row.name for report in curriculum.history for row in report.training_results}
    assert names <= set(curriculum.config.tasks)
    logged = [row for row in trainer.state.log_history if "success_rate" in row]
    assert len(logged) == 3
    assert any(key.startswith("success/") for row in logged for key in row)


def test_the_page_s_script_asks_the_engineer(model, tmp_path, monkeypatch):
    """With its own batch and its own ``every``; only the number of steps is another one."""
    from examples import own_trl_skills

    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
    block = next(block for block in page.split("```python\n")[1:] if "TRLCurriculumCallback" in block).split("```")[0]
    names = vars(own_trl_skills) | {"model": str(model)}
    exec(block.replace("max_steps=20", 'max_steps=5, report_to="none", disable_tqdm=True'), names)
    names["trainer"].train()
    assert names["curriculum"].stage == 1
    assert sum(row.episodes for row in names["curriculum"].history[0].training_results) == 320
