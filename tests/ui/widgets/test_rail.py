"""The rail has one active screen, and says which one a person chose."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from ui.theme import load_theme
from ui.widgets.rail import SCREENS, Rail


@pytest.fixture
def rail(qtbot):
    made = Rail(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(84, 600)
    made.show()
    return made


def button(rail, words):
    return next(found for found in rail.findChildren(QToolButton) if found.text() == words)


def test_every_screen_has_a_button_with_words_an_icon_and_a_key(rail):
    buttons = rail.findChildren(QToolButton)
    assert [found.text() for found in buttons] == ["Chat", "Models", "Compare", "Inspect", "Settings"]
    assert all(not found.icon().isNull() for found in buttons)
    assert button(rail, "Models").toolTip() == "Models (Ctrl+2)"
    assert rail.width() == 84


def test_a_click_chooses_one_screen_and_only_one_is_active(rail, qtbot):
    with qtbot.waitSignal(rail.chosen) as caught:
        qtbot.mouseClick(button(rail, "Inspect"), Qt.MouseButton.LeftButton)
    assert caught.args == ["inspect"]
    assert rail.screen_name == "inspect"
    assert [found.text() for found in rail.findChildren(QToolButton) if found.isChecked()] == ["Inspect"]


def test_setting_the_screen_sends_nothing(rail, qtbot):
    with qtbot.assertNotEmitted(rail.chosen):
        for screen in SCREENS:
            rail.set_screen(screen)
    assert rail.screen_name == "settings"
    with pytest.raises(KeyError):
        rail.set_screen("nowhere")


def test_tab_reaches_the_active_button_and_arrows_choose_another(rail, qtbot):
    # Qt gives an exclusive group one stop for Tab and the arrows for the rest.
    assert button(rail, "Chat").focusPolicy() & Qt.FocusPolicy.TabFocus
    button(rail, "Chat").setFocus()
    with qtbot.waitSignal(rail.chosen) as caught:
        qtbot.keyClick(button(rail, "Chat"), Qt.Key.Key_Down)
    assert caught.args == ["models"]
    with qtbot.waitSignal(rail.chosen) as caught:
        qtbot.keyClick(button(rail, "Models"), Qt.Key.Key_Up)
    assert caught.args == ["chat"]


@pytest.mark.parametrize("name", ["dark", "light"])
def test_the_active_icon_has_the_accent_and_the_others_are_muted(rail, name):
    theme = load_theme(name)
    rail.set_theme(theme)
    for words, role in (("Chat", "accent"), ("Models", "muted")):
        found = button(rail, words)
        state = found.icon().State.On if found.isChecked() else found.icon().State.Off
        image = found.icon().pixmap(48, found.icon().Mode.Normal, state).toImage()
        solid = {
            image.pixelColor(x, y).name()
            for x in range(image.width())
            for y in range(image.height())
            if image.pixelColor(x, y).alpha() == 255
        }
        assert solid == {theme.roles[role]}
