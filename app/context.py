"""The program's parts, built once and handed on: no singletons, no globals.

Knows how the parts fit together and nothing of who shows them: the window and the command line both start here.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from app.chat.messages import Chat
from app.chat.session import ChatSession, SessionServices
from app.chat.session_events import OnSessionEvent
from app.chat.store import ChatStore, open_store
from app.connections import ConnectionCounter
from app.engines.backend_choice import chosen_backend, is_loadable, own_choice
from app.engines.load_recorder import LoadRecorder
from app.engines.supervisor import EngineEvent, EngineSupervisor, LoadRequest
from app.errors import AppError, Words
from app.i18n import _, use_language
from app.log import new_worker_log, trim_worker_log
from app.models.entry import ModelDefaults, ModelEntry
from app.models.fit_types import Fit, Measured
from app.paths import Paths, install_folder, open_paths
from app.settings import SettingsStore
from app.units import bytes_text
from backends import protocol
from backends.client import EngineDied, WorkerCommand
from backends.registry import BACKENDS
from backends.renderer_client import RendererClient

if TYPE_CHECKING:
    from app.engines.load_gate import LoadGate
    from app.models.advisor import FitAdvisor
    from app.models.library import Library
    from app.network import Network
    from app.telemetry.store import TelemetryStore

_T = TypeVar("_T")

_log = logging.getLogger(__name__)

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
        engine: the one engine.
        predicted: what the load in force was expected to take; None without one.
        recorder: what it really took.
        connections: the network connections of this process.
        notices: what went wrong while opening all this.
    """

    def __init__(
        self,
        paths: Paths,
        notices: list[Notice],
        command: WorkerCommand | None = None,
        library: Library | None = None,
    ) -> None:
        self.paths = paths
        self.settings, problems = SettingsStore.load(paths.config / _SETTINGS_NAME)
        use_language(self.settings.get().language)
        opened = open_store(paths.data / _STORE_NAME)
        self.store: ChatStore = opened.store
        self._library = library
        self._telemetry: TelemetryStore | None = None
        self.connections = ConnectionCounter()
        self.connections.install()
        self._worker_log = Path(os.devnull)
        self.predicted: Fit | None = None
        self._read: protocol.MemoryRead | None = None
        self._advisor: FitAdvisor | None = None
        self._gate: LoadGate | None = None
        self._making = threading.RLock()
        self.engine = EngineSupervisor(self._open_worker_log, self._on_engine_event, command)
        self.notices = [
            *notices,
            *(Notice(f"settings {number}", words) for number, words in enumerate(problems)),
            *(Notice(f"store {notice.code}", Words(notice.message, notice.hint)) for notice in opened.notices),
        ]
        self.recorder = LoadRecorder(lambda: self.engine.request, self._on_measured)
        self._network: Network | None = None
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

    @property
    def library(self) -> Library:
        """The models on this machine, opened when first asked for: the first paint needs none of it."""
        with self._making:
            if self._library is None:
                from app.models.library import Library

                self._library = Library(self.paths.data, install_folder())
            return self._library

    @property
    def advisor(self) -> FitAdvisor:
        """Who says whether a model fits."""
        with self._making:
            if self._advisor is None:
                from app.models.advisor import FitAdvisor

                self._advisor = FitAdvisor(self.library, self.load_params, self._held_bytes, backend_of=self.backend_of)
            return self._advisor

    @property
    def gate(self) -> LoadGate:
        """Who says what must be agreed to before a load."""
        with self._making:
            if self._gate is None:
                from app.engines.load_gate import LoadGate

                self._gate = LoadGate(self.library, self.advisor)
            return self._gate

    @property
    def network(self) -> Network:
        """The hub and the downloads."""
        with self._making:
            if self._network is None:
                from app.network import Network

                self._network = Network(self.paths, self.settings)
            return self._network

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
            system_prompt=self.system_prompt,
        )

    def _open_worker_log(self) -> Path:
        try:
            self._worker_log = new_worker_log(self.paths.logs)
        except OSError:  # a full or read-only folder must not keep an engine from running
            self._worker_log = Path(os.devnull)
        return self._worker_log

    def _on_engine_event(self, event: EngineEvent) -> None:
        self.recorder.on_event(event)
        match event:
            case protocol.RequestFinished():
                trim_worker_log(self._worker_log)
            case protocol.MemoryRead():
                self._read = event
                self.telemetry.record_memory(event)
            case protocol.StepDone():
                self.telemetry.record_step(event)
            case protocol.ModelLoaded():
                self.telemetry.model_loaded(event, self._predict(event))
            case EngineDied():
                self._read = None
                self.telemetry.engine_gone()
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            session.on_engine_event(event)
        for watcher in self._watchers:
            watcher(event)

    def _predict(self, loaded: protocol.ModelLoaded) -> float | None:
        """Note what this load was expected to take, and return the KV cache's part of it for one token."""
        entry, request = self.entry_in_use(), self.engine.request
        self.predicted = None
        if entry is None or request is None or not loaded.context_tokens:
            return None
        params = msgspec.structs.replace(request.params, context_tokens=loaded.context_tokens)
        self.predicted = self.advisor.fit(entry, params, request.backend)
        estimate = self.predicted.estimate
        return estimate.kv_bytes / loaded.context_tokens if estimate is not None else None

    def _held_bytes(self) -> int:
        """Return what the engine in use would give back: a load ends it first."""
        read = self._read
        return read.anonymous_bytes if read is not None else 0

    def _on_measured(self, request: LoadRequest, measured: Measured) -> None:
        """Keep what a load took; on the composer's thread, since the database waits for the disk."""
        with contextlib.suppress(RuntimeError):  # the program is ending
            self._executor.submit(self._record, Path(request.path), measured)

    def _record(self, path: Path, measured: Measured) -> None:
        try:
            self.library.record(path, measured)
            entry = self.entry_in_use()
            if entry is not None and entry.path == path:
                params = self.load_params(entry, measured.backend)
                self.advisor.learn_from_answer(entry, measured.decode_tokens_per_s, params, measured.backend)
        except AppError as error:
            _log.warning("a measurement could not be kept: %s", error)

    # --------------------------------------------------------------------------------------- models

    def load_model(self, entry: ModelEntry, backend: str = "") -> None:
        """Load a model of the library with its params and remember it; returns at once.

        Args:
            entry: the model.
            backend: by which backend; "" for the one that takes it.
        """
        self.settings.change(last_model=entry.key)
        backend = backend or self.backend_of(entry)
        self.engine.load(LoadRequest(str(entry.path), backend, self.load_params(entry, backend)))

    def backend_of(self, entry: ModelEntry) -> str:
        """Return the name of the backend that takes a model: its own default, else the settings', else the first."""
        return chosen_backend(entry, self.settings.get().backend)

    def choose_backend(self, entry: ModelEntry, backend: str) -> None:
        """Have a backend take a model from now on; blocks for the library's disk.

        Raises:
            LibraryError: the library cannot be written, or does not know the model.
        """
        own = own_choice(entry, backend, self.settings.get().backend)
        known = self.library.find(entry.key)
        if known.defaults.backend != own:
            self.library.set_defaults(known.key, msgspec.structs.replace(known.defaults, backend=own))

    def preferred_model(self) -> ModelEntry | None:
        """Return the model to start with: the last one used, else the first that a backend here can load."""
        entries = [entry for entry in self.library.entries() if is_loadable(entry)]
        last = self.settings.get().last_model
        return next((entry for entry in entries if entry.key == last), entries[0] if entries else None)

    def entry_in_use(self) -> ModelEntry | None:
        """Return the library's entry for what is loaded or being loaded; None for a file that is not in it."""
        request = self.engine.request
        if request is None or not request.path:
            return None
        path = Path(request.path)
        places = itertools.chain(self.library.entries(), *self.library.duplicates())
        return next((entry for entry in places if entry.path == path), None)

    def memory_hint(self) -> str:
        """Return what the model needs and what is free now, in a sentence; "" when nobody can tell."""
        entry, request = self.entry_in_use(), self.engine.request
        fit = self.advisor.fit(entry, request.params, request.backend) if entry is not None and request else None
        if fit is None or fit.estimate is None:
            return ""
        words = _("It needs about {needed}; {free} are free now.")
        return words.format(needed=bytes_text(fit.estimate.needed_bytes), free=bytes_text(fit.free_bytes))

    def load_params(self, entry: ModelEntry | None = None, backend: str = "") -> protocol.LoadParams:
        """Return how a model is loaded: as the person wants it, with the backend's exact KV type for one it has not.

        Args:
            entry: the model; None for any.
            backend: which backend would load it; "" for the one that takes it.
        """
        wanted = self.wanted_params(entry)
        found = BACKENDS[backend or (self.backend_of(entry) if entry is not None else next(iter(BACKENDS)))]
        return wanted if found.can_store(wanted.kv_type) else msgspec.structs.replace(wanted, kv_type=found.kv_types[0])

    def wanted_params(self, entry: ModelEntry | None = None) -> protocol.LoadParams:
        """Return how a person wants a model loaded, whatever the backend: its own defaults, else the settings."""
        defaults = entry.defaults if entry is not None else ModelDefaults()
        settings = self.settings.get()
        return protocol.LoadParams(
            context_tokens=_first(defaults.context_tokens, settings.context_tokens),
            kv_type=_first(defaults.kv_type, settings.kv_type),
            threads=_first(defaults.threads, settings.threads),
        )

    def sampling_params(self) -> protocol.SamplingParams:
        """Return how the model in use chooses tokens: its own defaults, where it has some, else the settings."""
        entry = self.entry_in_use()
        defaults = entry.defaults if entry is not None else ModelDefaults()
        settings = self.settings.get()
        return protocol.SamplingParams(
            temperature=_first(defaults.temperature, settings.temperature),
            top_k=_first(defaults.top_k, settings.top_k),
            top_p=_first(defaults.top_p, settings.top_p),
            min_p=_first(defaults.min_p, settings.min_p),
            repeat_penalty=_first(defaults.repeat_penalty, settings.repeat_penalty),
            seed=settings.seed,
            max_tokens=settings.max_tokens,
        )

    def system_prompt(self) -> str:
        """Return what a new chat with the model in use is told first."""
        entry = self.entry_in_use()
        own = entry.defaults.system_prompt if entry is not None else None
        return _first(own, self.settings.get().system_prompt)

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
        if self._network is not None:
            self._network.close()
        if self._library is not None:
            self._library.close()
        self.store.close()


def build_context(
    environment: dict[str, str] | None = None, command: WorkerCommand | None = None, library: Library | None = None
) -> AppContext:
    """Open the person's folders and build the context.

    Args:
        environment: says where the folders are; None for the process's own.
        command: starts another worker than our own.
        library: takes the place of the person's own.
    """
    paths, problems = open_paths(environment)
    notices = [Notice(f"folder {number}", words) for number, words in enumerate(problems)]
    return AppContext(paths, notices, command, library)


def _first(own: _T | None, otherwise: _T) -> _T:
    """Return a model's own value, or the settings' where it has none."""
    return otherwise if own is None else own
