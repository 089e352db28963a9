"""The setup page of the Compare screen at work: models, reference, own text, and how long it would take.

A prediction loads a model for about two seconds: only while the screen is shown, no comparison runs and the chat is
quiet, and never twice for one model. Knows no comparison.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QFileDialog

from app.context import AppContext
from app.errors import Words
from app.i18n import _
from app.models.entry import ModelEntry
from backends.protocol import LifeCycle
from ui.compare_services import CompareServices, Outline, Proposed
from ui.models.compare_choice import comparable
from ui.models.model_choice import NamedModel
from ui.panels.compare_setup import CompareSetup
from ui.tasks import Tasks

# A person who is still ticking wants no answer to what is ticked so far.
_SETTLE_MS: Final = 700
# How soon it is looked again whether the chat is quiet.
_QUIET_MS: Final = 3000


class CompareSettingUp(QObject):
    """Fills the setup page.

    Attributes:
        _models: that can be compared, by name.
        _proposed: for the chosen model; None while it is worked out.
        _cancel: ends the prediction under way.
        _asked, _proposals: the numbers of the last questions; answers to older ones are dropped.

    Signals:
        told(words): a text cannot be used.
        emptied(): whether there is anything to compare has changed.
    """

    told = Signal(object)
    emptied = Signal()

    def __init__(
        self,
        context: AppContext,
        services: CompareServices,
        setup: CompareSetup,
        tasks: Tasks,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._context = context
        self._services = services
        self._setup = setup
        self._tasks = tasks
        self._probing = Tasks(None, self, 1)
        self._models: dict[str, NamedModel] = {}
        self._name = ""
        self._proposed: Proposed | None = None
        self._cancel = threading.Event()
        self._asked = self._proposals = 0
        self._is_shown = False
        self._is_free = True
        self._is_closed = False
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.timeout.connect(self._on_settled)
        setup.model_chosen.connect(self._on_model)
        setup.reference_chosen.connect(self._on_reference)
        setup.file_requested.connect(self.choose_file)
        setup.changed.connect(self._on_changed)

    # ------------------------------------------------------------------------------------- public

    @property
    def has_models(self) -> bool:
        """Whether there are two quantizations of any model."""
        return bool(self._models)

    @property
    def source(self) -> ModelEntry | None:
        """The model that others could be made of where there is nothing to compare: the most bits; None without one."""
        usable = [entry for entry in self._context.library.entries() if not entry.fault and entry.format == "gguf"]
        return max(usable, key=lambda entry: entry.bits_per_weight, default=None)

    @property
    def entries(self) -> Mapping[str, ModelEntry]:
        """The entries of the chosen model, by key."""
        return {entry.key: entry for entry in self._proposed.entries} if self._proposed is not None else {}

    def refresh(self) -> None:
        """Take over what the library has now; the chosen model stays chosen."""
        before = self._models
        self._models = {model.name: model for model in comparable(self._context.library.entries())}
        if not self._models:
            self._proposed = None
            self._name = ""
        elif self._name not in self._models:
            self._name = self._first_name()
            self._propose("")
        elif _keys(self._models[self._name]) != _keys(before.get(self._name)):
            self._propose("")
        self._setup.set_models(list(self._models), self._name)
        if bool(before) != bool(self._models):
            self.emptied.emit()

    def set_shown(self, is_shown: bool) -> None:
        """Say whether the screen is shown: nothing is predicted for nobody."""
        self._is_shown = is_shown
        if is_shown:
            self._on_changed()
        else:
            self.pause()

    def set_free(self, is_free: bool) -> None:
        """Say whether no comparison runs."""
        self._is_free = is_free
        if is_free:
            self._on_changed()

    def pause(self) -> None:
        """End the prediction under way."""
        self._settle.stop()
        self._cancel.set()

    def close(self) -> None:
        """End what runs in the background."""
        self._is_closed = True
        self.pause()

    def finish(self) -> None:
        """Wait for what was ended."""
        self._probing.wait_all()

    @Slot()
    def choose_file(self) -> None:
        """Let a person choose a text file."""
        dialog = QFileDialog(self._setup, _("Choose a text file"), "", _("Text (*.txt *.md *);;All files (*)"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setObjectName("choose_text")
        dialog.fileSelected.connect(self._on_file)
        dialog.rejected.connect(self._on_no_file)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    # ------------------------------------------------------------------------------------- slots

    @Slot(str)
    def _on_model(self, name: str) -> None:
        if name != self._name and name in self._models:
            self._name = name
            self._propose("")

    @Slot(str)
    def _on_reference(self, key: str) -> None:
        self._propose(key)

    @Slot(str)
    def _on_file(self, name: str) -> None:
        self._setup.set_own_text(Path(name))

    @Slot()
    def _on_no_file(self) -> None:
        if not self._setup.choice.own_path:
            self._setup.set_own_text(None)

    @Slot()
    def _on_changed(self) -> None:
        """Ask anew what it comes to; the answer to the last question is of no use any more."""
        self._cancel.set()
        self._asked += 1
        if self._is_closed or not self._is_shown or self._proposed is None or self._setup.needs_file:
            return
        number, choice, services = self._asked, self._setup.choice, self._services
        self._tasks.run(
            lambda: services.outline(choice), lambda outline: self._on_outline(number, outline), self._on_refused
        )
        if self._is_free and choice.candidates:
            self._settle.start(_SETTLE_MS)

    @Slot()
    def _on_settled(self) -> None:
        if not self._is_free or not self._is_shown or self._is_closed:
            return
        if self._context.engine.state in (LifeCycle.BUSY, LifeCycle.LOADING):
            self._settle.start(_QUIET_MS)
            return
        self._cancel = cancel = threading.Event()
        number, choice, entries, services = self._asked, self._setup.choice, self.entries, self._services
        self._setup.set_prediction(_("predicting the time…"))
        self._probing.run(
            lambda: services.predict(choice, entries, cancel),
            lambda outline: self._on_predicted(number, outline),
            lambda _words: self._on_predicted(number, None),
        )

    # ----------------------------------------------------------------------------- back from the tasks

    def _propose(self, reference_key: str) -> None:
        """Work out what can be compared of the chosen model."""
        self._cancel.set()
        self._proposals += 1
        number, services = self._proposals, self._services
        entries = self._models[self._name].entries
        self._tasks.run(
            lambda: services.propose(entries, reference_key), lambda proposed: self._on_proposed(number, proposed)
        )

    def _on_proposed(self, number: int, proposed: Proposed | None) -> None:
        if proposed is None or number != self._proposals or self._is_closed:
            return
        self._proposed = proposed
        setup = self._setup
        setup.set_reference(proposed.references, proposed.reference_key, proposed.reason, proposed.warnings)
        setup.set_fits(proposed.fits)
        setup.set_entries(proposed.entries, proposed.with_kv)

    def _on_outline(self, number: int, outline: Outline) -> None:
        if number == self._asked:
            self._setup.set_amount_words(outline.work)

    def _on_refused(self, words: Words) -> None:
        """Say why a text cannot be used, and take the bundled ones again."""
        self.told.emit(words)
        self._setup.set_own_text(None)

    def _on_predicted(self, number: int, outline: Outline | None) -> None:
        if number != self._asked:
            return
        self._setup.set_prediction(outline.time if outline is not None else "")
        if outline is not None:
            self._setup.set_amount_words(outline.work)

    # ------------------------------------------------------------------------------------- helpers

    def _first_name(self) -> str:
        """Return the model to begin with: the one in the chat, else the first one."""
        entry = self._context.entry_in_use()
        same = [name for name in self._models if entry is not None and name.casefold() == entry.name.casefold()]
        return (same or list(self._models))[0]


def _keys(model: NamedModel | None) -> tuple[str, ...]:
    return tuple(entry.key for entry in model.usable) if model is not None else ()
