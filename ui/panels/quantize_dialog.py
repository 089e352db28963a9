"""The window in which quantizations of one model are ordered, and watched while they are made.

A row for each quantization with its exact size, known beforehand. Stays open beside the rest; closing it while it works
goes on working. Knows no engine and no disk: it is given what there is, and every wish is a signal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.compare.quantize_words import room_words
from app.compare.quantizing import Planned
from app.errors import Words
from app.i18n import _
from app.units import percent_text
from ui.panels.download_bar import DownloadBar
from ui.panels.quantize_rows import QuantizeRows
from ui.theme import Theme
from ui.widgets.choice_button import ChoiceButton
from ui.widgets.labels import PlainLabel, TitleLabel, plain_words, set_kind
from ui.widgets.scroll_area import scrolling
from ui.widgets.tick_box import TickBox
from ui.widgets.wrapped_label import WrappedLabel

NONE, BUNDLED, OWN = "none", "bundled", "own"  # where an importance matrix comes from

_SIZE_PX: Final = (820, 720)
_SMALLEST_PX: Final = (520, 420)


class QuantizeDialog(QDialog):
    """The window.

    Attributes:
        rows: the quantizations.
        importance: where an importance matrix comes from.
        agreement: ticked by a person who knows that the source is quantized.
        make_button, cancel_button: begin and end it.

    Signals:
        make_requested(): a person wants what is ticked.
        cancel_requested(): a person wants it to end.
        file_requested(): a person wants to choose a text or an importance matrix; answered by set_own_file().
    """

    make_requested = Signal()
    cancel_requested = Signal()
    file_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._free_bytes: int | None = None
        self._reserve_bytes = 0
        self._is_busy = False
        self._own_name = ""
        self._title = TitleLabel()
        self._about = WrappedLabel(kind="muted")
        self._warning = QFrame()
        self._warning_words = WrappedLabel()
        self.agreement = TickBox(_("Make them anyway"), theme)
        self.rows = QuantizeRows(theme)
        choices = {
            NONE: _("No importance matrix"),
            BUNDLED: _("Importance matrix from a text of Cutaway"),
            OWN: _("From a file of mine…"),
        }
        self.importance = ChoiceButton(choices, _("Importance matrix"), theme)
        self._importance_words = WrappedLabel(kind="muted")
        self._room = PlainLabel()
        self._step = PlainLabel()
        self._bar = DownloadBar(theme)
        self._result = WrappedLabel()
        self._hint = WrappedLabel(kind="muted")
        self.cancel_button = QPushButton(_("Cancel"))
        self.close_button = QPushButton(_("Close"))
        self.make_button = QPushButton(_("Make"))
        self._build()
        self._connect()
        self.resize(*_SIZE_PX)
        self.setMinimumSize(*_SMALLEST_PX)
        self._show_state()

    # ------------------------------------------------------------------------------------- public

    @property
    def is_busy(self) -> bool:
        """Whether quantizations are being made."""
        return self._is_busy

    @property
    def words(self) -> str:
        """What is being done or came of it, as it stands in the window."""
        return self._step.text() if self._is_busy else f"{self._result.accessibleName()} {self._hint.accessibleName()}"

    def show_source(self, name: str, about: str, folder: str) -> None:
        """Say what is quantized and where the results go; its quantizations are being worked out."""
        self.setWindowTitle(_("Make quantizations of {name}").format(name=name))
        self._title.setText(_("Make quantizations of {name}").format(name=name))
        self._about.setText(_("From {about}. New files go to {folder}").format(about=about, folder=folder))
        self.rows.show_planned(())
        self._warning.hide()
        self._tell(_("Working out the sizes…"))
        self._show_state()

    def show_planned(self, planned: Sequence[Planned], present: Collection[str], warning: str) -> None:
        """Offer these quantizations.

        Args:
            planned: what each would be.
            present: those that are there already.
            warning: what a person must agree to first; "" for nothing.
        """
        self.rows.show_planned(planned, present)
        self._warning_words.setText(warning)
        self._warning.setVisible(bool(warning))
        self._tell("")
        self._show_state()

    def set_room(self, free_bytes: int | None, reserve_bytes: int) -> None:
        """Take over what the disk has room for; None where that is not known."""
        self._free_bytes, self._reserve_bytes = free_bytes, reserve_bytes
        self._show_state()

    def set_own_file(self, name: str) -> None:
        """Say which file of a person's own is used; "" goes back to none."""
        self._own_name = name
        if not name:
            self.importance.choose(NONE)
        self._show_state()

    def show_step(self, words: str, fraction: float) -> None:
        """Show how far it is."""
        self._is_busy = True
        self._step.setText(f"{words} · {percent_text(fraction)}")
        self._bar.set_part(fraction)
        self._show_state()

    def show_cancelling(self) -> None:
        """Say that it will end in a moment."""
        self.cancel_button.setEnabled(False)
        self._step.setText(_("Ending…"))

    def show_end(self, words: Words, *, is_fault: bool) -> None:
        """Say what came of it."""
        self._is_busy = False
        self._tell(words.message, words.hint, is_fault=is_fault)
        self._show_state()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.rows.set_theme(theme)
        self.importance.set_theme(theme)
        self.agreement.set_theme(theme)
        self._bar.set_theme(theme)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._warning.setProperty("kind", "notice")
        self._warning.setProperty("level", "warning")
        inside = QVBoxLayout(self._warning)
        inside.setContentsMargins(16, 12, 16, 12)
        inside.addWidget(self._warning_words)
        inside.addWidget(self.agreement, 0, Qt.AlignmentFlag.AlignLeft)
        self.make_button.setProperty("kind", "primary")
        self.make_button.setAutoDefault(False)
        choice = QHBoxLayout()
        choice.setSpacing(12)
        choice.addWidget(self.importance, 0, Qt.AlignmentFlag.AlignTop)
        choice.addWidget(self._importance_words, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._room, 1)
        for button in (self.cancel_button, self.close_button, self.make_button):
            button.setAutoDefault(False)
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 24, 28, 20)
        column.setSpacing(12)
        for widget in (self._title, self._about, self._warning):
            column.addWidget(widget)
        column.addWidget(scrolling(self.rows), 1)
        column.addLayout(choice)
        for below in (self._step, self._bar, self._result, self._hint):
            column.addWidget(below)
        column.addLayout(buttons)

    def _connect(self) -> None:
        self.rows.ticked.connect(self._show_state)
        self.agreement.toggled.connect(self._show_state)
        self.importance.chosen.connect(self._on_importance)
        self.make_button.clicked.connect(self.make_requested)
        self.cancel_button.clicked.connect(self.cancel_requested)
        self.close_button.clicked.connect(self.close)

    # ------------------------------------------------------------------------------------- slots

    def _on_importance(self, key: str) -> None:
        self._own_name = ""
        if key == OWN:
            self.file_requested.emit()
        self._show_state()

    # ------------------------------------------------------------------------------------- helpers

    def _tell(self, message: str, hint: str = "", *, is_fault: bool = False) -> None:
        self._result.setText(message)
        self._hint.setText(hint)
        set_kind(self._result, "error" if is_fault else "")
        self._result.setVisible(bool(message))
        self._hint.setVisible(bool(hint))

    def _show_state(self) -> None:
        chosen = self.rows.chosen
        has_importance = self.importance.key == BUNDLED or bool(self._own_name)
        needs_bytes = sum(one.size_bytes for one in chosen)
        has_room = self._free_bytes is None or needs_bytes + self._reserve_bytes <= self._free_bytes
        lacking = [one.quantization for one in chosen if one.needs_importance and not has_importance]
        is_agreed = self._warning.isHidden() or self.agreement.isChecked()
        self._room.setText(room_words(len(chosen), needs_bytes, self._free_bytes))
        set_kind(self._room, "muted" if has_room else "error")
        self._importance_words.setText(self._importance_text(lacking))
        set_kind(self._importance_words, "error" if lacking else "muted")
        for part in (self.rows, self.importance, self.agreement):
            part.setEnabled(not self._is_busy)
        self.make_button.setEnabled(bool(chosen) and has_room and not lacking and is_agreed and not self._is_busy)
        self.make_button.setText(
            plain_words(_("Make") if len(chosen) < 2 else _("Make {n} files").format(n=len(chosen)))
        )
        self.cancel_button.setVisible(self._is_busy)
        self.cancel_button.setEnabled(True)
        self._step.setVisible(self._is_busy)
        self._bar.setVisible(self._is_busy)
        if self._is_busy:
            self._tell("")

    def _importance_text(self, lacking: Sequence[str]) -> str:
        if lacking:
            return _("{names} cannot be made without one.").format(names=", ".join(lacking))
        if self.importance.key == OWN and self._own_name:
            return self._own_name
        if self.importance.key == BUNDLED:
            return _("The model reads a text first; small quantizations lose less by it. This takes a while.")
        return _("With one, small quantizations lose less.")
