"""The batch's C arrays hold what was asked, without a loop."""

from __future__ import annotations

from backends.llama_cpp_engine.batch import Batch


def rows(batch: Batch) -> list[tuple[int, int, int, int, int]]:
    handle = batch.handle
    return [
        (handle.token[i], handle.pos[i], handle.n_seq_id[i], handle.seq_id[i][0], handle.logits[i])
        for i in range(handle.n_tokens)
    ]


def test_a_prompt_gets_consecutive_positions_and_logits_for_its_last_token_only() -> None:
    batch = Batch(8)
    batch.fill([11, 12, 13], 5, wants_logits=True)
    assert rows(batch) == [(11, 5, 1, 0, 0), (12, 6, 1, 0, 0), (13, 7, 1, 0, 1)]
    batch.close()


def test_a_piece_in_the_middle_of_a_prompt_wants_no_logits() -> None:
    batch = Batch(8)
    batch.fill([11, 12], 0, wants_logits=True)
    batch.fill([21, 22, 23], 2, wants_logits=False)
    assert rows(batch) == [(21, 2, 1, 0, 0), (22, 3, 1, 0, 0), (23, 4, 1, 0, 0)]
    batch.close()


def test_logits_may_be_wanted_of_some_tokens_in_a_row() -> None:
    batch = Batch(8)
    batch.fill([11, 12, 13, 14], 0, wants_logits=False)
    batch.want_logits(1, 3)
    assert [row[-1] for row in rows(batch)] == [0, 1, 1, 0]
    batch.close()


def test_one_token_replaces_a_whole_prompt() -> None:
    batch = Batch(4)
    batch.fill([1, 2, 3, 4], 0, wants_logits=False)
    batch.fill_one(9, 4)
    assert rows(batch) == [(9, 4, 1, 0, 1)]
    batch.close()


def test_closing_twice_is_harmless() -> None:
    batch = Batch(2)
    batch.close()
    batch.close()
