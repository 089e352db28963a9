"""Enter sends, but never in the middle of a composition; what is pasted is plain text and never freezes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QImage, QInputMethodEvent, QTextCursor
from PySide6.QtWidgets import QApplication

from ui.widgets.display_text import MAX_PIECE_CHARS
from ui.widgets.prompt_edit import MAX_LINES, PromptEdit


@pytest.fixture
def edit(qtbot):
    made = PromptEdit()
    qtbot.addWidget(made)
    made.resize(500, 40)
    made.show()
    return made


def compose(edit, preedit, commit=""):
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(edit, event)


def paste(edit, text):
    data = QMimeData()
    data.setText(text)
    edit.insertFromMimeData(data)


def test_enter_sends_and_adds_no_line(edit, qtbot):
    edit.set_text("Hi")
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        with qtbot.waitSignal(edit.send_requested):
            qtbot.keyClick(edit, key)
    assert edit.text == "Hi"


def test_shift_and_enter_break_the_line(edit, qtbot):
    edit.set_text("Hi")
    with qtbot.assertNotEmitted(edit.send_requested):
        qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(edit, "x")
    assert edit.text == "Hi\nx"


def test_enter_inside_a_composition_never_sends(edit, qtbot):
    # 中文 is written as zhong wen; the Enter that ends it belongs to the input method.
    compose(edit, "zhong")
    assert edit.is_composing
    with qtbot.assertNotEmitted(edit.send_requested):
        qtbot.keyClick(edit, Qt.Key.Key_Return)
        compose(edit, "zhong wen")
        qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert edit.text == ""
    compose(edit, "", commit="中文")
    assert not edit.is_composing
    assert edit.text == "中文"
    with qtbot.waitSignal(edit.send_requested):
        qtbot.keyClick(edit, Qt.Key.Key_Return)


def test_only_plain_text_is_pasted(edit):
    data = QMimeData()
    data.setHtml("<b>bold</b><img src='file:///x.png'>")
    data.setText("bold")
    assert edit.canInsertFromMimeData(data)
    edit.insertFromMimeData(data)
    assert edit.text == "bold"
    picture = QMimeData()
    picture.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    assert not edit.canInsertFromMimeData(picture)
    edit.insertFromMimeData(picture)
    assert edit.text == "bold"


def test_files_dropped_are_names_not_contents(edit):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile("/a/b.txt")])
    edit.insertFromMimeData(data)
    assert edit.text == "file:///a/b.txt"


@pytest.mark.parametrize(
    "text",
    ["word " * 200_000, "x" * 1_000_000, "line\n" * 20_000, "中文" * 100_000, "\n".join(["y" * 5000] * 20)],
)
def test_a_huge_paste_is_the_same_text_again_in_lines_that_stay_cheap(edit, text):
    paste(edit, text)
    assert edit.text == text
    assert edit.take_text() == text
    edit.set_text(text)
    block = edit.document().begin()
    while block.isValid():
        assert block.length() <= MAX_PIECE_CHARS + 8
        block = block.next()


def test_a_break_inside_a_huge_line_survives_editing_and_copying(edit, qtbot):
    paste(edit, "x" * 5000)
    edit.moveCursor(QTextCursor.MoveOperation.Start)
    edit.moveCursor(QTextCursor.MoveOperation.EndOfBlock)
    qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert edit.text == "x" * 2000 + "\n" + "x" * 3000
    edit.undo()
    edit.selectAll()
    data = edit.createMimeDataFromSelection()
    assert data.text() == "x" * 5000
    assert not data.hasHtml()


def test_half_a_character_and_a_nul_do_no_harm(edit):
    paste(edit, "a\0b\r\nc")
    edit.set_text(edit.text + "\ud83d")
    assert edit.text == "a\u2400b\nc\ufffd"


def test_it_grows_from_one_line_to_ten(edit):
    one = edit.height()
    edit.set_text("a\nb\nc")
    assert edit.height() == one + 2 * edit.fontMetrics().lineSpacing()
    edit.set_text("line\n" * 50)
    assert edit.height() == one + (MAX_LINES - 1) * edit.fontMetrics().lineSpacing()
    edit.set_text("")
    assert edit.height() == one


def test_it_grows_where_a_long_line_wraps(edit):
    one = edit.height()
    edit.set_text("word " * 60)
    wide = edit.height()
    assert wide > one
    edit.resize(250, edit.height())
    assert edit.height() > wide


def test_up_in_an_empty_editor_brings_back_the_last_prompt(edit, qtbot):
    qtbot.keyClick(edit, Qt.Key.Key_Up)
    assert edit.text == ""
    edit.set_text("the last one")
    assert edit.take_text() == "the last one"
    assert edit.text == ""
    qtbot.keyClick(edit, Qt.Key.Key_Up)
    assert edit.text == "the last one"
    edit.set_text("other")
    qtbot.keyClick(edit, Qt.Key.Key_Up)
    assert edit.text == "other"


def test_blank_text_is_nothing_to_send(edit):
    for text, is_blank in (("", True), (" \n\t ", True), ("x", False), ("😀", False)):
        edit.set_text(text)
        assert edit.is_blank is is_blank


def test_it_tells_its_name_and_invites(edit):
    assert edit.accessibleName() == "Prompt"
    assert edit.placeholderText() == "Ask anything. It stays on this machine."
