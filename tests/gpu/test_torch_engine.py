"""The torch engine on a card: the same words as on the processor, alone and in a crowd, and its memory told."""

from __future__ import annotations

import pytest
import torch

from backends import protocol
from backends.torch_engine.engine import TorchEngine
from tests.helpers.hf_folders import smol_folder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

PROMPTS = ("The sea is", "Once upon a time", "def main():", "La vie est")
GREEDY = protocol.SamplingParams(temperature=0, max_tokens=48, ignore_eos=True)


def load(device: str, dtype: str) -> tuple[TorchEngine, protocol.ModelLoaded]:
    engine = TorchEngine()
    params = protocol.LoadParams(context_tokens=512, max_sequences=8, device=device, dtype=dtype)
    return engine, engine.load(protocol.LoadModel(str(smol_folder()), params), lambda _event: None)


def answers(engine: TorchEngine, prompts, params=GREEDY) -> list[tuple[int, ...]]:
    for number, prompt in enumerate(prompts):
        engine.add(
            protocol.Generate(request_id=protocol.RequestId(number), prompt=protocol.Text(prompt), params=params)
        )
    found: dict[int, tuple[int, ...]] = {}
    while engine.has_work:
        for event in engine.step():
            for piece in getattr(event, "pieces", ()):
                found[piece.request_id] = found.get(piece.request_id, ()) + piece.token_ids
    return [found[number] for number in range(len(prompts))]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_runs_in_blocks_on_the_card_and_says_so(dtype):
    engine, loaded = load("cuda", dtype)
    assert (loaded.device, loaded.attention_path, loaded.notices) == ("CUDA0", "paged", ())
    assert loaded.memory.compute_bytes > 0
    assert all(answers(engine, PROMPTS))
    engine.unload()


def test_in_fp32_the_card_says_what_the_processor_says():
    there, _loaded = load("cuda", "float32")
    here, _loaded = load("cpu", "float32")
    right = answers(here, PROMPTS)
    assert answers(there, PROMPTS) == right
    assert [answers(there, [prompt])[0] for prompt in PROMPTS] == right
    for engine in (here, there):
        engine.unload()


def test_a_seed_says_the_same_on_both():
    params = protocol.SamplingParams(seed=11, max_tokens=24, ignore_eos=True)
    there, _loaded = load("cuda", "float32")
    here, _loaded = load("cpu", "float32")
    assert answers(there, PROMPTS, params) == answers(here, PROMPTS, params)
    for engine in (here, there):
        engine.unload()


def test_an_unload_gives_the_cards_memory_back():
    before = torch.cuda.memory_allocated()
    engine, _loaded = load("cuda", "bfloat16")
    answers(engine, PROMPTS)
    assert torch.cuda.memory_allocated() > before
    engine.unload()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() <= before + 2**20
