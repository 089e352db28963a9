"""The transcript on the screen: it follows the end, stays where it is read, and gives back plain text."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QHelpEvent, QImage, QMouseEvent
from PySide6.QtWidgets import QMenu, QToolTip

from ui.theme import load_theme
from ui.widgets.message_layout import MessageItem
from ui.widgets.message_view import COLUMN_PX, MessageView

TEXT = "Some words of an answer that go on for a while. " * 8


@pytest.fixture
def view(qtbot):
    made = MessageView(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(900, 600)
    made.show()
    return made


def many(count):
    return [MessageItem(key, "user" if key % 2 else "assistant", f"{key} {TEXT}") for key in range(count)]


def picture(view) -> QImage:
    return view.viewport().grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


def jump_button(view):
    return view.findChild(object, "jump_to_end")


def copy_button(view):
    return view.findChild(object, "message_copy")


def letter_point(view, message, offset):
    """The middle of a letter of a one-line message, in the viewport."""
    layout = view._transcript.layouts[message]
    line = layout.pieces[0]._paragraphs[0].layout.lineAt(0)
    x = view._column_left() + layout.text_origin.x() + line.cursorToX(offset)[0] + 2
    y = view._transcript.message_top(message) + layout.text_origin.y() + 10 - view.verticalScrollBar().value()
    return QPoint(round(x), round(y))


# ---------------------------------------------------------------------------------------------- place


def test_a_chat_of_ten_thousand_messages_opens_at_its_end_with_few_laid_out(view):
    view.set_messages(many(10_000))
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum() > 500_000
    assert sum(bool(layout.pieces) for layout in view._transcript.layouts) < 20
    assert view.follows_end


def test_the_view_follows_text_that_arrives_at_the_end(view):
    view.set_messages([*many(20), MessageItem(99, "assistant", "", is_streaming=True)])
    bar = view.verticalScrollBar()
    before = bar.maximum()
    for _frame in range(50):
        view.append_text(99, "and some more words ")
        assert bar.value() == bar.maximum()
    assert bar.maximum() > before


def test_a_reader_who_scrolled_up_stays_and_a_button_leads_back(view, qtbot):
    view.set_messages([*many(20), MessageItem(99, "assistant", "", is_streaming=True)])
    bar = view.verticalScrollBar()
    assert not jump_button(view).isVisible()
    bar.setValue(bar.value() - 700)
    assert jump_button(view).isVisible()
    shown = picture(view)
    value = bar.value()
    view.append_text(99, TEXT * 3)
    assert bar.value() == value
    assert picture(view) == shown
    qtbot.mouseClick(jump_button(view), Qt.MouseButton.LeftButton)
    assert bar.value() == bar.maximum()
    assert not jump_button(view).isVisible()


def test_the_persons_own_message_leads_back_to_the_end(view):
    view.set_messages(many(20))
    bar = view.verticalScrollBar()
    bar.setValue(100)
    view.append_item(MessageItem(98, "assistant", "short"))
    assert bar.value() < bar.maximum()
    view.append_item(MessageItem(99, "user", "next"))
    assert bar.value() == bar.maximum()


def test_what_is_read_stays_while_estimates_above_it_become_exact(view):
    view.set_messages([MessageItem(key, "assistant", "short\n" * (key % 40)) for key in range(500)])
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    for _step in range(60):
        y = 300
        point = QPointF(view._column_left() + 5, y)
        letter = view.position_at(point)
        bar.setValue(bar.value() - 44)
        assert view.position_at(QPointF(point.x(), y + 44)) == letter


def test_a_new_width_keeps_the_end_and_the_column_is_at_most_760_wide(view, qtbot):
    view.set_messages(many(50))
    view.resize(500, 400)
    bar = view.verticalScrollBar()
    assert view._transcript.column_px == 500 - 56
    assert bar.value() == bar.maximum()
    view.resize(2000, 400)
    assert view._transcript.column_px == COLUMN_PX
    assert view._column_left() == (2000 - COLUMN_PX) // 2
    assert bar.value() == bar.maximum()


def test_the_column_does_not_move_when_the_scroll_bar_comes(view, qtbot):
    view.set_messages(many(1))
    left = view._column_left()
    view.set_messages(many(50))
    qtbot.waitUntil(view.verticalScrollBar().isVisible)
    assert view._column_left() == left


def test_keys_scroll(view, qtbot):
    view.set_messages(many(50))
    bar = view.verticalScrollBar()
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert bar.value() == 0
    qtbot.keyClick(view, Qt.Key.Key_Space)
    assert bar.value() == bar.pageStep()
    qtbot.keyClick(view, Qt.Key.Key_Space, Qt.KeyboardModifier.ShiftModifier)
    assert bar.value() == 0
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert bar.value() == bar.singleStep()
    qtbot.keyClick(view, Qt.Key.Key_PageDown)
    assert bar.value() == bar.singleStep() + bar.pageStep()
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert bar.value() == bar.maximum()
    assert view.follows_end


# ---------------------------------------------------------------------------------------------- content


def test_text_is_never_read_as_markup_and_odd_characters_do_no_harm(view):
    accents = "e" + "\u0301" * 50_000
    odd = "<b>bold</b> <img src='file:///x.png'> [a](http://x) \x00\x1b[31m \ud800 \u202e مرحبا \ufffe 😀" + accents
    view.set_messages([MessageItem(1, "user", odd), MessageItem(2, "assistant", odd, is_streaming=True)])
    view.append_text(2, "\udc00\r")
    view.append_text(2, "\n\u2028")
    picture(view)
    view.select_all()
    assert "<b>bold</b> <img src='file:///x.png'>" in view.selected_text()
    assert view.selected_text().encode("utf-8")


@pytest.mark.parametrize("text", ["x" * 1_000_000, "a\n" * 300_000, "中" * 300_000])
def test_a_huge_message_lays_out_what_is_seen_only(view, text):
    view.set_messages([MessageItem(1, "assistant", text, is_streaming=True)])
    pieces = view._transcript.layouts[0].pieces
    assert sum(piece.is_laid_out for piece in pieces) < 20 < len(pieces)
    view.append_text(1, "more")
    assert sum(piece.is_laid_out for piece in view._transcript.layouts[0].pieces) < 20
    picture(view)


def test_items_are_updated_removed_and_cleared(view):
    view.set_messages(many(3))
    view.update_item(2, figures="151 tokens/s", state_text="stopped")
    view.remove_item(1)
    assert [(item.key, item.figures, item.state_text) for item in view.items] == [
        (0, "", ""),
        (2, "151 tokens/s", "stopped"),
    ]
    view.clear()
    assert view.items == []
    assert picture(view).pixelColor(5, 5) == load_theme("dark").color("window")


def test_another_theme_repaints(view):
    view.set_messages([MessageItem(1, "user", "Hi")])
    view.set_theme(load_theme("light"))
    assert picture(view).pixelColor(5, 5) == load_theme("light").color("window")


def test_a_bubble_shows_in_its_colour_at_its_place(view):
    view.set_messages([MessageItem(1, "user", "Hi")])
    right_edge = view._column_left() + COLUMN_PX
    shown = picture(view)
    assert shown.pixelColor(right_edge - 8, 12 + 23) == load_theme("dark").color("bubble")
    assert shown.pixelColor(view._column_left() + 8, 12 + 23) == load_theme("dark").color("window")


def test_the_last_message_is_told_to_screen_readers_when_it_ends(view):
    view.set_messages([MessageItem(1, "user", "Hi"), MessageItem(2, "assistant", "", is_streaming=True)])
    assert view.accessibleName() == "Messages"
    view.append_text(2, "An answer")
    view.update_item(2, is_streaming=False)
    assert view.accessibleDescription() == "An answer"


# ---------------------------------------------------------------------------------------------- marking


def test_dragging_marks_across_messages_and_copies_plain_text_only(view, qtbot):
    view.set_messages([MessageItem(1, "assistant", "first answer"), MessageItem(2, "assistant", "second answer")])
    port = view.viewport()
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=letter_point(view, 0, 6))
    drag(view, letter_point(view, 1, 6))
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=letter_point(view, 1, 6))
    assert view.selected_text() == "answer\n\nsecond"
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == "answer\n\nsecond"
    assert not data.hasHtml()
    assert not data.hasImage()


def test_a_double_click_marks_a_word_a_third_click_the_paragraph(view, qtbot):
    view.set_messages([MessageItem(1, "assistant", "first answer\nnext line")])
    port, point = view.viewport(), letter_point(view, 0, 8)
    qtbot.mouseDClick(port, Qt.MouseButton.LeftButton, pos=point)
    assert view.selected_text() == "answer"
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=point)
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=point)
    assert view.selected_text() == "first answer"
    qtbot.mouseRelease(port, Qt.MouseButton.LeftButton, pos=point)
    qtbot.mousePress(port, Qt.MouseButton.LeftButton, pos=point)
    assert view.selected_text() == ""


def test_shift_and_a_click_mark_up_to_the_click(view, qtbot):
    view.set_messages([MessageItem(1, "assistant", "first answer")])
    port = view.viewport()
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, pos=letter_point(view, 0, 0))
    qtbot.mouseClick(port, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, pos=letter_point(view, 0, 5))
    assert view.selected_text() == "first"


def test_everything_can_be_marked_and_marks_go_when_their_text_does(view, qtbot):
    view.set_messages([MessageItem(1, "user", "Hi"), MessageItem(2, "assistant", "An answer")])
    qtbot.keyClick(view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    assert view.selected_text() == "Hi\n\nAn answer"
    view.update_item(2, figures="151 tokens/s")
    assert view.selected_text() == "Hi\n\nAn answer"
    view.update_item(2, text="Another")
    assert view.selected_text() == ""


def test_the_menu_copies_what_is_marked(view, qtbot):
    view.set_messages([MessageItem(1, "assistant", "An answer")])
    view.select_all()
    menu = open_menu(view)
    assert [action.text() for action in menu.actions()] == ["Copy", "Select all"]
    menu.actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == "An answer"
    menu.close()


def test_the_copy_button_copies_the_last_answer_or_the_one_under_the_mouse(view, qtbot):
    view.set_messages(
        [MessageItem(1, "assistant", "first"), MessageItem(2, "user", "Hi"), MessageItem(3, "assistant", "last")]
    )
    button = copy_button(view)
    assert button.isVisible()
    button.click()
    assert QGuiApplication.clipboard().text() == "last"
    point = letter_point(view, 0, 1)
    drag(view, point, Qt.MouseButton.NoButton)
    button.click()
    assert QGuiApplication.clipboard().text() == "first"


def test_no_copy_button_stands_under_an_answer_that_still_arrives(view):
    view.set_messages([MessageItem(1, "user", "Hi"), MessageItem(2, "assistant", "An", is_streaming=True)])
    assert not copy_button(view).isVisible()
    view.update_item(2, is_streaming=False)
    assert copy_button(view).isVisible()


def test_shortened_figures_are_told_in_full_as_plain_text(view, monkeypatch):
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda _point, text, _widget: told.append(text))
    view.set_messages([MessageItem(1, "assistant", "Hi", figures="<b>151</b> tokens/s · " * 20)])
    rect = view._transcript.layouts[0].figures_rect.translated(view._column_left(), 12)
    view.viewportEvent(QHelpEvent(QEvent.Type.ToolTip, rect.center(), QPoint(0, 0)))
    assert told[0].startswith("<qt>&lt;b&gt;151&lt;/b&gt;")


def test_focus_by_key_is_visible(view, qtbot):
    view.set_messages([])
    view.activateWindow()
    view.clearFocus()
    view.setFocus(Qt.FocusReason.TabFocusReason)
    assert picture(view).pixelColor(200, 0) == load_theme("dark").color("accent")
    view.clearFocus()
    assert picture(view).pixelColor(200, 0) == load_theme("dark").color("window")


def drag(view, point, button=Qt.MouseButton.LeftButton):
    """Move the mouse; pytest-qt cannot move it with a button held."""
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(point),
        QPointF(view.viewport().mapToGlobal(point)),
        Qt.MouseButton.NoButton,
        button,
        Qt.KeyboardModifier.NoModifier,
    )
    QGuiApplication.sendEvent(view.viewport(), event)


def open_menu(view):
    from PySide6.QtGui import QContextMenuEvent

    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(10, 10), QPoint(10, 10))
    view.contextMenuEvent(event)
    return view.findChild(QMenu)


# ---------------------------------------------------------------------------------------------- X-ray


def test_an_answer_with_exact_tokens_has_a_button_and_a_menu_entry_for_its_xray(view, qtbot, monkeypatch):
    view.set_messages(
        [
            MessageItem(1, "assistant", "One.", figures="151 tokens/s", can_xray=True),
            MessageItem(2, "assistant", "Two.", figures="151 tokens/s"),
        ]
    )
    button = view.findChild(object, "message_xray")
    assert button.isHidden(), "the last answer's tokens were not kept"
    view.remove_item(2)
    assert button.isVisible()
    assert not button.geometry().intersects(copy_button(view).geometry())
    with qtbot.waitSignal(view.xray_requested) as sent:
        button.click()
    assert sent.args == [1]

    opened = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, _place: opened.extend(menu.actions()))
    view.contextMenuEvent(QContextMenuEvent(QContextMenuEvent.Reason.Mouse, QPoint(10, 10), QPoint(10, 10)))
    with qtbot.waitSignal(view.xray_requested) as sent:
        next(action for action in opened if action.text() == "X-ray…").trigger()
    assert sent.args == [1]
