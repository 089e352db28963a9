"""Folders as other programs leave them: LM Studio, the Hugging Face cache, Ollama, Jan, and thousands of files.

Knows those layouts on its own and shares no code with app/models, so that it can judge it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.helpers.gguf_files import (
    F32,
    I32,
    STRING,
    TYPE_F32,
    TYPE_Q4_K,
    U16,
    U32,
    TinyGguf,
    array_entry,
    entry,
    named_model,
    string_entry,
    tensor,
    text,
    u32,
    u64,
)

CLIP = string_entry("general.architecture", "clip")
_LAYERS, _WIDTH, _INNER, _TOKENS = 16, 256, 768, 512


def model_bytes(name: str = "Tiny Model", *metadata: bytes) -> bytes:
    """Return a small honest model."""
    return named_model(name, *metadata).to_bytes()


def projector_bytes() -> bytes:
    """Return a small honest vision projector, whose tensor takes 128 bytes."""
    return TinyGguf(architecture=CLIP, metadata=(string_entry("general.type", "mmproj"),)).to_bytes()


def typed_bytes(kind: str) -> bytes:
    """Return a small GGUF whose general.type is this, such as "adapter"."""
    return model_bytes("Typed", string_entry("general.type", kind))


def split_bytes(count: int, name: str = "Split Model") -> list[bytes]:
    """Return the parts of an honest split set; each holds one tensor, and the first says what the model is."""
    parts = []
    for number in range(count):
        numbers = (
            entry("split.no", U16, number.to_bytes(2, "little")),
            entry("split.count", U16, count.to_bytes(2, "little")),
            entry("split.tensors.count", I32, u32(count)),
        )
        own = (tensor(f"blk.{number}.attn_q.weight", [8, 4]),)
        if number == 0:
            parts.append(TinyGguf(metadata=(string_entry("general.name", name), *numbers), tensors=own).to_bytes())
        else:
            parts.append(TinyGguf(architecture=b"", metadata=numbers, tensors=own).to_bytes())
    return parts


def write_split(folder: Path, stem: str, count: int, missing: Sequence[int] = ()) -> list[Path]:
    """Write the parts of a split set but the missing ones, counted from 1; returns those that are there."""
    paths = []
    for number, data in enumerate(split_bytes(count), 1):
        if number not in missing:
            paths.append(write(folder / f"{stem}-{number:05d}-of-{count:05d}.gguf", data))
    return paths


def realistic_bytes() -> bytes:
    """Return the header of a small llama with all that a real one says, and a little vocabulary."""
    numbers = {"block_count": _LAYERS, "context_length": 8192, "embedding_length": _WIDTH, "vocab_size": _TOKENS}
    numbers |= {"feed_forward_length": _INNER, "attention.head_count": 8, "attention.head_count_kv": 2}
    numbers |= {"rope.dimension_count": 32}
    words = [f"<token {number}>" for number in range(_TOKENS)]
    metadata = [
        string_entry("general.name", "Realistic"),
        string_entry("general.basename", "Realistic"),
        string_entry("general.size_label", "15M"),
        entry("general.file_type", U32, u32(15)),
        entry("general.quantization_version", U32, u32(2)),
        *(entry(f"llama.{key}", U32, u32(number)) for key, number in numbers.items()),
        entry("llama.rope.freq_base", F32, bytes(4)),
        string_entry("tokenizer.ggml.model", "gpt2"),
        array_entry("tokenizer.ggml.tokens", STRING, _TOKENS, b"".join(map(text, words))),
        array_entry("tokenizer.ggml.token_type", U32, _TOKENS, u32(1) * _TOKENS),
        array_entry("tokenizer.ggml.merges", STRING, _TOKENS, b"".join(map(text, words))),
        string_entry("tokenizer.chat_template", "{% for message in messages %}{{ message.content }}{% endfor %}"),
    ]
    shapes: list[tuple[str, tuple[int, ...], int]] = [("token_embd.weight", (_WIDTH, _TOKENS), TYPE_Q4_K)]
    for layer in range(_LAYERS):
        for name, dims in (
            ("attn_norm", (_WIDTH,)),
            ("attn_q", (_WIDTH, _WIDTH)),
            ("attn_k", (_WIDTH, 64)),
            ("attn_v", (_WIDTH, 64)),
            ("attn_output", (_WIDTH, _WIDTH)),
            ("ffn_norm", (_WIDTH,)),
            ("ffn_gate", (_WIDTH, _INNER)),
            ("ffn_up", (_WIDTH, _INNER)),
            ("ffn_down", (_INNER, _WIDTH)),
        ):
            shapes.append((f"blk.{layer}.{name}.weight", dims, TYPE_F32 if len(dims) == 1 else TYPE_Q4_K))
    shapes.append(("output_norm.weight", (_WIDTH,), TYPE_F32))
    infos, offset = [], 0
    for name, dims, kind in shapes:
        infos.append(tensor(name, dims, kind, offset))
        elements = dims[0] * (dims[1] if len(dims) > 1 else 1)
        offset += elements * 4 if kind == TYPE_F32 else elements // 256 * 144
    return TinyGguf(metadata=metadata, tensors=infos, data_bytes=offset).to_bytes()


def write(path: Path, data: bytes) -> Path:
    """Write a file, its folders too, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def many_models(folder: Path, count: int, a_folder: int = 100) -> Path:
    """Make so many model files, in folders of so many; they take the room of one on disk."""
    first = write(folder / "publisher" / "group-0" / "model-0-Q4_K_M.gguf", realistic_bytes())
    for number in range(1, count):
        path = folder / "publisher" / f"group-{number // a_folder}" / f"model-{number}-Q4_K_M.gguf"
        if number % a_folder == 0:
            path.parent.mkdir(parents=True)
        path.hardlink_to(first)
    return folder


def hub_repository(hub: Path, repository: str, snapshots: Mapping[str, Mapping[str, bytes]], main: str = "") -> Path:
    """Make one publication in the Hugging Face cache and return its folder.

    Args:
        hub: the cache.
        repository: such as "owner/name".
        snapshots: by revision, the bytes of each file by its name; a name may have folders.
        main: the revision of refs/main; "" for none.
    """
    folder = hub / ("models--" + repository.replace("/", "--"))
    for revision, files in snapshots.items():
        for name, data in files.items():
            blob = write(folder / "blobs" / hashlib.sha256(data).hexdigest(), data)
            link = folder / "snapshots" / revision / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.path.relpath(blob, link.parent))
    if main:
        write(folder / "refs" / "main", main.encode())
    return folder


def ollama_model(folder: Path, name: str, weights: bytes | None, *, kinds: Mapping[str, bytes] | None = None) -> Path:
    """Make one tag of Ollama's and return its manifest.

    Args:
        folder: where Ollama keeps its models.
        name: such as "registry.ollama.ai/library/llama3.2/3b".
        weights: what its model is; None for a layer whose blob is not there.
        kinds: more layers, such as "projector", and what they hold.
    """
    layers = [_ollama_layer(folder, "model", weights)]
    layers += [_ollama_layer(folder, kind, data) for kind, data in (kinds or {}).items()]
    config = {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:" + "0" * 64, "size": 9}
    manifest = {"schemaVersion": 2, "config": config, "layers": layers}
    return write(folder / "manifests" / name, json.dumps(manifest).encode())


def _ollama_layer(folder: Path, kind: str, data: bytes | None) -> dict[str, object]:
    digest = hashlib.sha256(data if data is not None else b"gone").hexdigest()
    if data is not None:
        write(folder / "blobs" / f"sha256-{digest}", data)
    media_type = f"application/vnd.ollama.image.{kind}"
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data or b"")}


def jan_model(data_folder: Path, name: str, data: bytes | None, model_path: str = "") -> Path:
    """Make one model of Jan's and return its folder; `model_path` is relative to the data folder."""
    folder = data_folder / "llamacpp" / "models" / name
    if data is not None:
        write(folder / "model.gguf", data)
    path = model_path or f"llamacpp/models/{name}/model.gguf"
    write(folder / "model.yml", f"embedding: false\nmodel_path: {path}\nname: {name}\nsize_bytes: 1\n".encode())
    return folder


def safetensors_bytes(tensors: Mapping[str, tuple[str, Sequence[int]]]) -> bytes:
    """Return a safetensors file whose tensors have these types and shapes, all zeros."""
    header: dict[str, object] = {}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        size = {"F32": 4, "F16": 2, "BF16": 2, "I32": 4, "U8": 1}[dtype]
        for length in shape:
            size *= length
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    told = json.dumps(header).encode()
    return u64(len(told)) + told + bytes(offset)


SMALL_LLAMA: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 4,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
_SMALL_SHAPES: Mapping[str, Sequence[int]] = {
    "model.embed_tokens.weight": (4, 8),
    "model.layers.0.input_layernorm.weight": (8,),
    "model.layers.0.self_attn.q_proj.weight": (8, 8),
    "model.layers.0.self_attn.k_proj.weight": (4, 8),
    "model.layers.0.self_attn.v_proj.weight": (4, 8),
    "model.layers.0.self_attn.o_proj.weight": (8, 8),
    "model.layers.0.post_attention_layernorm.weight": (8,),
    "model.layers.0.mlp.gate_proj.weight": (16, 8),
    "model.layers.0.mlp.up_proj.weight": (16, 8),
    "model.layers.0.mlp.down_proj.weight": (8, 16),
    "model.norm.weight": (8,),
}


def safetensors_files(config: Mapping[str, object] | None = None) -> dict[str, bytes]:
    """Return the files of a very small llama as safetensors, by name."""
    weights = {name: ("BF16", shape) for name, shape in _SMALL_SHAPES.items()}
    return {
        "config.json": json.dumps(dict(SMALL_LLAMA if config is None else config)).encode(),
        "model.safetensors": safetensors_bytes(weights),
        "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}',
    }


def sharded_files() -> dict[str, bytes]:
    """Return the files of the same model with its weights in two shards."""
    names = list(_SMALL_SHAPES)
    halves = (names[:5], names[5:])
    files = {"config.json": json.dumps(dict(SMALL_LLAMA)).encode()}
    places = {}
    for number, half in enumerate(halves, 1):
        shard = f"model-{number:05d}-of-00002.safetensors"
        files[shard] = safetensors_bytes({name: ("BF16", _SMALL_SHAPES[name]) for name in half})
        places |= dict.fromkeys(half, shard)
    total = sum(2 * _product(shape) for shape in _SMALL_SHAPES.values())
    index = {"metadata": {"total_size": total}, "weight_map": places}
    return files | {"model.safetensors.index.json": json.dumps(index).encode()}


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files by name into a folder and return it."""
    for name, data in files.items():
        write(folder / name, data)
    return folder


def _product(shape: Sequence[int]) -> int:
    product = 1
    for length in shape:
        product *= length
    return product


def listing(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return everything below a folder: kind and mode, size, times of change, where links lead, what files hold."""
    found: dict[str, tuple[object, ...]] = {}
    for top, folders, files in os.walk(folder):
        for name in [".", *folders, *files]:
            path = Path(top, name)
            told = path.lstat()
            facts: tuple[object, ...] = (told.st_mode, told.st_size, told.st_mtime_ns, told.st_ctime_ns, told.st_nlink)
            if stat.S_ISLNK(told.st_mode):
                facts += (str(path.readlink()),)
            elif stat.S_ISREG(told.st_mode):
                facts += (hashlib.sha256(path.read_bytes()).hexdigest(),)
            found[os.path.relpath(path, folder)] = facts
    return found
