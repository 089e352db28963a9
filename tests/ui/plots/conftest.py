"""What the tests of plots share: a timer that ends with the test, a shared time, and plots that are on screen."""

from __future__ import annotations

import pytest

from tests.helpers import live_store
from ui.plots.plot_base import SharedTime
from ui.plots.redraw import RedrawTimer
from ui.theme import load_theme


@pytest.fixture
def timer(qapp):
    timer = RedrawTimer(cores=16)
    yield timer
    timer.stop()


@pytest.fixture
def time(qapp):
    return SharedTime()


@pytest.fixture
def store():
    return live_store.filled_store()


@pytest.fixture
def shown(qtbot, timer, time):
    """Return a function that builds a plot, shows it and waits until it is drawn."""

    def show(kind, store, theme="dark", size=(600, 300)):
        plot = kind(store, time, timer, 80)
        qtbot.addWidget(plot)
        plot.set_theme(load_theme(theme))
        plot.resize(*size)
        plot.show()
        qtbot.waitUntil(lambda: not plot.has_moved() and not timer.is_active, timeout=5000)
        return plot

    return show
