"""Thousands of mutated headers from memory: each is a header or a HeaderError, in bounded time and memory.

The starter model's own mutations, on disk, are in test_gguf_mutations.py.
"""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.models.byte_source import HeaderError
from app.models.gguf_header import read_header_from
from app.models.safetensors_config import code_request, parse_config
from app.models.safetensors_header import read_safetensors
from app.models.safetensors_quantization import quantization_facts
from app.models.safetensors_tensors import read_tensors
from tests.helpers import gguf_files, safetensors_files
from tests.helpers.byte_sources import FakeSource
from tests.helpers.gguf_files import (
    ARRAY,
    BOOL,
    F32,
    I32,
    STRING,
    U8,
    U16,
    U32,
    U64,
    TinyGguf,
    array_entry,
    entry,
    string_entry,
    tensor,
    text,
    u32,
    u64,
)

# Honest headers of this size take a millisecond and some 100 KB; these bounds are what no mutation may pass.
MAX_CPU_S = 5.0
MAX_MEMORY_BYTES = 64 * 2**20

RICH = (
    string_entry("general.name", "Grüße"),
    entry("general.alignment", U32, u32(32)),
    entry("llama.block_count", U32, u32(2)),
    entry("llama.context_length", U64, u64(2**17)),
    entry("llama.rope.freq_base", F32, b"\0\0\x80\x3f"),
    entry("tokenizer.ggml.add_bos_token", BOOL, b"\1"),
    entry("a.byte", U8, b"\7"),
    entry("a.short", U16, b"\7\0"),
    array_entry("llama.attention.head_count_kv", I32, 2, u32(8) + u32(0)),
    array_entry("llama.attention.pattern", BOOL, 3, b"\0\1\1"),
    array_entry("tokenizer.ggml.tokens", STRING, 40, b"".join(text("t" * (n % 7)) for n in range(40))),
    array_entry("tokenizer.ggml.scores", F32, 40, bytes(160)),
    array_entry("tokenizer.ggml.token_type", I32, 40, bytes(160)),
    entry("tokenizer.ggml.merges", ARRAY, u32(STRING) + u64(3) + text("a b") * 3),
    string_entry("tokenizer.chat_template", "{% for m in messages %}{{ m }}{% endfor %}"),
)
TENSORS = (
    tensor("token_embd.weight", [256, 4], 12, 0),  # Q4_K: 576 bytes
    tensor("blk.0.attn_q.weight", [64, 2, 2], 2, 576),  # Q4_0: 144 bytes
    tensor("blk.0.attn_norm.weight", [64], 0, 736),  # F32: 256 bytes
    tensor("output.weight", [32, 2, 1, 1], 8, 992),  # Q8_0: 68 bytes
)
BASES = (
    TinyGguf(metadata=RICH, tensors=TENSORS, data_bytes=1_060).to_bytes(),
    TinyGguf(metadata=RICH, tensors=TENSORS, data_bytes=1_060, version=2).to_bytes(),
    gguf_files.split_model(3)[1].to_bytes(),
)
QUANTIZED: dict[str, object] = {
    **safetensors_files.LLAMA_CONFIG,
    "text_config": {"hidden_size": 64, "layer_types": ["full_attention"] * 4},
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
        "bits": 4,
        "weight_block_size": [128, 128],
        "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}}},
    },
    "auto_map": {"AutoModel": "x.Y"},
}


@pytest.fixture
def traced() -> Iterator[None]:
    """Memory is counted while a test runs."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def outcomes(attempt: Callable[[int], object], seeds: range) -> Counter[str]:
    """Return how many seeds gave a header and how many a HeaderError; anything else ends the test."""
    counted: Counter[str] = Counter()
    for seed in seeds:
        tracemalloc.reset_peak()
        before_bytes, _peak = tracemalloc.get_traced_memory()
        began_s = time.process_time()
        sentence = ""
        try:
            attempt(seed)
        except HeaderError as error:
            sentence = str(error)
        counted["refused" if sentence else "read"] += 1
        assert not sentence or (sentence.endswith(".") and len(sentence) < 600), seed
        spent_s = time.process_time() - began_s
        _now, peak_bytes = tracemalloc.get_traced_memory()
        assert spent_s < MAX_CPU_S, f"seed {seed} took {spent_s:.1f} s"
        assert peak_bytes - before_bytes < MAX_MEMORY_BYTES, f"seed {seed} took {peak_bytes - before_bytes:,} bytes"
    return counted


def read_mutated_gguf(seed: int) -> object:
    """Read one from a source that gives it in pieces, as a server does, or at once, as a file."""
    data = gguf_files.mutated_header(BASES[seed % len(BASES)], seed)
    # The place of the hole behind it decides whether huge claims meet the end of the file.
    size_bytes = max(1, len(data)) if seed % 5 else 2**40
    return read_header_from(FakeSource(data, size_bytes, (None, 512, 100_000)[seed % 3]), is_part_enough=True)


def read_mutated_tensors(seed: int) -> object:
    whole = safetensors_files.mutated_file(safetensors_files.SHAPES, seed)
    return read_tensors(FakeSource(whole, piece_bytes=(None, 100)[seed % 2]))


def read_mutated_config(seed: int) -> object:
    draw = random.Random(seed)
    if seed % 2:
        data = safetensors_files.mutated_text(json.dumps(QUANTIZED).encode(), draw)
    else:
        data = safetensors_files.dumped(safetensors_files.mutated(QUANTIZED, draw))
    config = parse_config(data)
    return code_request(config), quantization_facts(config)


def index_reader(folder: Path) -> Callable[[int], object]:
    """Return what reads a folder whose index has the mutation of a seed."""
    shards: list[safetensors_files.Shapes] = [{"a": ("BF16", [4]), "b": ("BF16", [4])}, {"c": ("U8", [3])}]
    safetensors_files.write_shards(folder, shards)
    index = folder / "model.safetensors.index.json"
    honest = index.read_bytes()

    def read(seed: int) -> object:
        draw = random.Random(seed)
        if seed % 2:
            index.write_bytes(safetensors_files.mutated_text(honest, draw) or b" ")
        else:
            index.write_bytes(safetensors_files.dumped(safetensors_files.mutated(json.loads(honest), draw)))
        return read_safetensors(folder)

    return read


def test_a_hundred_mutated_ggufs_end_well(traced: None) -> None:
    assert outcomes(read_mutated_gguf, range(100)).total() == 100


@pytest.mark.full
def test_four_thousand_mutated_ggufs_end_well(traced: None) -> None:
    counted = outcomes(read_mutated_gguf, range(100, 4_100))
    assert counted["refused"] > 2_000
    assert counted["read"] > 100


def test_fifty_mutated_safetensors_end_well(traced: None, tmp_path: Path) -> None:
    assert outcomes(read_mutated_tensors, range(20)).total() == 20
    assert outcomes(read_mutated_config, range(20)).total() == 20
    assert outcomes(index_reader(tmp_path), range(10)).total() == 10


@pytest.mark.full
def test_a_thousand_mutated_safetensors_end_well(traced: None, tmp_path: Path) -> None:
    tensors = outcomes(read_mutated_tensors, range(20, 420))
    configs = outcomes(read_mutated_config, range(20, 420))
    indexes = outcomes(index_reader(tmp_path), range(10, 210))
    assert tensors["refused"] > 300
    assert configs["refused"] > 100
    assert configs["read"] > 50
    assert indexes["refused"] > 50
