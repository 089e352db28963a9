"""The program's parts, built once and handed on: no singletons, no globals.

Knows how the parts fit together and nothing of who shows them: the window and the command line both start here.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from app.chat.messages import Chat
from app.chat.session import ChatSession, SessionServices
from app.chat.session_events import OnSessionEvent
from app.chat.store import ChatStore, open_store
from app.connections import ConnectionCounter
from app.engines.supervisor import EngineEvent, EngineSupervisor, LoadRequest
from app.errors import AppError, Words
from app.i18n import _, use_language
from app.log import new_worker_log, trim_worker_log
from app.models.fit import kv_bytes_per_token, weights_bytes
from app.models.library import Library, ModelEntry
from app.paths import Paths, install_folder, open_paths
from app.settings import SettingsStore
from app.units import bytes_text
from backends import protocol
from backends.client import EngineDied, WorkerCommand
from backends.renderer_client import RendererClient

if TYPE_CHECKING:
    from app.telemetry.store import TelemetryStore

_STORE_NAME = "chats.sqlite3"
_SETTINGS_NAME = "settings.json"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to be told at the start.

    Attributes:
        key: equal notices have equal keys.
        words: what happened and what to do.
    """

    key: str
    words: Words


class AppContext:
    """Everything the program works with, for one run; close it.

    Attributes:
        paths: the person's folders.
        settings: the person's choices.
        store: the chats.
        library: the model files.
        engine: the one engine.
        connections: the network connections of this process.
        notices: what went wrong while opening all this.
    """

    def __init__(self, paths: Paths, notices: list[Notice], command: WorkerCommand | None = None) -> None:
        self.paths = paths
        self.settings, problems = SettingsStore.load(paths.config / _SETTINGS_NAME)
        use_language(self.settings.get().language)
        opened = open_store(paths.data / _STORE_NAME)
        self.store: ChatStore = opened.store
        self.library = Library(paths.data, install_folder())
        self._telemetry: TelemetryStore | None = None
        self.connections = ConnectionCounter()
        self.connections.install()
        self._worker_log = Path(os.devnull)
        self._last_loaded: protocol.ModelLoaded | None = None
        self.engine = EngineSupervisor(self._open_worker_log, self._on_engine_event, command)
        self.notices = [
            *notices,
            *(Notice(f"settings {number}", words) for number, words in enumerate(problems)),
            *(Notice(f"store {notice.code}", Words(notice.message, notice.hint)) for notice in opened.notices),
            *(Notice(f"library {number}", Words(text)) for number, text in enumerate(self.library.notices())),
        ]
        self._renderer = RendererClient()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="composer")
        self.settings.save_with(self._executor.submit)
        self._sessions: dict[int, ChatSession] = {}
        self._watchers: list[Callable[[EngineEvent], None]] = []
        self._lock = threading.Lock()

    @property
    def telemetry(self) -> TelemetryStore:
        """The engine's readings over time, made when first asked for: numpy is not needed for the first paint."""
        with self._lock:
            if self._telemetry is None:
                from app.telemetry.store import TelemetryStore

                self._telemetry = TelemetryStore()
            return self._telemetry

    # ------------------------------------------------------------------------------------- sessions

    def session(self, chat: Chat, on_event: OnSessionEvent) -> ChatSession:
        """Return the session of a chat, making it the first time it is asked for."""
        with self._lock:
            session = self._sessions.get(chat.chat_id)
            if session is None:
                session = ChatSession(self._services(), chat, on_event)
                self._sessions[chat.chat_id] = session
            return session

    def end_session(self, chat_id: int) -> None:
        """Stop a chat's answer and forget its session; the chat itself is untouched."""
        with self._lock:
            session = self._sessions.pop(chat_id, None)
        if session is not None:
            session.close()

    def watch_engine(self, watcher: Callable[[EngineEvent], None]) -> None:
        """Hand every event of the engine to this watcher too, after the sessions had it."""
        self._watchers.append(watcher)

    def _services(self) -> SessionServices:
        return SessionServices(
            store=self.store,
            engine=self.engine,
            renderer=self._renderer,
            executor=self._executor,
            params=self.sampling_params,
            system_prompt=lambda: self.settings.get().system_prompt,
        )

    def _open_worker_log(self) -> Path:
        try:
            self._worker_log = new_worker_log(self.paths.logs)
        except OSError:  # a full or read-only folder must not keep an engine from running
            self._worker_log = Path(os.devnull)
        return self._worker_log

    def _on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case protocol.RequestFinished():
                trim_worker_log(self._worker_log)
            case protocol.MemoryRead():
                self.telemetry.record_memory(event)
            case protocol.StepDone():
                self.telemetry.record_step(event)
            case protocol.ModelLoaded():
                self._last_loaded = event
                header = self.engine.header
                predicted = kv_bytes_per_token(header, event.kv_type) if header is not None else None
                self.telemetry.model_loaded(event, predicted)
            case EngineDied():
                self.telemetry.engine_gone()
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.on_engine_event(event)
        for watcher in self._watchers:
            watcher(event)

    # --------------------------------------------------------------------------------------- models

    def load_model(self, entry: ModelEntry, backend: str = "llama_cpp") -> None:
        """Load a model of the library with the settings' params and remember it; returns at once."""
        self.settings.change(last_model=entry.key)
        self._last_loaded = None
        self.engine.load(LoadRequest(str(entry.path), backend, self.load_params()))

    def preferred_model(self) -> ModelEntry | None:
        """Return the model to start with: the last one used, else the first that is whole."""
        entries = [entry for entry in self.library.entries() if not entry.fault]
        last = self.settings.get().last_model
        return next((entry for entry in entries if entry.key == last), entries[0] if entries else None)

    def memory_hint(self) -> str:
        """Return what the model needs at least and what is free now, in a sentence; "" when its header is unknown."""
        header = self.engine.header
        if header is None:
            return ""
        loaded = self._last_loaded
        per_token = kv_bytes_per_token(header, loaded.kv_type) if loaded is not None else None
        needed = weights_bytes(header) + (per_token * loaded.context_tokens if loaded and per_token else 0)
        free = psutil.virtual_memory().available
        words = _("It needs at least {needed}; {free} are free now.")
        return words.format(needed=bytes_text(needed), free=bytes_text(free))

    def load_params(self) -> protocol.LoadParams:
        """Return the settings as load params."""
        settings = self.settings.get()
        return protocol.LoadParams(
            context_tokens=settings.context_tokens, kv_type=settings.kv_type, threads=settings.threads
        )

    def sampling_params(self) -> protocol.SamplingParams:
        """Return the settings as sampling params."""
        settings = self.settings.get()
        return protocol.SamplingParams(
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            min_p=settings.min_p,
            repeat_penalty=settings.repeat_penalty,
            seed=settings.seed,
            max_tokens=settings.max_tokens,
        )

    def close(self) -> None:
        """End the engine, write what is left and let go of everything; answers under way are kept as they are."""
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.close()
        self.engine.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        with contextlib.suppress(AppError):  # said when it was changed
            self.settings.save()
        self._renderer.close()
        self.store.close()


def build_context(environment: dict[str, str] | None = None, command: WorkerCommand | None = None) -> AppContext:
    """Open the person's folders and build the context; another command starts another worker than our own."""
    paths, problems = open_paths(environment)
    return AppContext(paths, [Notice(f"folder {number}", words) for number, words in enumerate(problems)], command)
