from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from backends.torch_engine import attention_hook, fusion_embedding, fusion_linear
from backends.torch_engine.fusion import decoder_layers, fuse
from backends.torch_engine.fusion_check import Recorder, run
from tests.helpers.tiny_models import PAGED, tiny_model

WHOLE = ["llama", "qwen2", "qwen3", "mistral", "gemma", "gemma2", "gemma3_text", "phi3"]
WHOLE += ["granite", "smollm3", "seed_oss", "olmo"]
QUICK = ["llama", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt_oss", "olmo3", "stablelm", "deepseek_v3", "gpt2"]
needs_packing = pytest.mark.skipif(
    not fusion_linear.can_pack(torch.bfloat16, torch.device("cpu")),
    reason="this processor does not compute in bfloat16",
)


def model(architecture, dtype=torch.float32, **changes):
    attention_hook.register()
    made = tiny_model(architecture, **changes).to(dtype)
    made.set_attn_implementation(attention_hook.NAME)
    return made


def check(architecture):
    made = model(architecture)
    with torch.inference_mode():
        before = run(made, Recorder())
        report = fuse(made)
        after = run(made, Recorder())
    torch.testing.assert_close(after, before, rtol=1e-5, atol=2e-6)
    assert report.max_difference == pytest.approx(float((after - before).abs().max()))
    assert report.whole + report.by_parts == report.layers == len(decoder_layers(made))
    assert report.whole == (report.layers if architecture in WHOLE else 0), report.notes


@pytest.mark.parametrize("architecture", QUICK)
def test_a_fused_model_computes_what_it_computed(architecture):
    check(architecture)


@pytest.mark.full
@pytest.mark.parametrize("architecture", sorted({*PAGED} - {*QUICK}))
def test_every_known_architecture_computes_what_it_computed(architecture):
    check(architecture)


def test_a_model_outside_of_blocks_stays_right():
    made = model("bloom")
    with torch.inference_mode():
        before = run(made, Recorder())
        fuse(made)
        torch.testing.assert_close(run(made, Recorder()), before, rtol=1e-5, atol=2e-6)


@needs_packing
@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "qwen3_moe"])
def test_all_matrices_are_packed_and_a_tied_one_is_kept_once(architecture):
    made = model(architecture, torch.bfloat16, tie_word_embeddings=True)
    with torch.inference_mode():
        before = run(made, Recorder()).float()
        weight = weakref.ref(made.get_output_embeddings().weight)
        report = fuse(made)
        after = run(made, Recorder()).float()
    gc.collect()
    assert report.packs_output
    assert report.packed_matrices >= 4 * report.whole + 1
    assert (after - before).abs().max() <= 0.02 * before.abs().max()
    assert weight() is None, "the plain matrix is still there"
    assert not any(type(part) is nn.Embedding for part in made.modules())


@needs_packing
def test_a_tied_output_whose_rows_are_not_found_stays_plain(monkeypatch):
    monkeypatch.setattr(fusion_embedding, "_ROWS", ())
    made = model("llama", torch.bfloat16, tie_word_embeddings=True)
    report = fuse(made)
    assert not report.packs_output
    assert any("tied" in note for note in report.notes)
    assert made.get_output_embeddings().weight is made.get_input_embeddings().weight
    made = model("llama", torch.bfloat16, tie_word_embeddings=False)
    assert fuse(made).packs_output
    assert type(made.get_input_embeddings()) is nn.Embedding


def test_a_layer_that_would_compute_something_else_stays_as_it_was():
    """A layer with Llama's parts and a twist of its own: its matrices are there, its mathematics is not."""
    made = model("llama")
    layer = made.model.layers[1]
    plain = type(layer).forward

    def twisted(self, hidden_states, **options):
        return plain(self, hidden_states, **options) * (1.5 if self is layer else 1.0)

    layer.__class__ = type("Twisted", (type(layer),), {"forward": twisted})
    with torch.inference_mode():
        before = run(made, Recorder())
        report = fuse(made)
        torch.testing.assert_close(run(made, Recorder()), before, rtol=1e-5, atol=2e-6)
    assert (report.whole, report.by_parts) == (2, 1)
    assert report.notes == ("as a whole: another output",)


def test_the_plain_weights_are_given_up():
    made = model("llama")
    weights = [
        weakref.ref(part.weight) for layer in made.model.layers for part in layer.modules() if type(part) is nn.Linear
    ]
    parameters = sum(weight.numel() for weight in made.parameters())
    fuse(made)
    gc.collect()
    assert len(weights) == 21
    assert all(weight() is None for weight in weights)
    assert sum(weight.numel() for weight in made.parameters()) == parameters


def test_a_model_that_cannot_be_tried_is_left_alone():
    made = model("llama")
    made.model.norm = nn.Linear(3, 3)
    report = fuse(made)
    assert report.whole == report.by_parts == 0
    assert "cannot be tried" in report.notes[0]


def test_the_layers_of_a_model_are_found():
    assert len(decoder_layers(tiny_model("mixtral"))) == 3
    assert len(decoder_layers(tiny_model("gpt2"))) == 3
    assert decoder_layers(nn.ModuleList([nn.Linear(2, 2)])) == []
