"""Chats and messages as plain data."""

from __future__ import annotations

import pytest

from app.chat.messages import Message, MessageState, Role, parents_first


def message(message_id, parent_id, created_s):
    return Message(message_id, 1, parent_id, Role.USER, "", created_s=created_s)


def test_roles_and_states_are_stored_as_lower_case_words():
    assert [role.value for role in Role] == ["system", "user", "assistant"]
    assert [state.value for state in MessageState] == ["complete", "streaming", "stopped", "interrupted", "failed"]


def test_parents_stand_first_and_older_ones_before_younger():
    root, early, late, child = message(9, None, 1), message(8, 9, 2), message(7, 9, 3), message(6, 8, 4)
    assert parents_first([child, late, early, root]) == (root, early, late, child)


def test_parents_stand_first_even_when_the_clock_went_back():
    root, child = message(9, None, 50), message(8, 9, 1)
    assert parents_first([child, root]) == (root, child)


def test_a_message_whose_parent_is_elsewhere_counts_as_a_beginning():
    orphan = message(5, 4, 1)
    assert parents_first([orphan]) == (orphan,)


def test_a_ring_is_left_out():
    root = message(3, None, 1)
    assert parents_first([message(1, 2, 1), message(2, 1, 1), root]) == (root,)


def test_records_hold_nothing_but_their_fields():
    with pytest.raises((AttributeError, TypeError)):
        message(1, None, 1).note = "x"
