"""The whole window: screens, themes, files, settings, names for a screen reader, and strangers' words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, Qt, QUrl
from PySide6.QtGui import QAccessible, QDragEnterEvent, QDropEvent, QImage, QKeySequence
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QFileDialog,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QToolButton,
    QWidget,
)

from app.chat.messages import MessageState, Role
from app.engines.supervisor import ResponseChanged
from app.errors import Words
from backends.echo_engine import EchoScript, Fault
from backends.protocol import LifeCycle
from tests.helpers.echo_window import ANSWER, OpenWindow, echo_context, script_entry
from tests.helpers.engine_client import write_script
from tests.helpers.notices import button_of, shown_notices
from ui.actions import ActionId
from ui.theme import Theme, load_theme
from ui.widgets.rail import SCREENS

PATIENCE_MS = 30_000
FILLS = ("window", "surface", "raised", "bubble", "border")
HOSTILE = "<img src=x><b>bold & brave</b>"


@pytest.fixture
def wait(qtbot):
    return lambda is_so: qtbot.waitUntil(is_so, timeout=PATIENCE_MS)


@pytest.fixture
def no_model(open_window):
    """A window without a model: nothing runs beside it."""
    return open_window(context=echo_context([]), is_ready=OpenWindow.has_plots)


def trigger(window: OpenWindow, action_id: ActionId) -> None:
    window.window._actions[action_id].trigger()


def shown_page(window: OpenWindow) -> QWidget:
    return window.window._screens.currentWidget()


def fills_of(widget: QWidget, theme: Theme) -> set[str]:
    """Return the roles of a theme that fill some part of a widget; letters' soft edges may have any colour."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint32) & 0xFFFFFF
    return {role for role in FILLS if np.count_nonzero(pixels == int(theme.roles[role][1:], 16)) > 100}


# ------------------------------------------------------------------------------------------ screens and keys


def test_the_rail_and_the_keys_lead_to_every_screen(no_model):
    for name, action_id in SCREENS.items():
        trigger(no_model, action_id)
        assert no_model.window._rail.screen_name == name
        assert shown_page(no_model) is no_model.window._pages[name]
    no_model.window._rail._buttons["chat"].click()
    assert shown_page(no_model) is no_model.chats


def test_a_change_of_screen_rings_no_control_and_the_chat_is_ready_to_write_in(no_model, qtbot):
    no_model.window.activateWindow()
    for name in ("models", "settings", "inspect", "compare"):
        no_model.window.show_screen(name)
        assert no_model.window.focusWidget() is no_model.window._pages[name]
    no_model.window.show_screen("chat")
    assert no_model.window.focusWidget() is no_model.prompt
    trigger(no_model, ActionId.SHOW_SETTINGS)
    trigger(no_model, ActionId.FOCUS_PROMPT)
    assert no_model.window.focusWidget() is no_model.prompt


def test_no_two_actions_share_a_key(no_model):
    keys = [key.toString() for action in no_model.window.actions() for key in action.shortcuts()]
    assert len(keys) == len(set(keys))
    assert QKeySequence("Ctrl+N").toString() in keys


def test_the_panel_is_folded_by_its_key_and_stays_as_it_was_left(no_model, qtbot):
    assert no_model.window.plots.panel.is_folded
    trigger(no_model, ActionId.FOLD_PANEL)
    assert no_model.window.plots.panel.isVisible()
    assert no_model.context.settings.get().panel_folded is False
    no_model.chat._fold.click()
    assert not no_model.window.plots.panel.isVisible()
    assert no_model.context.settings.get().panel_folded is True


def test_a_new_chat_by_key_shows_the_chat_screen(no_model):
    no_model.window.show_screen("settings")
    trigger(no_model, ActionId.NEW_CHAT)
    assert shown_page(no_model) is no_model.chats


# ------------------------------------------------------------------------------------------ theme


def test_another_theme_repaints_everything(open_window, qtbot, wait):
    context = echo_context([])
    context.settings.change(theme="dark", panel_folded=False)
    context.store.add_message(context.store.add_chat("A chat").chat_id, None, Role.USER, "A question")
    window = open_window(context=context, is_ready=OpenWindow.has_plots)
    window.chats.open_chat(window.chat_id())
    window.window.tell("one", Words("Something happened.", "Do this."))
    dark, light = load_theme("dark"), load_theme("light")
    trigger(window, ActionId.SWITCH_THEME)
    assert context.settings.get().theme == "light"
    for name in SCREENS:
        window.window.show_screen(name)
        assert {"window", "surface"} <= fills_of(window.window, light)
        assert fills_of(window.window, dark) == set(), name
    window.window.show_screen("chat")
    assert fills_of(window.window, light) == set(FILLS)
    context.settings.change(theme="dark")
    assert (fills_of(window.window, dark), fills_of(window.window, light)) == (set(FILLS), set())


# ------------------------------------------------------------------------------------------ files


def drop(window: OpenWindow, *files: Path) -> bool:
    """Drag files over the window and let them fall; returns whether the window wanted them."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    buttons, no_keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    entered = QDragEnterEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, buttons, no_keys)
    entered.ignore()
    QApplication.sendEvent(window.window, entered)
    if entered.isAccepted():
        QApplication.sendEvent(
            window.window, QDropEvent(QPoint(5, 5), Qt.DropAction.CopyAction, data, buttons, no_keys)
        )
    return entered.isAccepted()


def test_a_dropped_model_file_is_added_and_used(open_window, wait, tmp_path):
    window = open_window(EchoScript(ANSWER))
    window.window.show_screen("settings")
    file = write_script(tmp_path / "dropped.gguf", EchoScript("I was dropped."))
    assert drop(window, file)
    wait(lambda: shown_page(window) is window.chats)
    wait(window.is_ready)
    assert window.context.library.imported == [file]
    assert window.chat.chip.words == "dropped · none · echo · CPU"
    texts = [action.text() for action in window.chat.chip.model_actions()]
    assert texts == ["Echo · none · room for 8k", "dropped · none · room for 8k"]
    assert [action.isChecked() for action in window.chat.chip.model_actions()] == [False, True]


def test_other_things_are_not_taken(no_model, tmp_path):
    assert not drop(no_model, tmp_path / "picture.png")
    assert no_model.context.library.imported == []


def test_a_file_that_cannot_be_used_is_told_and_changes_nothing(no_model, wait, tmp_path):
    no_model.window.open_files([str(tmp_path / "gone.gguf"), str(tmp_path / "too.gguf")])
    wait(lambda: shown_page(no_model) is no_model.window.models.page)
    notices = shown_notices(no_model.window.models.notices)
    assert [notice.split(" ")[0] for notice in notices] == ["Error:", "Error:"]
    assert no_model.chat.chip.words == "No model"


def test_a_file_is_chosen_in_a_dialog(no_model, wait, monkeypatch, tmp_path):
    file = write_script(tmp_path / "chosen.gguf", EchoScript(ANSWER))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_asked: (str(file), ""))
    no_model.window.models.panel._empty.action_requested.emit()
    wait(no_model.is_ready)
    assert no_model.chat.chip.words == "chosen · none · echo · CPU"


def test_the_models_screen_chooses_the_model_in_use_and_forgets_others(open_window, wait, tmp_path):
    entries = [
        script_entry(tmp_path, name, origin=origin)
        for name, origin in (("Alpha", "imported"), ("Beta", "starter"), ("Gamma", "folder"))
    ]
    context = echo_context(entries)
    context.settings.change(last_model=entries[1].key)
    window = open_window(context=context)
    window.window.show_screen("models")
    models = window.window.models.panel
    assert models.chosen_entry.name == "Beta"
    models.choose(entries[0].key)
    models.page.detail.forget_button.click()
    wait(lambda: [entry.name for entry in context.library.entries()] == ["Beta", "Gamma"])
    models.forget_requested.emit("gone:Q4_1")
    wait(lambda: shown_notices(window.window.models.notices) == ["Error: gone:Q4_1 was not imported."])
    models.choose(entries[2].key)
    models.page.detail.use_button.click()
    assert shown_page(window) is window.chats


def test_the_first_card_leads_to_the_models_picked_for_this_machine(no_model):
    no_model.chat.card.pick_requested.emit()
    assert (shown_page(no_model), no_model.window.models.panel.list.tab) == (no_model.window.models.page, "picked")


# ------------------------------------------------------------------------------------------ settings


def test_a_setting_changed_on_its_screen_counts_for_the_next_answer(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER))
    window.window.show_screen("settings")
    window.window.findChild(QSpinBox, "setting_max_tokens").setValue(7)
    window.chats.send("short, please")
    wait(window.is_idle)
    assert window.texts[-1] == ANSWER[:7]
    assert window.chat.view.items[-1].figures.endswith("token limit reached")


# ------------------------------------------------------------------------------------------ what goes wrong


def test_an_engine_that_hangs_is_stopped_by_a_click_and_the_text_is_kept(open_window, wait):
    window = open_window(EchoScript(ANSWER, fault=Fault("decode", "hang", 12)))
    window.chats.send("try")
    wait(lambda: len(window.texts[-1]) == 12)
    window.program._bridge.engine_event.emit(ResponseChanged(is_responding=False, silence_s=3.0))
    button_of(window.chat.notices, "Stop the engine").click()
    wait(window.is_idle)
    assert window.texts[-1] == ANSWER[:12]
    wait(lambda: window.context.engine.state is LifeCycle.DEAD)
    wait(lambda: [notice[:6] for notice in shown_notices(window.chat.notices)] == ["Error:"])


def test_closing_in_the_middle_of_an_answer_keeps_it_and_leaves_nothing(open_window, wait, own_home):
    # The watch over processes, threads, timers and windows looks after every test; this is the one it is for.
    window = open_window(EchoScript("word " * 400, token_s=0.02))
    window.chats.send("Go on")
    wait(lambda: len(window.texts[-1]) > 10)
    shown = window.texts[-1]
    window.close()
    context = echo_context([])
    reopened = open_window(context=context, is_ready=OpenWindow.has_plots)
    assert context.settings.get().window_geometry
    reopened.chats.open_chat(reopened.chat_id())
    item = reopened.chat.view.items[-1]
    assert item.text.startswith(shown)
    assert item.state_text == "Interrupted here. What was written is kept."
    assert context.store.branch(reopened.chat_id())[-1].state is MessageState.INTERRUPTED


def test_what_went_wrong_at_the_start_is_told(open_window, allow_log, own_home):
    (own_home / "config").mkdir(parents=True)
    (own_home / "config" / "settings.json").write_text("no settings")
    window = open_window(context=echo_context([]), is_ready=OpenWindow.has_plots)
    (notice,) = shown_notices(window.chat.notices)
    assert notice.startswith("Warning: The settings file was damaged, so every setting is back at its default.")


# ------------------------------------------------------------------------------------------ strangers' words


def rich_texts(window: OpenWindow) -> list[str]:
    """Return what would be read as markup: labels that look for it, and tooltips that are taken for it."""
    found = []
    for widget in window.window.findChildren(QWidget):
        if isinstance(widget, QLabel) and "<" in widget.text() and widget.textFormat() is not Qt.TextFormat.PlainText:
            found.append(f"label {widget.text()}")
        tip = widget.toolTip()
        if GuiQt.mightBeRichText(tip) and ("<img" in tip or "<b>" in tip):
            found.append(f"tooltip {tip}")
        if isinstance(widget, QAbstractButton) and HOSTILE in widget.text():
            found.append(f"button with an unescaped & {widget.text()}")
    for action in window.chat.chip.menu().actions():
        if HOSTILE in action.text():
            found.append(f"menu entry with an unescaped & {action.text()}")
    return found


def test_strangers_words_are_shown_as_they_are_everywhere(open_window, qtbot, wait, tmp_path):
    (tmp_path / "x").write_bytes(b"not a picture")
    entry = script_entry(tmp_path, HOSTILE, EchoScript(HOSTILE), quantization="<i>Q</i>", architecture="<u>a</u>")
    context = echo_context([entry, script_entry(tmp_path, "Damaged", fault=f"{HOSTILE} is damaged.")])
    context.settings.change(panel_folded=False)
    window = open_window(context=context)
    window.chats.send(HOSTILE)
    wait(window.is_idle)
    window.window.tell("hostile", Words(HOSTILE, HOSTILE))
    window.chats.delete_chat(window.chat_id())
    window.chats.list.undo_bar.undo()
    window.chats.delete_chat(window.chat_id())
    window.chats.send(HOSTILE)
    wait(window.is_idle)
    for name in SCREENS:
        window.window.show_screen(name)
        for size in ((960, 600), (1440, 900)):
            window.window.resize(*size)
            QApplication.processEvents()
            assert rich_texts(window) == []
    assert window.chat.chip.words.startswith(f"{HOSTILE} · <i>Q</i>")
    assert window.titles == [HOSTILE]
    assert window.chat._title.text() == HOSTILE
    assert window.texts == [HOSTILE, HOSTILE]
    assert shown_notices(window.chat.notices) == [f"Warning: {HOSTILE} {HOSTILE}"]
    assert window.window.models.panel.list.rows.index(0, 0).data() == HOSTILE
    assert window.chat.chip.model_actions()[0].text().startswith(HOSTILE.replace("&", "&&"))


# ------------------------------------------------------------------------------------------ everybody


CONTROLS = (QAbstractButton, QLineEdit, QPlainTextEdit, QAbstractSpinBox, QComboBox, QAbstractItemView)


def nameless(window: OpenWindow) -> list[str]:
    """Return the controls that a screen reader could not name."""
    found = []
    for widget in window.window.findChildren(QWidget):
        is_part = isinstance(widget.parent(), QAbstractSpinBox | QComboBox) or widget.objectName().startswith("qt_")
        is_unseen = widget.isHidden() or widget.window() is not window.window  # no words yet; menus that never open
        if is_part or is_unseen or isinstance(widget, QHeaderView) or not isinstance(widget, CONTROLS):
            continue
        spoken = QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)
        if not spoken.strip():
            found.append(f"{type(widget).__name__} {widget.objectName()!r} in {type(widget.parent()).__name__}")
    return found


def test_every_control_has_a_name_for_a_screen_reader(open_window, wait):
    context = echo_context([])
    context.settings.change(panel_folded=False)
    window = open_window(context=context, is_ready=OpenWindow.has_plots)
    window.window.tell("one", Words("Something happened."))
    for name in SCREENS:
        window.window.show_screen(name)
        assert window.window._pages[name].accessibleName()
    assert "\n".join(nameless(window)) == ""


def test_tab_reaches_everything_and_comes_back(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER))
    window.chats.send("one")
    wait(window.is_idle)
    window.window.activateWindow()
    window.prompt.setFocus()
    reached = []
    for _press in range(40):
        qtbot.keyClick(window.window.focusWidget(), Qt.Key.Key_Tab)
        reached.append(window.window.focusWidget())
        if reached[-1] is window.prompt:
            break
    assert reached[-1] is window.prompt
    wanted = [window.chat.chip, window.chat.view, window.chat._fold, window.chats.list._new, window.chats.list._search]
    wanted += [window.chats.list._list, window.window._rail._buttons["chat"]]
    assert [widget for widget in wanted if widget not in reached] == []


def test_the_arrows_lead_along_the_rail(no_model, qtbot):
    no_model.window.activateWindow()
    buttons = no_model.window._rail._buttons
    buttons["chat"].setFocus()
    for name in ("models", "compare", "inspect", "settings"):
        qtbot.keyClick(no_model.window.focusWidget(), Qt.Key.Key_Down)
        assert no_model.window.focusWidget() is buttons[name]
    qtbot.keyClick(buttons["settings"], Qt.Key.Key_Space)
    assert no_model.window._rail.screen_name == "settings"
    assert shown_page(no_model) is no_model.window._pages["settings"]


def test_the_words_of_the_rail_are_whole(no_model):
    for button in no_model.window._rail.findChildren(QToolButton):
        assert button.fontMetrics().horizontalAdvance(button.text()) <= button.width() - 8


def test_nothing_is_wider_than_the_smallest_window(open_window, qtbot, wait):
    window = open_window(EchoScript(ANSWER))
    window.chats.send("a question of some length, so that it must be broken in a narrow window")
    wait(window.is_idle)
    window.window.tell("one", Words("Something happened. " * 9, "Do this. " * 9))
    body = window.window.centralWidget()
    for is_folded in (True, False):
        window.window.plots.panel.set_folded(is_folded)
        for name in SCREENS:
            window.window.show_screen(name)
            window.window.resize(960, 600)
            qtbot.waitUntil(lambda: body.minimumSizeHint().width() <= 960)
            assert body.minimumSizeHint().height() <= 600, name
            assert window.window._screens.geometry().right() < 960
