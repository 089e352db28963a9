"""What is written under an answer: figures with their units, and why it ended, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.chat.messages import Message, MessageState, Role
from app.units import NBSP
from backends.protocol import StopReason
from ui.panels.message_items import figures_text, message_item, state_text, stop_words

STATS = {
    "decode_tokens_per_s": 151.2,
    "ttft_s": 0.0912,
    "prompt_tokens": 435,
    "reused_tokens": 412,
    "stop_reason": "end_of_text",
}
ANSWER = Message(7, 1, 6, Role.ASSISTANT, "An answer.", MessageState.COMPLETE, stats=STATS)


def test_a_finished_answer_tells_its_figures():
    assert (
        message_item(ANSWER).figures
        == f"151{NBSP}tokens/s  ·  first token 91.2{NBSP}ms  ·  23 read, 412 reused  ·  finished"
    )
    assert message_item(ANSWER).state_text == ""
    assert (message_item(ANSWER).key, message_item(ANSWER).role) == (7, "assistant")


def test_a_persons_message_has_no_figures():
    item = message_item(replace(ANSWER, role=Role.USER))
    assert (item.role, item.figures, item.is_streaming) == ("user", "", False)


def test_figures_that_are_not_known_are_left_out():
    assert figures_text({}) == ""
    assert figures_text({"prompt_tokens": 5, "stop_reason": "aborted"}) == "5 read, 0 reused  ·  stopped"


def test_why_less_was_reused_is_said_beside_it():
    text = figures_text({"prompt_tokens": 900, "reused_tokens": 0, "reuse_note": "window"})
    assert text == "900 read, 0 reused  ·  read again: the model's sliding window has moved on"
    assert figures_text({"prompt_tokens": 9, "reuse_note": "a code of a later version"}) == "9 read, 0 reused"


def test_accepted_drafts_are_a_share():
    assert figures_text({"draft_proposed": 40, "draft_accepted": 28}) == "70% of drafts accepted"


@pytest.mark.parametrize("reason", StopReason)
def test_every_stop_reason_has_words(reason):
    assert stop_words(reason.value)
    assert "_" not in stop_words(reason.value)


def test_an_unknown_stop_reason_says_nothing():
    assert stop_words("a reason of a later version") == ""


@pytest.mark.parametrize(
    ("state", "problem", "words"),
    [
        (MessageState.COMPLETE, "", ""),
        (MessageState.STOPPED, "", ""),
        (MessageState.STREAMING, "", ""),
        (MessageState.INTERRUPTED, "", "Interrupted here. What was written is kept."),
        (MessageState.INTERRUPTED, "The engine crashed.", "The engine crashed."),
        (MessageState.FAILED, "", "No answer."),
        (MessageState.FAILED, "The chat is too long.", "The chat is too long."),
    ],
)
def test_what_went_wrong_is_said(state, problem, words):
    assert state_text(replace(ANSWER, state=state, stats={"problem": problem})) == words


def test_an_answer_under_way_is_streaming():
    assert message_item(replace(ANSWER, state=MessageState.STREAMING, stats={})).is_streaming


def test_only_a_finished_answer_with_its_exact_tokens_can_be_read_by_another_model():
    whole = Message(1, 1, None, Role.ASSISTANT, "Hi", token_ids=(4, 5), tokenizer_hash="tokens")

    assert message_item(whole).can_xray
    assert message_item(replace(whole, state=MessageState.STOPPED)).can_xray
    assert not message_item(replace(whole, state=MessageState.STREAMING)).can_xray
    assert not message_item(replace(whole, tokenizer_hash="")).can_xray
    assert not message_item(replace(whole, token_ids=())).can_xray
    assert not message_item(replace(whole, role=Role.USER)).can_xray
