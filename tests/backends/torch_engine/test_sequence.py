"""A request's bookkeeping: what is known, computed, reused and said."""

from __future__ import annotations

import pytest

from backends import protocol
from backends.torch_engine.block_pool import Chain
from backends.torch_engine.sequence import Sequence


def request(number: int = 1, priority: int = 0, stop: tuple[str, ...] = ()) -> protocol.Generate:
    params = protocol.SamplingParams(stop=stop)
    return protocol.Generate(
        request_id=protocol.RequestId(number), prompt=protocol.Text("x"), params=params, priority=priority
    )


def test_a_fresh_sequence_has_read_and_said_nothing() -> None:
    sequence = Sequence(request(), (1, 2, 3))
    figures = sequence.figures(seed=5)
    assert (figures.prompt_tokens, figures.new_tokens, figures.ttft_s, figures.prefill_s) == (3, 0, 0.0, 0.0)
    assert sequence.is_reading
    assert not sequence.is_running


def test_the_first_token_ends_the_reading() -> None:
    sequence = Sequence(request(), [1, 2, 3])
    sequence.begin(2, "differs")
    sequence.append(9)
    assert not sequence.is_reading
    assert sequence.known == [1, 2, 3, 9]
    figures = sequence.figures(seed=5)
    assert (figures.reused_tokens, figures.reuse_note, figures.new_tokens, figures.seed) == (2, "differs", 1, 5)
    assert figures.ttft_s >= figures.prefill_s > 0


def test_the_caller_s_list_of_tokens_stays_as_it_is() -> None:
    token_ids = [1, 2, 3]
    Sequence(request(), token_ids).append(4)
    assert token_ids == [1, 2, 3]


def test_the_highest_priority_comes_first_then_the_earliest() -> None:
    sequences = [Sequence(request(number, priority), [1]) for number, priority in enumerate((0, 5, 0, 5))]
    for arrival, sequence in enumerate(sequences):
        sequence.arrival = arrival
    ordered = sorted(sequences, key=lambda sequence: sequence.order)
    assert [sequence.request.request_id for sequence in ordered] == [1, 3, 0, 2]


def test_preemptions_are_told() -> None:
    sequence = Sequence(request(), [1])
    sequence.preemptions = 2
    assert sequence.figures(seed=0).preemptions == 2


def test_refused_drafts_are_cut_with_their_hashes() -> None:
    sequence = Sequence(request(), [1, 2, 3], block_tokens=2)
    for token in (4, 5, 6):
        sequence.append(token)
    sequence.chain.digest(3, sequence.known)
    sequence.cut(4)
    assert (sequence.known, sequence.new_tokens) == ([1, 2, 3, 4], 1)
    sequence.append(7)
    sequence.append(8)
    assert sequence.chain.digest(3, sequence.known) == Chain(b"", 2).digest(3, [1, 2, 3, 4, 7, 8])
    with pytest.raises(AssertionError, match="given tokens"):
        sequence.cut(2)
    sequence.scheduled = 5
    with pytest.raises(AssertionError, match="in flight"):
        sequence.cut(4)


def test_a_fork_goes_its_own_way() -> None:
    parent = Sequence(request(1, stop=("END",)), [1, 2, 3], b"salt", block_tokens=2)
    parent.append(4)
    assert parent.detokenizer.add(4, b"E") == ("", ())
    child = parent.fork(request(2, priority=3, stop=("END",)))
    child.append(5)
    assert (parent.known, child.known) == ([1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert (child.prompt_tokens, child.new_tokens, child.salt, child.priority) == (3, 2, b"salt", 3)
    assert child.detokenizer.add(5, b"x") == ("Ex", (4, 5))
    assert parent.detokenizer.add(6, b"ND") == ("", ())
    assert parent.detokenizer.stopped
    assert not child.detokenizer.stopped
    assert child.chain.digest(1, child.known) == parent.chain.digest(1, parent.known)
    assert child.figures(seed=0).decode_s >= 0.0
