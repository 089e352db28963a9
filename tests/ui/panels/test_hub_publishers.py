"""The publishers: asked for by a person, side by side, one of them opened."""

from __future__ import annotations

import datetime

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from app.units import NBSP
from tests.helpers.hub_values import LLAMA, detail, llama_3, publishers
from ui.panels.hub_publishers import HubPublishers

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)


@pytest.fixture
def shown(qtbot):
    made = HubPublishers()
    qtbot.addWidget(made)
    made.set_detail(detail(), NOW)
    made.resize(900, 300)
    made.show()
    return made


def texts(shown):
    return [label.text().replace(NBSP, " ") for label in shown.findChildren(QLabel) if label.isVisible()]


def opened(shown):
    shown.button.click()
    shown.set_publishers(publishers(), NOW)


def test_the_line_says_who_published_it(shown):
    assert texts(shown) == ["publisher bartowski · importance matrix yes · 1.20 M downloads · changed 3 days ago"]


def test_the_others_are_asked_for_only_when_a_person_wants_them(shown, qtbot):
    with qtbot.waitSignal(shown.publishers_requested):
        shown.button.click()
    shown.show_looking()
    assert "Asking who else offers this model…" in texts(shown)
    shown.set_publishers(publishers(), NOW)
    assert shown.table.isVisible()
    assert shown.table.model().rowCount() == 3
    with qtbot.assertNotEmitted(shown.publishers_requested):
        shown.button.click()
    assert not shown.table.isVisible()
    shown.set_publishers(publishers(), NOW)
    assert not shown.table.isVisible()


def test_enter_opens_another_one_and_not_the_one_that_is_open(shown, qtbot):
    opened(shown)
    shown.table.selectRow(0)
    with qtbot.assertNotEmitted(shown.repo_chosen):
        qtbot.keyClick(shown.table, Qt.Key.Key_Return)
    qtbot.keyClick(shown.table, Qt.Key.Key_Down)
    with qtbot.waitSignal(shown.repo_chosen) as caught:
        qtbot.keyClick(shown.table, Qt.Key.Key_Return)
    assert caught.args == ["unsloth/Llama-3.1-8B-Instruct-GGUF"]


def test_nobody_else_and_no_answer_are_words(shown):
    shown.button.click()
    shown.set_publishers([one for one in publishers() if one.repo == LLAMA], NOW)
    assert "Nobody else is known to offer this model." in texts(shown)
    shown.show_words("The hub cannot be reached.")
    assert "The hub cannot be reached." in texts(shown)


def test_another_model_takes_the_others_away(shown):
    opened(shown)
    shown.set_detail(detail(), NOW)
    assert shown.button.isChecked()
    shown.set_detail(llama_3(), NOW)
    assert not shown.button.isChecked()
    assert not shown.table.isVisible()
