"""The horizontal lines of a plot: hairlines at the values that the axis names, under everything else.

pyqtgraph's own grid belongs to its axis and hides the lowest label. Knows no data.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLineF, QRectF
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget


class GridItem(QGraphicsItem):
    """Draws one hairline a value.

    Attributes:
        _area: the visible part of the plot, in its own units.
        _lines: the lines, in the plot's units.
        _pen: a hairline in the grid's colour.
    """

    def __init__(self) -> None:
        super().__init__()
        self._area = QRectF()
        self._lines: list[QLineF] = []
        self._pen = QPen()
        self.setZValue(-10)

    def set_color(self, color: QColor) -> None:
        """Draw in this colour."""
        self._pen = QPen(color, 0)
        self.update()

    def set_values(self, values: Sequence[float], area: QRectF) -> None:
        """Draw lines at these values across this part of the plot."""
        self.prepareGeometryChange()
        self._area = area
        self._lines = [QLineF(area.left(), value, area.right(), value) for value in values]
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the visible part of the plot."""
        return self._area

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Draw the lines."""
        painter.setPen(self._pen)
        painter.drawLines(self._lines)
