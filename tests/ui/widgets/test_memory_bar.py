"""The bars: lengths that agree with their numbers, the limit, what the mouse and a screen reader are told."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

from app.units import NBSP
from ui.theme import load_theme
from ui.widgets.memory_bar import MemoryBars, MemoryLegend, MemoryPart

GIB = 2**30
PREDICTED = (
    MemoryPart("weights", "weights", "weights", predicted_bytes=4 * GIB, source="the header"),
    MemoryPart("kv", "KV cache", "kv", is_reserved=True, predicted_bytes=2 * GIB),
    MemoryPart("rest", "rest", "rest", predicted_bytes=0),
)
MEASURED = (
    MemoryPart("weights", "weights", "weights", predicted_bytes=4 * GIB, measured_bytes=4 * GIB),
    MemoryPart("kv", "KV cache", "kv", is_reserved=True, predicted_bytes=2 * GIB, measured_bytes=3 * GIB),
)


@pytest.fixture
def bars(qtbot):
    made = MemoryBars(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(800, 90)
    made.show()
    return made


def colours(widget):
    image = widget.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(0, image.width(), 2) for y in range(image.height())}


def test_lengths_agree_with_the_numbers(bars):
    bars.set_parts(PREDICTED, 10 * GIB)
    weights, kv, rest = (area for _part, area in bars.segments(False))
    assert weights.width() == pytest.approx(2 * kv.width())
    assert kv.left() == pytest.approx(weights.right())
    assert rest.width() == 0
    assert bars._limit_place() - weights.left() == pytest.approx(weights.width() * 10 / 4)


def test_what_does_not_fit_runs_past_the_limit(bars):
    bars.set_parts(PREDICTED, 3 * GIB)
    weights, kv, _rest = (area for _part, area in bars.segments(False))
    assert weights.left() < bars._limit_place() < weights.right()
    assert kv.right() <= bars._area(False).right()


def test_far_more_memory_than_needed_does_not_make_the_bar_invisible(bars):
    bars.set_parts(PREDICTED, 600 * GIB)
    assert bars._is_far()
    _weights, kv, _rest = (area for _part, area in bars.segments(False))
    assert kv.right() - bars._area(False).left() == pytest.approx(bars._area(False).width() * 0.8)
    assert kv.right() < bars._limit_place() < bars._area(False).right()


def test_a_measured_bar_stands_under_the_predicted_one(bars):
    bars.set_parts(PREDICTED, 10 * GIB)
    low = bars.sizeHint().height()
    bars.set_parts(MEASURED, 10 * GIB)
    assert bars.sizeHint().height() > low
    assert bars.total(is_measured=True) == 7 * GIB
    assert bars.segments(True)[0][1].top() > bars.segments(False)[0][1].bottom()


def test_measured_is_solid_and_the_limit_has_its_own_colour(bars):
    theme = load_theme("dark")
    bars.set_parts(PREDICTED, 10 * GIB)
    bars.grab()
    bars.set_parts(MEASURED, 10 * GIB)
    found = colours(bars)
    assert {theme.roles["weights"], theme.roles["limit"], theme.roles["grid"]} <= found
    bars.set_theme(load_theme("light"))
    assert load_theme("light").roles["weights"] in colours(bars)


def test_the_mouse_is_told_the_number_and_its_origin(bars):
    bars.set_parts(PREDICTED, 10 * GIB)
    place = bars.segments(False)[0][1].center()
    assert bars.words_at(place) == f"weights: 4.00{NBSP}GiB · the header"
    assert bars.words_at(QPointF(1, 1)) == ""
    bars.set_parts(MEASURED, 10 * GIB)
    assert bars.words_at(bars.segments(True)[1][1].center()) == f"KV cache: 3.00{NBSP}GiB · Measured here."
    event = QHelpEvent(QHelpEvent.Type.ToolTip, place.toPoint(), bars.mapToGlobal(QPoint(0, 0)))
    QApplication.sendEvent(bars, event)
    assert QToolTip.text().startswith("weights: 4.00")
    QToolTip.hideText()


def test_a_screen_reader_hears_every_number(bars):
    bars.set_parts(MEASURED, 10 * GIB)
    assert bars.accessibleDescription() == (
        f"predicted 6.00{NBSP}GiB: weights 4.00{NBSP}GiB, KV cache 2.00{NBSP}GiB. "
        f"measured 7.00{NBSP}GiB: weights 4.00{NBSP}GiB, KV cache 3.00{NBSP}GiB. 10.0{NBSP}GiB free"
    )


def test_nothing_is_drawn_without_numbers(bars):
    bars.set_parts((), 0)
    assert bars.segments(False) == []
    assert bars.accessibleDescription() == f"predicted 0{NBSP}bytes: "
    bars.grab()


@pytest.fixture
def legend(qtbot):
    made = MemoryLegend(load_theme("dark"))
    qtbot.addWidget(made)
    return made


def test_the_legend_prefers_what_was_measured(legend):
    legend.set_parts(PREDICTED)
    assert legend.words() == [f"weights 4.00{NBSP}GiB", f"KV cache 2.00{NBSP}GiB", f"rest 0{NBSP}bytes"]
    legend.set_parts(MEASURED)
    assert legend.words() == [f"weights 4.00{NBSP}GiB", f"KV cache 3.00{NBSP}GiB"]


def test_the_legend_flows_over_lines(legend):
    legend.set_parts(PREDICTED)
    assert legend.heightForWidth(100) > legend.heightForWidth(1000) == 21
    legend.resize(120, 100)
    legend.set_theme(load_theme("light"))
    legend.grab()
