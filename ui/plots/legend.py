"""The words of a plot: its caption above and its legend below, with the values in force.

The legend tells the marks apart by colour, by pattern and in words, and carries the value at the cursor (or the
newest), so that no number needs a colour to be read. Knows no series.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QLineF, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import MUTED_PX, Theme, ui_font

# Share of an owner's colour in its filled band; its edge is the whole colour.
FILL_SHARE: Final = 0.47
_HATCH_STEP_PX: Final = 9
_SWATCH_PX: Final = 10
_GAP_PX: Final = 5
_ENTRY_GAP_PX: Final = 12
_ROW_PX: Final = 20
_CAPTION_PX: Final = 22
# A value of three digits.
_WIDEST_VALUE: Final = "0.000"


class Mark(enum.Enum):
    """How a quantity is drawn."""

    SOLID = "solid"  # a filled band
    HATCHED = "hatched"  # a band that is reserved, not used
    LINE = "line"  # a line
    DASHED = "dashed"  # a predicted line
    BAR = "bar"  # a bar per event


@dataclass(frozen=True, slots=True)
class Entry:
    """One quantity of a plot.

    Attributes:
        key: its name in the code.
        label: its name for people.
        role: its colour.
        mark: how it is drawn.
    """

    key: str
    label: str
    role: str
    mark: Mark


def fill_color(color: QColor, share: float = FILL_SHARE) -> QColor:
    """Return the colour of a filled band: the owner's, see-through."""
    result = QColor(color)
    result.setAlphaF(share)
    return result


def paint_hatch(painter: QPainter, path: QPainterPath, color: QColor) -> None:
    """Fill a path with thin diagonal lines; the painter works in pixels, so they look alike at every scale."""
    area = path.boundingRect()
    if area.isEmpty():
        return
    painter.save()
    painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(color, 1))
    # Lines x + y = n * step: they stay where they are while the band under them moves.
    first = int((area.left() + area.top()) // _HATCH_STEP_PX) * _HATCH_STEP_PX
    last = int(area.right() + area.bottom()) + _HATCH_STEP_PX
    lines = [
        QLineF(number - area.bottom(), area.bottom(), number - area.top(), area.top())
        for number in range(first, last, _HATCH_STEP_PX)
    ]
    painter.drawLines(lines)
    painter.restore()


class Caption(QWidget):
    """One line above a plot: what it shows, its unit, and a hint or the time at the cursor; never wider than the plot.

    Attributes:
        title: what is shown, in capitals.
        unit: the unit of the vertical axis; "" where the title says it.
        hint: what else a reader should know; replaced by the cursor's words.
    """

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = title
        self.unit = ""
        self.hint = ""
        self._theme: Theme | None = None
        self.setFixedHeight(_CAPTION_PX)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def set_words(self, unit: str, hint: str) -> None:
        """Show this unit and hint."""
        if (unit, hint) != (self.unit, self.hint):
            self.unit, self.hint = unit, hint
            self.update()

    def text(self) -> str:
        """Return the whole line as it is read."""
        return "  ·  ".join(part for part in (self._titled(), self.hint) if part)

    def _titled(self) -> str:
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the line."""
        if self._theme is None:
            return
        painter = QPainter(self)
        painter.setPen(self._theme.color("muted"))
        painter.setFont(ui_font(MUTED_PX, QFont.Weight.DemiBold))
        metrics = painter.fontMetrics()
        title = metrics.elidedText(self._titled(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, title)
        left = metrics.horizontalAdvance(title) + _ENTRY_GAP_PX
        painter.setFont(ui_font(MUTED_PX))
        room = self.width() - left
        hint = painter.fontMetrics().elidedText(self.hint, Qt.TextElideMode.ElideRight, room)
        if self.hint and room > 2 * _ENTRY_GAP_PX:
            painter.drawText(self.rect().adjusted(left, 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, hint)


class Legend(QWidget):
    """The marks of a plot in words, each with its value, flowing over as many rows as they need.

    Attributes:
        entries: the quantities, in the order they are drawn.
        values: the words of each one's value, by key; what is missing shows no value.
        widest_value: room that is kept for a value, so that entries stand still while values change.
    """

    def __init__(self, entries: tuple[Entry, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.entries = entries
        self.values: Mapping[str, str] = {}
        self.widest_value = _WIDEST_VALUE
        self._theme: Theme | None = None
        self._font = ui_font(MUTED_PX)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def set_values(self, values: Mapping[str, str]) -> None:
        """Show these values."""
        if values != self.values:
            self.values = dict(values)
            self.update()

    def hasHeightForWidth(self) -> bool:
        """Return that the height depends on the width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of the rows at a width."""
        places = self._places(width)
        return (places[-1].bottom() + 1 if places else 0) + 2

    def sizeHint(self) -> QSize:
        """Return one row's height: the width is given."""
        return QSize(0, self.heightForWidth(max(self.width(), 1)))

    def minimumSizeHint(self) -> QSize:
        """Return one row's height: the width is given."""
        return QSize(0, _ROW_PX)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw swatches, words and values."""
        if self._theme is None:
            return
        painter = QPainter(self)
        painter.setFont(self._font)
        metrics = painter.fontMetrics()
        for entry, place in zip(self.entries, self._places(self.width()), strict=True):
            top = place.top() + (place.height() - _SWATCH_PX) // 2
            self.paint_mark(painter, QRectF(place.left(), top, _SWATCH_PX, _SWATCH_PX), entry, self._theme)
            words = place.adjusted(_SWATCH_PX + _GAP_PX, 0, 0, 0)
            painter.setPen(self._theme.color("muted"))
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, entry.label)
            painter.setPen(self._theme.color("text"))
            words.setLeft(words.left() + metrics.horizontalAdvance(entry.label) + _GAP_PX)
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self.values.get(entry.key, ""))

    def paint_mark(self, painter: QPainter, area: QRectF, entry: Entry, theme: Theme) -> None:
        """Draw the small picture beside a quantity's words."""
        paint_swatch(painter, area, entry, theme)

    def _places(self, width: int) -> list[QRect]:
        metrics = QFontMetrics(self._font)
        places: list[QRect] = []
        left = top = 0
        for entry in self.entries:
            words = metrics.horizontalAdvance(entry.label) + metrics.horizontalAdvance(self.widest_value)
            needed = _SWATCH_PX + 2 * _GAP_PX + words
            if left and left + needed > width:
                left, top = 0, top + _ROW_PX
            places.append(QRect(left, top, needed, _ROW_PX))
            left += needed + _ENTRY_GAP_PX
        return places


def paint_swatch(painter: QPainter, area: QRectF, entry: Entry, theme: Theme) -> None:
    """Draw a small picture of a mark."""
    color = theme.color(entry.role)
    painter.save()
    painter.setPen(Qt.PenStyle.NoPen)
    if entry.mark is Mark.HATCHED:
        path = QPainterPath()
        path.addRect(area)
        paint_hatch(painter, path, color)
        painter.setPen(QPen(color, 1))
        painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5))
    elif entry.mark in (Mark.LINE, Mark.DASHED):
        pen = QPen(color, 2)
        if entry.mark is Mark.DASHED:
            pen.setDashPattern([2, 1])
            pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        painter.setPen(pen)
        middle = area.center().y()
        painter.drawLine(QPointF(area.left(), middle), QPointF(area.right(), middle))
    elif entry.mark is Mark.BAR:
        painter.fillRect(area.adjusted(3, 0, -3, 0), color)
    else:
        painter.fillRect(area, color)
    painter.restore()
