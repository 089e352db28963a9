"""The editor a prompt is written in: Enter sends, Shift+Enter breaks the line, an input method is left alone.

Plain text only. Knows no chat: it holds one text and the last one that was sent.
"""

from __future__ import annotations

import re
from typing import Final

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy, QWidget

from app.i18n import _
from ui.theme import READING_PX, ui_font
from ui.widgets.display_text import MAX_PIECE_CHARS, cut

MIN_LINES: Final = 1
MAX_LINES: Final = 10

# A line break of ours inside a very long line, which Qt would lay out again whole at every key (0.2 s for 1 MB). The
# three signs before it are invisible and stand in this order in no honest text; they are taken out with the break.
_SOFT_BREAK: Final = "\u2060\u200b\u2060\n"
_SOFT_MARK: Final = "\u2060\u200b\u2060"

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_ENTER: Final = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class PromptEdit(QPlainTextEdit):
    """A text editor that grows from one line to ten.

    Attributes:
        _preedit: what an input method has composed and not yet committed.
        _last_text: the text that was sent last; Up in an empty editor brings it back.

    Signals:
        send_requested(): Enter was pressed outside a composition.
    """

    send_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preedit = ""
        self._last_text = ""
        self.setObjectName("prompt_edit")
        self.setAccessibleName(_("Prompt"))
        self.setPlaceholderText(_("Ask anything. It stays on this machine."))
        self.setToolTip(_("Enter sends, Shift+Enter starts a new line, Up brings back the last prompt"))
        self.setFont(ui_font(READING_PX))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)
        self.document().documentLayout().documentSizeChanged.connect(self._on_size_changed)
        self._on_size_changed()

    @property
    def text(self) -> str:
        """What is written."""
        return _without_soft_breaks(self.toPlainText())

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to send."""
        return not self.text.strip()

    @property
    def is_composing(self) -> bool:
        """Whether an input method is in the middle of a word."""
        return bool(self._preedit)

    def set_text(self, text: str) -> None:
        """Write another text and put the cursor at its end."""
        self.setPlainText(_with_soft_breaks(text))
        self.moveCursor(QTextCursor.MoveOperation.End)

    def take_text(self) -> str:
        """Return what is written, remember it and empty the editor."""
        self._last_text = self.text
        self.clear()
        return self._last_text

    def sizeHint(self) -> QSize:
        """Return a size of as many lines as the text takes, one to ten."""
        return QSize(super().sizeHint().width(), self.height())

    def minimumSizeHint(self) -> QSize:
        """Return a size that lets the editor be narrow."""
        return QSize(0, self.height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Send, break the line, bring back the last prompt, or edit."""
        if event.key() in _ENTER:
            self._on_enter(event)
        elif event.key() == Qt.Key.Key_Up and self._last_text and not self.toPlainText() and not self.is_composing:
            self.set_text(self._last_text)
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Remember whether a composition is open."""
        self._preedit = event.preeditString()
        super().inputMethodEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Grow or shrink where lines wrap differently now."""
        super().resizeEvent(event)
        self._on_size_changed()

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Return whether there is text in what is pasted or dropped."""
        return source.hasText()

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Paste plain text; markup, pictures and files are never read."""
        if text := source.text():
            self.insertPlainText(_with_soft_breaks(text))
            self.ensureCursorVisible()

    def createMimeDataFromSelection(self) -> QMimeData:
        """Return the marked text as it was written, as plain text only."""
        data = QMimeData()
        data.setText(_without_soft_breaks(self.textCursor().selectedText().replace("\u2029", "\n")))
        return data

    def _on_enter(self, event: QKeyEvent) -> None:
        if self.is_composing:
            event.ignore()  # this Enter ends the composition: it belongs to the input method
        elif event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier):
            self.insertPlainText("\n")
            self.ensureCursorVisible()
        else:
            self.send_requested.emit()

    def _on_size_changed(self) -> None:
        # This document's height counts lines, not pixels.
        num_lines = max(MIN_LINES, min(MAX_LINES, int(self.document().size().height())))
        height = num_lines * self.fontMetrics().lineSpacing() + 2
        if height != self.height():
            self.setFixedHeight(height)
        is_full = self.document().size().height() > MAX_LINES
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(policy)


def _with_soft_breaks(text: str) -> str:
    text = _SURROGATES.sub("\ufffd", text).replace("\r\n", "\n").replace("\0", "\u2400")
    lines = text.split("\n")
    if max(map(len, lines)) <= MAX_PIECE_CHARS:
        return text
    return "\n".join(_SOFT_BREAK.join(cut(line)) for line in lines)


def _without_soft_breaks(text: str) -> str:
    return text.replace(_SOFT_BREAK, "").replace(_SOFT_MARK, "")
