"""The page of results: the verdict first, the chosen run under the table, wishes told as signals."""

from __future__ import annotations

import pytest

from tests.helpers import compare_values as values
from ui.panels.compare_results import CompareResults
from ui.theme import load_theme

ALL = frozenset(run.run_id for run in values.plan().runs)


@pytest.fixture
def page(qtbot):
    made = CompareResults(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1100, 800)
    made.show()
    return made


def show(page, usable=ALL, **fields):
    plan = values.plan()
    page.show_result(plan, values.result(plan, **fields), usable)


def test_the_verdict_stands_first_and_the_recommended_run_is_chosen(page):
    show(page)
    assert page.sentence.startswith("Q4_K_M: ")
    assert page.table.chosen_key == "Q4_K_M"
    assert page.use_button.text() == "Use Q4_K_M"
    assert page.resume_button.isHidden()
    assert page._state.isHidden()
    assert page._alike.text() == "No measurable difference on this text: Q8_0 and Q6_K."


def test_another_row_shows_its_figures_and_answers(page):
    show(page)
    page.table.setFocus()
    page.table.setCurrentIndex(page.table.runs.index(page.table.runs.row_of("Q2_K"), 0))
    assert page.details._caption.text() == "Q2_K"
    assert page.answers.run_ids == ("F16", "Q2_K", "Q4_K_M")
    page.resize(640, 800)
    assert page.answers.run_ids == ("F16", "Q2_K")


def test_newer_figures_keep_the_choice_and_the_open_conditions(page):
    show(page)
    page.table.choose("Q6_K")
    page.conditions.set_open(True)
    show(page, took_s=600.0)
    assert page.table.chosen_key == "Q6_K"
    assert page.conditions.is_open


def test_what_stopped_says_how_far_it_is_and_can_go_on(page, qtbot):
    show(page, state="stopped", runs=(values.run("F16"), values.run("Q4_K_M")), warnings=("The disk is full.",))
    assert page._state.text() == "Stopped: 2 of 7 runs done."
    assert page._warnings.sentences == ("The disk is full.",)
    with qtbot.waitSignal(page.resume_requested):
        page.resume_button.click()
    page.set_can_resume(False)
    assert not page.resume_button.isEnabled()
    assert page.resume_button.toolTip() == "Another comparison is running."


def test_before_anything_is_known_that_is_said(page):
    show(page, state="planned", runs=(), recommended="", differences=(), noise_floor=None, self_check=None)
    assert page.sentence
    assert page.use_button.isHidden()
    assert page.answers.isHidden()
    assert page._answers_caption.isHidden()
    assert page.table.chosen_key == "Q8_0"


def test_use_is_told_for_the_recommended_and_for_a_row(page, qtbot):
    show(page)
    with qtbot.waitSignal(page.use_requested) as told:
        page.use_button.click()
    assert told.args == ["Q4_K_M"]
    with qtbot.waitSignal(page.use_requested) as told:
        page.table.action_requested.emit("Q8_0")
    assert told.args == ["Q8_0"]
    show(page, usable=frozenset())
    assert page.use_button.isHidden()


def test_each_entry_of_the_export_menu_is_told(page, qtbot):
    actions = page.export_button.menu().actions()
    for action, signal in zip(actions, (page.table_requested, page.json_requested, page.csv_requested), strict=True):
        with qtbot.waitSignal(signal):
            action.trigger()


def test_another_theme_is_taken(page):
    show(page)
    page.set_theme(load_theme("light"))
    assert page.table.runs.theme.name == "light"
