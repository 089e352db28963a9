"""The table of actions is complete and without clashes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QKeySequence

from ui.actions import ACTIONS, ActionId, build_actions, tooltip_for
from ui.theme import load_theme


@pytest.fixture
def actions(qapp):
    parent = QObject()
    yield build_actions(parent, load_theme("dark"))
    parent.deleteLater()


def test_every_action_has_words_an_icon_and_a_key(actions):
    assert list(actions) == list(ActionId)
    for action in actions.values():
        assert action.text()
        assert not action.icon().isNull()
        assert all(not keys.isEmpty() for keys in action.shortcuts())


def test_no_two_actions_share_a_key():
    keys = [QKeySequence(key).toString() for spec in ACTIONS.values() for key in spec.keys]
    assert len(keys) == len(set(keys))


def test_backspace_deletes_nothing_and_del_works_in_the_list_only(actions):
    assert all("Backspace" not in key for spec in ACTIONS.values() for key in spec.keys)
    assert actions[ActionId.DELETE_CHAT].shortcut().toString() == "Del"
    for local in (ActionId.DELETE_CHAT, ActionId.RENAME_CHAT):
        assert actions[local].shortcutContext() is Qt.ShortcutContext.WidgetShortcut
    assert actions[ActionId.NEW_CHAT].shortcutContext() is Qt.ShortcutContext.WindowShortcut


def test_the_tooltip_tells_the_key(actions):
    assert actions[ActionId.NEW_CHAT].toolTip() == "New chat (Ctrl+N)"
    assert tooltip_for(ActionId.SHOW_SETTINGS) == "Settings (Ctrl+5)"
