"""A chat led by one thread that waits: loads a model, asks, and returns when the answer has ended.

The command line and the self-test lead chats this way; the window listens instead. Prints nothing: what happens
meanwhile is told to a face. Knows no terminal and no process.
"""

from __future__ import annotations

import queue
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.chat.messages import Chat, JsonObject, Message, Role
from app.chat.schema import migrate
from app.chat.session_events import MessageChanged, NoticeRaised, SessionEvent, TextAppended
from app.chat.store import ChatStore, StoreMode
from app.chat.store_file import OpenedFile
from app.context import AppContext
from app.deaths import words_for_death
from app.engines.backend_choice import load_notices
from app.engines.supervisor import EngineEvent, LoadRequest, ResponseChanged
from app.errors import AppError, Words, app_error
from app.i18n import _
from app.units import seconds_text
from backends import protocol
from backends.client import EngineDied
from backends.errors import ErrorCode

# How often a wait looks up: on Windows nothing else lets Ctrl+C in.
_LOOK_UP_S = 0.5


class Face(Protocol):
    """Who is told what happens while a chat is waited for."""

    def text(self, piece: str) -> None:
        """Take a piece by which the answer grew."""

    def notice(self, words: Words) -> None:
        """Take what is to be known though the work goes on."""

    def progress(self, fraction: float) -> None:
        """Take how much of the model is loaded, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The person pressed Ctrl+C."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that has ended.

    Attributes:
        message: as it is stored.
        words: why it ended badly; None when it did not.
        is_interrupted: whether the person pressed Ctrl+C.
    """

    message: Message
    words: Words | None
    is_interrupted: bool


_InboxEvent = SessionEvent | EngineEvent | Interrupted
_ENGINE_EVENTS = (protocol.Progress, protocol.ModelLoaded, protocol.EngineFailed, EngineDied, ResponseChanged)


class WaitingChat:
    """One chat after another with one engine, each call waiting for its end.

    Attributes:
        chat: the chat in use; None before the first question.
        _inbox: what happened and was not looked at yet; filled by any thread and by a signal handler.
        _told: keys of notices that were told.
        _system_prompt, _params: what a new chat begins with.
        _limit_s: how long nothing may happen before a call gives up; None waits for ever.
        _wanted: how the person wants the model loaded, to be told what came of it; None for as it is asked.
    """

    def __init__(
        self,
        context: AppContext,
        face: Face,
        limit_s: float | None = None,
        wanted: protocol.LoadParams | None = None,
    ) -> None:
        self.chat: Chat | None = None
        self._context = context
        self._face = face
        self._inbox: queue.SimpleQueue[_InboxEvent] = queue.SimpleQueue()
        self._told: set[str] = set()
        self._system_prompt = ""
        self._params: JsonObject = {}
        self._limit_s = limit_s
        self._wanted = wanted
        context.watch_engine(self._on_engine_event)
        context.store.on_problem(lambda problem: self._inbox.put(NoticeRaised("store", problem.words)))

    def load(self, request: LoadRequest) -> protocol.ModelLoaded:
        """Load a model and return what the engine says of it.

        Raises:
            AppError: it cannot be loaded, or nothing happened for too long.
            KeyboardInterrupt: the person pressed Ctrl+C.
        """
        self._context.engine.load(request)
        while True:
            match self._next():
                case protocol.Progress() as event:
                    self._show_progress(event)
                case protocol.ModelLoaded() as loaded:
                    for _code, words in load_notices(self._wanted or request.params, loaded):
                        self._face.notice(words)
                    return loaded
                case protocol.EngineFailed() as failed:
                    raise app_error(failed.code, failed.parameters)
                case EngineDied() as died:
                    raise AppError(
                        words_for_death(
                            died.exit_code, died.signal, "loading", died.cause, log_lines=died.last_log_lines
                        )
                    )
                case ResponseChanged(is_responding=False):
                    self._tell_silence()
                case Interrupted():
                    raise KeyboardInterrupt

    def begin(self, system_prompt: str = "", params: JsonObject | None = None) -> None:
        """Have the next question begin a chat of its own, with these instructions and sampling params."""
        self._system_prompt, self._params = system_prompt, params or {}
        self.begin_anew()

    def begin_anew(self) -> None:
        """Have the next question begin another chat with the instructions and params of this one."""
        if self.chat is not None:
            self._context.end_session(self.chat.chat_id)
            self.chat = None

    def ask(self, text: str) -> Answer:
        """Send what a person wrote and return the answer when it has ended, however it did.

        The first Ctrl+C stops the answer, a second one ends the engine.

        Raises:
            AppError: nothing was written, the store failed, or nothing happened for too long.
        """
        if not text.strip():
            raise app_error(ErrorCode.EMPTY_PROMPT, {})
        while not self._inbox.empty():  # what happened since the last answer, Ctrl+C among it, concerns nobody now
            self._inbox.get()
        chat = self.chat = self.chat or self._new_chat()
        session = self._context.session(chat, self._on_session_event)
        session.send(text)
        interrupts = 0
        while True:
            match self._next():
                case TextAppended() as grown:
                    self._face.text(grown.text)
                case MessageChanged(message=Message(role=Role.ASSISTANT)) as changed:
                    return Answer(changed.message, changed.words, interrupts > 0)
                case NoticeRaised() as notice if notice.key not in self._told:
                    self._told.add(notice.key)
                    self._face.notice(notice.words)
                case protocol.Progress() as event:
                    self._show_progress(event)
                case ResponseChanged(is_responding=False):
                    self._tell_silence()
                case Interrupted():
                    interrupts += 1
                    if interrupts == 1:
                        session.stop()
                    else:
                        self._context.engine.kill()

    def interrupt(self) -> None:
        """Take a Ctrl+C; may be called by a signal handler."""
        self._inbox.put(Interrupted())

    def _new_chat(self) -> Chat:
        store = self._context.store
        chat = store.add_chat()
        if self._system_prompt:
            store.set_system_prompt(chat.chat_id, self._system_prompt)
        if self._params:
            store.set_params(chat.chat_id, self._params)
        return store.chat(chat.chat_id)

    def _on_engine_event(self, event: EngineEvent) -> None:
        if isinstance(event, _ENGINE_EVENTS):  # readings come ten times a second, and nobody looks while a person types
            self._inbox.put(event)

    def _on_session_event(self, event: SessionEvent) -> None:
        if isinstance(event, TextAppended | MessageChanged | NoticeRaised):
            self._inbox.put(event)

    def _next(self) -> _InboxEvent:
        waited_s = 0.0
        while True:
            try:
                return self._inbox.get(timeout=_LOOK_UP_S)
            except queue.Empty:
                waited_s += _LOOK_UP_S
            if self._limit_s is not None and waited_s >= self._limit_s:
                message = _("The engine said nothing for {time}.").format(time=seconds_text(self._limit_s))
                raise AppError(Words(message, _("Try again when the machine has less to do.")))

    def _show_progress(self, event: protocol.Progress) -> None:
        self._face.progress(event.done / event.total if event.total > 0 else 0.0)

    def _tell_silence(self) -> None:
        self._face.notice(Words(_("The engine does not answer."), _("Wait, or press Ctrl+C to stop it.")))


def use_memory_store(context: AppContext) -> None:
    """Keep the chats of this run in memory only; call before the first chat."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    migrate(connection)
    store = ChatStore(OpenedFile(Path(":memory:"), StoreMode.IN_MEMORY, connection))
    store.start()
    context.store.close()
    context.store = store
