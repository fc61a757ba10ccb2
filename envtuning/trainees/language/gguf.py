"""A GGUF file as a transformers folder, with weights in bfloat16: what ``trainee.options.model`` and ``local/FOLDER`` read."""

from __future__ import annotations

import shutil
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

from envtuning.errors import RunError
from envtuning.trainees.language.quiet import quiet


def convert(file: Path, folder: Path) -> str:
    """Write the model in ``file`` to ``folder``; returns the licence that the file names. Raises ``RunError``."""
    with quiet(), redirect_stderr(StringIO()):  # the reader draws a progress bar of its own
        model, tokenizer = _read(file)
        size = sum(value.numel() * value.element_size() for value in model.parameters())
        if (free := shutil.disk_usage(folder).free) < size:
            raise RunError(
                f"the model needs {size / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free on the disk of {folder.parent}: free some "
                "space, or choose another disk"
            )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return licence_in(file)


def licence_in(file: Path) -> str:
    from gguf import GGUFReader

    named = GGUFReader(file).get_field("general.license")
    return f"file: {named.contents() if named is not None else 'none named'}"


def _read(file: Path) -> tuple[Any, Any]:
    """The model, in bfloat16 and without its quantization, and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    try:
        # In float32 first: its numbers are unpacked in that type.
        quantized = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **place)
        tokenizer = AutoTokenizer.from_pretrained(file.parent, padding_side="left", **place)
    except Exception as error:  # a cut file, an unknown architecture: the readers raise errors of many kinds
        cause = " ".join(str(error).split())
        raise RunError(
            f"{file.name} cannot be read as a language model ({type(error).__name__}: {cause:.200}): check that the file is whole, and "
            "that transformers knows its architecture"
        ) from error
    return _unquantized(quantized), tokenizer


def _unquantized(quantized: Any) -> Any:
    """The same model without the mark of its quantization, with which transformers refuses to save it."""
    import torch
    from transformers import AutoModelForCausalLM

    config = quantized.config
    del config.quantization_config
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(
        {name: value.to(torch.bfloat16) for name, value in quantized.state_dict().items()}, assign=True
    )
    model.tie_weights()
    model.generation_config = quantized.generation_config
    return model
