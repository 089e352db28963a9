"""A button that says what is chosen and opens the list of choices: for a few words beside a list.

Knows not what the choice does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QPaintEvent
from PySide6.QtWidgets import QMenu, QSizePolicy, QStyle, QStyleOptionToolButton, QStylePainter, QToolButton, QWidget

from ui.theme import MUTED_PX, Theme, ui_font
from ui.widgets.icons import paint_icon
from ui.widgets.labels import plain_words

_PAD_PX: Final = 10
_GAP_PX: Final = 4
_ARROW_PX: Final = 14


class ChoiceButton(QToolButton):
    """The chosen words and an arrow.

    Signals:
        chosen(key): a person chose another one; not sent by choose().
    """

    chosen = Signal(str)

    def __init__(self, choices: Mapping[str, str], spoken: str, theme: Theme, parent: QWidget | None = None) -> None:
        """Build the menu; the first one is chosen.

        Args:
            choices: key and words of each.
            spoken: what the choice is about.
            theme: gives the colours.
            parent: the widget it stands in.
        """
        super().__init__(parent)
        self._theme = theme
        self._choices = choices
        self._spoken = spoken
        self._key = next(iter(choices))
        self._menu = QMenu(self)
        for key, words in choices.items():
            action = self._menu.addAction(plain_words(words))
            action.setData(key)
            action.setCheckable(True)
        self._menu.triggered.connect(self._on_triggered)
        self.setObjectName("choice")
        self.setMenu(self._menu)
        self.setFont(ui_font(MUTED_PX))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setToolTip(spoken)
        self.choose(self._key)

    @property
    def key(self) -> str:
        """The chosen key."""
        return self._key

    def choose(self, key: str) -> None:
        """Choose; KeyError for an unknown one."""
        words = self._choices[key]
        self._key = key
        for action in self._menu.actions():
            action.setChecked(action.data() == key)
        self.setAccessibleName(f"{self._spoken}: {words}")
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Return the room for the longest words, so that nothing moves when another one is chosen."""
        widest = max(self.fontMetrics().horizontalAdvance(words) for words in self._choices.values())
        return QSize(widest + 2 + 2 * _PAD_PX + _GAP_PX + _ARROW_PX, self.fontMetrics().height() + 12)

    def minimumSizeHint(self) -> QSize:
        """Return a width that still shows the beginning."""
        return QSize(56, self.sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the button, its words as they fit, and the arrow."""
        option = QStyleOptionToolButton()
        self.initStyleOption(option)
        option.text = ""
        painter = QStylePainter(self)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ToolButton, option)
        painter.setPen(self._theme.color("text"))
        inside = self.rect().adjusted(_PAD_PX, 0, -_PAD_PX - _ARROW_PX - _GAP_PX, 0)
        words = self.fontMetrics().elidedText(self._choices[self._key], Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, words)
        arrow = QRectF(self.width() - _PAD_PX - _ARROW_PX + 3, (self.height() - _ARROW_PX) / 2, _ARROW_PX, _ARROW_PX)
        paint_icon(painter, arrow, "chevron-down", self._theme.color("muted"))
        painter.end()

    def _on_triggered(self, action: QAction) -> None:
        key = action.data()
        if key != self._key:
            self.choose(key)
            self.chosen.emit(key)
        else:
            self.choose(key)
