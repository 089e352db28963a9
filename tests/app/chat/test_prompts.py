"""Which ids stand for which text, and what the fallback says."""

from __future__ import annotations

import pytest

from app.chat.messages import Message, MessageState, Role
from app.chat.prompts import MAX_TEXT_BYTES, render_messages, render_prompt
from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.renderer_client import RenderMessage, RenderTemplate


def message(role: Role, text: str, **fields: object) -> Message:
    return Message(1, 1, None, role, text, created_s=0.0, **fields)


def test_the_system_prompt_comes_first_and_a_blank_one_not_at_all() -> None:
    asked = [message(Role.USER, "hi")]
    assert render_messages(asked, "be brief", "") == (RenderMessage("system", "be brief"), RenderMessage("user", "hi"))
    assert render_messages(asked, "  \n", "") == (RenderMessage("user", "hi"),)


def test_stored_ids_stand_for_an_answer_under_the_same_tokenizer_only() -> None:
    answered = [message(Role.ASSISTANT, "yes", token_ids=(7, 8), tokenizer_hash="a")]
    assert render_messages(answered, "", "a")[0].token_ids == (7, 8)
    assert render_messages(answered, "", "b")[0].token_ids == ()
    assert render_messages(answered, "", "")[0].token_ids == ()


def test_ids_of_an_answer_cut_at_a_stop_string_are_not_used() -> None:
    stats = {"stop_reason": protocol.StopReason.STOP_STRING.value}
    answered = [message(Role.ASSISTANT, "ye", token_ids=(7, 8), tokenizer_hash="a", stats=stats)]
    assert render_messages(answered, "", "a")[0].token_ids == ()


def test_an_answer_without_a_word_is_left_out() -> None:
    branch = [message(Role.USER, "hi"), message(Role.ASSISTANT, "", state=MessageState.FAILED), message(Role.USER, "?")]
    assert [m.role for m in render_messages(branch, "", "")] == ["user", "user"]


class FakeRenderer:
    """Renders nothing; reports the problem it was given."""

    def __init__(self, problem: EngineError | None) -> None:
        self.problem = problem
        self.request: RenderTemplate | None = None

    def render_or_fallback(self, request: RenderTemplate) -> tuple[protocol.RenderedPrompt, EngineError | None]:
        self.request = request
        return protocol.RenderedPrompt(()), self.problem


LOADED = protocol.ModelLoaded(
    backend="echo", model_path="m", context_tokens=8, chat_template="T", bos_text="<s>", eos_text="</s>"
)


def test_the_model_s_own_template_and_tokens_are_used() -> None:
    renderer = FakeRenderer(None)
    _prompt, words = render_prompt(renderer, LOADED, (), add_generation_prompt=False)
    request = renderer.request
    assert (request.template, request.bos_text, request.eos_text) == ("T", "<s>", "</s>")
    assert not request.add_generation_prompt
    assert words is None


def test_a_fallback_is_said_in_words() -> None:
    renderer = FakeRenderer(EngineError(ErrorCode.TEMPLATE_BROKEN, detail="line 3", line=3))
    _prompt, words = render_prompt(renderer, LOADED, ())
    assert "line 3" in words.message
    assert "ChatML" in words.hint


def test_more_text_than_is_ever_rendered_is_refused_before_the_template_is_blamed() -> None:
    renderer = FakeRenderer(None)
    with pytest.raises(EngineError) as caught:
        render_prompt(renderer, LOADED, (RenderMessage("user", "x" * (MAX_TEXT_BYTES + 1)),))
    assert caught.value.code is ErrorCode.CHAT_TOO_LARGE
    assert renderer.request is None
