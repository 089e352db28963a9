"""The stack of owners, seen as pixels: whose colour lies where, and that reserved looks unlike used."""

from __future__ import annotations

import pytest

from app.telemetry.store import TelemetryStore
from backends.protocol import LifeCycle, MemoryRead, MemorySplit, ModelLoaded
from tests.helpers import live_store
from tests.helpers.live_store import MIB
from ui.plots.legend import FILL_SHARE
from ui.plots.memory_plot import MemoryPlot
from ui.theme import load_theme


def is_near(color, wanted):
    pairs = zip(color.getRgb()[:3], wanted.getRgb()[:3], strict=True)
    return all(abs(a - b) <= 3 for a, b in pairs)


@pytest.mark.parametrize("name", ["dark", "light"])
def test_each_owner_has_its_colour_at_its_place(name, store, shown):
    # At 8.5 s: rest 40, weights to 135, compute to 232, KV used to about 285, reserved to 412 MiB.
    plot, theme = shown(MemoryPlot, store, theme=name), load_theme(name)
    image = plot.grab().toImage()
    for value, role in ((20, "rest"), (90, "weights"), (180, "compute"), (255, "kv")):
        point = plot.pixel_of(8.5, value).toPoint()
        assert is_near(image.pixelColor(point), theme.mix(role, "surface", FILL_SHARE)), role
    above = plot.pixel_of(8.5, 450).toPoint()
    assert image.pixelColor(above) == theme.color("surface")


@pytest.mark.parametrize("name", ["dark", "light"])
def test_reserved_is_hatched_where_used_is_solid(name, store, shown):
    plot, theme = shown(MemoryPlot, store, theme=name), load_theme(name)
    image = plot.grab().toImage()

    def colors(value):
        left, right = plot.pixel_of(7.5, value).toPoint(), plot.pixel_of(9.8, value).toPoint()
        return [image.pixelColor(x, left.y()).name() for x in range(left.x(), right.x())]

    assert len(set(colors(250))) == 1
    reserved = colors(350)
    assert theme.color("surface").name() in reserved
    assert len(set(reserved)) > 1
    assert theme.mix("kv", "surface", FILL_SHARE).name() not in colors(350)[:1]


def test_nothing_is_reserved_before_the_load(store, shown):
    plot, theme = shown(MemoryPlot, store), load_theme("dark")
    point = plot.pixel_of(0.4, 480).toPoint()
    assert plot.grab().toImage().pixelColor(point) == theme.color("surface")


def test_the_legend_carries_the_values_in_the_captions_unit(store, shown, time):
    plot = shown(MemoryPlot, store)
    assert plot.caption.text() == "MEMORY OF THE ENGINE, MiB  ·  system memory"
    assert plot.legend.values == {
        "rest": "40.0",
        "weights": "95.0",
        "compute": "97.0",
        "kv_used": "57.5",
        "kv_reserved": "180",
    }
    time.set_cursor(0.5)
    assert plot.legend.values["rest"] == "40.0"
    assert plot.legend.values["weights"] == "0"
    time.set_cursor(-1.0)
    assert plot.legend.values == {}


def test_a_large_model_is_shown_in_gib(shown):
    store = TelemetryStore()
    store.record_memory(MemoryRead(read_s=0, anonymous_bytes=40 * MIB, state=LifeCycle.LOADING))
    split = MemorySplit(weights_bytes=4600 * MIB, kv_reserved_bytes=1024 * MIB)
    store.model_loaded(ModelLoaded(backend="echo", model_path="m", context_tokens=1, memory=split))
    store.record_memory(MemoryRead(read_s=1, anonymous_bytes=5664 * MIB))
    plot = shown(MemoryPlot, store)
    assert plot.caption.unit == "GiB"
    assert plot.legend.values["weights"] == "4.49"


def test_the_card_is_named_when_the_memory_is_its_own(shown):
    store = TelemetryStore()
    store.record_memory(MemoryRead(read_s=0, device_used_bytes=MIB, device_total_bytes=9 * MIB, device_name="<b>Card"))
    assert shown(MemoryPlot, store).caption.hint == "device memory of <b>Card"


def test_engines_before_and_after_a_restart_are_not_joined(store, shown, timer, qtbot):
    # The old engine ended at 10 s, the new one begins a second later: nothing is drawn between them.
    store.engine_gone()
    live_store.memory(store, 77.0, 40, LifeCycle.LOADING)
    live_store.memory(store, 78.0, 45, LifeCycle.LOADING)
    plot = shown(MemoryPlot, store)
    between = plot.pixel_of(store.restarts()[0] - 0.5, 30).toPoint()
    assert plot.grab().toImage().pixelColor(between) == load_theme("dark").color("surface")


def test_the_table_has_the_window_only(store, shown, time):
    plot = shown(MemoryPlot, store)
    assert plot.table().num_rows == 10
    assert plot.table().columns[1].values[-1] == 412 * MIB
