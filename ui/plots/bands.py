"""Filled bands over time in one item: polygons made by numpy, drawn in pixels.

pyqtgraph's FillBetweenItem builds a path for every band and every update; one item with polygons costs a fraction of
it, and drawing in pixels keeps hatching and dashes alike at every scale. Knows no owner of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pyqtgraph import functions as pg_functions
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from app.telemetry.series import FloatArray
from ui.plots.legend import fill_color, paint_hatch
from ui.plots.thinning import simplified

EDGE_PX: Final = 1.5
_DASHES: Final = [4.0, 3.0]


@dataclass(frozen=True, slots=True)
class Band:
    """A band between two lines over one run of times.

    Attributes:
        times: [T], seconds.
        lower: [T], where it begins.
        upper: [T], where it ends.
        color: the colour of its owner.
        is_hatched: reserved, not used: hatched, with a dashed edge.
    """

    times: FloatArray
    lower: FloatArray
    upper: FloatArray
    color: QColor
    is_hatched: bool = False


class BandsItem(QGraphicsItem):
    """Draws bands from the lowest to the highest, each filled and with an edge on top.

    Attributes:
        _area: the visible part of the plot, in its own units.
        _bands: outline and upper edge of each band in the plot's units, its colour, and whether it is hatched.
    """

    def __init__(self) -> None:
        super().__init__()
        self._area = QRectF()
        self._bands: list[tuple[QPolygonF, QPolygonF, QColor, bool]] = []

    def set_bands(self, bands: list[Band], area: QRectF, height_px: int) -> None:
        """Draw these bands in this part of the plot, which is so many pixels high; called by a redraw only."""
        self.prepareGeometryChange()
        self._area = area
        half_px = area.height() / (2 * height_px)
        self._bands = [_polygons(band, half_px) for band in bands if len(band.times)]
        self.update()

    def boundingRect(self) -> QRectF:
        """Return the visible part of the plot."""
        return self._area

    def paint(self, painter: QPainter, _option: QStyleOptionGraphicsItem, _widget: QWidget | None = None) -> None:
        """Draw the bands."""
        transform = painter.worldTransform()
        painter.save()
        painter.resetTransform()
        for outline, edge, color, is_hatched in self._bands:
            pixels = transform.map(outline)
            pen = QPen(color, EDGE_PX)
            painter.setPen(Qt.PenStyle.NoPen)
            if is_hatched:
                path = QPainterPath()
                path.addPolygon(pixels)
                path.closeSubpath()
                paint_hatch(painter, path, color)
                pen = QPen(color, 1)
                pen.setDashPattern(_DASHES)
            else:
                painter.setBrush(fill_color(color))
                painter.drawPolygon(pixels)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(pen)
            painter.drawPolyline(transform.map(edge))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.restore()


def _polygons(band: Band, half_px: float) -> tuple[QPolygonF, QPolygonF, QColor, bool]:
    times, upper = simplified(band.times, band.upper, half_px)
    lower_times, lower = simplified(band.times, band.lower, half_px)
    outline = polygon(np.concatenate((times, lower_times[::-1])), np.concatenate((upper, lower[::-1])))
    return outline, polygon(times, upper), band.color, band.is_hatched


def polygon(x: FloatArray, y: FloatArray) -> QPolygonF:
    """Return the points as a polygon, filled through its memory instead of point by point."""
    result: Any = pg_functions.create_qpolygonf(len(x))
    memory = pg_functions.ndarray_from_qpolygonf(result)
    memory[:, 0], memory[:, 1] = x, y
    assert isinstance(result, QPolygonF)
    return result
