import pytest
import torch

from backends.torch_engine.step_layout import LayoutRow, RowInput, StepLayout, runs


def test_rows_stand_one_behind_the_other_and_every_token_has_its_slot():
    step = StepLayout.build([RowInput([5, 6, 7], 3, [9, 2]), RowInput([8], 0, [4], wants_logits=False)], 4)
    assert step.token_ids.tolist() == [[5, 6, 7, 8]]
    assert step.positions.tolist() == [[3, 4, 5, 0]]
    assert step.slots.tolist() == [39, 8, 9, 16]
    assert step.logits_index.tolist() == [2]
    assert step.rows == (LayoutRow(0, 3, 3, (9, 2)), LayoutRow(3, 1, 0, (4,)))
    assert step.rows[0].total == 6
    assert {tensor.dtype for tensor in (step.token_ids, step.positions, step.slots, step.logits_index)} == {torch.int64}


def test_a_row_may_want_the_logits_of_several_last_tokens():
    rows = [RowInput([5, 6, 7], 0, [1], last_logits=2), RowInput([8], 0, [2]), RowInput([9, 4], 0, [3], False, 2)]
    assert StepLayout.build(rows, 4).logits_index.tolist() == [1, 2, 3]


def test_missing_tokens_go_to_the_trash_block():
    step = StepLayout.build([RowInput([5], 0, [1])], 4, padded_tokens=3, trash_block=7)
    assert step.token_ids.tolist() == [[5, 0, 0]]
    assert step.slots.tolist() == [4, 28, 28]
    assert len(step.rows) == 1


@pytest.mark.parametrize(
    "row", [RowInput([], 0, [1]), RowInput([5], -1, [1]), RowInput([5], 4, [1]), RowInput([5], 0, [1], last_logits=2)]
)
def test_a_row_without_tokens_or_room_is_refused(row):
    with pytest.raises(ValueError, match="do not fit"):
        StepLayout.build([row], 4)


def test_consecutive_blocks_make_one_stretch():
    assert runs([3, 4, 5], 0, 10, 4) == [(12, 10)]
    assert runs([3, 4, 5], 5, 10, 4) == [(17, 5)]
    assert runs([7, 3, 4, 1], 2, 13, 4) == [(30, 2), (12, 8), (4, 1)]
    assert runs([7, 3], 0, 4, 4) == [(28, 4)]
    assert runs([7], 2, 2, 4) == []
