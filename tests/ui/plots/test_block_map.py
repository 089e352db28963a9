"""The map with its words: counts, hints, what is asked of the engine, and what is told of a block."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolTip

from app.telemetry.store import TelemetryStore
from backends.protocol import BlockDescribed, LifeCycle, MemoryRead, ModelLoaded, RequestId
from tests.helpers.block_maps import large_map, record_map, store_with
from ui.plots import block_map
from ui.plots.block_canvas import BlockCanvas
from ui.plots.block_map import BlockMap
from ui.theme import load_theme


@pytest.fixture
def map_of(qtbot, timer):
    def build(store, theme="dark", size=(340, 200)):
        made = BlockMap(store, timer, BlockCanvas(126, grows=False))
        qtbot.addWidget(made)
        made.set_theme(load_theme(theme))
        made.resize(*size)
        made.show()
        qtbot.waitUntil(lambda: not made.has_moved() and not timer.is_active, timeout=5000)
        return made

    yield build
    QToolTip.hideText()


def described(block, text="and then the sea", users=2):
    return BlockDescribed(request_id=RequestId(-1), block=block, text=text, users=users)


def values(made):
    return dict(made.legend.values)


def names(made):
    return [entry.label for entry in made.legend.entries]


def test_counts_stand_beside_blocks_that_look_so(map_of):
    made = map_of(store_with())
    assert values(made) == {"SHARED": "2", "USED": "2", "KEPT": "1", "FREE": "3"}
    assert names(made) == ["shared", "used", "kept", "free"]
    assert made.size_text() == "16 tokens each · 19 places empty in last blocks"
    assert made.caption.text() == "KV BLOCKS"
    image, kv = made.legend.grab().toImage(), load_theme("dark").color("kv")
    used = made.legend._places(made.legend.width())[1]
    swatch = image.pixelColor(used.left() + 5, used.center().y())
    assert all(abs(a - b) <= 3 for a, b in zip(swatch.getRgb(), kv.getRgb(), strict=True))


def test_the_legend_of_a_context_of_8192_tokens_is_one_row_in_the_cutaway(map_of):
    made = map_of(store_with(large_map(512), 512))
    assert made.legend.heightForWidth(340) < 30


def test_before_a_load_the_map_says_that_there_is_nothing(map_of):
    made = map_of(TelemetryStore())
    assert made.canvas.grid is None
    assert made.caption.hint == "the engine tells nothing of its KV cache"
    assert values(made) == {}
    assert made.size_text() == ""


def test_an_engine_that_counts_tokens_has_a_logical_map(map_of, timer, qtbot):
    store = TelemetryStore()
    store.model_loaded(ModelLoaded(backend="llama_cpp", model_path="m", context_tokens=8192))
    made = map_of(store)
    assert made.caption.hint == "logical map: llama.cpp shows no cells"
    assert names(made) == ["used", "kept", "reserved"]
    record_map(store, None, tokens=40)
    timer.wake()
    qtbot.waitUntil(lambda: values(made)["USED"] == "3", timeout=5000)
    assert made.canvas.view.filled[:4].tolist() == [16, 16, 8, 0]
    store.record_memory(MemoryRead(read_s=2000.0, state=LifeCycle.READY))
    timer.wake()
    qtbot.waitUntil(lambda: values(made)["KEPT"] == "3", timeout=5000)


def test_the_map_follows_the_engine_with_the_plots_timer(map_of, timer, qtbot):
    store = store_with(None)
    made = map_of(store)
    assert values(made)["FREE"] == "8"
    record_map(store, large_map(32))
    assert made.has_moved()
    assert values(made)["FREE"] == "8"  # nothing is drawn per event
    timer.wake()
    qtbot.waitUntil(lambda: values(made)["USED"] == "0" and values(made)["SHARED"] == "16", timeout=5000)


def test_an_engine_that_is_gone_leaves_its_last_map_and_answers_no_more(map_of, timer, qtbot):
    store = store_with()
    made = map_of(store)
    store.engine_gone()
    timer.wake()
    qtbot.waitUntil(lambda: made.caption.hint == "the last that was seen", timeout=5000)
    with qtbot.assertNotEmitted(made.asked):
        made.canvas.set_cursor(2)
        made.canvas.words_wanted.emit()
    assert made.told.startswith("block 2 · tokens 32 to 36")


def test_the_cursor_says_in_the_caption_what_it_is_on(map_of):
    made = map_of(store_with())
    made.canvas.set_cursor(0)
    assert made.caption.text() == "KV BLOCKS  ·  block 0 · tokens 0 to 15 · shared"
    made.canvas.set_cursor(-1)
    assert made.caption.hint == ""


def test_a_block_is_asked_for_and_its_text_told(map_of, qtbot):
    made = map_of(store_with())
    QTest.keyClick(made.canvas, Qt.Key.Key_Right)
    with qtbot.waitSignal(made.asked) as asked:
        QTest.keyClick(made.canvas, Qt.Key.Key_Right)
    assert asked.args == [1]
    assert made.told == "block 1 · tokens 16 to 31 · used by 2 chats"
    made.show_described(described(1))
    whole = "block 1 · tokens 16 to 31 · used by 2 chats: “\u2068…and then the sea…\u2069”"
    assert made.told == made.canvas.accessibleDescription() == QToolTip.text() == whole


def test_an_answer_that_comes_after_the_cursor_has_moved_on_is_dropped(map_of):
    made = map_of(store_with())
    made.canvas.set_cursor(1)
    made.canvas.words_wanted.emit()
    made.canvas.set_cursor(2)
    assert made.told == ""
    made.show_described(described(1))
    assert made.told == ""
    # Nor is one taken that nobody asked for.
    made.show_described(described(2))
    assert made.told == ""


def test_free_blocks_are_worded_without_asking(map_of, qtbot):
    made = map_of(store_with())
    with qtbot.assertNotEmitted(made.asked):
        made.canvas.set_cursor(4)
        made.canvas.words_wanted.emit()
    assert made.told == "block 4 · free"


def test_a_strangers_text_is_no_markup_in_a_tooltip(map_of):
    made = map_of(store_with())
    made.canvas.set_cursor(1)
    made.canvas.words_wanted.emit()
    made.show_described(described(1, "<img src='file:///etc/passwd'><b>bold</b>"))
    assert "<img" in made.told
    assert "<img" not in QToolTip.text()
    assert "&lt;img" in QToolTip.text()


def test_a_screen_reader_hears_the_counts_and_then_the_block(map_of):
    made = map_of(store_with())
    assert made.canvas.accessibleName() == made.accessibleName() != ""
    assert made.canvas.accessibleDescription().startswith("2 shared · 2 used · 1 kept · 3 free")
    made.canvas.set_cursor(5)
    assert made.canvas.accessibleDescription() == "block 5 · kept for a prompt that begins alike"
    made.canvas.set_cursor(-1)
    assert made.canvas.accessibleDescription().startswith("2 shared")


def test_the_table_has_a_row_a_block(map_of):
    table = map_of(store_with()).table()
    assert (table.name, table.num_rows) == ("kv_blocks", 8)
    assert not table.is_over_time


def test_every_state_has_a_picture_in_the_legend():
    assert set(block_map._KINDS) == set(block_map.BlockState)
