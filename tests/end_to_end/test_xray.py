"""A real answer of the starter model, read by itself and by a quantization made from it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from app.chat import prompts
from app.chat.messages import Message, Role
from app.compare.xray import XrayRun, xray_params
from app.compare.xray_types import XrayModel, XrayQuestion
from backends import protocol
from backends.protocol import LoadParams, SamplingParams
from backends.renderer_client import RendererClient
from tests.helpers.engine_client import LoggedClient

ASKED = Message(1, 1, None, Role.USER, "Why is the sky blue? Answer in one sentence.")
NEW_TOKENS = 32
SYSTEM = "You are brief."


@pytest.fixture
def renderer():
    made = RendererClient()
    yield made
    made.close()


@pytest.fixture
def answered(starter_model: Path, renderer: RendererClient, tmp_path: Path):
    """The starter's greedy answer, and a Q2_K made from it."""
    with LoggedClient("llama_cpp", tmp_path / "chat.log") as worker:
        loaded = worker.load(starter_model, LoadParams(context_tokens=512))
        rendered = prompts.render_messages((ASKED,), SYSTEM, loaded.tokenizer_hash)
        prompt, _words = prompts.render_prompt(renderer, loaded, rendered)
        params = SamplingParams(temperature=0.0, max_tokens=NEW_TOKENS)
        worker.client.send(protocol.Generate(request_id=protocol.RequestId(1), prompt=prompt, params=params))
        finished = worker.wait(protocol.RequestFinished)
        pieces = [piece for step in worker.of(protocol.StepDone) for piece in step.pieces]
        smaller = tmp_path / "smaller.gguf"
        worker.client.send(
            protocol.Quantize(
                request_id=protocol.RequestId(2),
                source_path=str(starter_model),
                target_path=str(smaller),
                quantization="Q2_K",
                allow_requantize=True,
            )
        )
        worker.wait(protocol.Quantized)
    answer = Message(
        2,
        1,
        1,
        Role.ASSISTANT,
        "".join(piece.text for piece in pieces),
        model=str(starter_model),
        token_ids=tuple(token for piece in pieces for token in piece.token_ids),
        tokenizer_hash=loaded.tokenizer_hash,
        stats={"prompt_tokens": finished.figures.prompt_tokens},
    )
    return answer, smaller


def test_the_writer_would_write_it_again_and_a_smaller_quantization_would_not(
    answered, starter_model: Path, renderer: RendererClient, tmp_path: Path
):
    answer, smaller = answered
    params = xray_params(LoadParams(), "llama_cpp", (ASKED,), answer)
    own = XrayModel("Q4_1", str(starter_model), params=params)
    question = XrayQuestion((ASKED,), answer, SYSTEM, XrayModel("Q2_K", str(smaller), params=params), own)

    found = XrayRun(question, lambda: tmp_path / "xray.log", renderer).run(lambda _progress: None)

    assert "".join(token.text for token in found.tokens) == answer.text
    assert found.prompt_tokens == answer.stats["prompt_tokens"]
    # the writer: greedy, so it finds each of its tokens likeliest again
    again = sum(not token.is_chance for token in found.tokens)
    assert again >= len(found.tokens) - 1, "two tokens may be as good as equal"
    for token in found.tokens:
        assert math.exp(token.own.logprob) == pytest.approx(token.own.probability)
        assert sum(one.probability for one in token.own.top) <= 1.0001
        assert [one.probability for one in token.own.top] == sorted(
            (one.probability for one in token.own.top), reverse=True
        )
    # the smaller one: much the same, and not everywhere
    assert 0.3 * len(found.tokens) < found.same < len(found.tokens)
    assert found.sentence.startswith(f"Q2_K would have chosen {found.same} of {len(found.tokens)} tokens the same.")
