"""From a branch of messages to a rendered prompt: roles, stored token ids, the model's chat template.

Knows what may be reused: an answer's stored ids stand for its text only under the same tokenizer, and only when text
and ids were cut at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.chat.messages import Message, Role
from app.errors import Words, words_for
from app.i18n import _
from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.renderer_client import RendererClient, RenderMessage, RenderTemplate

# Under the renderer's own limit of 4 MiB, so that a long chat is not taken for a template that writes without end.
MAX_TEXT_BYTES = 3 * 1024 * 1024


def render_messages(branch: Iterable[Message], system_prompt: str, tokenizer_hash: str) -> tuple[RenderMessage, ...]:
    """Return the dialogue as a chat template sees it; answers without a word are left out."""
    rendered = [RenderMessage("system", system_prompt)] if system_prompt.strip() else []
    for message in branch:
        if message.role is Role.ASSISTANT and not message.text:
            continue
        ids = message.token_ids if _ids_stand_for_text(message, tokenizer_hash) else ()
        rendered.append(RenderMessage(message.role.value, message.text, ids))
    return tuple(rendered)


def _ids_stand_for_text(message: Message, tokenizer_hash: str) -> bool:
    is_cut = message.stats.get("stop_reason") == protocol.StopReason.STOP_STRING.value
    return bool(tokenizer_hash) and message.tokenizer_hash == tokenizer_hash and not is_cut


def render_prompt(
    renderer: RendererClient,
    loaded: protocol.ModelLoaded,
    messages: tuple[RenderMessage, ...],
    *,
    add_generation_prompt: bool = True,
) -> tuple[protocol.RenderedPrompt, Words | None]:
    """Render a dialogue with the model's template.

    Returns:
        The prompt, and the words of a fallback when the model's own template could not be used.

    Raises:
        EngineError: there is more text than is ever rendered, or not even the fallback template could be rendered.
    """
    text_bytes = sum(len(message.content.encode(errors="replace")) for message in messages)
    if text_bytes > MAX_TEXT_BYTES:
        raise EngineError(ErrorCode.CHAT_TOO_LARGE, text_bytes=text_bytes, limit_bytes=MAX_TEXT_BYTES)
    request = RenderTemplate(
        template=loaded.chat_template,
        messages=messages,
        add_generation_prompt=add_generation_prompt,
        bos_text=loaded.bos_text,
        eos_text=loaded.eos_text,
    )
    prompt, problem = renderer.render_or_fallback(request)
    if problem is None:
        return prompt, None
    words = words_for(problem.code, problem.parameters)
    used = _("The common ChatML template is used in its place; answers may be worse for it.")
    return prompt, Words(words.message, used)
