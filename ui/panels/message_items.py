"""From a stored message to what the message view shows: role, text, figures and state in words."""

from __future__ import annotations

from typing import Any

from app.chat.messages import Message, MessageState, Role
from app.i18n import _
from app.units import count_text, rate_text, seconds_text
from backends.protocol import StopReason
from ui.widgets.message_layout import MessageItem


def message_item(message: Message) -> MessageItem:
    """Return the item for a message."""
    return MessageItem(
        key=message.message_id,
        role="user" if message.role is Role.USER else "assistant",
        text=message.text,
        figures=figures_text(message.stats) if message.role is Role.ASSISTANT else "",
        state_text=state_text(message),
        is_streaming=message.state is MessageState.STREAMING,
        can_xray=can_xray(message),
    )


def can_xray(message: Message) -> bool:
    """Return whether an answer is finished and its exact tokens are kept."""
    is_over = message.role is Role.ASSISTANT and message.state is not MessageState.STREAMING
    return is_over and bool(message.token_ids and message.tokenizer_hash)


def figures_text(stats: dict[str, Any]) -> str:
    """Return the line under an answer: speed, time to the first token, tokens read and reused, why it ended."""
    facts = []
    if stats.get("decode_tokens_per_s"):
        facts.append(rate_text(stats["decode_tokens_per_s"]))
    if stats.get("ttft_s"):
        facts.append(_("first token {time}").format(time=seconds_text(stats["ttft_s"])))
    if stats.get("prompt_tokens"):
        reused = stats.get("reused_tokens", 0)
        read = stats["prompt_tokens"] - reused
        facts.append(_("{read} read, {reused} reused").format(read=count_text(read), reused=count_text(reused)))
        if note := _reuse_words(stats.get("reuse_note", "")):
            facts.append(note)
    if stats.get("draft_proposed"):
        share = stats.get("draft_accepted", 0) / stats["draft_proposed"]
        facts.append(_("{share} of drafts accepted").format(share=f"{share:.0%}"))
    if reason := stop_words(stats.get("stop_reason", "")):
        facts.append(reason)
    return "  ·  ".join(facts)


def stop_words(stop_reason: str) -> str:
    """Return why an answer ended, in words; "" when nothing is known."""
    words = {
        StopReason.END_OF_TEXT.value: _("finished"),
        StopReason.STOP_STRING.value: _("stop text reached"),
        StopReason.MAX_TOKENS.value: _("token limit reached"),
        StopReason.CONTEXT_FULL.value: _("context full"),
        StopReason.ABORTED.value: _("stopped"),
    }
    return words.get(stop_reason, "")


def state_text(message: Message) -> str:
    """Return what went wrong with an answer; "" when nothing did."""
    problem = str(message.stats.get("problem", ""))
    match message.state:
        case MessageState.INTERRUPTED:
            return problem or _("Interrupted here. What was written is kept.")
        case MessageState.FAILED:
            return problem or _("No answer.")
        case _:
            return ""


def _reuse_words(note: str) -> str:
    """Return why less than everything before was reused; "" when there is nothing to explain."""
    words = {
        "window": _("read again: the model's sliding window has moved on"),
        "cannot_roll_back": _("read again: this model cannot go back"),
    }
    return words.get(note, "")
