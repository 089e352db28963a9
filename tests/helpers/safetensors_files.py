"""Safetensors files and folders, honest or hostile; knows the format on its own and shares no code with app/."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
Shapes = Mapping[str, tuple[str, Sequence[int]]]
LLAMA_CONFIG: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 2048,
    "rope_scaling": None,
    "torch_dtype": "bfloat16",
}
SHAPES: Shapes = {
    "model.embed_tokens.weight": ("BF16", [256, 64]),
    "model.layers.0.self_attn.q_proj.weight": ("BF16", [64, 64]),
    "model.norm.weight": ("F32", [64]),
}


def entries(shapes: Shapes) -> dict[str, dict[str, object]]:
    """Return what an honest header says of these tensors, one behind the other."""
    made: dict[str, dict[str, object]] = {}
    at = 0
    for name, (dtype, shape) in shapes.items():
        size = math.prod(shape) * BITS[dtype] // 8
        made[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    return made


def raw_file(header: bytes, data_bytes: int, length: int | None = None) -> bytes:
    """Return a file with this header text and so many zeros behind it.

    Args:
        header: the text, taken as it is.
        data_bytes: how much follows.
        length: what the file claims of its header; None for the truth.
    """
    return (len(header) if length is None else length).to_bytes(8, "little") + header + bytes(data_bytes)


def json_file(header: object, data_bytes: int) -> bytes:
    """Return a file whose header is this value."""
    return raw_file(json.dumps(header).encode(), data_bytes)


def file_bytes(shapes: Shapes, *, hole: bool = False) -> bytes:
    """Return an honest file; `hole` leaves the weights away."""
    header = {"__metadata__": {"format": "pt"}, **entries(shapes)}
    return json_file(header, 0 if hole else sum(_size(one) for one in entries(shapes).values()))


def _size(one: Mapping[str, object]) -> int:
    offsets = one["data_offsets"]
    assert isinstance(offsets, list)
    return int(offsets[1]) - int(offsets[0])


def write_model(folder: Path, shapes: Shapes = SHAPES, config: Mapping[str, object] | None = LLAMA_CONFIG) -> Path:
    """Write a model in one file and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(file_bytes(shapes))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def write_shards(
    folder: Path, shards: Sequence[Shapes], config: Mapping[str, object] | None = LLAMA_CONFIG
) -> list[Path]:
    """Write a model in shards with its index and return the shards."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, places = [], {}
    for number, shapes in enumerate(shards, 1):
        paths.append(folder / f"model-{number:05d}-of-{len(shards):05d}.safetensors")
        paths[-1].write_bytes(file_bytes(shapes))
        places.update(dict.fromkeys(shapes, paths[-1].name))
    write_index(folder, places)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return paths


def write_index(folder: Path, places: Mapping[str, str]) -> Path:
    """Write an index that says in which file each tensor lies."""
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": dict(places)}), encoding="utf-8")
    return path


# ------------------------------------------------------------------------------------------------- mutations

# What a hostile hand writes in place of an honest value.
_HOSTILE: tuple[object, ...] = (
    None, True, -1, 0, 1, 2**31, 2**32, 2**53, 2**63, 2**64, 2**200, 1.5, -0.0, 1e308, float("inf"), float("nan"),
    "", "x", "../x", "a/b", "\ud800", "\u202e", "4" * 1_000, "F32", "U64", [], {}, [0], [2**63], [[]] * 100,
    {"a": {"b": {}}}, ["x"] * 5_000, list(range(3_000)),
)  # fmt: skip


def mutated(value: object, draw: random.Random) -> object:
    """Return a copy of a JSON value with one to three places changed, removed, doubled or nested deeper."""
    changed: Any = copy.deepcopy(value)
    for _ in range(draw.randint(1, 3)):
        holders = list(_holders(changed))
        holder, key = draw.choice(holders) if holders else ([changed], 0)
        act = draw.randrange(5)
        if act == 0:
            del holder[key]
        elif act == 1 and isinstance(holder, dict):
            holder[f"{key}{draw.randrange(9)}"] = holder[key]
        elif act == 2:
            for _depth in range(draw.choice((1, 20, 40, 400))):
                holder[key] = [holder[key]] if draw.random() < 0.5 else {"a": holder[key]}
        elif act == 3 and isinstance(holder[key], int):
            holder[key] += draw.choice((-1, 1, 8, -(2**40), 2**40))
        else:
            holder[key] = draw.choice(_HOSTILE)
    return changed


def _holders(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a JSON value as what holds it and its key there."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(min(len(value), 50)):
            yield value, key
            yield from _holders(value[key])


def mutated_text(text: bytes, draw: random.Random) -> bytes:
    """Return a text with some of its bytes flipped, cut, doubled or replaced by junk."""
    data = bytearray(text)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(data) + 1)
        act = draw.randrange(5)
        if act == 0 and place < len(data):
            data[place] ^= 1 << draw.randrange(8)
        elif act == 1:
            del data[place : place + draw.choice((1, 8, 64))]
        elif act == 2:
            data[place:place] = data[place : place + draw.choice((1, 16, 200))]
        elif act == 3:
            data[place:place] = draw.choice(
                (b"[", b"{", b'{"a":', b'"', b",", b"9" * 30, b"\0", b"\xff")
            ) * draw.choice((1, 50))
        else:
            data[place : place + 8] = draw.randbytes(8)
    return bytes(data)


def mutated_file(shapes: Shapes, seed: int) -> bytes:
    """Return a safetensors file with the mutation of this seed, in its JSON, its text, its length or its end."""
    draw = random.Random(seed)
    header: object = {"__metadata__": {"format": "pt"}, **entries(shapes)}
    honest = file_bytes(shapes)
    kind = seed % 4
    if kind == 0:
        return honest[: draw.randrange(len(honest))]
    text = json.dumps(header).encode()
    data_bytes = len(honest) - 8 - len(text)
    if kind == 1:
        wrong = draw.choice((0, 1, len(text) - 1, len(text) + 1, 2**20, 100_000_000, 2**32, 2**63, 2**64 - 1))
        return raw_file(text, data_bytes, wrong)
    text = dumped(mutated(header, draw)) if kind == 2 else mutated_text(text, draw)
    return raw_file(text, max(0, data_bytes + draw.choice((0, 0, 0, 1, -1, 4_096))))


def dumped(value: object) -> bytes:
    """Return a JSON value as Python's own writer has it, Infinity and lone surrogates included."""
    return json.dumps(value).encode()
