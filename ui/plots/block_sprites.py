"""How a block looks: reserved is hatched, kept is a ring, used is solid, shared is solid with a dot.

Sequences are told apart by lightness, so that a picture in grey still does. Every kind of cell is drawn once for a
theme and a size; a map is then put together from these pictures. Knows no map.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from app.telemetry.block_map import BlockState
from ui.plots.block_grid import LEVELS, MARKED, NUM_KINDS, look_of
from ui.plots.legend import fill_color
from ui.theme import Theme

# Shares of the KV colour in the other tints: towards the surface where it stands far out from that, else away from it.
_DARK_SHARES: Final = (("surface", 0.7), ("surface", 0.47))
_LIGHT_SHARES: Final = (("text", 0.62), ("text", 0.3))
# How much of the muted colour is in the hatching of a block that is only reserved.
_RESERVED_SHARE: Final = 0.7
# How much of a tint is in the rest of a small block that is not written yet.
_REST_SHARE: Final = 0.32
_DOT_SHARE: Final = 0.38  # of a block
# From this size on there is room for corners, thicker rings and a hatched rest.
_ROOMY_PX: Final = 8.5
_HATCH_PX: Final = 4.0
# Below this size a dot is one pixel, or it would look like a ring.
_SMALL_PX: Final = 6.5
_SMALLEST_DOT_PX: Final = 0.7

Pictures = NDArray[np.uint32]


def tint_color(theme: Theme, tint: int) -> QColor:
    """Return the filling of a sequence's blocks: the KV colour, the same dimmed, and dimmed more."""
    if tint == 0:
        return theme.color("kv")
    shares = _DARK_SHARES if theme.color("surface").lightnessF() < 0.5 else _LIGHT_SHARES
    over, share = shares[tint - 1]
    return theme.mix("kv", over, share)


def paint_block(painter: QPainter, area: QRectF, kind: int, theme: Theme) -> None:
    """Draw one block of a kind into an area."""
    state, tint, level = look_of(kind)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if state is BlockState.FREE:
        _paint_hatch(painter, area, theme.mix("muted", "surface", _RESERVED_SHARE))
    elif state is BlockState.KEPT:
        _paint_ring(painter, area, theme.color("kv"), 1.5 if area.width() >= _ROOMY_PX else 1.0)
    else:
        _paint_filling(painter, area, tint_color(theme, tint), level)
        if state is BlockState.SHARED:
            _paint_dot(painter, area, theme.color("surface"))
    if kind >= MARKED:
        _paint_ring(painter, area, theme.color("text"), 1.5 if area.width() >= _ROOMY_PX else 1.0)
    painter.restore()


def _paint_filling(painter: QPainter, area: QRectF, color: QColor, level: int) -> None:
    """Fill a block from the left; what is not written yet is hatched within a ring, faint where there is no room."""
    filled = QRectF(area)
    if level < LEVELS:
        if area.width() >= _ROOMY_PX:
            _paint_hatch(painter, area, color)
            _paint_ring(painter, area, color, 1.0)
        else:
            painter.fillPath(_outline(area), fill_color(color, _REST_SHARE))
        filled.setWidth(area.width() * level / LEVELS)
    painter.save()
    painter.setClipRect(filled)
    painter.fillPath(_outline(area), color)
    painter.restore()


def _paint_ring(painter: QPainter, area: QRectF, color: QColor, width_px: float) -> None:
    half = width_px / 2
    pen = QPen(color, width_px)
    pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
    painter.strokePath(_outline(area.adjusted(half, half, -half, -half)), pen)


def _paint_dot(painter: QPainter, area: QRectF, color: QColor) -> None:
    radius = area.width() * _DOT_SHARE / 2 if area.width() >= _SMALL_PX else _SMALLEST_DOT_PX
    dot = QPainterPath()
    dot.addEllipse(area.center(), radius, radius)
    painter.fillPath(dot, color)


def _paint_hatch(painter: QPainter, area: QRectF, color: QColor) -> None:
    painter.save()
    painter.setPen(QPen(color, 1))
    painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
    length = area.width() + area.height()
    starts = np.arange(_HATCH_PX / 2, length, _HATCH_PX)
    painter.drawLines([QLineF(area.left() + at, area.top(), area.left(), area.top() + at) for at in map(float, starts)])
    painter.restore()


def _outline(area: QRectF) -> QPainterPath:
    path = QPainterPath()
    radius = 2.0 if area.width() >= _ROOMY_PX - 2 else 0.0
    path.addRoundedRect(area, radius, radius)
    return path


def block_pictures(theme: Theme, step_px: int, scale: float) -> Pictures:
    """Return a picture of every kind of cell with its gap, [NUM_KINDS, step_px, step_px], as 0xffRRGGBB.

    Args:
        theme: the colours.
        step_px: a cell with its gap, in the screen's own pixels.
        scale: of the screen: how many of them a line of one pixel is wide.
    """
    image = QImage(step_px, step_px * NUM_KINDS, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(theme.color("surface"))
    gap_px = 1 if step_px < 9 * scale else 2
    size, step = (step_px - round(gap_px * scale)) / scale, step_px / scale
    painter = QPainter(image)
    for kind in range(NUM_KINDS):
        paint_block(painter, QRectF(0, kind * step, size, size), kind, theme)
    painter.end()
    return pixels_of(image).reshape(NUM_KINDS, step_px, step_px).copy()


def pixels_of(image: QImage) -> Pictures:
    """Return the pixels of a 32-bit image as numbers, [height, width]; they are the image's own memory."""
    return np.frombuffer(image.bits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4)
