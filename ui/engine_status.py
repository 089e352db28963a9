"""What the engine is up to, in words: the chip, the live line, and the notices of everything that went wrong.

Listens to the bridge and speaks through the notice bar; decides nothing about chats.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal, Slot

from app.context import AppContext
from app.deaths import words_for_death
from app.engines.backend_choice import load_notices, quantization_text
from app.engines.supervisor import EngineEvent, ResponseChanged, StateChanged
from app.errors import Words, words_for
from app.i18n import _
from app.models.entry import ModelEntry
from app.units import NBSP, seconds_text
from backends import protocol, registry
from backends.client import EngineDied
from backends.protocol import LifeCycle
from ui.bridge import Bridge
from ui.notifications import NoticeBar, NoticeLevel
from ui.tasks import Tasks

_ENGINE_KEY = "engine"
_SILENCE_KEY = "engine silent"
_QUESTION_KEY = "load question"
SWITCHED_KEY = "backend switched"  # what a switch means for the chat that is open
_LOAD_KEYS = (_ENGINE_KEY, _SILENCE_KEY)


@dataclass(frozen=True, slots=True)
class _Wish:
    """A load that a person wants.

    Attributes:
        entry: the model.
        backend: which backend is to load it.
        came_from: the backend that has it now; "" where the model is another one.
    """

    entry: ModelEntry
    backend: str
    came_from: str = ""


class EngineStatus(QObject):
    """Follows the one engine.

    Attributes:
        entry: the model that is loaded or being loaded; None for none.
        backend: name of the backend that has it; "" for none.
        _came_from: the backend that had the model before the person chose another one; "" when nobody did.
        _loaded_keys: notices of what came otherwise than asked for, which go with the load.
        _wishes: how many loads were wished for; only the last one counts.
        _progress: how far the load is, 0 to 1.
        _was_loaded: whether the present engine had its model ready.
        _has_failed: whether it said why it could not load; its end is no news then.

    Signals:
        changed(): chip text, live text or readiness may have changed.
    """

    changed = Signal()

    def __init__(
        self, context: AppContext, bridge: Bridge, notices: NoticeBar, tasks: Tasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.entry: ModelEntry | None = None
        self.backend = ""
        self._came_from = ""
        self._loaded_keys: list[str] = []
        self._tasks = tasks
        self._wishes = 0
        self._context = context
        self._notices = notices
        self._progress = 0.0
        self._was_loaded = False
        self._has_failed = False
        bridge.engine_event.connect(self._on_engine_event)

    # ----------------------------------------------------------------------------------------- public

    def load(self, entry: ModelEntry) -> None:
        """Load a model, ending the present one; what stands in the way is asked first, in a notice.

        A file that changed on disk may have to be hashed, which takes its time.
        """
        self._load(_Wish(entry, self._context.backend_of(entry)))

    def switch(self, backend: str) -> None:
        """Load the present model by another backend, and by that one from now on; nothing happens for the same one."""
        entry = self.entry
        if entry is None or backend == self.backend:
            return
        self._tasks.run(lambda: self._context.choose_backend(entry, backend), lambda _done: None)
        self._load(_Wish(entry, backend, self.backend))

    def _load(self, wish: _Wish) -> None:
        self._wishes += 1
        number, gate, params = self._wishes, self._context.gate, self._context.load_params(wish.entry, wish.backend)
        self._notices.dismiss(_QUESTION_KEY)
        if gate.takes_time(wish.entry, params, wish.backend):
            self._tasks.run(
                lambda: gate.question(wish.entry, params, wish.backend),
                lambda question: self._on_question(number, wish, question),
            )
        else:
            self._on_question(number, wish, gate.question(wish.entry, params, wish.backend))

    def _on_question(self, number: int, wish: _Wish, question: Words | None) -> None:
        if number != self._wishes:
            return  # another model was chosen meanwhile
        if question is None:
            self._begin(wish)
            return

        def load_anyway() -> None:
            params = self._context.load_params(wish.entry, wish.backend)
            self._context.gate.agree(wish.entry, params, wish.backend)
            self._notices.dismiss(_QUESTION_KEY)
            self._begin(wish)

        self._notices.show_notice(
            _QUESTION_KEY, question.message, question.hint, NoticeLevel.WARNING, _("Load anyway"), load_anyway
        )
        self.changed.emit()

    def _begin(self, wish: _Wish) -> None:
        self.entry, self.backend, self._came_from = wish.entry, wish.backend, wish.came_from
        self._progress = 0.0
        self._context.load_model(wish.entry, wish.backend)
        self.changed.emit()

    @property
    def chip_text(self) -> str:
        """Model, quantization, backend and the device really used, or what to do."""
        if self.entry is None:
            return _("No model")
        loaded = self._context.engine.loaded
        quantization = quantization_text(self.entry.quantization, loaded.quantization if loaded else "")
        title = registry.BACKENDS[self.backend].title if self.backend else ""
        facts = [self.entry.name, quantization, title, loaded.device if loaded else ""]
        return " · ".join(fact for fact in facts if fact)

    @property
    def line(self) -> str:
        """What the engine is doing when it cannot answer yet; "" when it can."""
        match self._context.engine.state:
            case LifeCycle.STARTING | LifeCycle.LOADING:
                if self._progress > 0:
                    percent = f"{self._progress * 100:.0f}{NBSP}%"
                    return _("Loading the model, {percent}").format(percent=percent)
                return _("Starting the engine")
            case LifeCycle.STOPPING:
                return _("Ending the engine")
            case LifeCycle.DEAD if self.entry is not None:
                return _("The engine is not running; sending starts it again")
            case _:
                return ""

    @property
    def is_ready(self) -> bool:
        """Whether a prompt may be sent: a model is there, loaded or not."""
        return self.entry is not None

    # ------------------------------------------------------------------------------------------ slots

    @Slot(object)
    def _on_engine_event(self, event: EngineEvent) -> None:
        match event:
            case StateChanged():
                self._on_state(event.state)
            case protocol.Progress():
                self._progress = event.done / event.total if event.total else 0.0
            case protocol.ModelLoaded():
                self._on_loaded(event)
            case protocol.EngineFailed() if event.request_id == 0:
                self._has_failed = not self._was_loaded
                words = words_for(event.code, event.parameters)
                self._tell(words.message, words.hint, _("Try again"))
            case EngineDied() if event.cause != "replaced":
                self._on_died(event)
            case ResponseChanged():
                self._on_response(event)
        self.changed.emit()

    def _on_state(self, state: LifeCycle) -> None:
        if state is LifeCycle.STARTING:
            self._progress = 0.0
            self._was_loaded = False
            self._has_failed = False
            for key in (*_LOAD_KEYS, *self._loaded_keys):
                self._notices.dismiss(key)
            self._loaded_keys.clear()

    def _on_loaded(self, event: protocol.ModelLoaded) -> None:
        self._was_loaded = True
        self._came_from = ""
        for code, words in load_notices(self._context.wanted_params(self.entry), event):
            self._loaded_keys.append(f"loaded {code}")
            self._notices.show_notice(f"loaded {code}", words.message, words.hint, NoticeLevel.WARNING)

    def _on_died(self, event: EngineDied) -> None:
        self._notices.dismiss(_SILENCE_KEY)
        if self._has_failed:
            return  # the worker was told to go after its load had failed; the reason was said already
        phase = "" if self._was_loaded else "loading"
        hint = self._context.memory_hint()
        words = words_for_death(event.exit_code, event.signal, phase, event.cause, hint, event.last_log_lines)
        self._tell(words.message, words.hint, _("Restart"))

    def _on_response(self, event: ResponseChanged) -> None:
        if event.is_responding:
            self._notices.dismiss(_SILENCE_KEY)
            return
        message = _("The engine has not answered for {time}.").format(time=seconds_text(max(event.silence_s, 3.0)))
        hint = _("It may come back. Stopping it keeps all that was written; the next prompt starts it again.")
        self._notices.show_notice(
            _SILENCE_KEY, message, hint, NoticeLevel.WARNING, _("Stop the engine"), self._context.engine.kill
        )

    def _tell(self, message: str, hint: str, action: str) -> None:
        callback = self._context.engine.restart
        if came_from := self._came_from:  # it was another backend's a moment ago, and worked
            action = _("Back to {backend}").format(backend=registry.BACKENDS[came_from].title)
            callback = functools.partial(self.switch, came_from)
            self._notices.dismiss(SWITCHED_KEY)
        self._notices.show_notice(_ENGINE_KEY, message, hint, NoticeLevel.ERROR, action, callback)
