"""Every action of the window in one table: its words, its keys and its icon.

To add an action, add a member to ActionId and a line to the table. Knows not what an action does: the window
connects it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icons import icon


class ActionId(enum.StrEnum):
    """What a person can do from the keyboard or a menu."""

    NEW_CHAT = "new_chat"  # start an empty chat
    SEND = "send"  # send the prompt
    STOP = "stop"  # end the answer now
    RENAME_CHAT = "rename_chat"  # edit the chat's title in the list
    DELETE_CHAT = "delete_chat"  # delete the chat, with undo
    FOLD_PANEL = "fold_panel"  # show or hide the cutaway panel
    FOCUS_PROMPT = "focus_prompt"  # go to the prompt editor
    SHOW_CHAT = "show_chat"  # go to a screen
    SHOW_MODELS = "show_models"
    SHOW_COMPARE = "show_compare"
    SHOW_INSPECT = "show_inspect"
    SHOW_SETTINGS = "show_settings"
    SWITCH_THEME = "switch_theme"  # from light to dark or back
    QUIT = "quit"  # close the window


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One line of the table.

    Attributes:
        words: asked for when the action is built, after the language is known.
        keys: its shortcuts, the first is shown.
        icon: the name of its mdi6 icon.
        is_local: its keys work only in the widget that it is added to, since they mean something else elsewhere.
    """

    words: Callable[[], str]
    keys: tuple[str, ...]
    icon: str
    is_local: bool = False


# Backspace never deletes a chat, and Del only in the list: elsewhere it edits text.
ACTIONS: Mapping[ActionId, ActionSpec] = {
    ActionId.NEW_CHAT: ActionSpec(lambda: _("New chat"), ("Ctrl+N",), "plus"),
    ActionId.SEND: ActionSpec(lambda: _("Send"), ("Ctrl+Return", "Ctrl+Enter"), "arrow-up"),
    ActionId.STOP: ActionSpec(lambda: _("Stop"), ("Esc",), "stop"),
    ActionId.RENAME_CHAT: ActionSpec(lambda: _("Rename"), ("F2",), "pencil-outline", is_local=True),
    ActionId.DELETE_CHAT: ActionSpec(lambda: _("Delete chat"), ("Del",), "delete-outline", is_local=True),
    ActionId.FOLD_PANEL: ActionSpec(lambda: _("Show or hide the cutaway panel"), ("Ctrl+Shift+P", "F9"), "dock-right"),
    ActionId.FOCUS_PROMPT: ActionSpec(lambda: _("Go to the prompt"), ("Ctrl+L",), "form-textbox"),
    ActionId.SHOW_CHAT: ActionSpec(lambda: _("Chat"), ("Ctrl+1",), "message-text-outline"),
    ActionId.SHOW_MODELS: ActionSpec(lambda: _("Models"), ("Ctrl+2",), "cube-outline"),
    ActionId.SHOW_COMPARE: ActionSpec(lambda: _("Compare"), ("Ctrl+3",), "scale-balance"),
    ActionId.SHOW_INSPECT: ActionSpec(lambda: _("Inspect"), ("Ctrl+4",), "chart-timeline-variant"),
    ActionId.SHOW_SETTINGS: ActionSpec(lambda: _("Settings"), ("Ctrl+5", "Ctrl+,"), "cog-outline"),
    ActionId.SWITCH_THEME: ActionSpec(lambda: _("Light or dark"), ("Ctrl+Shift+L",), "theme-light-dark"),
    ActionId.QUIT: ActionSpec(lambda: _("Quit"), ("Ctrl+Q",), "exit-to-app"),
}

# macOS moves these into the program's own menu.
_MENU_ROLES = {
    ActionId.SHOW_SETTINGS: QAction.MenuRole.PreferencesRole,
    ActionId.QUIT: QAction.MenuRole.QuitRole,
}


def build_actions(parent: QObject, theme: Theme) -> dict[ActionId, QAction]:
    """Return an action for each line of the table, owned by the parent and connected to nothing."""
    actions = {action_id: _build(action_id, spec, parent) for action_id, spec in ACTIONS.items()}
    tint_actions(actions, theme)
    return actions


def tint_actions(actions: Mapping[ActionId, QAction], theme: Theme) -> None:
    """Give the actions' icons a theme's colours."""
    for action_id, action in actions.items():
        action.setIcon(icon(ACTIONS[action_id].icon, theme))


def tooltip_for(action_id: ActionId) -> str:
    """Return the action's words and its first key, such as "New chat (Ctrl+N)"."""
    spec = ACTIONS[action_id]
    return f"{spec.words()} ({QKeySequence(spec.keys[0]).toString(QKeySequence.SequenceFormat.NativeText)})"


def _build(action_id: ActionId, spec: ActionSpec, parent: QObject) -> QAction:
    action = QAction(spec.words(), parent)
    action.setObjectName(action_id.value)
    action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
    action.setToolTip(tooltip_for(action_id))
    action.setMenuRole(_MENU_ROLES.get(action_id, QAction.MenuRole.NoRole))
    if spec.is_local:
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    return action
