"""Writing as a line that pauses part, reading as bars on a scale that is said."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import live_store
from ui.plots.speed_plot import SpeedPlot, reading_factor
from ui.theme import load_theme


@pytest.mark.parametrize(
    ("reading", "writing", "factor"),
    [
        (0, 0, 1),
        (160, 0, 1),
        (15, 10, 1),
        (20, 10, 1),
        (21, 10, 5),
        (160, 10, 20),
        (3000, 150, 20),
        (1e9, 1, 1000),
        (float("nan"), float("nan"), 1),
    ],
)
def test_reading_is_divided_by_a_round_number(reading, writing, factor):
    assert reading_factor(reading, writing) == factor


def test_the_division_is_said_in_the_caption(store, shown):
    # 160 tokens/s read, 10 written.
    plot = shown(SpeedPlot, store)
    assert plot.caption.text() == "TOKENS PER SECOND  ·  bars = reading (÷ 20)"
    assert plot._bars.opts["height"].tolist() == pytest.approx([8.0])
    assert plot._bars.opts["x0"].tolist() == pytest.approx([2.0])
    assert plot._bars.opts["x1"].tolist() == pytest.approx([3.0])


@pytest.mark.parametrize("name", ["dark", "light"])
def test_a_bar_is_a_solid_block_and_the_line_is_not(name, store, shown):
    plot, theme = shown(SpeedPlot, store, theme=name), load_theme(name)
    image = plot.grab().toImage()
    assert image.pixelColor(plot.pixel_of(2.5, 3).toPoint()) == theme.color("weights")
    assert image.pixelColor(plot.pixel_of(6.0, 3).toPoint()) == theme.color("surface")


def test_a_bar_is_never_too_narrow_to_be_seen(store, shown):
    live_store.read_prompt(store, 20.0, 0.001, tokens=1, held=300)
    plot = shown(SpeedPlot, store)
    width_px = plot.pixel_of(plot._bars.opts["x1"][1], 0).x() - plot.pixel_of(plot._bars.opts["x0"][1], 0).x()
    assert width_px >= 2


def test_a_pause_parts_the_line(store, shown):
    for number in range(10):
        live_store.write_token(store, 30.0 + number * 0.1, 0.1, held=300)
    plot = shown(SpeedPlot, store)
    times, _values = plot._line.getData()
    joined = plot._line.opts["connect"]
    before_pause = int(np.flatnonzero(times > 15)[0]) - 1
    assert joined[before_pause] == 0
    assert joined[:before_pause].all()
    assert joined[-1] == 0


def test_a_pause_parts_a_line_of_many_readings_a_pixel(shown, time):
    store = live_store.TelemetryStore()
    live_store.memory(store, 0.0, 40)
    for start in (0.0, 300.0):
        for number in range(1500):
            live_store.write_token(store, start + number * 0.1, 0.1, held=1)
    time.set_window(600.0)
    plot = shown(SpeedPlot, store)
    times, values = plot._line.getData()
    assert len(times) <= 2 * 600
    assert len(plot._line.opts["connect"]) == len(times)
    assert int((plot._line.opts["connect"] == 0).sum()) == 2
    assert np.nanmax(values) == pytest.approx(10)


def test_values_at_the_cursor_are_of_that_time(store, shown, time):
    plot = shown(SpeedPlot, store)
    assert plot.legend.values == {"writing": "10.0"}
    time.set_cursor(2.5)
    assert plot.legend.values == {"reading": "160"}
    time.set_cursor(1.0)
    assert plot.legend.values == {}
