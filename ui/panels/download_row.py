"""One download in the list: its name, its bar, how far and how fast, what went wrong, and what can be done.

Knows no queue: every wish is a signal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout

from app.downloads.types import Download, DownloadState
from app.i18n import _
from app.units import bytes_text
from ui.models.download_words import (
    Button,
    fraction,
    is_pausable,
    is_resumable,
    main_button,
    other_button,
    spoken_text,
    state_text,
    title_text,
)
from ui.panels.download_announcer import PROGRESS_S
from ui.panels.download_bar import DownloadBar
from ui.panels.model_confirm import Answer, ConfirmBar
from ui.theme import Theme
from ui.widgets.labels import ElidedLabel, plain_words
from ui.widgets.wrapped_label import WrappedLabel

_KEEP, _DELETE = "keep", "delete"
_MOVING: Final = (DownloadState.RUNNING, DownloadState.VERIFYING)


class DownloadRow(QFrame):
    """One download. Enter does the main thing, Space pauses and goes on, Delete cancels.

    Attributes:
        main, other: its buttons.
        confirm: the question before something is thrown away.

    Signals:
        pressed(download_id, Button): a person wants this; Button.CANCEL keeps what is here, Button.DELETE does not.
        stepped(step): a person wants to go to the row before (-1) or after (1).
    """

    pressed = Signal(str, object)
    stepped = Signal(int)

    def __init__(
        self, theme: Theme, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._download: Download | None = None
        self._now = now
        self._clock = clock
        self._spoken_s = 0.0
        self._title = ElidedLabel(kind="")
        self._state = ElidedLabel()
        self._bar = DownloadBar(theme)
        self._words = WrappedLabel()
        self._hint = WrappedLabel(kind="muted")
        self.main = QPushButton(_("Pause"))
        self.other = QPushButton(_("Cancel"))
        self.confirm = ConfirmBar()
        self._build()
        self.main.clicked.connect(self._on_main)
        self.other.clicked.connect(self.ask_to_end)
        self.confirm.answered.connect(self._on_answered)
        self.confirm.left.connect(self.setFocus)

    @property
    def download(self) -> Download | None:
        """What is shown."""
        return self._download

    def set_download(self, download: Download) -> None:
        """Show a download as it is now; what is the same is not drawn again."""
        before, self._download = self._download, download
        now_s = self._now()
        _set_text(self._title, title_text(download))
        _set_text(self._state, state_text(download, now_s))
        self._bar.set_part(fraction(download), is_quiet=download.state not in _MOVING)
        is_new_state = before is None or (before.state, before.words) != (download.state, download.words)
        if is_new_state:
            self._show_words(download)
            self._show_buttons(download)
            if download.state in (DownloadState.DONE, DownloadState.VERIFYING):
                self.confirm.close_question()
        if is_new_state or self._clock() - self._spoken_s >= PROGRESS_S:
            self._spoken_s = self._clock()
            self.setAccessibleName(spoken_text(download, now_s))

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._bar.set_theme(theme)

    def ask_to_end(self) -> None:
        """Cancel, delete what is left or take it off the list; ask first where something would be lost."""
        download = self._download
        if download is None:
            return
        button = other_button(download)
        if button is Button.REMOVE or (button is Button.CANCEL and not download.done_bytes):
            self.pressed.emit(download.download_id, Button.REMOVE if button is Button.REMOVE else Button.DELETE)
            return
        size = bytes_text(download.done_bytes)
        answers = [Answer(_DELETE, _("Delete {size}").format(size=size), is_danger=True)]
        if button is Button.DELETE:
            self.confirm.ask(_("Delete what is here of it?"), _("A later download starts again."), answers)
            return
        keep = Answer(_KEEP, _("Keep {size}").format(size=size))
        hint = _("What is kept need not be fetched again later.")
        self.confirm.ask(_("Cancel this download?"), hint, [keep, *answers], no=_("Go back"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Do the main thing with Enter, pause with Space, cancel with Delete, go to another row with the arrows."""
        download = self._download
        if download is None or not self.hasFocus():
            super().keyPressEvent(event)
            return
        key = event.key()
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._on_main()
        elif key == Qt.Key.Key_Space and is_pausable(download):
            self.pressed.emit(download.download_id, Button.PAUSE)
        elif key == Qt.Key.Key_Space and is_resumable(download):
            self.pressed.emit(download.download_id, Button.RESUME)
        elif key == Qt.Key.Key_Delete:
            self.ask_to_end()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.stepped.emit(-1 if key == Qt.Key.Key_Up else 1)
        else:
            super().keyPressEvent(event)

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        self.setProperty("kind", "download")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        lines = QVBoxLayout()
        lines.setSpacing(4)
        lines.addWidget(self._title)
        lines.addWidget(self._state)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addLayout(lines, 1)
        head.addWidget(self.main)
        head.addWidget(self.other)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 14)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._bar)
        for part in (self._words, self._hint, self.confirm):
            column.addWidget(part)

    def _show_words(self, download: Download) -> None:
        words = download.words
        self._words.setText(words.message if words is not None else "")
        self._hint.setText(words.hint if words is not None else "")
        self._words.setVisible(words is not None)
        self._hint.setVisible(words is not None and bool(words.hint))
        is_over = download.state in (DownloadState.DONE, DownloadState.CANCELLED) or download.is_leftover
        self._bar.setVisible(not is_over)

    def _show_buttons(self, download: Download) -> None:
        main = main_button(download)
        self.main.setVisible(main is not None)
        self.main.setText(plain_words(main.words()) if main is not None else "")
        other = other_button(download)
        self.other.setText(plain_words(other.words()))
        name = title_text(download)
        self.main.setAccessibleName(f"{main.words()} {name}" if main is not None else "")
        self.other.setAccessibleName(f"{other.words()} {name}")

    def _on_main(self) -> None:
        download = self._download
        button = main_button(download) if download is not None else None
        if download is not None and button is not None:
            self.pressed.emit(download.download_id, button)

    def _on_answered(self, answer: str) -> None:
        if self._download is not None:
            self.pressed.emit(self._download.download_id, Button.CANCEL if answer == _KEEP else Button.DELETE)


def _set_text(label: ElidedLabel, text: str) -> None:
    if label.text() != text:
        label.setText(text)
