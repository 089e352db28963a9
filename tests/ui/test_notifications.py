"""Notices stay until dismissed, once each; an undo is offered for a while."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QToolButton

from ui.notifications import NoticeBar, UndoBar
from ui.theme import load_theme


@pytest.fixture
def bar(qtbot):
    made = NoticeBar(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(600, 400)
    return made


@pytest.fixture
def undo_bar(qtbot):
    made = UndoBar()
    qtbot.addWidget(made)
    yield made
    made.finish()


def shown(bar):
    """The accessible names of the visible notices from top to bottom."""
    frames = [found for found in bar.findChildren(QFrame) if found.property("kind") == "notice"]
    bar.layout().activate()
    visible = [found for found in frames if found.isVisibleTo(bar) and bar.layout().indexOf(found) >= 0]
    return [found.accessibleName() for found in sorted(visible, key=bar.layout().indexOf)]


def test_without_notices_the_bar_takes_no_room(bar):
    assert not bar.isVisibleTo(None)
    bar.show_notice("a", "One.")
    assert bar.isVisible()
    bar.dismiss("a")
    assert not bar.isVisible()
    bar.dismiss("a")


def test_a_notice_shows_its_words_as_they_are(bar):
    bar.show_notice("a", "<img src=x> & <b>bold</b>", "{hint}", "error")
    assert shown(bar) == ["Error: <img src=x> & <b>bold</b> {hint}"]
    texts = [label.text() for label in bar.findChildren(QLabel)]
    assert "<img src=x> & <b>bold</b>" in texts
    assert all(label.textFormat().name == "PlainText" for label in bar.findChildren(QLabel) if label.text())


def test_a_second_notice_of_one_key_replaces_the_first(bar):
    bar.show_notice("a", "One.")
    bar.show_notice("b", "Two.")
    bar.show_notice("a", "One again.", level="warning")
    assert shown(bar) == ["Warning: One again.", "Notice: Two."]
    assert bar.keys == ("a", "b")


def test_the_gravest_and_newest_stand_first_and_the_rest_is_counted(bar):
    for key, level in (("e", "error"), ("w", "warning"), ("f1", "fact"), ("f2", "fact"), ("f3", "fact")):
        bar.show_notice(key, f"{key}.", level=level)
    assert shown(bar) == ["Error: e.", "Warning: w.", "Notice: f3."]
    assert "2 more notices" in [label.text() for label in bar.findChildren(QLabel)]
    bar.dismiss("e")
    assert shown(bar) == ["Warning: w.", "Notice: f3.", "Notice: f2."]
    assert "1 more notice" in [label.text() for label in bar.findChildren(QLabel)]


def test_the_cross_dismisses_and_tells(bar, qtbot):
    bar.show_notice("a", "One.")
    with qtbot.waitSignal(bar.dismissed) as caught:
        bar.findChild(QToolButton).click()
    assert caught.args == ["a"]
    assert bar.keys == ()


def test_the_action_calls_back_and_the_notice_stays(bar):
    called = []
    bar.show_notice("a", "One.", action_text="Restart", callback=lambda: called.append(1))
    button = next(found for found in bar.findChildren(QPushButton) if found.text() == "Restart")
    button.click()
    assert called == [1]
    assert bar.keys == ("a",)


def test_a_long_path_does_not_widen_the_bar(bar):
    bar.show_notice("a", "/home/" + "averylongname" * 40, "/x/" + "y" * 500, action_text="Restart")
    assert bar.minimumSizeHint().width() < 560


def test_controls_without_words_have_an_accessible_name(bar):
    bar.show_notice("a", "One.")
    assert bar.findChild(QToolButton).accessibleName() == "Dismiss this notice"


def test_the_theme_can_change_while_notices_are_shown(bar):
    bar.show_notice("a", "One.", level="error")
    bar.set_theme(load_theme("light"))
    assert shown(bar) == ["Error: One."]


def test_undo_is_called_once_and_ends_the_offer(undo_bar, qtbot):
    called = []
    undo_bar.offer("Chat deleted.", lambda: called.append(1))
    assert undo_bar.isVisible()
    with qtbot.assertNotEmitted(undo_bar.expired):
        undo_bar.findChild(QPushButton).click()
        undo_bar.undo()
    assert called == [1]
    assert not undo_bar.isVisible()


def test_an_offer_ends_by_itself_but_not_while_the_keyboard_is_on_it(undo_bar, qtbot):
    undo_bar._timer.setInterval(1)
    undo_bar.move(400, 400)  # away from the mouse
    undo_bar.offer("Chat deleted.", lambda: pytest.fail("nobody asked"))
    button = undo_bar.findChild(QPushButton)
    button.setFocus()
    with qtbot.waitExposed(undo_bar):
        undo_bar.activateWindow()
    qtbot.waitUntil(button.hasFocus)
    with qtbot.assertNotEmitted(undo_bar.expired):
        undo_bar._on_timeout()
    with qtbot.waitSignal(undo_bar.expired):
        button.clearFocus()
    assert not undo_bar.isVisible()


def test_an_offer_lasts_ten_seconds(undo_bar):
    undo_bar.offer("Chat deleted.", lambda: None)
    assert undo_bar._timer.interval() == 10_000
    assert undo_bar._timer.isActive()


def test_a_second_offer_ends_the_first(undo_bar, qtbot):
    called = []
    undo_bar.offer("One.", lambda: called.append("one"))
    with qtbot.waitSignal(undo_bar.expired):
        undo_bar.offer("Two.", lambda: called.append("two"))
    undo_bar.undo()
    assert called == ["two"]
