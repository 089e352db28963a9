"""The compare screen's parts: one page at a time, the list narrower in a small window."""

from __future__ import annotations

import pytest

from tests.helpers import compare_values as values
from ui.models.compare_progress import CompareProgress
from ui.panels.compare_panel import ComparePanel
from ui.theme import load_theme


@pytest.fixture
def panel(qtbot):
    made = ComparePanel(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1300, 800)
    made.show()
    return made


def words(panel):
    return panel._empty._sentence.accessibleName()


def test_an_empty_screen_has_one_sentence_and_one_action(panel, qtbot):
    assert "Looking" in words(panel)
    panel.show_nothing_to_compare()
    assert words(panel).startswith("Comparing needs two quantizations of one model")
    with qtbot.waitSignal(panel.models_requested):
        panel._empty._button.click()
    panel.show_nothing_to_compare("SmolLM2")
    assert "More can be made of SmolLM2 here" in words(panel)
    with qtbot.waitSignal(panel.quantize_requested):
        panel._empty._button.click()
    panel.show_opening()
    assert not panel._empty._button.isVisible()
    panel.show_fault("It is damaged.")
    assert words(panel) == "It is damaged."


def test_one_page_is_shown_at_a_time(panel):
    panel.show_setup()
    assert panel.page is panel.setup
    panel.progress.show_progress(CompareProgress(values.plan()))
    panel.show_progress()
    assert panel.page is panel.progress
    panel.show_results()
    assert panel.page is panel.results


@pytest.mark.parametrize("page", ["setup", "progress", "results"])
def test_every_page_fits_the_smallest_window(panel, page):
    plan = values.plan()
    panel.progress.show_progress(CompareProgress(plan))
    panel.results.show_result(plan, values.result(plan), frozenset())
    getattr(panel, f"show_{page}")()
    panel.resize(960 - 84, 600)
    assert panel.list.width() == 200
    assert panel.width() == 960 - 84
    assert panel.minimumSizeHint().width() <= 960 - 84


def test_another_theme_reaches_every_part(panel):
    panel.set_theme(load_theme("light"))
    assert panel.results.table.runs.theme.name == "light"
