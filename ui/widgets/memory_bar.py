"""Memory by owner as one bar for what was predicted and one for what was measured, against what is free.

Predicted is drawn see-through and labelled in italics, measured is solid; reserved memory is hatched in both. Every
number is also in the legend, in the tooltips and for a screen reader. Knows not where the numbers come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QHelpEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import _
from app.units import bytes_text
from ui.plots.legend import fill_color, paint_hatch
from ui.theme import MUTED_PX, Theme, ui_font

_BAR_PX: Final = 22
_BAR_GAP_PX: Final = 8
_RADIUS_PX: Final = 5
_LABEL_GAP_PX: Final = 12
_TOP_PX: Final = 18  # room for the words of the limit

# Where far more is free than is needed, the scale follows the need, and the line of the limit stands behind a break.
_FAR_FACTOR: Final = 3.0
_FAR_PLACE: Final = 0.97
_FAR_FILL: Final = 0.8
_NEAR_FILL: Final = 0.98


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One owner of memory.

    Attributes:
        key: its name in the code.
        title: its name for people.
        role: its colour.
        is_reserved: whether it is set aside, not filled: hatched.
        predicted_bytes: None when nobody can tell.
        measured_bytes: None before a load.
        source: how the prediction was made, in words.
    """

    key: str
    title: str
    role: str
    is_reserved: bool = False
    predicted_bytes: float | None = None
    measured_bytes: float | None = None
    source: str = ""


class MemoryBars(QWidget):
    """The bars.

    Attributes:
        parts: what is drawn, from left to right.
        free_bytes: where the limit is; 0 draws none.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.parts: tuple[MemoryPart, ...] = ()
        self.free_bytes = 0
        self._theme = theme
        self._font = ui_font(MUTED_PX)
        self._italic = ui_font(MUTED_PX)
        self._italic.setItalic(True)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(_("Memory by owner"))

    def set_parts(self, parts: Sequence[MemoryPart], free_bytes: int) -> None:
        """Draw these owners against this much free memory."""
        self.parts = tuple(parts)
        self.free_bytes = free_bytes
        self.setAccessibleDescription(self.spoken())
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    @property
    def has_measured(self) -> bool:
        """Whether there is a second bar."""
        return any(part.measured_bytes is not None for part in self.parts)

    def total(self, is_measured: bool) -> float:
        """Return the length of a bar in bytes."""
        return sum(_bytes_of(part, is_measured) for part in self.parts)

    def spoken(self) -> str:
        """Return every number in words."""
        lines = []
        for is_measured in (False, True)[: 1 + self.has_measured]:
            words = _("measured") if is_measured else _("predicted")
            numbers = (f"{part.title} {bytes_text(_bytes_of(part, is_measured))}" for part in self.parts)
            lines.append(f"{words} {bytes_text(self.total(is_measured))}: {', '.join(numbers)}")
        if self.free_bytes:
            lines.append(self._limit_words())
        return ". ".join(lines)

    def segments(self, is_measured: bool) -> list[tuple[MemoryPart, QRectF]]:
        """Return where each owner is drawn."""
        area, per_byte = self._area(is_measured), self._pixels_per_byte()
        left, found = area.left(), []
        for part in self.parts:
            width = _bytes_of(part, is_measured) * per_byte
            found.append((part, QRectF(left, area.top(), width, area.height())))
            left += width
        return found

    def sizeHint(self) -> QSize:
        """Return the height of the bars; any width will do."""
        bars = 1 + self.has_measured
        return QSize(240, _TOP_PX + bars * _BAR_PX + (bars - 1) * _BAR_GAP_PX + 4)

    def minimumSizeHint(self) -> QSize:
        """Return the same height."""
        return QSize(0, self.sizeHint().height())

    def event(self, event: QEvent) -> bool:
        """Say what the mouse is on."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.words_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def words_at(self, place: QPointF) -> str:
        """Return what is drawn at a place, in words; "" for nothing."""
        for is_measured in (False, True)[: 1 + self.has_measured]:
            for part, area in self.segments(is_measured):
                if area.contains(place):
                    amount = bytes_text(_bytes_of(part, is_measured))
                    how = _("Measured here.") if is_measured else part.source
                    return " · ".join(word for word in (f"{part.title}: {amount}", how) if word)
        return ""

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the bars, their words and the limit."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for is_measured in (False, True)[: 1 + self.has_measured]:
            self._paint_words(painter, is_measured)
            self._paint_bar(painter, is_measured)
        if self.free_bytes:
            self._paint_limit(painter)

    # ------------------------------------------------------------------------------------- helpers

    def _paint_words(self, painter: QPainter, is_measured: bool) -> None:
        area = self._area(is_measured)
        painter.setFont(self._font if is_measured else self._italic)
        painter.setPen(self._theme.color("text" if is_measured else "muted"))
        words = _("measured") if is_measured else _("predicted")
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(QRectF(0, area.top(), area.left(), area.height()), middle | Qt.AlignmentFlag.AlignLeft, words)
        right = QRectF(area.right(), area.top(), self.width() - area.right(), area.height())
        painter.drawText(right, middle | Qt.AlignmentFlag.AlignRight, bytes_text(self.total(is_measured)))

    def _paint_bar(self, painter: QPainter, is_measured: bool) -> None:
        area = self._area(is_measured)
        shape = QPainterPath()
        shape.addRoundedRect(area, _RADIUS_PX, _RADIUS_PX)
        painter.fillPath(shape, self._theme.color("grid"))
        for part, segment in self.segments(is_measured):
            if segment.width() < 0.5:
                continue
            piece = QPainterPath()
            piece.addRect(segment.adjusted(0, 0, -1 if segment.width() > 3 else 0, 0))
            color = self._theme.color(part.role)
            piece = piece.intersected(shape)
            if part.is_reserved:
                paint_hatch(painter, piece, color)
            else:
                painter.fillPath(piece, color if is_measured else fill_color(color))
            painter.strokePath(piece, QPen(color, 1))

    def _paint_limit(self, painter: QPainter) -> None:
        first, last = self._area(False), self._area(self.has_measured)
        place = self._limit_place()
        color = self._theme.color("limit")
        painter.setPen(QPen(color, 2))
        painter.drawLine(QPointF(place, _TOP_PX - 4), QPointF(place, last.bottom() + 2))
        painter.setFont(self._font)
        painter.setPen(color)
        words = self._limit_words()
        width = QFontMetrics(self._font).horizontalAdvance(words) + 2
        left = min(max(first.left(), place - width / 2), self.width() - width)
        painter.drawText(QRectF(left, 0, width, _TOP_PX - 5), Qt.AlignmentFlag.AlignCenter, words)
        if self._is_far():
            self._paint_break(painter, first, last, place)

    def _paint_break(self, painter: QPainter, first: QRectF, last: QRectF, place: float) -> None:
        """Draw the sign for a scale that is cut short: two slanted lines through the empty end of each bar."""
        painter.setPen(QPen(self._theme.color("surface"), 3))
        middle = place - (1 - _FAR_FILL) / 3 * first.width()
        for bar in (first, last):
            for x in (middle - 4, middle + 4):
                painter.drawLine(QPointF(x - 4, bar.bottom() + 2), QPointF(x + 4, bar.top() - 2))

    def _limit_words(self) -> str:
        return _("{free} free").format(free=bytes_text(self.free_bytes))

    def _limit_place(self) -> float:
        area = self._area(False)
        if self._is_far():
            return area.left() + area.width() * _FAR_PLACE
        return area.left() + self.free_bytes * self._pixels_per_byte()

    def _is_far(self) -> bool:
        return self.free_bytes > _FAR_FACTOR * self._longest()

    def _longest(self) -> float:
        return max(self.total(False), self.total(True))

    def _pixels_per_byte(self) -> float:
        width = self._area(False).width()
        if self._is_far():
            return width * _FAR_FILL / max(self._longest(), 1.0)
        return width * _NEAR_FILL / max(self._longest(), self.free_bytes, 1.0)

    def _area(self, is_measured: bool) -> QRectF:
        """Return where a bar lies: between its words and its total."""
        metrics = QFontMetrics(self._italic)
        left = max(metrics.horizontalAdvance(words) for words in (_("predicted"), _("measured"))) + _LABEL_GAP_PX
        totals = (bytes_text(self.total(measured)) for measured in (False, True))
        right = max(metrics.horizontalAdvance(words) for words in totals) + _LABEL_GAP_PX
        top = _TOP_PX + (_BAR_PX + _BAR_GAP_PX if is_measured else 0)
        return QRectF(left, top, max(1, self.width() - left - right), _BAR_PX)


class MemoryLegend(QWidget):
    """The owners of the bars in words, each with its number, flowing over as many lines as they need."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: list[tuple[MemoryPart, str, QFont]] = []
        self._theme = theme
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_parts(self, parts: Sequence[MemoryPart]) -> None:
        """Name these owners; a measured number stands upright, a predicted one in italics."""
        self._entries = []
        for part in parts:
            font = ui_font(MUTED_PX)
            font.setItalic(part.measured_bytes is None)
            self._entries.append((part, bytes_text(_bytes_of(part, part.measured_bytes is not None)), font))
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        self.update()

    def words(self) -> list[str]:
        """Return what is shown."""
        return [f"{part.title} {amount}" for part, amount, _font in self._entries]

    def hasHeightForWidth(self) -> bool:
        """Return that the height depends on the width."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Return the height of the lines at a width."""
        places = self._places(width)
        return int(places[-1].bottom()) + 1 if places else 0

    def sizeHint(self) -> QSize:
        """Return the height at the present width."""
        return QSize(0, self.heightForWidth(max(1, self.width())))

    def minimumSizeHint(self) -> QSize:
        """Return the same, so that no line is cut."""
        return self.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw swatches, words and numbers."""
        painter = QPainter(self)
        for (part, amount, font), place in zip(self._entries, self._places(self.width()), strict=True):
            color = self._theme.color(part.role)
            swatch = QRectF(place.left() + 0.5, place.center().y() - 5, 10, 10)
            if part.is_reserved:
                path = QPainterPath()
                path.addRect(swatch)
                paint_hatch(painter, path, color)
                painter.setPen(QPen(color, 1))
                painter.drawRect(swatch)
            else:
                painter.fillRect(swatch, color)
            painter.setFont(ui_font(MUTED_PX))
            painter.setPen(self._theme.color("muted"))
            words = place.adjusted(16, 0, 0, 0)
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, part.title)
            words.setLeft(words.left() + painter.fontMetrics().horizontalAdvance(part.title) + 6)
            painter.setFont(font)
            painter.setPen(self._theme.color("muted" if font.italic() else "text"))
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, amount)

    def _places(self, width: int) -> list[QRectF]:
        places: list[QRectF] = []
        left = top = 0.0
        for part, amount, font in self._entries:
            words = QFontMetrics(ui_font(MUTED_PX)).horizontalAdvance(part.title)
            needed = 16 + words + 6 + QFontMetrics(font).horizontalAdvance(amount) + 2
            if left and left + needed > width:
                left, top = 0.0, top + 20
            places.append(QRectF(left, top, needed, 20))
            left += needed + 16
        return places


def _bytes_of(part: MemoryPart, is_measured: bool) -> float:
    return (part.measured_bytes if is_measured else part.predicted_bytes) or 0.0
