"""The panels with plots hear of the engine, whether they were there before it or came after."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.context import build_context
from app.models.fit_types import Fit
from app.telemetry.store import TelemetryStore
from backends import protocol
from tests.helpers import live_store
from ui.bridge import Bridge
from ui.theme import load_theme
from ui.widgets.labels import ElidedLabel
from ui.window_plots import WindowPlots

LOADED = protocol.ModelLoaded(
    backend="llama_cpp",
    model_path="/m.gguf",
    context_tokens=8192,
    quantization="Q4_1",
    device="CPU",
    engine_variant="AVX2",
    threads=2,
)


class Context:
    """The parts of the program that plots look at."""

    def __init__(self, loaded: protocol.ModelLoaded | None = None) -> None:
        self.telemetry: TelemetryStore = live_store.filled_store()
        self.engine = SimpleNamespace(loaded=loaded)
        self.predicted: Fit | None = None
        self.recorder = SimpleNamespace(measured=None)
        self.connections = SimpleNamespace(count=3)


@pytest.fixture
def bridge(qapp):
    made = Bridge()
    yield made
    made.close()


@pytest.fixture
def plots_of(qtbot, bridge):
    made = []

    def build(context):
        plots = WindowPlots(context, bridge, load_theme("dark"))
        made.append(plots)
        qtbot.addWidget(plots.panel)
        qtbot.addWidget(plots.inspect)
        return plots

    yield build
    for plots in made:
        plots.stop()


def facts(plots):
    return [label.text() for label in plots.inspect.findChildren(ElidedLabel)]


def test_the_facts_of_a_loaded_model_stand_in_the_head(plots_of, bridge):
    plots = plots_of(Context())
    assert facts(plots) == [""]
    bridge.engine_event.emit(LOADED)
    assert facts(plots) == ["Q4_1 · CPU · AVX2 · 2 threads · context 8,192 tokens"]


def test_a_model_that_was_quicker_than_the_plots_is_told_too(plots_of):
    assert facts(plots_of(Context(LOADED))) == ["Q4_1 · CPU · AVX2 · 2 threads · context 8,192 tokens"]


def test_lines_of_the_engines_log_are_shown(plots_of, bridge, qtbot):
    plots = plots_of(Context())
    plots.inspect.show()
    bridge.engine_event.emit(protocol.LogRecorded("warning", "a <b>line</b>"))
    qtbot.waitUntil(lambda: "a <b>line</b>" in plots.inspect.log_text(), timeout=10_000)


def test_a_reading_wakes_the_plots_and_a_stop_lets_them_rest(plots_of, bridge, qtbot):
    plots = plots_of(Context())
    plots.panel.set_folded(False)
    qtbot.waitUntil(lambda: not plots._timer.is_active, timeout=10_000)
    bridge.telemetry_moved.emit()
    assert plots.panel._connections.text() == "3 network connections since start"
    assert plots._timer.is_active
    plots.stop()
    assert not plots._timer.is_active


def test_what_the_panels_say_is_handed_on(plots_of, qtbot):
    plots = plots_of(Context())
    for panel in (plots.panel, plots.inspect):
        with qtbot.waitSignal(plots.told) as caught:
            panel.told.emit("The table was saved.")
        assert caught.args == ["The table was saved."]


def test_a_theme_reaches_every_plot(plots_of):
    plots = plots_of(Context())
    light = load_theme("light")
    plots.set_theme(light)
    for plot in (*plots.panel.plots, *plots.inspect.plots):
        assert plot._plot.backgroundBrush().color() == light.color("surface")


def test_the_real_context_fits(plots_of):
    context = build_context()
    assert plots_of(context).panel.is_folded
    context.close()
