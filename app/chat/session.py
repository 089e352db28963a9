"""A dialogue and the engine that answers in it: composes, sends, journals, finishes.

The window and the command line are two faces of this. A session stores the message, renders the template in the
renderer child, adds an empty answer and sends Generate; every StepDone of its request is journalled and handed on.
Knows no Qt, no widget and no process: it speaks to the store, the renderer and the supervisor it was given.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from app.chat import prompts
from app.chat.messages import Chat, Message, MessageState, Role
from app.chat.session_events import (
    AnswerWaiting,
    ChatChanged,
    ContextMeasured,
    MessageAdded,
    MessageChanged,
    NoticeRaised,
    OnSessionEvent,
    TextAppended,
)
from app.chat.store import ChatStore
from app.deaths import words_for_death
from app.engines.supervisor import EngineEvent, EngineSupervisor
from app.errors import Words, words_for
from backends import protocol
from backends.client import EngineDied
from backends.errors import EngineError
from backends.protocol import LifeCycle, RequestId
from backends.renderer_client import RendererClient

_log = logging.getLogger(__name__)

_TITLE_CHARACTERS = 48

# One counter for the whole program: request ids of all sessions share one engine. 0 means the load.
_request_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class SessionServices:
    """What a session works with; built once in app/context.py.

    Attributes:
        store: where messages are kept.
        engine: who answers.
        renderer: who renders chat templates.
        executor: runs composing, one at a time, off the caller's thread.
        params: returns the sampling params of the settings in use.
        system_prompt: returns the settings' system prompt.
    """

    store: ChatStore
    engine: EngineSupervisor
    renderer: RendererClient
    executor: Executor
    params: Callable[[], protocol.SamplingParams]
    system_prompt: Callable[[], str]


@dataclass(slots=True)
class _Answer:
    """An answer under way: its message as stored, its request, and what was said so far.

    Attributes:
        num_characters: how many characters the texts have together.
        is_sent: whether the engine has the request.
        is_stopped: whether the person pressed Stop.
    """

    message: Message
    request_id: RequestId
    texts: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    num_characters: int = 0
    is_sent: bool = False
    is_stopped: bool = False

    def so_far(self) -> Message:
        """Return the message with all it has said."""
        return replace(self.message, text="".join(self.texts), token_ids=tuple(self.token_ids))


class ChatSession:
    """One chat of the store and its answer under way.

    Callers' methods return at once; events come on the engine's, the composer's or the caller's thread.

    Attributes:
        chat: the chat as it was when last read or changed.
        _answer: the answer under way, None for none.
        _lock: guards the answer; never held while waiting for anything.
    """

    def __init__(self, services: SessionServices, chat: Chat, on_event: OnSessionEvent) -> None:
        self.chat = chat
        self._services = services
        self._on_event = on_event
        self._answer: _Answer | None = None
        self._count_id = RequestId(0)
        self._lock = threading.RLock()

    # ---------------------------------------------------------------------------------------- callers

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is under way."""
        return self._answer is not None

    def messages(self) -> list[Message]:
        """Return the branch that is shown; the answer under way with all it has said."""
        branch = self._services.store.branch(self.chat.chat_id)
        with self._lock:
            answer = self._answer
            if answer is None:
                return branch
            return [answer.so_far() if m.message_id == answer.message.message_id else m for m in branch]

    def send(self, text: str) -> bool:
        """Store what a person wrote and have it answered; returns False while an answer is under way or text is blank.

        A dead engine is started again first; a loading one is waited for.
        """
        if not text.strip():
            return False
        with self._lock:
            if self._answer is not None:
                return False
            parent_id = self.chat.active_leaf_id
            store = self._services.store
            asked = store.add_message(chat_id=self.chat.chat_id, parent_id=parent_id, role=Role.USER, text=text)
            model = self._services.engine.request
            answered = store.add_message(
                chat_id=self.chat.chat_id,
                parent_id=asked.message_id,
                role=Role.ASSISTANT,
                state=MessageState.STREAMING,
                model=model.path if model else "",
            )
            store.set_active_leaf(self.chat.chat_id, answered.message_id)
            self.chat = replace(self.chat, active_leaf_id=answered.message_id)
            self._answer = _Answer(answered, RequestId(next(_request_ids)))
        self._name_after(text)
        self._on_event(MessageAdded(asked))
        self._on_event(MessageAdded(answered))
        self._on_event(AnswerWaiting(self.chat.chat_id, True))
        engine = self._services.engine
        # Its death is told before its state changes: a prompt sent between the two must start it again as well.
        if engine.state is LifeCycle.DEAD or engine.died is not None:
            engine.restart()
        self._compose_when_ready()
        return True

    def stop(self) -> None:
        """End the answer under way; what it has said stays."""
        with self._lock:
            answer = self._answer
            if answer is None:
                return
            answer.is_stopped = True
            is_sent = answer.is_sent
        if is_sent:  # not under the lock: the engine hands its events on under its own
            self._services.engine.stop_request(answer.request_id)
            return
        self._end_answer(MessageState.STOPPED, None, protocol.StopReason.ABORTED)

    def rename(self, title: str) -> None:
        """Give the chat another title."""
        self.chat = replace(self.chat, title=title)
        self._services.store.rename_chat(self.chat.chat_id, title)
        self._on_event(ChatChanged(self.chat.chat_id))

    def measure_context(self) -> None:
        """Have the dialogue's tokens counted; ContextMeasured follows when an idle model is loaded."""
        if self._services.engine.loaded is not None and self._answer is None:
            self._services.executor.submit(self._count)

    def close(self) -> None:
        """Keep what the answer under way has said so far, and forget it."""
        answer = self._answer
        if answer is not None:
            self._services.engine.stop_request(answer.request_id)
        self._end_answer(MessageState.INTERRUPTED, None, None)

    # -------------------------------------------------------------------------------- composer thread

    def _compose_when_ready(self) -> None:
        if self._services.engine.loaded is not None:
            self._services.executor.submit(self._compose)

    def _compose(self) -> None:
        """Render the dialogue and send the request."""
        with self._lock:
            answer = self._answer
            loaded = self._services.engine.loaded
            if answer is None or answer.is_sent or loaded is None:
                return
        try:
            prompt = self._render(loaded, self._dialogue(), add_generation_prompt=True)
        except EngineError as error:
            self._end_answer(MessageState.FAILED, words_for(error.code, error.parameters), None)
            return
        with self._lock:
            if self._answer is not answer or answer.is_stopped:
                return
            params = self._params()
            answer.message = replace(answer.message, tokenizer_hash=loaded.tokenizer_hash)
            generate = protocol.Generate(request_id=answer.request_id, prompt=prompt, params=params)
        is_sent = self._services.engine.send(generate)
        with self._lock:
            answer.is_sent = is_sent
            is_over = self._answer is not answer or answer.is_stopped
        if is_sent and is_over:  # Stop or close came between the two
            self._services.engine.stop_request(answer.request_id)

    def _dialogue(self) -> list[Message]:
        """Return the messages that precede the answer under way."""
        branch = self._services.store.branch(self.chat.chat_id)
        with self._lock:
            answer_id = self._answer.message.message_id if self._answer else None
        return [message for message in branch if message.message_id != answer_id]

    def _render(
        self, loaded: protocol.ModelLoaded, dialogue: list[Message], *, add_generation_prompt: bool
    ) -> protocol.RenderedPrompt:
        system_prompt = self.chat.system_prompt or self._services.system_prompt()
        messages = prompts.render_messages(dialogue, system_prompt, loaded.tokenizer_hash)
        prompt, words = prompts.render_prompt(
            self._services.renderer, loaded, messages, add_generation_prompt=add_generation_prompt
        )
        if words is not None:
            self._on_event(NoticeRaised(f"template {loaded.model_path}", words))
        return prompt

    def _count(self) -> None:
        loaded = self._services.engine.loaded
        dialogue = self._dialogue()
        if loaded is None or not dialogue:
            total = loaded.context_tokens if loaded else 0
            self._on_event(ContextMeasured(self.chat.chat_id, 0, total))
            return
        try:
            prompt = self._render(loaded, dialogue, add_generation_prompt=False)
        except EngineError as error:
            _log.info("the context could not be measured: %s", error.code)
            return
        self._count_id = RequestId(next(_request_ids))
        self._services.engine.send(protocol.CountTokens(self._count_id, prompt))

    def _params(self) -> protocol.SamplingParams:
        """Return the sampling params: the chat's own where it has them, else the settings'."""
        own = {name: value for name, value in self.chat.params.items() if name in _PARAM_NAMES}
        return msgspec.structs.replace(self._services.params(), **own)

    # --------------------------------------------------------------------------------- engine threads

    def on_engine_event(self, event: EngineEvent) -> None:
        """Take an event of the engine; those of other sessions' requests are passed over."""
        match event:
            case protocol.StepDone():
                self._on_step(event)
            case protocol.RequestFinished() if self._is_mine(event.request_id):
                self._on_finished(event)
            case protocol.EngineFailed() if self._is_mine(event.request_id):
                words = words_for(event.code, event.parameters)
                self._end_answer(MessageState.FAILED, words, None)
            case protocol.EngineFailed() if event.request_id == 0 and not self._has_loaded():
                self._end_answer(MessageState.FAILED, words_for(event.code, event.parameters), None)
            case protocol.ModelLoaded():
                self._services.executor.submit(self._compose)
                self.measure_context()
            case protocol.TokensCounted() if event.request_id == self._count_id:
                self._measured(event.tokens)
            case EngineDied():
                self._on_death(event)

    def _is_mine(self, request_id: RequestId) -> bool:
        answer = self._answer
        return answer is not None and answer.request_id == request_id

    def _has_loaded(self) -> bool:
        return self._services.engine.loaded is not None

    def _on_step(self, event: protocol.StepDone) -> None:
        for piece in event.pieces:
            with self._lock:
                answer = self._answer
                if answer is None or piece.request_id != answer.request_id:
                    continue
                start = answer.num_characters
                answer.num_characters += len(piece.text)
                answer.texts.append(piece.text)
                answer.token_ids += piece.token_ids
                message_id = answer.message.message_id
            self._services.store.append_text(message_id, piece.text, piece.token_ids)
            if piece.text:
                self._on_event(TextAppended(self.chat.chat_id, message_id, piece.text, start))
            self._measured(event.stats.kv_used_tokens)

    def _on_finished(self, event: protocol.RequestFinished) -> None:
        stopped = event.stop_reason is protocol.StopReason.ABORTED
        state = MessageState.STOPPED if stopped else MessageState.COMPLETE
        self._end_answer(state, None, event.stop_reason, event.figures)

    def _on_death(self, event: EngineDied) -> None:
        with self._lock:
            answer = self._answer
        if answer is None:
            return
        if event.cause == "replaced":  # another model was chosen: what was not sent yet is answered by that one
            if answer.is_sent:
                self._end_answer(MessageState.STOPPED, None, protocol.StopReason.ABORTED)
            return
        if answer.is_stopped:
            self._end_answer(MessageState.STOPPED, None, protocol.StopReason.ABORTED)
            return
        phase = "writing" if answer.texts else "reading" if answer.is_sent else "loading"
        words = words_for_death(event.exit_code, event.signal, phase, event.cause, log_lines=event.last_log_lines)
        self._end_answer(MessageState.INTERRUPTED, words, None)

    def _end_answer(
        self,
        state: MessageState,
        words: Words | None,
        reason: protocol.StopReason | None,
        figures: protocol.RequestFigures | None = None,
    ) -> None:
        """Store the answer's end and tell it; nothing happens when none is under way."""
        with self._lock:
            answer, self._answer = self._answer, None
        if answer is None:
            return
        stats: dict[str, Any] = msgspec.to_builtins(figures) if figures is not None else {}
        if figures is not None:
            stats["prefill_tokens_per_s"] = figures.prefill_tokens_per_s
            stats["decode_tokens_per_s"] = figures.decode_tokens_per_s
        if reason is not None:
            stats["stop_reason"] = reason.value
        if words is not None:
            stats["problem"] = words.message
        message = replace(answer.so_far(), state=state, stats=stats)
        self._services.store.finish_message(
            message.message_id,
            state=state,
            text=message.text,
            token_ids=message.token_ids,
            tokenizer_hash=message.tokenizer_hash,
            stats=stats,
        )
        self._on_event(MessageChanged(message, words))
        self._on_event(AnswerWaiting(self.chat.chat_id, False))
        self._on_event(ChatChanged(self.chat.chat_id))

    # --------------------------------------------------------------------------------------- helpers

    def _measured(self, used_tokens: int) -> None:
        loaded = self._services.engine.loaded
        if loaded is not None:
            self._on_event(ContextMeasured(self.chat.chat_id, used_tokens, loaded.context_tokens))

    def _name_after(self, text: str) -> None:
        """Give an untitled chat its first line as its title."""
        if not self.chat.title:
            line = " ".join(text.split())
            cut = line[:_TITLE_CHARACTERS].rstrip()
            self.rename(cut + "…" if len(line) > _TITLE_CHARACTERS else cut)


_PARAM_NAMES = frozenset(protocol.SamplingParams.__struct_fields__)
