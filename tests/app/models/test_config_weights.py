"""Tensors of transformers' models by owner."""

from __future__ import annotations

from dataclasses import dataclass

from app.models.config_weights import weights_of_tensors


@dataclass(frozen=True)
class Named:
    name: str
    size_bytes: int
    elements: int = 1


def weights(*tensors, used=1, experts=0, is_tied=False, layers=2):
    return weights_of_tensors([Named(*tensor) for tensor in tensors], layers, used, experts, is_tied=is_tied)


def test_every_tensor_has_one_owner():
    found = weights(
        ("model.embed_tokens.weight", 10),
        ("model.layers.0.self_attn.q_proj.weight", 20),
        ("model.layers.1.mlp.up_proj.qweight", 30),
        ("model.norm.weight", 1),
        ("lm_head.weight", 40),
    )
    assert (found.layer_bytes, found.input_bytes, found.output_bytes, found.other_bytes) == ((20, 30), 10, 40, 1)
    assert (found.total_bytes, found.read_bytes, found.parameters_count) == (101, 91, 5)


def test_a_tied_embedding_is_read_as_the_output():
    assert weights(("transformer.wte.weight", 10), ("transformer.h.0.attn.c_attn.weight", 5)).read_bytes == 15
    stored = weights(("model.embed_tokens.weight", 10), ("lm_head.weight", 10), is_tied=True)
    assert (stored.total_bytes, stored.read_bytes) == (20, 10)


def test_of_the_experts_those_used_are_read():
    found = weights(
        *((f"model.layers.0.mlp.experts.{number}.up_proj.weight", 100) for number in range(8)),
        ("model.layers.0.mlp.shared_expert.up_proj.weight", 50),
        used=2,
        experts=8,
    )
    assert (found.layer_bytes[0], found.layer_read_bytes[0]) == (850, 250)


def test_towers_that_see_or_hear_and_layers_that_draft_are_no_layers_of_the_language_model():
    found = weights(
        ("vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight", 7),
        ("visual.blocks.0.attn.qkv.weight", 7),
        ("model.layers.2.eh_proj.weight", 7),
        ("language_model.model.layers.0.self_attn.q_proj.weight", 5),
    )
    assert (found.layer_bytes, found.other_bytes, found.read_bytes) == ((5, 0), 21, 5)


def test_what_is_looked_up_is_not_read():
    found = weights(("model.embed_tokens_per_layer.weight", 99), ("transformer.wpe.weight", 9), ("lm_head.weight", 1))
    assert (found.other_bytes, found.read_bytes) == (108, 1)
