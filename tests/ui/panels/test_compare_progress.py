"""The page of a comparison under way: a line for each run, Stop told once, predictions in italics."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QProgressBar

from app.compare.runner_events import PhaseChanged, RunEnded
from tests.helpers import compare_values as values
from ui.models.compare_progress import CompareProgress
from ui.panels.compare_progress import CompareProgressPage
from ui.theme import load_theme


@pytest.fixture
def page(qtbot):
    made = CompareProgressPage(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(700, 600)
    made.show()
    return made


def test_every_run_has_a_line_in_its_state(page):
    progress = CompareProgress(values.plan())
    progress.take(RunEnded("Q8_0", values.FAILURE))
    progress.take(PhaseChanged("Q6_K", "windows", 1, 4, 70.0))
    page.show_progress(progress)
    lines = page.line_texts()
    assert len(lines) == 8
    assert f"Q8_0: {values.FAILURE}" in lines
    assert "Q6_K: scoring the text, window 2 of 4" in lines
    assert page._left.kind == "predicted"
    assert page._left.text().endswith("left")
    assert page.findChild(QProgressBar).value() > 0


def test_lines_stay_the_same_widgets_while_it_goes_on(page):
    progress = CompareProgress(values.plan())
    page.show_progress(progress)
    before = list(page._lines.values())
    progress.take(PhaseChanged("Q6_K", "windows", 1, 4, 70.0))
    page.show_progress(progress)
    assert list(page._lines.values()) == before
    page.show_progress(CompareProgress(values.plan(with_noise_floor=False)))
    assert len(page.line_texts()) == 7
    page.set_theme(load_theme("light"))


def test_stop_is_told_and_then_waits(page, qtbot):
    with qtbot.waitSignal(page.stop_requested):
        page.stop_button.click()
    page.set_stopping(True)
    assert not page.stop_button.isEnabled()
    page.set_stopping(False)
    assert page.stop_button.isEnabled()
