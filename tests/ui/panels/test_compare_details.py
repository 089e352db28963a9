"""The chosen run: checks and figures, why it failed, how it differs from its neighbours."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QBoxLayout, QLabel

from tests.helpers import compare_values as values
from ui.panels.compare_details import CompareDetails
from ui.theme import load_theme


@pytest.fixture
def details(qtbot):
    made = CompareDetails(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(900, 500)
    made.show()
    return made


def shown(details):
    return [label.text() for label in details.findChildren(QLabel) if label.isVisible() and label.text()]


def test_a_run_is_told_by_checks_and_figures(details):
    plan = values.plan()
    details.show_run(plan, values.result(plan), "Q4_K_M")
    assert details.check_words[0] == "all figures are finite"
    assert "writing: 2.4× as fast (2.3 to 2.5)" in details.check_words
    assert any(fact.title == "KL 99 %" for fact in details.grid.facts)
    assert "Beside Q5_K_M: farther from the reference." in shown(details)


def test_neighbours_too_near_to_be_ranked_are_not_ranked(details):
    plan = values.plan()
    details.show_run(plan, values.result(plan), "Q8_0")
    assert any("Beside Q6_K: too little to be ranked" in words for words in shown(details))


def test_a_failed_run_says_why_and_keeps_what_it_had(details):
    plan = values.plan()
    failed = values.run("Q8_0", quality=None, speed=None, memory=None, answers=(), failure=values.FAILURE)
    details.show_run(plan, values.result(plan, runs=(values.run("F16"), failed)), "Q8_0")
    assert values.FAILURE in shown(details)
    assert details.check_words == []
    assert [fact.title for fact in details.grid.facts] == ["perplexity", "load time"]


def test_a_run_that_was_not_begun_says_so(details):
    plan = values.plan()
    details.show_run(plan, values.result(plan, runs=(values.run("F16"),)), "Q2_K")
    assert "This run was not begun." in shown(details)
    details.show_run(plan, values.result(plan), "gone")
    assert details.isHidden()


def test_checks_and_figures_stand_side_by_side_where_there_is_room(details):
    plan = values.plan()
    details.show_run(plan, values.result(plan), "Q4_K_M")
    assert details._sides.direction() is QBoxLayout.Direction.LeftToRight
    details.resize(500, 800)
    assert details._sides.direction() is QBoxLayout.Direction.TopToBottom
    details.set_theme(load_theme("light"))
    assert len(details.check_words) == 5
