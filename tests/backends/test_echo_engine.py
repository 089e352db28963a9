"""The scripted engine keeps its script."""

from __future__ import annotations

import pytest

from backends import protocol
from backends.echo_blocks import EchoSequence
from backends.echo_engine import EchoEngine, EchoScript, prompt_bytes
from backends.errors import EngineError, ErrorCode
from tests.helpers.engine_client import write_script


def loaded(tmp_path, script: EchoScript) -> EchoEngine:
    engine = EchoEngine()
    engine.load(protocol.LoadModel(str(write_script(tmp_path / "s.json", script))), lambda _event: None)
    return engine


def run(engine: EchoEngine, **params: object) -> tuple[str, protocol.RequestFinished]:
    engine.add(
        protocol.Generate(
            request_id=protocol.RequestId(1), prompt=protocol.Text("prompt"), params=protocol.SamplingParams(**params)
        )
    )
    text = ""
    while engine.has_work:
        for event in engine.step():
            if isinstance(event, protocol.StepDone):
                text += "".join(piece.text for piece in event.pieces)
            else:
                finished = event
    return text, finished


def test_the_scripted_answer_is_said(tmp_path) -> None:
    text, finished = run(loaded(tmp_path, EchoScript(answer="grüße 😀")))
    assert text == "grüße 😀"
    assert finished.stop_reason is protocol.StopReason.END_OF_TEXT


def test_the_token_limit_cuts_the_answer(tmp_path) -> None:
    text, finished = run(loaded(tmp_path, EchoScript(answer="abcdef")), max_tokens=3)
    assert (text, finished.stop_reason) == ("abc", protocol.StopReason.MAX_TOKENS)


def test_a_stop_string_ends_the_answer(tmp_path) -> None:
    text, finished = run(loaded(tmp_path, EchoScript(answer="one. two.")), stop=(". ",))
    assert (text, finished.stop_reason) == ("one", protocol.StopReason.STOP_STRING)


def test_prompts_that_cannot_fit_or_are_empty_are_refused(tmp_path) -> None:
    engine = loaded(tmp_path, EchoScript(context_tokens=10))
    for text, code in (("x" * 10, ErrorCode.PROMPT_TOO_LONG), ("", ErrorCode.EMPTY_PROMPT)):
        with pytest.raises(EngineError) as caught:
            engine.add(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text(text)))
        assert caught.value.code is code


def test_a_rendered_prompt_is_its_parts_in_order() -> None:
    parts = (protocol.TemplatePart("<a>"), protocol.PlainPart("b"), protocol.TokenPart((99,)))
    assert prompt_bytes(protocol.RenderedPrompt(parts)) == b"<a>bc"


def test_a_probe_says_what_the_script_claims_and_loads_nothing(tmp_path) -> None:
    script = EchoScript(memory=protocol.MemorySplit(weights_bytes=5, kv_reserved_bytes=7))
    path = write_script(tmp_path / "s.json", script)
    engine = EchoEngine()
    command = protocol.ProbeMemory(request_id=protocol.RequestId(1), model_path=str(path))
    assert engine.probe_memory(command, lambda _event: None) == script.memory
    assert engine._script == EchoScript()


def test_a_probe_of_no_script_is_refused(tmp_path) -> None:
    command = protocol.ProbeMemory(request_id=protocol.RequestId(1), model_path=str(tmp_path / "none.json"))
    with pytest.raises(EngineError) as caught:
        EchoEngine().probe_memory(command, lambda _event: None)
    assert caught.value.code is ErrorCode.FILE_MISSING


def test_an_engine_with_scripted_blocks_sends_maps_and_keeps_what_an_answer_leaves(tmp_path) -> None:
    script = EchoScript(answer="x" * 40, blocks=8, sequences=(EchoSequence(20),), kept_blocks=1)
    engine = EchoEngine()
    path = write_script(tmp_path / "s.json", script)
    ready = engine.load(protocol.LoadModel(str(path)), lambda _event: None)
    assert (ready.blocks, ready.block_tokens) == (8, 16)
    engine.add(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("prompt")))
    done: list[protocol.StepDone] = []
    while engine.has_work:
        done += [event for event in engine.step() if isinstance(event, protocol.StepDone)]
    maps = [event.block_map for event in done if event.block_map is not None]
    assert list(maps[0].states) == [2, 2, 1, 2, 0, 0, 0, 0]
    assert maps[0].owners[-1] == protocol.BlockOwner(protocol.RequestId(1), (3,), 7)
    # The last one is of after the end: 46 tokens are kept in three blocks.
    assert done[-1].block_map is maps[-1]
    assert list(maps[-1].states) == [2, 2, 1, 1, 1, 1, 0, 0]
    answer = engine.describe_block(protocol.DescribeBlock(protocol.RequestId(-1), 3))
    assert (answer.text, answer.users) == ("prompt" + "x" * 10, 0)


def test_an_engine_without_blocks_sends_no_map_and_describes_nothing(tmp_path) -> None:
    engine = loaded(tmp_path, EchoScript(answer="abc"))
    engine.add(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("prompt")))
    while engine.has_work:
        assert all(event.block_map is None for event in engine.step() if isinstance(event, protocol.StepDone))
    assert engine.describe_block(protocol.DescribeBlock(protocol.RequestId(-1), 3)).text == ""


def test_an_answer_goes_on_past_its_end_where_that_is_asked_for(tmp_path) -> None:
    text, finished = run(loaded(tmp_path, EchoScript(answer="abc")), max_tokens=8, ignore_eos=True)
    assert (text, finished.stop_reason) == ("abcabcab", protocol.StopReason.MAX_TOKENS)
