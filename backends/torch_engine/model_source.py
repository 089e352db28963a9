"""Where a model comes from: a folder of safetensors or a GGUF file, told in the same words for both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_checks import CheckedFolder, check_folder
from backends.torch_engine.folder_config import without_steering
from backends.torch_engine.gguf_config import transformers_config
from backends.torch_engine.gguf_reader import GgufFile, read_gguf
from backends.torch_engine.gguf_vocabulary import build_tokenizer
from backends.torch_engine.gguf_weights import gguf_weights, quantization_name, rope_factors
from backends.torch_engine.model_errors import ForeignErrors
from backends.torch_engine.model_weights import DTYPES, LazyWeight, LoadProgress, folder_weights
from backends.torch_engine.vocabulary import (
    Vocabulary,
    VocabularyFacts,
    make_vocabulary,
    read_tokenizer,
    token_ids,
    token_named,
)

_FLOATS = ("F64", "F32", "F16", "BF16")
# What dequantized weights become: as wide as the files they came from are exact, and at home on every device.
_DEQUANTIZED = "BF16"


@dataclass(frozen=True)
class ModelSource:
    """A model on disk, checked and not yet read.

    Attributes:
        path: of the folder or the file.
        config: what transformers is told, without what would steer how it loads.
        shapes: of each weight under transformers' names, as far as it keeps those names.
        elements: how many numbers the files hold.
        weight_bytes: what they take in the files.
        dtype: their number format, that of most of them, in safetensors' words; F32, F16 or BF16.
        quantization: how the files store them, such as "BF16" or "Q4_K_M".
        chat_template: "" when it brings none.
        weights: returns the weights by name, each read when it is asked for, for a model of this dtype.
        vocabulary: returns the vocabulary for a model with so many ids.
    """

    path: Path
    config: Mapping[str, object]
    shapes: Mapping[str, tuple[int, ...]]
    elements: int
    weight_bytes: int
    dtype: str
    quantization: str
    chat_template: str
    weights: Callable[[LoadProgress, torch.dtype], dict[str, LazyWeight]]
    vocabulary: Callable[[int], Vocabulary]

    @property
    def largest_elements(self) -> int:
        """The number of elements of the largest weight."""
        return max((math.prod(shape) for shape in self.shapes.values()), default=0)


def open_source(path: Path) -> ModelSource:
    """Return what a path leads to.

    Raises:
        EngineError: whatever is wrong with the files.
    """
    return _from_gguf(path) if path.suffix.lower() == ".gguf" else _from_folder(path)


def _from_folder(path: Path) -> ModelSource:
    folder = check_folder(path)
    dtype = _most_of(folder)

    def vocabulary(tokens: int) -> Vocabulary:
        tokenizer = read_tokenizer(folder.tokenizer, folder.path)
        words, says = folder.tokenizer_config, (folder.generation, folder.config)
        eos = token_named(tokenizer, words.get("eos_token"))
        ends = token_ids([one.get("eos_token_id") for one in says])
        bos = token_named(tokenizer, words.get("bos_token"))
        if bos < 0:
            bos = next(iter(sorted(token_ids([one.get("bos_token_id") for one in says]))), -1)
        if eos < 0:
            eos = min(ends, default=-1)
        facts = VocabularyFacts(bos=bos, eos=eos, ends=ends, tokens=tokens)
        return make_vocabulary(tokenizer, facts, folder.path)

    return ModelSource(
        path=folder.path,
        config=without_steering(folder.config),
        shapes={name: tensor.shape for name, tensor in folder.tensors.items()},
        elements=folder.elements,
        weight_bytes=folder.weight_bytes,
        dtype="F32" if dtype == "F64" else dtype,
        quantization=dtype,
        chat_template=folder.chat_template,
        weights=lambda progress, _dtype: folder_weights(folder.tensors, folder.path, progress),
        vocabulary=vocabulary,
    )


def _most_of(folder: CheckedFolder) -> str:
    """Return the number format that takes most of the files."""
    taken = dict.fromkeys(_FLOATS, 0)
    for tensor in folder.tensors.values():
        if tensor.dtype in taken:
            taken[tensor.dtype] += tensor.size_bytes
    most = max(taken, key=lambda dtype: taken[dtype])
    if not taken[most]:
        packed = next(tensor.dtype for tensor in folder.tensors.values())
        raise EngineError(ErrorCode.WEIGHTS_UNSUPPORTED, path=str(folder.path), detail=packed)
    return most


def _from_gguf(path: Path) -> ModelSource:
    file = read_gguf(path)
    with ForeignErrors(path, "its metadata cannot be read"):
        config = transformers_config(file, rope_factors(file))
        weights = gguf_weights(file, config, LoadProgress(0, lambda _event: None))
    stored = quantization_name(file)
    return ModelSource(
        path=path,
        config=config,
        shapes={name: weight.shape for name, weight in weights.items()},
        elements=sum(math.prod(weight.shape) for weight in weights.values()),
        weight_bytes=sum(weight.size_bytes for weight in weights.values()),
        dtype=stored if stored in DTYPES else _DEQUANTIZED,
        quantization=stored,
        chat_template=file.text("tokenizer.chat_template"),
        weights=lambda progress, dtype: gguf_weights(file, config, progress, dtype),
        vocabulary=lambda tokens: _gguf_vocabulary(file, tokens),
    )


def _gguf_vocabulary(file: GgufFile, tokens: int) -> Vocabulary:
    with ForeignErrors(file.path, "its tokenizer cannot be read"):
        tokenizer = build_tokenizer(file)
    keys = ("eos_token_id", "eot_token_id", "eom_token_id")
    numbers = {key: int(file.number(f"tokenizer.ggml.{key}", -1)) for key in (*keys, "bos_token_id")}
    facts = VocabularyFacts(
        bos=numbers["bos_token_id"],
        eos=numbers["eos_token_id"],
        ends=frozenset(numbers[key] for key in keys if numbers[key] >= 0),
        tokens=tokens,
    )
    return make_vocabulary(tokenizer, facts, file.path)
