"""Every tensor has one owner, and a token reads of experts only those it uses."""

from __future__ import annotations

from app.models.gguf_header import read_header
from app.models.shape_weights import weights_of_gguf
from tests.helpers.fit_models import gguf_header, tensor


def weights(values, *tensors, architecture="llama", layers=2):
    return weights_of_gguf(gguf_header(architecture, values, tensors), layers)


def test_layers_input_output_and_the_rest_are_told_apart():
    found = weights(
        {},
        tensor("token_embd.weight", [8, 100], size_bytes=10),
        tensor("blk.0.attn_q.weight", [8, 8], size_bytes=20),
        tensor("blk.1.ffn_up.weight", [8, 32], size_bytes=30),
        tensor("output_norm.weight", [8], size_bytes=1),
        tensor("output.weight", [8, 100], size_bytes=40),
        tensor("blk.7.attn_q.weight", [8, 8], size_bytes=5),
    )
    assert found.layer_bytes == (20, 30)
    assert (found.input_bytes, found.output_bytes, found.other_bytes) == (10, 40, 6)
    assert (found.total_bytes, found.vocabulary_tokens, found.feed_forward_length) == (106, 100, 32)
    assert found.output_read_bytes == 46
    assert found.parameters_count == 800 + 64 + 256 + 8 + 800 + 64


def test_a_tied_embedding_is_read_as_the_output():
    found = weights({}, tensor("token_embd.weight", [8, 100], size_bytes=10), tensor("output_norm.weight", [8]))
    assert (found.output_bytes, found.output_read_bytes) == (0, 10)


def test_of_the_experts_those_used_are_read():
    found = weights(
        {"expert_count": 8, "expert_used_count": 2},
        tensor("blk.0.ffn_up_exps.weight", [64, 32, 8], size_bytes=800),
        tensor("blk.0.ffn_up_shexp.weight", [64, 16], size_bytes=50),
        tensor("output.weight", [64, 9]),
    )
    assert (found.layer_bytes[0], found.layer_read_bytes[0]) == (850, 250)
    assert found.feed_forward_length == 2 * 32


def test_up_and_gate_in_one_tensor_are_as_wide_as_one():
    fused = weights({"feed_forward_length": 16}, tensor("blk.0.ffn_up.weight", [8, 32]))
    assert fused.feed_forward_length == 16
    merged = weights({"expert_used_count": 4}, tensor("blk.0.ffn_gate_up_exps.weight", [8, 32, 8]))
    assert merged.feed_forward_length == 4 * 16


def test_the_embeddings_of_every_layer_are_looked_up_and_not_read():
    found = weights({}, tensor("per_layer_token_embd.weight", [8, 9], size_bytes=99), tensor("output.weight", [8, 9]))
    assert (found.other_bytes, found.output_read_bytes) == (99, 0)


def test_matrices_that_the_processor_likes_in_another_order_are_copied():
    found = weights(
        {},
        tensor("blk.0.attn_q.weight", [256, 64], "Q4_K", 100),
        tensor("blk.0.attn_k.weight", [256, 63], "Q4_K", 3),  # rows are taken eight at a time
        tensor("blk.0.attn_v.weight", [256, 64], "Q6_K", 7),
        tensor("blk.0.ffn_up_exps.weight", [256, 64, 4], "MXFP4", 1000),
        tensor("token_embd.weight", [256, 64], "Q4_0", 10),
        tensor("output.weight", [256, 64], "Q6_K", 10),
    )
    assert found.copied_bytes == 1100
    tied = weights({}, tensor("token_embd.weight", [256, 64], "Q4_0", 10))
    assert tied.copied_bytes == 10


def test_the_starter_s_weights_are_its_tensors(starter_model):
    header = read_header(starter_model)
    found = weights_of_gguf(header, 30)
    assert found.total_bytes == header.tensor_bytes == 96_576_768
    assert sum(found.layer_bytes) + found.input_bytes + found.output_bytes + found.other_bytes == 96_576_768
    assert found.copied_bytes == 0  # Q4_1 stays as it is
    assert found.feed_forward_length == 1536


def test_absurd_metadata_is_no_reason_to_fail():
    found = weights(
        {"expert_count": "x", "expert_used_count": -5}, tensor("blk.0.ffn_up_exps.weight", [8, 8, 2], "F16", 8)
    )
    assert found.layer_read_bytes[0] == 4
