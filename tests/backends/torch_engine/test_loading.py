"""A load finds its path and proves it: faster layers where they change nothing, a cache of its own where it must."""

from __future__ import annotations

import shutil

import pytest
from safetensors.torch import save_file

from backends import protocol
from backends.errors import NoticeCode
from backends.torch_engine import loading
from backends.torch_engine.engine import TorchEngine
from backends.torch_engine.fusion import FusionReport
from tests.helpers.hf_folders import smol_folder
from tests.helpers.tiny_models import tiny_model

TOKENS = 49_152


def folder_of(architecture: str, folder, **changes: object):
    """Write a tiny random model with the starter's vocabulary."""
    model = tiny_model(architecture, vocab_size=TOKENS, **changes)
    model.config.save_pretrained(folder)
    tied = set(getattr(model, "all_tied_weights_keys", None) or ()) if model.config.tie_word_embeddings else set()
    weights = {name: weight.clone() for name, weight in model.state_dict().items() if name not in tied}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(smol_folder() / name, folder / name)
    return folder


def load(path, **params: object) -> tuple[TorchEngine, protocol.ModelLoaded]:
    engine = TorchEngine()
    fields = {"context_tokens": 128, "threads": 1, "max_sequences": 4, **params}
    return engine, engine.load(protocol.LoadModel(str(path), protocol.LoadParams(**fields)), lambda _event: None)


def answers(engine: TorchEngine, prompts, tokens: int = 6) -> dict[int, tuple[int, ...]]:
    """Return the greedy ids of requests that are asked all at once."""
    params = protocol.SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
    for number, prompt in enumerate(prompts):
        engine.add(
            protocol.Generate(request_id=protocol.RequestId(number), prompt=protocol.TokenIds(prompt), params=params)
        )
    found: dict[int, tuple[int, ...]] = {}
    while engine.has_work:
        for event in engine.step():
            for piece in getattr(event, "pieces", ()):
                found[piece.request_id] = found.get(piece.request_id, ()) + piece.token_ids
    return found


PROMPTS = [(5, 77, 1200, 3, 900, 41, 8, 7, 6, 17, 19, 4000, 31, 2, 1, 600, 12, 13), (9, 5, 77), (44,)]


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "qwen3_moe"])
def test_a_model_whose_attention_can_be_taken_over_runs_in_blocks(architecture, tmp_path):
    engine, loaded = load(folder_of(architecture, tmp_path))
    assert (loaded.attention_path, loaded.path_note, loaded.notices) == ("paged", "", ())
    together = answers(engine, PROMPTS)
    assert together == {number: answers(engine, [prompt])[0] for number, prompt in enumerate(PROMPTS)}
    engine.unload()


@pytest.mark.parametrize("architecture", ["falcon", "bamba"])
def test_a_model_that_cannot_runs_all_the_same_and_says_so(architecture, tmp_path, allow_log):  # of slow kernels
    engine, loaded = load(folder_of(architecture, tmp_path))
    assert loaded.attention_path == "plain"
    assert loaded.path_note
    assert loaded.notices == (NoticeCode.PLAIN_PATH,)
    assert (loaded.blocks, loaded.kv_bytes_per_token, loaded.memory.kv_reserved_bytes) == (0, 0.0, 0)
    assert not loaded.capabilities.can_share_prefix
    together = answers(engine, PROMPTS)
    assert together == {number: answers(engine, [prompt])[0] for number, prompt in enumerate(PROMPTS)}
    assert engine._parts.runner.kept_sequences == 0
    engine.unload()


def test_faster_layers_that_change_the_answers_are_not_used(tmp_path, monkeypatch, allow_log):
    allow_log(r"the faster layers change the model's answers")

    def spoil(module) -> FusionReport:
        module.get_output_embeddings().weight.data.neg_()
        return FusionReport(layers=4, whole=4)

    path = folder_of("llama", tmp_path)
    engine, _loaded = load(path)
    right = answers(engine, PROMPTS)
    engine.unload()
    monkeypatch.setattr(loading, "fuse", spoil)
    engine, loaded = load(path)
    assert loaded.attention_path == "paged"
    assert "0 of 0 layers fused" in loaded.attention_kernel
    assert answers(engine, PROMPTS) == right
    engine.unload()


def test_a_context_beyond_training_is_shortened_and_told(tmp_path):
    engine, loaded = load(folder_of("llama", tmp_path, max_position_embeddings=64), context_tokens=1000)
    assert (loaded.context_tokens, loaded.train_context_tokens, loaded.notices) == (
        64,
        64,
        (NoticeCode.CONTEXT_CLAMPED,),
    )
    engine.unload()
