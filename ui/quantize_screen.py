"""Making quantizations from the Models screen: works the sizes out, carries the order out, says what came of it.

Everything slow runs on background tasks; one order at a time. Knows no widget but its own window.
"""

from __future__ import annotations

import threading
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QWidget

from app.bench.engine_run import StoppedError
from app.compare.plan import TextSpec
from app.compare.quantize_order import Outcome, QuantizeOrder, carry_out, importance_of, names_of
from app.compare.quantize_words import made_words, phase_words
from app.compare.quantizing import PLAIN_QUANTIZATIONS, Phase, Planned, Quantizer, source_warning
from app.compare.texts import calibration_text
from app.context import AppContext
from app.downloads.space import RESERVE_BYTES, free_bytes
from app.errors import AppError, Words, one_line
from app.i18n import _
from app.models.entry import ModelEntry
from app.units import bytes_text
from ui.panels.quantize_dialog import BUNDLED, NONE, QuantizeDialog
from ui.tasks import Tasks
from ui.theme import Theme

# What people make; every other name of llama.cpp can be had on the command line.
OFFERED = (
    "F16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q4_0", "IQ4_XS", "Q3_K_L", "Q3_K_M", "Q3_K_S",
    "IQ3_M", "IQ3_XXS", "Q2_K", "Q2_K_S", "IQ2_M", "IQ2_XS", "IQ2_XXS", "IQ1_M",
)  # fmt: skip


class QuantizeScreen(QObject):
    """Leads the window of one model after the other.

    Attributes:
        dialog: the window; None before the first use.
        _entry: whose quantizations are ordered.
        _own: a person's own text or importance matrix.
        _cancel: set when what runs is not wanted any more.
        _planned: what can be made of it.

    Signals:
        library_changed(): there are new models.
        _progressed(quantization, phase, fraction): from another thread.
    """

    library_changed = Signal()
    _progressed = Signal(str, str, float)

    def __init__(self, context: AppContext, theme: Theme, tasks: Tasks, window: QWidget, parent: QObject) -> None:
        super().__init__(parent)
        self.dialog: QuantizeDialog | None = None
        self._context = context
        self._theme = theme
        self._tasks = tasks
        self._window = window
        self._entry: ModelEntry | None = None
        self._own: Path | TextSpec | None = None
        self._cancel = threading.Event()
        self._planned: tuple[Planned, ...] = ()
        self._progressed.connect(self._on_progress)

    @Slot(object)
    def open(self, key: str) -> None:
        """Show the window for a model of the library; while an order is carried out it stays at that one."""
        entry = next((one for one in self._context.library.entries() if one.key == key), None)
        dialog = self._shown_dialog()
        if dialog.is_busy or entry is None:
            return
        self._entry, self._own, self._planned = entry, None, ()
        self._cancel.clear()
        dialog.importance.choose(NONE)
        dialog.set_own_file("")
        dialog.agreement.setChecked(False)
        about = " · ".join(filter(None, (entry.quantization, bytes_text(entry.size_bytes))))
        dialog.show_source(one_line(entry.name, 80), about, str(self._folder))
        self._tasks.run(lambda: self._plan(entry), lambda found: self._on_planned(entry, *found), self._on_failed)

    def close(self) -> None:
        """End what runs, and the window."""
        self._cancel.set()
        if self.dialog is not None:
            self.dialog.close()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        if self.dialog is not None:
            self.dialog.set_theme(theme)

    # ------------------------------------------------------------------------------------- the window's

    def _shown_dialog(self) -> QuantizeDialog:
        if self.dialog is None:
            self.dialog = QuantizeDialog(self._theme, self._window.window())
            self.dialog.make_requested.connect(self._on_make)
            self.dialog.cancel_requested.connect(self._on_cancel)
            self.dialog.file_requested.connect(self._on_file)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()
        return self.dialog

    @Slot()
    def _on_make(self) -> None:
        dialog, entry = self.dialog, self._entry
        if dialog is None or entry is None or dialog.is_busy:
            return
        self._cancel.clear()
        quantizations = tuple(one.quantization for one in dialog.rows.chosen)
        is_agreed = dialog.agreement.isChecked()
        wants_bundled = dialog.importance.key == BUNDLED
        dialog.show_step(_("Beginning"), 0.0)
        self._tasks.run(
            lambda: self._make(entry, quantizations, wants_bundled=wants_bundled, is_agreed=is_agreed),
            self._on_made,
            self._on_failed,
        )

    @Slot()
    def _on_cancel(self) -> None:
        self._cancel.set()
        if self.dialog is not None:
            self.dialog.show_cancelling()

    @Slot()
    def _on_file(self) -> None:
        kinds = _("Texts and importance matrices (*.txt *.md *.gguf *.dat *.imatrix);;All files (*)")
        chooser = QFileDialog(self.dialog, _("Choose a text or an importance matrix"), "", kinds)
        chooser.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        chooser.setFileMode(QFileDialog.FileMode.ExistingFile)
        chooser.fileSelected.connect(self.choose_file)
        chooser.rejected.connect(self._on_no_file)
        chooser.open()

    @Slot(str)
    def choose_file(self, path: str) -> None:
        """Take a text or an importance matrix of the person's own."""
        try:
            self._own = importance_of(Path(path))
        except AppError as error:
            self._on_no_file()
            self._show_end(error.words, is_fault=True)
            return
        if self.dialog is not None:
            self.dialog.set_own_file(one_line(Path(path).name, 80))

    @Slot()
    def _on_no_file(self) -> None:
        self._own = None
        if self.dialog is not None:
            self.dialog.set_own_file("")

    # ------------------------------------------------------------------------------------- background

    @property
    def _folder(self) -> Path:
        return self._context.paths.models

    def _plan(self, entry: ModelEntry) -> tuple[tuple[Planned, ...], str, int | None]:
        """Return what can be made, the warning, and what the disk has free; nothing when the window is gone."""
        wanted = [name for name in OFFERED if name not in PLAIN_QUANTIZATIONS or name != entry.quantization]
        try:
            planned = Quantizer(self._cancel.is_set).plan(entry.path, wanted)
        except StoppedError:
            return (), "", None
        try:
            free: int | None = free_bytes(self._folder)
        except OSError:
            free = None
        return planned, source_warning(entry.path), free

    def _make(
        self, entry: ModelEntry, quantizations: tuple[str, ...], *, wants_bundled: bool, is_agreed: bool
    ) -> Outcome | None:
        """Carry the order out; None when it was cancelled."""
        self._folder.mkdir(parents=True, exist_ok=True)
        order = QuantizeOrder(
            source=entry,
            quantizations=quantizations,
            folder=self._folder,
            importance=calibration_text() if wants_bundled else self._own,
            allow_requantize=is_agreed,
        )
        try:
            return carry_out(order, self._context.library, Quantizer(self._cancel.is_set), self._tell_progress)
        except StoppedError:
            return None

    def _tell_progress(self, quantization: str, phase: Phase, fraction: float) -> None:
        self._progressed.emit(quantization, phase, fraction)

    # ------------------------------------------------------------------------------------- back from there

    @Slot(str, str, float)
    def _on_progress(self, quantization: str, phase: str, fraction: float) -> None:
        if self.dialog is not None and self.dialog.is_busy and not self._cancel.is_set():
            self.dialog.show_step(phase_words(phase, quantization), fraction)

    def _on_planned(self, entry: ModelEntry, planned: tuple[Planned, ...], warning: str, free: int | None) -> None:
        if self.dialog is None or entry is not self._entry:
            return
        self._planned = planned
        self.dialog.set_room(free, RESERVE_BYTES)
        self.dialog.show_planned(planned, self._present(), warning)

    def _present(self) -> frozenset[str]:
        """Return the quantizations whose files are there."""
        if self._entry is None:
            return frozenset()
        order = QuantizeOrder(source=self._entry, quantizations=(), folder=self._folder)
        return frozenset(one.quantization for one in self._planned if order.target(one.quantization).exists())

    def _on_made(self, outcome: Outcome | None) -> None:
        if outcome is None:
            self._show_end(Words(_("Cancelled. What was whole by then is kept, nothing else is left.")), is_fault=False)
        else:
            size_bytes = sum(made.planned.size_bytes for made in outcome.made)
            self._show_end(Words(made_words(names_of(outcome.made), size_bytes)), is_fault=False)
        self.library_changed.emit()

    def _on_failed(self, words: Words) -> None:
        self._show_end(words, is_fault=True)
        self.library_changed.emit()

    def _show_end(self, words: Words, *, is_fault: bool) -> None:
        if self.dialog is not None:
            self.dialog.rows.show_planned(self._planned, self._present())
            self.dialog.show_end(words, is_fault=is_fault)
