"""Grid lines lie at the values the axis names, in the grid's colour."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QRectF

from ui.plots.grid import GridItem
from ui.theme import load_theme


def test_a_line_lies_at_each_value(qtbot):
    theme = load_theme("light")
    plot = pg.PlotWidget()
    qtbot.addWidget(plot)
    plot.hideAxis("left")
    plot.hideAxis("bottom")
    plot.getPlotItem().setContentsMargins(0, 0, 0, 0)
    plot.resize(200, 100)
    plot.setBackground(theme.color("surface"))
    box = plot.getPlotItem().getViewBox()
    box.disableAutoRange()
    box.setRange(xRange=(0, 10), yRange=(0, 10), padding=0)
    grid = GridItem()
    plot.getPlotItem().addItem(grid, ignoreBounds=True)
    grid.set_color(theme.color("grid"))
    grid.set_values([5.0], QRectF(0, 0, 10, 10))
    image = plot.grab().toImage()
    lines = [y for y in range(image.height()) if image.pixelColor(100, y) == theme.color("grid")]
    assert len(lines) == 1
    assert abs(lines[0] - 50) <= 1
    assert grid.boundingRect() == QRectF(0, 0, 10, 10)
