"""From config.json and the names of the tensors to the numbers that decide memory and speed.

Never raises: a config that makes no sense, or is of a kind that is not known here, gives a shape that says so. Knows no
file and no memory.
Reference: the configuration_*.py of https://github.com/huggingface/transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.models.config_layers import Layers, layers_of_config
from app.models.config_values import ConfigValues
from app.models.config_weights import Tensor, weights_of_tensors
from app.models.gguf_keys import BadKeyError
from app.models.shape import LayerShape, ModelShape

MAX_LAYERS = 512


def shape_of_config(config: Mapping[str, object], tensors: Sequence[Tensor]) -> ModelShape:
    """Return the model's shape; `unknown` says why where its memory cannot be told.

    Args:
        config: what config.json says.
        tensors: name, dims and size_bytes of each.
    """
    values = ConfigValues(config)
    layers: Layers = ()
    used, experts, reason = 1, 0, ""
    try:
        used = max(1, values.number("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k"))
        experts = values.number("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
        layers = layers_of_config(values, MAX_LAYERS)
    except BadKeyError as error:
        reason = str(error)
    weights = weights_of_tensors(tensors, len(layers), used, experts, is_tied=values.is_true("tie_word_embeddings"))
    shaped = tuple(
        LayerShape(*layer, weights_bytes=held, read_bytes=read)
        for layer, held, read in zip(layers, weights.layer_bytes, weights.layer_read_bytes, strict=True)
    )
    return ModelShape(
        architecture=values.kind,
        context_tokens=_some(values, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
        embedding_length=_some(values, "hidden_size", "n_embd", "d_model"),
        feed_forward_length=_feed_forward(values, used if experts else 0),
        head_count=_some(values, "num_attention_heads", "n_head", "n_heads"),
        vocabulary_tokens=_some(values, "vocab_size"),
        parameters_count=weights.parameters_count,
        weights_bytes=weights.total_bytes,
        input_bytes=weights.input_bytes,
        output_bytes=weights.output_bytes,
        other_bytes=weights.other_bytes,
        read_bytes=weights.read_bytes,
        is_mla=bool(_some(values, "kv_lora_rank")),
        layers=shaped,
        unknown=reason,
    )


def _some(values: ConfigValues, *names: str) -> int:
    try:
        return values.number(*names)
    except BadKeyError:
        return 0


def _feed_forward(values: ConfigValues, used: int) -> int:
    """Return the width of the widest feed-forward layer, of all experts that a token uses together."""
    dense = _some(values, "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    if not dense and not used:
        dense = 4 * _some(values, "n_embd")  # GPT-2 and its kin, whose config says nothing of it
    of_an_expert = _some(values, "moe_intermediate_size", "expert_ffn_hidden_size") or (dense if used else 0)
    return max(dense, used * of_an_expert)
