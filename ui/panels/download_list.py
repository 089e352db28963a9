"""The downloads, in place of the model: each with its bar, its figures and its buttons, in the queue's order.

Knows no queue: every wish is a signal. A row is changed only when its download did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.downloads.types import Download
from app.i18n import _
from app.models.removal import Deletion
from app.units import bytes_text
from ui.models.download_words import Button
from ui.models.update_note import UpdateNote
from ui.panels.download_row import DownloadRow
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState
from ui.widgets.icons import icon
from ui.widgets.labels import CaptionLabel, ElidedLabel, TitleLabel
from ui.widgets.wide_page import WidePage

_MOST_PX: Final = 900


class DownloadList(WidePage):
    """The list.

    Attributes:
        _rows: by the download's id, in their order.

    Signals:
        pressed(download_id, Button): a person wants this done with a download.
        left(): a person wants to go back.
    """

    pressed = Signal(str, object)
    left = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(_MOST_PX, parent)
        self._theme = theme
        self._rows: dict[str, DownloadRow] = {}
        self._back = QPushButton(_("Back"))
        self._about = ElidedLabel()
        self._running = QVBoxLayout()
        self._caption = CaptionLabel(_("Unfinished, from an earlier time"))
        self._leftovers = QVBoxLayout()
        self._nothing = EmptyState(_("No download is on its way."), _("Back"))
        self._build()
        self._back.clicked.connect(self.left)
        self._nothing.action_requested.connect(self.left)
        self.set_downloads([])

    @property
    def rows(self) -> list[DownloadRow]:
        """The rows from top to bottom."""
        return list(self._rows.values())

    def set_downloads(self, downloads: Sequence[Download]) -> None:
        """Show exactly these, in this order; what was left by an earlier time comes last."""
        ordered = [*(one for one in downloads if not one.is_leftover), *(one for one in downloads if one.is_leftover)]
        if [one.download_id for one in ordered] != list(self._rows):
            self._place_rows(ordered)
        for download in ordered:
            row = self._rows[download.download_id]
            if row.download != download:
                row.set_download(download)
        leftovers = [one for one in ordered if one.is_leftover]
        self._caption.setVisible(bool(leftovers))
        self._nothing.setVisible(not ordered)
        self._about.setText(_about_text(ordered))

    def set_notes(self, notes: Mapping[str, UpdateNote]) -> None:
        """Show what is known of newer versions, by the download's id."""
        for download_id, row in self._rows.items():
            row.set_note(notes.get(download_id))

    def ask_to_delete(self, download_id: str, deletion: Deletion) -> None:
        """Ask before the model of a finished download is deleted."""
        row = self._rows.get(download_id)
        if row is not None:
            row.ask_to_delete(deletion)

    def focus_first(self) -> None:
        """Go to the first row, or to the way back."""
        (self.rows[0] if self._rows else self._back).setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go back with Esc."""
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self._back.setIcon(icon("arrow-left", theme, role="text"))
        for row in self._rows.values():
            row.set_theme(theme)

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        title = TitleLabel(_("Downloads"))
        title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        line = QHBoxLayout()
        line.setSpacing(12)
        line.addWidget(self._back)
        line.addWidget(title)
        line.addWidget(self._about, 1)
        self.head.addLayout(line)
        for part in (self._running, self._leftovers):
            part.setSpacing(8)
        self.column.setSpacing(8)
        self.column.addLayout(self._running)
        self.column.addWidget(self._caption)
        self.column.addLayout(self._leftovers)
        self.column.addWidget(self._nothing)
        self.column.addStretch(1)
        self.set_theme(self._theme)

    def _place_rows(self, ordered: Sequence[Download]) -> None:
        """Make, move and remove rows; those that stay are kept."""
        before = self._rows
        self._rows = {}
        for download in ordered:
            row = before.pop(download.download_id, None) or self._made_row()
            self._rows[download.download_id] = row
            (self._leftovers if download.is_leftover else self._running).addWidget(row)
        for row in before.values():
            focused = self.window().focusWidget()
            had_focus = focused is not None and (row is focused or row.isAncestorOf(focused))
            row.hide()
            row.setParent(None)
            row.deleteLater()
            if had_focus:
                self.focus_first()

    def _made_row(self) -> DownloadRow:
        row = DownloadRow(self._theme)
        row.pressed.connect(self._on_pressed)
        row.stepped.connect(self._on_stepped)
        return row

    def _on_pressed(self, download_id: str, button: Button) -> None:
        self.pressed.emit(download_id, button)

    def _on_stepped(self, step: int) -> None:
        rows, sender = self.rows, self.sender()
        place = next(number for number, row in enumerate(rows) if row is sender) + step
        if 0 <= place < len(rows):
            rows[place].setFocus(Qt.FocusReason.OtherFocusReason)
            self.show_part(rows[place])


def _about_text(downloads: Sequence[Download]) -> str:
    unfinished = sum(one.done_bytes for one in downloads if one.is_leftover)
    if unfinished:
        return _("{size} in unfinished files").format(size=bytes_text(unfinished))
    return _("Two at a time, the others wait.") if len(downloads) > 2 else ""
