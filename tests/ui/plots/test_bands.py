"""Bands as pixels: the colour of a fill, the ground outside it, and a hatch that is no fill."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QRectF

from ui.plots.bands import Band, BandsItem, polygon
from ui.plots.legend import FILL_SHARE
from ui.theme import load_theme


@pytest.fixture
def plot(qtbot):
    # A window of 200 x 100 pixels without axes: a time is 20 pixels, a value 10.
    plot = pg.PlotWidget()
    qtbot.addWidget(plot)
    plot.hideAxis("left")
    plot.hideAxis("bottom")
    plot.getPlotItem().setContentsMargins(0, 0, 0, 0)
    plot.resize(200, 100)
    plot.setBackground(load_theme("dark").color("surface"))
    box = plot.getPlotItem().getViewBox()
    box.disableAutoRange()
    box.setRange(xRange=(0, 10), yRange=(0, 10), padding=0)
    return plot


def test_a_polygon_holds_the_points_it_was_given():
    points = polygon(np.array([0.0, 1.5]), np.array([2.0, -3.25]))
    assert [(point.x(), point.y()) for point in points] == [(0, 2), (1.5, -3.25)]


def test_a_used_band_is_filled_and_a_reserved_one_is_hatched(plot):
    theme = load_theme("dark")
    times = np.array([0.0, 10.0])
    item = BandsItem()
    plot.getPlotItem().addItem(item, ignoreBounds=True)
    used = Band(times, np.zeros(2), np.full(2, 4.0), theme.color("kv"))
    reserved = Band(times, np.full(2, 4.0), np.full(2, 8.0), theme.color("kv"), is_hatched=True)
    empty = Band(times[:0], times[:0], times[:0], theme.color("rest"))
    item.set_bands([used, reserved, empty], QRectF(0, 0, 10, 10), height_px=100)
    assert item.boundingRect() == QRectF(0, 0, 10, 10)
    image = plot.grab().toImage()
    fill = theme.mix("kv", "surface", FILL_SHARE)
    inside = {image.pixelColor(x, 85).name() for x in range(20, 180)}
    assert len(inside) == 1
    shown = image.pixelColor(100, 85)
    assert max(abs(shown.red() - fill.red()), abs(shown.green() - fill.green()), abs(shown.blue() - fill.blue())) <= 2
    hatched = [image.pixelColor(x, 40).name() for x in range(20, 180)]
    assert theme.color("surface").name() in hatched
    assert len(set(hatched)) > 1
    assert {image.pixelColor(x, 10).name() for x in range(20, 180)} == {theme.color("surface").name()}
