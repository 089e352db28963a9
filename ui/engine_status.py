"""What the engine is up to, in words: the chip, the live line, and the notices of everything that went wrong.

Listens to the bridge and speaks through the notice bar; decides nothing about chats.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.context import AppContext
from app.deaths import words_for_death
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
_LOAD_KEYS = (_ENGINE_KEY, _SILENCE_KEY)


class EngineStatus(QObject):
    """Follows the one engine.

    Attributes:
        entry: the model that is loaded or being loaded; None for none.
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
        self._wishes += 1
        wish, gate, params = self._wishes, self._context.gate, self._context.load_params(entry)
        self._notices.dismiss(_QUESTION_KEY)
        if gate.takes_time(entry, params):
            self._tasks.run(
                lambda: gate.question(entry, params), lambda question: self._on_question(wish, entry, question)
            )
        else:
            self._on_question(wish, entry, gate.question(entry, params))

    def _on_question(self, wish: int, entry: ModelEntry, question: Words | None) -> None:
        if wish != self._wishes:
            return  # another model was chosen meanwhile
        if question is None:
            self._begin(entry)
            return

        def load_anyway() -> None:
            self._context.gate.agree(entry, self._context.load_params(entry))
            self._notices.dismiss(_QUESTION_KEY)
            self._begin(entry)

        self._notices.show_notice(
            _QUESTION_KEY, question.message, question.hint, NoticeLevel.WARNING, _("Load anyway"), load_anyway
        )
        self.changed.emit()

    def _begin(self, entry: ModelEntry) -> None:
        self.entry = entry
        self._progress = 0.0
        self._context.load_model(entry)
        self.changed.emit()

    @property
    def chip_text(self) -> str:
        """Model, quantization, backend and the device really used, or what to do."""
        if self.entry is None:
            return _("No model")
        loaded = self._context.engine.loaded
        request = self._context.engine.request
        backend = registry.BACKENDS[request.backend].title if request else ""
        facts = [self.entry.name, self.entry.quantization, backend, loaded.device if loaded else ""]
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
            for key in _LOAD_KEYS:
                self._notices.dismiss(key)

    def _on_loaded(self, event: protocol.ModelLoaded) -> None:
        self._was_loaded = True
        for code in event.notices:
            words = words_for(code, {"context_tokens": event.context_tokens, "path": event.model_path})
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
        self._notices.show_notice(_ENGINE_KEY, message, hint, NoticeLevel.ERROR, action, self._context.engine.restart)
