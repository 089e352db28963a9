"""The model chip: which model answers, and the way to another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPaintEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QStyle, QStyleOptionToolButton, QStylePainter, QToolButton, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icons import paint_icon
from ui.widgets.labels import plain_tooltip, plain_words

_PAD_PX: Final = 16
_GAP_PX: Final = 8
_ARROW_PX: Final = 16
_MIN_WIDTH_PX: Final = 96


class ModelChip(QToolButton):
    """A rounded button with the model's name, shortened where it is narrow, and a menu of the others.

    Signals:
        chosen(str): key of the entry that was picked.
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._words = ""
        self._menu = QMenu(self)
        self._menu.triggered.connect(self._on_triggered)
        self.setObjectName("model_chip")
        self.setMenu(self._menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(_("Model"))
        self.set_text(_("No model"))

    @property
    def words(self) -> str:
        """The whole text, shortened or not."""
        return self._words

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._theme = theme
        self.update()

    def set_text(self, text: str) -> None:
        """Show which model answers, such as "SmolLM2-135M · Q4_1 · llama.cpp · CPU"."""
        self._words = " ".join(text.split())
        self.setToolTip(plain_tooltip(_("Model: {name}. Click to choose another.").format(name=self._words)))
        self.setAccessibleDescription(self._words)
        self.updateGeometry()
        self.update()

    def set_entries(self, entries: Sequence[tuple[str, str]], current: str = "") -> None:
        """Offer these models in the menu.

        Args:
            entries: key and label of each.
            current: key of the one in use; it is marked.
        """
        self._menu.clear()
        for key, label in entries:
            action = self._menu.addAction(plain_words(label))
            action.setData(key)
            action.setCheckable(key == current)
            action.setChecked(key == current)

    def sizeHint(self) -> QSize:
        """Return the size of the whole text."""
        width = self.fontMetrics().horizontalAdvance(self._words) + 2 + 2 * _PAD_PX + _GAP_PX + _ARROW_PX
        return QSize(max(_MIN_WIDTH_PX, width), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return a size that still shows the beginning of the name."""
        return QSize(_MIN_WIDTH_PX, super().sizeHint().height())

    def shown_text(self) -> str:
        """Return the text as it fits."""
        room = self.width() - 2 * _PAD_PX - _GAP_PX - _ARROW_PX
        return self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideMiddle, room)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the button, its text as it is and an arrow."""
        option = QStyleOptionToolButton()
        self.initStyleOption(option)
        option.text = ""
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ToolButton, option)
        color = self._theme.color("text" if self.isEnabled() else "muted")
        painter.setPen(color)
        inner = self.rect().adjusted(_PAD_PX, 0, -_PAD_PX - _ARROW_PX - _GAP_PX, 0)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextSingleLine
        painter.drawText(inner, flags, self.shown_text())
        arrow = QRect(self.width() - _PAD_PX - _ARROW_PX + 4, (self.height() - _ARROW_PX) // 2, _ARROW_PX, _ARROW_PX)
        paint_icon(painter, arrow.toRectF(), "chevron-down", self._theme.color("muted"))

    def _on_triggered(self, action: QAction) -> None:
        self.chosen.emit(action.data())
