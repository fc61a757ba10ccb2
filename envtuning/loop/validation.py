"""The held-out suites, and playing a policy on them. Training, validation and test share no board, up to symmetry."""

from __future__ import annotations

from dataclasses import dataclass

from envtuning.runs import atomic
from envtuning.runs.folder import RunFolder
from envtuning.runs.seeds import derive
from envtuning.runs.spec import RunSpec
from mapf_frozenlake import LakeConfig, generate, validation_suite
from mapf_frozenlake.instance_set import InstanceSet

# The suites belong to the target, not to the run's seed: tables of different seeds are about the same boards.
SUITE_SEED = 20_260_617


@dataclass(frozen=True)
class Suites:
    """The boards that no trainee may train on."""

    validation: InstanceSet  # the engineer, the transitions and any search see its results
    test: InstanceSet | None  # opened once, after the last stage; no decision reads it

    @property
    def held_out(self) -> InstanceSet:
        return self.validation if self.test is None else InstanceSet.concatenate([self.validation, self.test])


def open_suites(run: RunFolder) -> Suites:
    """The run's suites, drawn and stored the first time."""
    spec = run.spec
    if not run.validation_file.exists():
        with atomic.new_file(run.validation_file) as draft:
            draw_suite(spec, "validation").save(draft)
    validation = InstanceSet.load(run.validation_file)
    if not spec.suites.test_per_size:
        return Suites(validation, None)
    if not run.test_suite_file.exists():
        with atomic.new_file(run.test_suite_file) as draft:
            draw_suite(spec, "test", exclude=validation).save(draft)
    return Suites(validation, InstanceSet.load(run.test_suite_file))


def draw_suite(spec: RunSpec, purpose: str, exclude: InstanceSet | None = None) -> InstanceSet:
    """The same number of boards of every size of the target, whatever the shares."""
    per_size = spec.suites.validation_per_size if purpose == "validation" else spec.suites.test_per_size
    count = per_size * len(active_sizes(spec.target))
    return validation_suite(even_shares(spec.target), count, derive(SUITE_SEED, purpose), exclude=exclude)


def draw_probe(config: LakeConfig, per_size: int, seed: int, exclude: InstanceSet) -> InstanceSet | None:
    """Boards as the stage's own config deals them, shares included: what training really looks like."""
    if per_size == 0:
        return None
    return generate(config, n=per_size * len(active_sizes(config)), seed=derive(seed, "probe"), exclude=exclude)


def active_sizes(config: LakeConfig) -> list[int]:
    return sorted(size for size, piece in config.slices.items() if piece.share > 0)


def even_shares(config: LakeConfig) -> LakeConfig:
    slices = {
        size: piece.model_copy(update={"share": 1.0 if piece.share > 0 else 0.0})
        for size, piece in config.slices.items()
    }
    return config.model_copy(update={"slices": slices})
