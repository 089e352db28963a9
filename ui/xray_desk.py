"""Brings X-rays of answers together: the answer of a chat, the quantizations of its model, the run and the window.

One window at a time. Runs go on a background task; the chat stays usable meanwhile, and its model stays loaded, so
whether there is room for another one is asked with that in mind.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.chat.messages import Message
from app.chat.session import ChatSession
from app.compare.reference import candidates_for
from app.compare.xray import StoppedError, XrayRun, xray_params
from app.compare.xray_types import Xray, XrayModel, XrayProgress, XrayQuestion
from app.context import AppContext
from app.engines.backend_choice import is_loadable
from app.engines.load_gate import LoadGate
from app.errors import Words
from app.i18n import _, ngettext
from app.log import new_worker_log
from app.models.advisor import FitAdvisor
from app.models.entry import ModelEntry
from app.models.fit_words import fit_short
from app.units import bytes_text, count_text
from backends.client import WorkerCommand
from backends.protocol import LoadParams
from backends.renderer_client import RendererClient
from ui.panels.xray_dialog import XrayChoice, XrayDialog
from ui.tasks import OnError, Tasks
from ui.theme import Theme


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is read: an answer, what precedes it, and the entry of the model that wrote it."""

    answer: Message
    dialogue: tuple[Message, ...]
    system_prompt: str
    entry: ModelEntry | None
    others: tuple[ModelEntry, ...]


class XrayDesk(QObject):
    """The X-rays of the chat screen.

    Attributes:
        dialog: the window; None while there is none.
        _gate: who says what must be agreed to before a load beside the chat's model.
        _advisor: who says whether there is room beside the chat's model.
        command: starts another worker than our own.
        _asks_own: whether the model that wrote the answer reads it too.
        _run: what is under way; None for nothing.
        _number: of the last run; what an earlier one still says is passed over.

    Signals:
        _progressed(number, progress): a run is somewhere.
    """

    _progressed = Signal(int, object)

    def __init__(self, context: AppContext, tasks: Tasks, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._tasks = tasks
        self._theme = theme
        self._window = parent
        self.dialog: XrayDialog | None = None
        self._subject: _Subject | None = None
        # nothing is given back for this load: the chat's model stays where it is
        self._advisor = FitAdvisor(context.library, context.load_params, backend_of=context.backend_of)
        self._gate = LoadGate(context.library, self._advisor)
        self.command: WorkerCommand | None = None
        self._asks_own = False
        self._run: XrayRun | None = None
        self._number = 0
        self._progressed.connect(self._on_progress, Qt.ConnectionType.QueuedConnection)

    # ----------------------------------------------------------------------------------------- public

    def open(self, session: ChatSession, message_id: int) -> None:
        """Offer the quantizations that may read an answer of a chat; nothing happens for one that is not there."""
        messages = session.messages()
        place = next((n for n, message in enumerate(messages) if message.message_id == message_id), None)
        if place is None:
            return
        self.stop()
        answer = messages[place]
        entry = self._entry_of(answer)
        others = candidates_for(entry, self._context.library.entries()) if entry is not None else ()
        self._subject = _Subject(
            answer,
            tuple(messages[:place]),
            session.chat.system_prompt or self._context.system_prompt(),
            entry,
            tuple(other for other in others if is_loadable(other)),
        )
        dialog = self._open_dialog()
        self._offer()
        if dialog.isVisible():
            dialog.raise_()
            dialog.activateWindow()
        else:
            dialog.show()

    @Slot()
    def stop(self) -> None:
        """End what is under way."""
        self._number += 1
        if self._run is not None:
            self._run.stop()
            self._run = None

    def close(self) -> None:
        """End everything; the window is going."""
        self.stop()
        if self.dialog is not None:
            self.dialog.close()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._theme = theme
        if self.dialog is not None:
            self.dialog.set_theme(theme)

    # ----------------------------------------------------------------------------------------- choice

    def _open_dialog(self) -> XrayDialog:
        if self.dialog is None:
            dialog = self.dialog = XrayDialog(self._theme, self._window.window())
            dialog.chosen.connect(self._on_chosen)
            dialog.agreed.connect(self._on_agreed)
            dialog.stop_requested.connect(self._on_stop)
            dialog.choice_requested.connect(self._offer)
            dialog.closed.connect(self._on_closed)
        return self.dialog

    @Slot()
    def _offer(self) -> None:
        """Show which quantizations there are."""
        subject = self._subject
        if subject is None or self.dialog is None:
            return
        words = ngettext(
            "An answer of {count} token by {name}. What would another one have written?",
            "An answer of {count} tokens by {name}. What would another one have written?",
            len(subject.answer.token_ids),
        )
        name = subject.entry.quantization or subject.entry.name if subject.entry is not None else _("an unknown model")
        about = words.format(count=count_text(len(subject.answer.token_ids)), name=name)
        self.dialog.show_choices(about, [self._choice(other) for other in subject.others], _nothing(subject.entry))

    def _choice(self, entry: ModelEntry) -> XrayChoice:
        fit = self._advisor.fit(entry, self._params(entry), self._context.backend_of(entry))
        facts = [bytes_text(entry.size_bytes), fit_short(fit)]
        return XrayChoice(entry.key, entry.quantization or entry.name, " · ".join(facts))

    def _entry_of(self, answer: Message) -> ModelEntry | None:
        """Return the entry of the model that wrote an answer; of copies, any."""
        entries = [
            *self._context.library.entries(),
            *(one for group in self._context.library.duplicates() for one in group),
        ]
        return next((entry for entry in entries if entry.path == Path(answer.model)), None) if answer.model else None

    def _params(self, entry: ModelEntry) -> LoadParams:
        subject = self._subject
        assert subject is not None
        backend = self._context.backend_of(entry)
        return xray_params(self._context.load_params(entry, backend), backend, subject.dialogue, subject.answer)

    # -------------------------------------------------------------------------------------------- run

    @Slot(str)
    def _on_chosen(self, key: str) -> None:
        """Look whether there is room beside the chat's model, then begin."""
        entry = self._find(key)
        if entry is None or self._subject is None or self.dialog is None:
            return
        self.stop()
        number, gate, own = self._number, self._gate, self._subject.entry
        params, own_params = self._params(entry), self._params(own) if own is not None else None
        backend_of = self._context.backend_of

        def look() -> tuple[Words | None, bool]:
            question = gate.question(entry, params, backend_of(entry))
            if own is None or own_params is None:
                return question, False
            return question, gate.question(own, own_params, backend_of(own)) is None

        def answered(found: tuple[Words | None, bool]) -> None:
            if number != self._number or self.dialog is None:
                return
            question, self._asks_own = found
            if question is None:
                self._begin(entry)
            else:
                self.dialog.ask(question)

        self.dialog.show_progress(XrayProgress(_("Looking whether there is room for it beside the chat's model")))
        self._tasks.run(look, answered, self._failing(number))

    @Slot(str)
    def _on_agreed(self, key: str) -> None:
        entry = self._find(key)
        if entry is None:
            return
        self.stop()
        number, gate, params, backend = self._number, self._gate, self._params(entry), self._context.backend_of(entry)

        def agreed(_done: None) -> None:
            if number == self._number:
                self._begin(entry)

        self._tasks.run(lambda: gate.agree(entry, params, backend), agreed, self._failing(number))

    def _begin(self, entry: ModelEntry) -> None:
        subject = self._subject
        if subject is None or self.dialog is None:
            return
        self.stop()
        number, renderer = self._number, RendererClient()
        own = self._model(subject.entry) if subject.entry is not None and self._asks_own else None
        notes: tuple[str, ...] = ()
        if own is None and subject.entry is not None:
            words = _(
                "{name}, which wrote the answer, was not asked: there may be no room for it beside the chat's model."
            )
            notes = (words.format(name=subject.entry.quantization or subject.entry.name),)
        question = XrayQuestion(subject.dialogue, subject.answer, subject.system_prompt, self._model(entry), own, notes)
        run = self._run = XrayRun(question, self._open_log, renderer, self.command)

        def work() -> Xray | None:
            try:
                return run.run(lambda progress: self._progressed.emit(number, progress))
            except StoppedError:
                return None
            finally:
                renderer.close()

        def found(xray: Xray | None) -> None:
            if xray is not None and number == self._number and self.dialog is not None:
                self._run = None
                self.dialog.show_xray(xray)

        self._tasks.run(work, found, self._failing(number))

    def _model(self, entry: ModelEntry) -> XrayModel:
        name = entry.quantization or entry.name
        return XrayModel(name, str(entry.path), self._context.backend_of(entry), self._params(entry))

    def _open_log(self) -> Path:
        try:
            return new_worker_log(self._context.paths.logs)
        except OSError:  # a full or read-only folder must not keep an engine from running
            return Path(os.devnull)

    def _failing(self, number: int) -> OnError:
        """Return who tells the failure of a run, unless another one was begun since."""

        def failed(words: Words) -> None:
            if number == self._number and self.dialog is not None:
                self._run = None
                self.dialog.show_failure(words)

        return failed

    def _find(self, key: str) -> ModelEntry | None:
        others = self._subject.others if self._subject is not None else ()
        return next((other for other in others if other.key == key), None)

    # ------------------------------------------------------------------------------------------ slots

    @Slot(int, object)
    def _on_progress(self, number: int, progress: XrayProgress) -> None:
        if number == self._number and self._run is not None and self.dialog is not None:
            self.dialog.show_progress(progress)

    @Slot()
    def _on_stop(self) -> None:
        """End what is under way and offer the quantizations again."""
        self.stop()
        self._offer()

    @Slot()
    def _on_closed(self) -> None:
        self.stop()
        self.dialog = None


def _nothing(entry: ModelEntry | None) -> str:
    """Return what is said where no other quantization can read the answer."""
    if entry is None:
        return _(
            "The model that wrote this answer is not in the library any more, so nobody can tell its quantizations."
        )
    words = _("The library holds no other quantization of {name}. Download one on the Models page, or make one there.")
    return words.format(name=entry.name)
