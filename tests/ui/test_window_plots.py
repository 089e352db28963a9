"""The panels with plots hear of the engine, whether they were there before it or came after."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from PySide6.QtWidgets import QToolTip

from app.context import build_context
from app.models.fit_types import Fit
from app.telemetry.block_map import BlockState
from app.telemetry.store import TelemetryStore
from backends import protocol
from backends.echo_blocks import EchoSequence
from backends.echo_engine import EchoScript
from tests.helpers import block_maps, live_store
from tests.ui.conftest import PATIENCE_MS
from ui.bridge import Bridge
from ui.theme import load_theme
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
        self.sent: list[protocol.Command] = []
        self.engine = SimpleNamespace(loaded=loaded, send=self._send)
        self.predicted: Fit | None = None
        self.recorder = SimpleNamespace(measured=None)
        self.connections = SimpleNamespace(count=3)

    def _send(self, command: protocol.Command) -> bool:
        self.sent.append(command)
        return True


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
    return plots.inspect._facts.text()


def test_the_facts_of_a_loaded_model_stand_in_the_head(plots_of, bridge):
    plots = plots_of(Context())
    assert facts(plots) == ""
    bridge.engine_event.emit(LOADED)
    assert facts(plots) == "Q4_1 · CPU · AVX2 · 2 threads · context 8,192 tokens"


def test_a_model_that_was_quicker_than_the_plots_is_told_too(plots_of):
    assert facts(plots_of(Context(LOADED))) == "Q4_1 · CPU · AVX2 · 2 threads · context 8,192 tokens"


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


def test_a_block_is_asked_of_the_engine_and_its_answer_told_where_it_was_asked(plots_of, bridge, qtbot):
    context = Context()
    context.telemetry = block_maps.store_with()
    plots = plots_of(context)
    plots.panel.set_folded(False)
    blocks = plots.panel.blocks
    qtbot.waitUntil(lambda: blocks.canvas.view is not None, timeout=10_000)
    blocks.canvas.set_cursor(1)
    blocks.canvas.words_wanted.emit()
    assert context.sent == [protocol.DescribeBlock(protocol.RequestId(-1), 1)]
    answer = protocol.BlockDescribed(request_id=protocol.RequestId(-1), block=1, text="and then the sea", users=2)
    bridge.engine_event.emit(answer)
    assert "and then the sea" in blocks.told
    assert plots.inspect.blocks.told == ""
    QToolTip.hideText()


def test_the_map_of_a_window_follows_its_engine(open_window, qtbot):
    # Two chats share a beginning of four blocks; ours joins them with blocks of its own and leaves them kept.
    script = EchoScript("x" * 600, token_s=0.002, blocks=64, sequences=(EchoSequence(100, 4), EchoSequence(80, 4)))
    window = open_window(script)
    window.window.plots.panel.set_folded(False)
    blocks = window.window.plots.panel.blocks

    def count(state):
        return blocks.canvas.view.count(state) if blocks.canvas.view is not None else -1

    qtbot.waitUntil(lambda: count(BlockState.FREE) == 64, timeout=PATIENCE_MS)
    window.prompt.set_text("a question")
    window.prompt.send_requested.emit()
    qtbot.waitUntil(lambda: count(BlockState.KEPT) > 30, timeout=PATIENCE_MS)
    assert (count(BlockState.SHARED), count(BlockState.USED)) == (4, 4)
    # The text of a shared block comes from the worker.
    blocks.canvas.set_cursor(0)
    blocks.canvas.words_wanted.emit()
    qtbot.waitUntil(lambda: "Somebody else" in blocks.told, timeout=PATIENCE_MS)
    assert blocks.told.startswith("block 0 · tokens 0 to 15 · used by 2 chats: “")
    QToolTip.hideText()


def test_an_engine_without_blocks_has_a_logical_map_in_the_window(open_window, qtbot):
    window = open_window(EchoScript("x" * 100))
    window.window.plots.panel.set_folded(False)
    blocks = window.window.plots.panel.blocks
    window.prompt.set_text("a question")
    window.prompt.send_requested.emit()

    def is_kept():
        view = blocks.canvas.view
        return view is not None and view.count(BlockState.KEPT) > 6 and view.count(BlockState.USED) == 0

    qtbot.waitUntil(is_kept, timeout=PATIENCE_MS)
    assert blocks.caption.hint == "logical map: echo shows no cells"
