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
from app.models.removal import Deletion
from app.units import bytes_text
from ui.models.deletion_question import deletion_question
from ui.models.download_words import (
    Button,
    fraction,
    is_pausable,
    is_resumable,
    main_button,
    more_button,
    other_button,
    spoken_text,
    state_text,
    title_text,
)
from ui.models.update_note import UpdateNote
from ui.panels.download_announcer import PROGRESS_S
from ui.panels.download_bar import DownloadBar
from ui.panels.model_confirm import Answer, ConfirmBar
from ui.theme import Theme
from ui.widgets.labels import ElidedLabel, plain_words, set_kind
from ui.widgets.wrapped_label import WrappedLabel

_KEEP, _DELETE = "keep", "delete"
_MOVING: Final = (DownloadState.RUNNING, DownloadState.VERIFYING)


class DownloadRow(QFrame):
    """One download. Enter does the main thing, Space pauses and goes on, Delete cancels.

    Attributes:
        main, more, other: its buttons.
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
        self._title = ElidedLabel(kind="", mode=Qt.TextElideMode.ElideMiddle)  # the quantization stands at its end
        self._state = ElidedLabel()
        self._bar = DownloadBar(theme)
        self._words = WrappedLabel()
        self._hint = WrappedLabel(kind="muted")
        self._note: UpdateNote | None = None
        self._more: Button | None = None
        self.main = QPushButton(_("Pause"))
        self.more = QPushButton()
        self.more.hide()  # it has no words yet
        self.other = QPushButton(_("Cancel"))
        self.confirm = ConfirmBar()
        self._build()
        self.main.clicked.connect(self._on_main)
        self.more.clicked.connect(self._on_more)
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

    def set_note(self, note: UpdateNote | None) -> None:
        """Show what is known of newer versions of a finished download; None for nothing."""
        if note == self._note:
            return
        self._note = note
        if self._download is not None:
            self._show_words(self._download)
            self._show_buttons(self._download)

    def ask_to_delete(self, deletion: Deletion) -> None:
        """Ask before the model of a finished download is deleted, or say why it may not be."""
        question = deletion_question(deletion)
        answers = [Answer(Button.FOREVER.value, Button.FOREVER.words(), is_danger=True)] if question.can_delete else []
        if question.can_trash:
            answers = [Answer(Button.TRASH.value, Button.TRASH.words()), *answers]
        self.confirm.ask(question.message, question.hint, answers)

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
        for button in (self.main, self.more, self.other):
            head.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 14)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._bar)
        for part in (self._words, self._hint, self.confirm):
            column.addWidget(part)

    def _show_words(self, download: Download) -> None:
        is_done, note = download.state is DownloadState.DONE, self._note
        words = note.words if is_done and note is not None else download.words
        is_news = note is None or note.is_fault or note.button is Button.NEWER
        set_kind(self._words, "" if is_news or not is_done else "muted")
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
        other, more, is_busy = other_button(download), more_button(download), False
        if self._note is not None and more is Button.CHECK:
            more, is_busy = self._note.button or (more if self._note.is_busy else None), self._note.is_busy
        self.other.setText(plain_words(other.words()))
        name = title_text(download)
        self._more = more
        self.more.setVisible(more is not None)
        self.more.setEnabled(not is_busy)
        self.more.setText(plain_words(more.words()) if more is not None else "")
        self.more.setAccessibleName(f"{more.words()} {name}" if more is not None else "")
        self.main.setAccessibleName(f"{main.words()} {name}" if main is not None else "")
        self.other.setAccessibleName(f"{other.words()} {name}")

    def _on_main(self) -> None:
        download = self._download
        button = main_button(download) if download is not None else None
        if download is not None and button is not None:
            self.pressed.emit(download.download_id, button)

    def _on_more(self) -> None:
        if self._download is not None and self._more is not None:
            self.pressed.emit(self._download.download_id, self._more)

    def _on_answered(self, answer: str) -> None:
        buttons = {_KEEP: Button.CANCEL, _DELETE: Button.DELETE}
        if self._download is not None:
            self.pressed.emit(self._download.download_id, buttons.get(answer) or Button(answer))


def _set_text(label: ElidedLabel, text: str) -> None:
    if label.text() != text:
        label.setText(text)
