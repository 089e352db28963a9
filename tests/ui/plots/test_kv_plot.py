"""KV used, predicted and reserved: what is filled, what is hatched, and when the reservation is out of sight."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import live_store
from ui.plots.kv_plot import KvPlot
from ui.plots.legend import FILL_SHARE
from ui.theme import load_theme


def test_used_is_filled_and_the_rest_of_the_reservation_hatched(store, shown):
    # 230 tokens of 0.25 MiB are held at the end: 57.5 of 180 MiB, so the reservation is in sight.
    plot, theme = shown(KvPlot, store), load_theme("dark")
    image = plot.grab().toImage()
    used = image.pixelColor(plot.pixel_of(9.5, 20).toPoint())
    wanted = theme.mix("kv", "surface", FILL_SHARE)
    assert all(abs(a - b) <= 3 for a, b in zip(used.getRgb(), wanted.getRgb(), strict=True))
    left, right = plot.pixel_of(5.0, 120).toPoint(), plot.pixel_of(9.8, 120).toPoint()
    hatched = {image.pixelColor(x, left.y()).name() for x in range(left.x(), right.x())}
    assert theme.color("surface").name() in hatched
    assert len(hatched) > 1
    assert plot.caption.hint == ""


def test_a_reservation_far_above_is_said_in_words(shown):
    store = live_store.filled_store()
    plot = shown(KvPlot, store)
    assert plot._is_reserved_in_sight
    small = live_store.TelemetryStore()
    live_store.memory(small, 0.0, 40)
    small.model_loaded(live_store.LOADED, live_store.LOADED.kv_bytes_per_token)
    live_store.read_prompt(small, 3.0, 1.0, tokens=20, held=20)
    plot = shown(KvPlot, small)
    assert not plot._is_reserved_in_sight
    assert plot.caption.text() == "KV CACHE, MiB  ·  reserved lies above"
    assert plot.legend.values == {"used": "5.00", "predicted": "5.00", "reserved": "180"}
    assert plot._plot.getPlotItem().getViewBox().viewRange()[1] == [0, 5]


def test_a_value_holds_until_the_next_step(store, shown, time):
    plot = shown(KvPlot, store)
    # The prompt of 160 tokens was read at 3 s: before, the cache was empty, not half full.
    time.set_cursor(2.9)
    assert plot.legend.values["used"] == "0"
    time.set_cursor(3.05)
    assert plot.legend.values["used"] == "40.0"


def test_the_newest_value_is_drawn_up_to_now(store, shown, timer, qtbot):
    live_store.memory(store, 30.0, 412)
    plot, theme = shown(KvPlot, store), load_theme("dark")
    color = plot.grab().toImage().pixelColor(plot.pixel_of(29.0, 20).toPoint())
    assert color != theme.color("surface")


def test_an_engine_that_is_gone_holds_no_value_into_the_next_one(store, shown):
    store.engine_gone()
    live_store.memory(store, 77.0, 40)
    live_store.memory(store, 90.0, 40)
    plot, theme = shown(KvPlot, store), load_theme("dark")
    color = plot.grab().toImage().pixelColor(plot.pixel_of(store.now_s - 3, 10).toPoint())
    assert color == theme.color("surface")


def test_the_predicted_line_lies_where_it_was_predicted(store, shown):
    plot = shown(KvPlot, store)
    times, values = plot._predicted.getData()
    finite = values[np.isfinite(values)]
    assert finite.max() == pytest.approx(57.5, abs=0.5)
    assert finite.min() == 0
    assert times[np.isfinite(values)].max() == pytest.approx(store.now_s)


def test_an_old_value_still_reaches_the_left_edge(store, shown):
    # After ten idle minutes the last step lies far left of the window, but its value is still in force.
    live_store.memory(store, 600.0, 412)
    plot, theme = shown(KvPlot, store), load_theme("dark")
    color = plot.grab().toImage().pixelColor(plot.pixel_of(560.0, 20).toPoint())
    assert color != theme.color("surface")
