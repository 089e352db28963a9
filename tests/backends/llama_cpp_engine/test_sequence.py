"""A request's bookkeeping: what is known, computed and reused."""

from __future__ import annotations

import random

from backends import protocol
from backends.llama_cpp_engine.sequence import Sequence, common_prefix_length


def naive(first: list[int], second: list[int]) -> int:
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return length


def test_the_common_beginning_is_what_a_plain_loop_finds() -> None:
    draw = random.Random(3)
    for _ in range(500):
        first = [draw.randrange(2) for _ in range(draw.randrange(30))]
        second = first[: draw.randrange(31)] + [draw.randrange(2) for _ in range(draw.randrange(10))]
        assert common_prefix_length(first, second) == naive(first, second)


def request() -> protocol.Generate:
    return protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("x"))


def test_a_fresh_sequence_has_read_and_said_nothing() -> None:
    sequence = Sequence(request(), [1, 2, 3])
    figures = sequence.figures(seed=5)
    assert (figures.prompt_tokens, figures.new_tokens, figures.ttft_s, figures.prefill_s) == (3, 0, 0.0, 0.0)
    assert sequence.is_reading


def test_the_first_token_ends_the_reading() -> None:
    sequence = Sequence(request(), [1, 2, 3])
    sequence.begin(2, "differs")
    sequence.append(9)
    assert not sequence.is_reading
    assert sequence.known == [1, 2, 3, 9]
    figures = sequence.figures(seed=5)
    assert (figures.reused_tokens, figures.reuse_note, figures.new_tokens, figures.seed) == (2, "differs", 1, 5)
    assert figures.ttft_s >= figures.prefill_s > 0
