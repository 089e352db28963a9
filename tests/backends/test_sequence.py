"""What a request took: reading and writing apart, whatever engine it goes through."""

from __future__ import annotations

import pytest

from backends import protocol
from backends.sequence import BaseSequence


@pytest.fixture
def sequence() -> BaseSequence:
    request = protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("x"))
    return BaseSequence(request, (1, 2, 3))


def test_what_was_not_begun_took_nothing(sequence) -> None:
    figures = sequence.figures(seed=5)
    assert (figures.prompt_tokens, figures.new_tokens, figures.prefill_s, figures.decode_s) == (3, 0, 0.0, 0.0)


def test_a_token_joins_behind_what_is_known(sequence) -> None:
    sequence.begin(2, "differs")
    sequence.append(9)
    assert (sequence.known, sequence.prompt_tokens, sequence.is_reading) == ([1, 2, 3, 9], 3, False)
    sequence.preemptions = 2
    figures = sequence.figures(seed=5)
    assert (figures.reused_tokens, figures.reuse_note, figures.preemptions, figures.seed) == (2, "differs", 2, 5)
    assert figures.ttft_s >= figures.prefill_s >= 0
