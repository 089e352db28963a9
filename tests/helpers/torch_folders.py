"""Tiny model folders and tiny GGUF files for the torch engine, honest to the last byte; tests then spoil them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from tests.helpers.tiny_models import tiny_model

SPECIAL = ("<pad>", "<|im_start|>", "<|im_end|>")
MERGES = (("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "t"), ("Ġt", "he"))
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}"


def tiny_tokens() -> list[str]:
    """Return the tokens of the tiny vocabulary in the order of their ids: special ones, bytes, merged ones."""
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return [*SPECIAL, *characters, *(left + right for left, right in MERGES)]


def tiny_tokenizer() -> Tokenizer:
    """Return a byte-level tokenizer of 265 tokens."""
    vocab = {token: index for index, token in enumerate(tiny_tokens())}
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=list(MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(token, normalized=False, special=True) for token in SPECIAL])
    return tokenizer


def tiny_folder(folder: Path, architecture: str = "llama", **changes: Any) -> Path:
    """Write a tiny model as transformers itself writes it, with a tokenizer, and return the folder."""
    write_model(folder, tiny_model(architecture, **changes))
    return folder


def write_model(folder: Path, model: PreTrainedModel) -> None:
    """Write a model and the tiny tokenizer."""
    transformers_logging.disable_progress_bar()  # it leaves a thread behind
    model.save_pretrained(folder)
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    words = {"eos_token": "<|im_end|>", "bos_token": {"content": "<|im_start|>"}, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(words), encoding="utf-8")


def change_json(path: Path, **changes: object) -> None:
    """Set keys of a JSON file; None takes one away."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}), encoding="utf-8")


# ----------------------------------------------------------------------------------------------------- GGUF

GGUF_NAMES = {"gemma3_text": "gemma3"}
_LEAVES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def tiny_gguf(path: Path, model: PreTrainedModel, kind: gguf.GGMLQuantizationType | None = None) -> Path:
    """Write a model the way llama.cpp's converter does.

    Args:
        path: of the file.
        model: llama, qwen2, qwen3, gemma2, gemma3_text or phi3.
        kind: how the matrices are stored; None is float32.
    """
    config: Any = model.config
    name = GGUF_NAMES.get(config.model_type, config.model_type)
    writer = gguf.GGUFWriter(path, name)
    _write_metadata(writer, config, name)
    for tensor_name, tensor in model.state_dict().items():
        if tensor_name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stored = _as_llama_cpp(tensor_name, tensor, config).numpy()
        is_packed = kind is not None and stored.ndim == 2 and stored.shape[1] % 32 == 0
        data = gguf.quants.quantize(stored, kind) if is_packed else stored
        writer.add_tensor(
            gguf_name(tensor_name, name), np.ascontiguousarray(data), raw_dtype=kind if is_packed else None
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_name(name: str, architecture: str) -> str:
    """Return llama.cpp's name of a tensor of transformers."""
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    stem, _, leaf = name.rpartition(".")
    if stem in whole:
        return f"{whole[stem]}.{leaf}"
    _model, _layers, number, inner = stem.split(".", 3)
    if inner == "post_attention_layernorm":
        inner_name = "post_attention_norm" if architecture.startswith("gemma") else "ffn_norm"
    else:
        inner_name = _LEAVES[inner]
    return f"blk.{number}.{inner_name}.{leaf}"


def _as_llama_cpp(name: str, tensor: torch.Tensor, config: Any) -> torch.Tensor:
    if config.model_type == "llama" and ("q_proj" in name or "k_proj" in name):
        heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
        half = tensor.shape[0] // heads // 2
        return tensor.reshape(heads, 2, half, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
    return tensor + 1 if config.model_type.startswith("gemma") and name.endswith("norm.weight") else tensor


def _write_metadata(writer: gguf.GGUFWriter, config: Any, name: str) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head)
    writer.add_value_length(head)
    if name != "phi3":
        writer.add_rope_dimension_count(head)
    ropes = config.rope_parameters
    writer.add_rope_freq_base(ropes.get("full_attention", ropes)["rope_theta"])
    if name.startswith("gemma"):
        writer.add_sliding_window(config.sliding_window)
    if name == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tiny_tokens())
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tiny_tokens()])
    writer.add_token_merges([f"{left} {right}" for left, right in MERGES])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
