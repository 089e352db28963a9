"""Labels that never read their text as markup, and shorten it where there is no room.

A name of a model or a file is a stranger's text: Qt's labels and tooltips would render `<img src=…>` found in one.
"""

from __future__ import annotations

import html

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QSizePolicy, QStyleOption, QWidget


class PlainLabel(QLabel):
    """A label that shows its text as it is.

    Attributes:
        kind: how it looks (a rule of resources/style.qss): "", "muted", "caption", "title", "figure", "predicted" or
            "error".
    """

    def __init__(self, text: str = "", kind: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = kind
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("kind", kind)
        self.setText(text)


class MutedLabel(PlainLabel):
    """Secondary text, 12 px."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, "muted", parent)


class CaptionLabel(PlainLabel):
    """The title of a plot or a group, 12 px and bold."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, "caption", parent)


class TitleLabel(PlainLabel):
    """The heading of a panel."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, "title", parent)


class FigureLabel(QFrame):
    """One live figure: the number large, its unit beside it, what it is under it.

    The number keeps its width while its digits change (tabular figures).
    """

    def __init__(self, caption: str, unit: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._value = PlainLabel("–", "figure")
        self._unit = MutedLabel(unit)
        self._caption = MutedLabel(caption)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(4)
        grid.setVerticalSpacing(0)
        grid.addWidget(self._value, 0, 0, Qt.AlignmentFlag.AlignBaseline)
        grid.addWidget(self._unit, 0, 1, Qt.AlignmentFlag.AlignBaseline)
        grid.addWidget(self._caption, 1, 0, 1, 2)
        grid.setColumnStretch(1, 1)
        self.setAccessibleName(caption)

    def set_value(self, value: str) -> None:
        """Show a number already worded ("151"); "–" where there is none."""
        self._value.setText(value)
        self.setAccessibleDescription(f"{value} {self._unit.text()}")


class ElidedLabel(PlainLabel):
    """One line that is shortened by "…" where it does not fit; its tooltip then holds all of it."""

    def __init__(
        self,
        text: str = "",
        kind: str = "muted",
        parent: QWidget | None = None,
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
    ) -> None:
        """Make the label.

        Args:
            text: what it says.
            kind: a rule of resources/style.qss.
            parent: owns it.
            mode: where it is shortened: at its end, or where the end says most in the middle.
        """
        self._mode = mode
        super().__init__(text, kind, parent)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def setText(self, text: str) -> None:
        """Show this text, on one line."""
        super().setText(" ".join(text.split()))
        self._tell_whole_text()

    def minimumSizeHint(self) -> QSize:
        """Return a size that lets the label shrink to nothing but keep its height."""
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Offer the whole text as a tooltip only where it is shortened."""
        super().resizeEvent(event)
        self._tell_whole_text()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the shortened text in the label's own style."""
        option = QStyleOption()
        option.initFrom(self)
        painter = QPainter(self)
        style, flags = self.style(), self.alignment().value
        shown = self._shown_text()
        style.drawItemText(
            painter, self.contentsRect(), flags, option.palette, self.isEnabled(), shown, self.foregroundRole()
        )

    def _shown_text(self) -> str:
        return self.fontMetrics().elidedText(self.text(), self._mode, self.contentsRect().width())

    def _tell_whole_text(self) -> None:
        self.setToolTip(plain_tooltip(self.text()) if self._shown_text() != self.text() else "")


def set_kind(widget: QWidget, kind: str) -> None:
    """Give a widget another rule of resources/style.qss; "" for none."""
    if widget.property("kind") != kind:
        widget.setProperty("kind", kind)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def plain_tooltip(text: str) -> str:
    """Return a tooltip that shows this text as it is, even where it looks like markup."""
    return f"<qt>{html.escape(text)}</qt>" if GuiQt.mightBeRichText(text) else text


def plain_words(text: str) -> str:
    """Return the text for a button or a menu entry: no "&" is a shortcut in it, no tab splits it."""
    return " ".join(text.split()).replace("&", "&&")
