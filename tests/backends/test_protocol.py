"""Every message survives the wire, later fields may be added, and nonsense is refused."""

from __future__ import annotations

import random
import typing

import msgspec
import pytest

from backends import protocol

EXAMPLES: list[protocol.Command | protocol.Event] = [
    protocol.LoadModel("/m.gguf", protocol.LoadParams(context_tokens=4096, kv_type="q8_0")),
    protocol.Generate(
        request_id=protocol.RequestId(7),
        prompt=protocol.RenderedPrompt(
            (protocol.TemplatePart("<|im_start|>"), protocol.PlainPart("żółć 模型 😀"), protocol.TokenPart((1, 2, 3)))
        ),
        params=protocol.SamplingParams(temperature=0, seed=5, stop=("###",), max_tokens=9),
        parent_token_ids=(4, 5),
    ),
    protocol.Abort(protocol.RequestId(7)),
    protocol.CountTokens(protocol.RequestId(8), protocol.Text("hello", parse_special=True)),
    protocol.Tokenize(protocol.RequestId(9), protocol.Text("hello")),
    protocol.Detokenize(protocol.RequestId(9), (4, 5)),
    protocol.Score(
        request_id=protocol.RequestId(9),
        token_ids=(1, 2),
        first_scored=1,
        top=5,
        prompt=protocol.TokenIds((5,)),
        reference_path="w.cwin",
    ),
    protocol.CollectImportance(request_id=protocol.RequestId(9), token_ids=(1, 2), target_path="i.gguf"),
    protocol.Quantize(
        request_id=protocol.RequestId(10), source_path="a", target_path="b", quantization="Q4_K_M", dry_run=True
    ),
    protocol.ProbeMemory(request_id=protocol.RequestId(11), model_path="a"),
    protocol.DescribeBlock(protocol.RequestId(12), 5),
    protocol.UnloadModel(),
    protocol.Shutdown(),
    protocol.Hello(1, "0.3.36", 123, "llama_cpp"),
    protocol.ModelLoaded(
        backend="llama_cpp",
        model_path="a",
        context_tokens=8192,
        memory=protocol.MemorySplit(weights_bytes=1, kv_reserved_bytes=2, device="CUDA0"),
        capabilities=protocol.Capabilities(can_roll_back=True, kv_types=("f16",)),
        notices=("gpu_not_used",),
    ),
    protocol.StepDone(
        protocol.StepStats(step=1, ended_s=2.5, duration_s=0.1, decode_tokens=1),
        (
            protocol.Piece(
                protocol.RequestId(7),
                "hé",
                (3, 4),
                1,
                (protocol.TokenChances(protocol.TokenChance(3, "h", -0.5), (protocol.TokenChance(9, "H", -0.4),)),),
            ),
        ),
        protocol.BlockMap(16, b"\0\1\2", (protocol.BlockOwner(protocol.RequestId(7), (2,), 9),)),
    ),
    protocol.RequestFinished(
        protocol.RequestId(7), protocol.StopReason.STOP_STRING, protocol.RequestFigures(new_tokens=3, ttft_s=0.5)
    ),
    protocol.TokensCounted(protocol.RequestId(8), 12),
    protocol.Tokenized(protocol.RequestId(9), (4, 5)),
    protocol.Detokenized(protocol.RequestId(9), (b"a", b"\xc3")),
    protocol.ScoreDone(request_id=protocol.RequestId(9), logprobs=b"\0\1", top_ids=b"\2", kl=b"\3", score_s=0.5),
    protocol.Quantized(request_id=protocol.RequestId(10), size_bytes=5, bits_per_weight=4.5, fallback_tensors=2),
    protocol.BlockDescribed(request_id=protocol.RequestId(12), block=5, token_ids=(1,), text="a", users=2),
    protocol.Progress(phase="load", done=0.5, total=1.0, memory=protocol.MemorySplit(weights_bytes=3)),
    protocol.MemoryRead(read_s=1.0, anonymous_bytes=5, state=protocol.LifeCycle.BUSY),
    protocol.LogRecorded("warning", "words"),
    protocol.EngineFailed(code="out_of_memory", parameters={"needed_bytes": 5}, request_id=protocol.RequestId(7)),
]


def union_of(message: object) -> object:
    return protocol.Command if isinstance(message, typing.get_args(protocol.Command)) else protocol.Event


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_comes_back_equal_from_the_wire(message: object) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=union_of(message)) == message


def test_every_kind_of_message_has_an_example() -> None:
    kinds = {*typing.get_args(protocol.Command), *typing.get_args(protocol.Event)}
    assert kinds == {type(message) for message in EXAMPLES}


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_field_that_a_newer_version_added_is_passed_over(message: object) -> None:
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(message)) | {"added_later": [1, 2]}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(fields), type=union_of(message)) == message


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_cut_at_any_byte_is_refused(message: object) -> None:
    data = msgspec.msgpack.encode(message)
    for length in range(len(data)):
        with pytest.raises(msgspec.DecodeError):
            msgspec.msgpack.decode(data[:length], type=union_of(message))


def test_random_changes_of_a_byte_decode_or_are_refused_and_nothing_else() -> None:
    draw = random.Random(20)
    for _ in range(20_000):
        message = draw.choice(EXAMPLES)
        data = bytearray(msgspec.msgpack.encode(message))
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            decoded = msgspec.msgpack.decode(bytes(data), type=union_of(message))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        assert isinstance(decoded, typing.get_args(union_of(message)))
