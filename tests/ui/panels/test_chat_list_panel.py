"""Choosing, renaming, searching and deleting chats, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QListView, QMenu, QPushButton

from app.chat.messages import Chat
from ui.models.chat_list_model import ChatListModel
from ui.panels.chat_list_panel import ChatListPanel
from ui.theme import load_theme

BIG = 2**53 - 1


@pytest.fixture
def model(qapp):
    made = ChatListModel()
    made.set_chats([Chat(1, "Alpha", 0, 1.0), Chat(2, "Beta", 0, 2.0), Chat(BIG, "Gamma", 0, 3.0)])
    return made


@pytest.fixture
def panel(qtbot, model):
    made = ChatListPanel(model, load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(248, 500)
    made.show()
    yield made
    made.undo_bar.finish()


def view(panel):
    return panel.findChild(QListView)


def click(panel, qtbot, row, button=Qt.MouseButton.LeftButton):
    place = view(panel).visualRect(view(panel).model().index(row, 0)).center()
    qtbot.mouseClick(view(panel).viewport(), button, pos=place)
    return place


def test_a_click_selects_a_chat_and_tells_its_whole_id(panel, qtbot):
    with qtbot.waitSignal(panel.chat_selected) as caught:
        click(panel, qtbot, 0)
    assert caught.args == [BIG]
    assert panel.selected_id == BIG
    with qtbot.assertNotEmitted(panel.chat_selected):
        click(panel, qtbot, 0)


def test_the_arrows_select_too(panel, qtbot):
    panel.select(BIG)
    with qtbot.waitSignal(panel.chat_selected) as caught:
        qtbot.keyClick(view(panel), Qt.Key.Key_Down)
    assert caught.args == [2]


def test_selecting_from_outside_tells_nothing(panel, qtbot):
    with qtbot.assertNotEmitted(panel.chat_selected):
        panel.select(1)
        panel.select(2)
        panel.select(None)
    assert not view(panel).selectionModel().hasSelection()


def test_the_selection_stays_with_its_chat_while_the_list_changes(panel, model, qtbot):
    panel.select(1)
    with qtbot.assertNotEmitted(panel.chat_selected):
        model.put(Chat(1, "Alpha", 0, 9.0))
        model.put(Chat(4, "Delta", 0, 10.0))
        model.remove(2)
        model.set_chats([Chat(n, f"{n}", 0, float(n)) for n in range(100)])
    assert panel.selected_id == 1
    assert view(panel).currentIndex().data() == "1"


def test_a_search_hides_chats_and_never_opens_another(panel, qtbot):
    panel.select(1)
    search = panel.findChild(QLineEdit)
    with qtbot.assertNotEmitted(panel.chat_selected):
        qtbot.keyClicks(search, "beta")
        assert view(panel).model().rowCount() == 1
        assert not view(panel).selectionModel().hasSelection()
        search.clear()
    assert view(panel).currentIndex().data() == "Alpha"
    assert panel.selected_id == 1


def test_a_search_without_a_result_says_so_and_can_be_cleared(panel, qtbot):
    search = panel.findChild(QLineEdit)
    search.setText("nothing like it")
    assert "No chat has this in its title." in visible_texts(panel)
    next(b for b in panel.findChildren(QPushButton) if b.text() == "Clear the search").click()
    assert search.text() == ""
    assert view(panel).isVisible()


def test_without_chats_the_list_says_so(panel, model):
    model.set_chats([])
    assert "No chats yet." in visible_texts(panel)
    model.put(Chat(1, "", 0, 0))
    assert "No chats yet." not in visible_texts(panel)


def visible_texts(panel):
    return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]


@pytest.mark.parametrize("way", ["F2", "double click", "start_rename"])
def test_a_chat_is_renamed_in_place(panel, qtbot, way):
    place = click(panel, qtbot, 1)
    if way == "F2":
        qtbot.keyClick(view(panel), Qt.Key.Key_F2)
    elif way == "double click":
        qtbot.mouseDClick(view(panel).viewport(), Qt.MouseButton.LeftButton, pos=place)
    else:
        panel.start_rename()
    editor = view(panel).viewport().findChild(QLineEdit)
    assert editor.text() == "Beta"
    editor.setText("  Better\tname ")
    with qtbot.waitSignal(panel.rename_requested) as caught:
        qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert caught.args == [2, "Better name"]


def test_escape_leaves_the_title_as_it_was(panel, qtbot):
    click(panel, qtbot, 1)
    panel.start_rename()
    editor = view(panel).viewport().findChild(QLineEdit)
    editor.setText("x")
    with qtbot.assertNotEmitted(panel.rename_requested, wait=50):
        qtbot.keyClick(editor, Qt.Key.Key_Escape)


def test_typing_survives_a_change_of_another_chat(panel, model, qtbot):
    click(panel, qtbot, 1)
    panel.start_rename()
    editor = view(panel).viewport().findChild(QLineEdit)
    editor.setText("half a wo")
    model.put(Chat(1, "Alpha two", 0, 20.0))
    model.put(Chat(2, "Beta", 0, 30.0))
    assert editor.text() == "half a wo"
    assert editor.isVisible()


def test_del_deletes_the_selected_chat_and_backspace_never(panel, qtbot):
    click(panel, qtbot, 1)
    with qtbot.assertNotEmitted(panel.delete_requested):
        qtbot.keyClick(view(panel), Qt.Key.Key_Backspace)
    with qtbot.waitSignal(panel.delete_requested) as caught:
        qtbot.keyClick(view(panel), Qt.Key.Key_Delete)
    assert caught.args == [2]


def test_del_in_the_search_box_edits_the_search(panel, qtbot):
    panel.select(1)
    search = panel.findChild(QLineEdit)
    search.setText("beta")
    search.setFocus()
    search.home(False)
    with qtbot.assertNotEmitted(panel.delete_requested):
        qtbot.keyClick(search, Qt.Key.Key_Delete)
    assert search.text() == "eta"


def test_without_a_selection_del_does_nothing(panel, qtbot):
    panel.select(None)
    with qtbot.assertNotEmitted(panel.delete_requested):
        qtbot.keyClick(view(panel), Qt.Key.Key_Delete)


def test_the_context_menu_offers_rename_and_delete(panel, qtbot):
    place = click(panel, qtbot, 2)
    view(panel).customContextMenuRequested.emit(place)
    menu = next(w for w in QApplication.topLevelWidgets() if isinstance(w, QMenu) and w.isVisible())
    assert [action.text() for action in menu.actions()] == ["Rename", "Delete chat"]
    with qtbot.waitSignal(panel.delete_requested) as caught:
        menu.actions()[1].trigger()
    assert caught.args == [1]
    menu.close()


def test_new_asks_for_a_chat_and_clears_the_search(panel, qtbot):
    panel.findChild(QLineEdit).setText("beta")
    with qtbot.waitSignal(panel.new_requested):
        next(b for b in panel.findChildren(QPushButton) if b.text() == "New").click()
    assert panel.findChild(QLineEdit).text() == ""


def test_a_title_that_is_markup_is_shown_as_text(panel, model, qtbot):
    model.put(Chat(7, "<h1>huge</h1>", 0, 99.0))
    index = view(panel).model().index(0, 0)
    assert index.data() == "<h1>huge</h1>"
    assert view(panel).visualRect(index).height() < 50


def test_every_control_has_a_name_and_the_panel_its_width(panel):
    assert panel.width() == 248
    controls = [view(panel), *panel.findChildren(QLineEdit), *panel.findChildren(QPushButton)]
    assert all(control.accessibleName() or control.text() for control in controls if control.isVisible())


def test_the_search_box_can_be_reached(panel, qtbot):
    panel.findChild(QLineEdit).setText("be")
    panel.focus_search()
    assert panel.findChild(QLineEdit).selectedText() == "be"
