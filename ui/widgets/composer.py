"""The composer: where a prompt is written and sent, how full the context is, and one live line.

Knows no chat and no engine: it is told whether it may send, and says when the person wants to.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeySequence, QMouseEvent, QShortcut
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.context_meter import ContextMeter
from ui.widgets.labels import ElidedLabel, plain_tooltip
from ui.widgets.prompt_edit import PromptEdit

_BUTTON_WIDTH_PX: Final = 76


class Composer(QWidget):
    """The prompt editor in a rounded frame with the context meter, Send or Stop, and a live line under it.

    Attributes:
        prompt: the editor; it can be written in at any time.

    Signals:
        send_requested(str): the person sends this text; the editor is empty again.
        stop_requested(): the person wants the answer to end.
        text_changed(): something else is written; for counting tokens.
    """

    send_requested = Signal(str)
    stop_requested = Signal()
    text_changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_busy = False
        self._is_ready = True
        self._reason = ""
        self.prompt = PromptEdit()
        self._frame = _Frame(self.prompt)
        self._meter = ContextMeter(theme)
        self._live_text = ""
        self._live_label = ElidedLabel()
        self._button = QPushButton(_("Send"))
        self._stop_key = QShortcut(QKeySequence(Qt.Key.Key_Escape), self)
        self._build()
        self._refresh()

    def _build(self) -> None:
        self._button.setObjectName("send_button")
        self._button.setProperty("kind", "primary")
        self._button.setMinimumWidth(_BUTTON_WIDTH_PX)
        self._button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._live_label.setAccessibleName(_("Engine"))
        self._stop_key.setAutoRepeat(False)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self._meter)
        row.addStretch(1)
        row.addWidget(self._button)
        inner = QVBoxLayout(self._frame)
        inner.setContentsMargins(16, 14, 12, 12)
        inner.setSpacing(10)
        inner.addWidget(self.prompt)
        inner.addLayout(row)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(6)
        outer.addWidget(self._frame)
        outer.addWidget(self._live_label)
        self._live_label.setContentsMargins(16, 0, 16, 0)
        self.setFocusProxy(self.prompt)
        self.prompt.textChanged.connect(self._on_text_changed)
        self.prompt.send_requested.connect(self._on_send)
        self._button.clicked.connect(self._on_clicked)
        self._stop_key.activated.connect(self.stop_requested)

    # ------------------------------------------------------------------ what it is told

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._meter.set_theme(theme)

    def set_context(self, used: int, total: int, approximate: bool = False) -> None:
        """Show how full the context is, in tokens; a total of 0 hides it."""
        self._meter.set_context(used, total, approximate)

    def set_live_text(self, text: str) -> None:
        """Show one line about the engine, such as "151 tokens/s · 412 MB"; a reason not to send stands before it."""
        self._live_text = text
        self._show_line()

    def set_busy(self, is_busy: bool) -> None:
        """Offer Stop instead of Send while an answer is written."""
        self._is_busy = is_busy
        self._refresh()

    def set_ready(self, is_ready: bool, reason: str = "") -> None:
        """Allow sending, or say in a few words why not yet; writing is always possible."""
        self._is_ready = is_ready
        self._reason = "" if is_ready else reason
        self._refresh()

    # ------------------------------------------------------------------ slots

    def _on_text_changed(self) -> None:
        self._refresh()
        self.text_changed.emit()

    def _on_clicked(self) -> None:
        if self._is_busy:
            self.stop_requested.emit()
        else:
            self._on_send()

    def _on_send(self) -> None:
        if self._why_not():
            return
        self.send_requested.emit(self.prompt.take_text())

    # ------------------------------------------------------------------ helpers

    def _why_not(self) -> str:
        """Return why nothing can be sent now; "" where it can."""
        if self._is_busy:
            return _("Wait for the answer to end, or stop it")
        if not self._is_ready:
            return self._reason or _("No model is loaded yet")
        return _("Write something first") if self.prompt.is_blank else ""

    def _refresh(self) -> None:
        why_not = self._why_not()
        words = _("Stop") if self._is_busy else _("Send")
        tip = _("Stop the answer (Esc)") if self._is_busy else why_not or _("Send (Enter)")
        self._button.setText(words)
        self._button.setAccessibleName(words)
        self._button.setToolTip(plain_tooltip(tip))
        self._button.setEnabled(self._is_busy or not why_not)
        self._stop_key.setEnabled(self._is_busy)
        self._show_line()

    def _show_line(self) -> None:
        self._live_label.setText(self._reason or self._live_text)


class _Frame(QFrame):
    """The rounded frame; it shows the focus of the editor inside and hands clicks to it."""

    def __init__(self, prompt: PromptEdit) -> None:
        super().__init__()
        self._prompt = prompt
        self.setObjectName("composer")
        self.setProperty("focused", False)
        prompt.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the editor's focus."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.setProperty("focused", event.type() is QEvent.Type.FocusIn)
            self.style().unpolish(self)
            self.style().polish(self)
        return super().eventFilter(watched, event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take a click beside the text for one into it."""
        self._prompt.setFocus(Qt.FocusReason.MouseFocusReason)
        event.accept()
