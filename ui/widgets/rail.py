"""The rail at the left edge: one button for each screen, one of them active.

Knows no screen, only their names.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from ui.actions import ACTIONS, ActionId, tooltip_for
from ui.theme import Theme
from ui.widgets.icons import icon

_WIDTH_PX = 84
_BUTTON_WIDTH_PX = 68
_ICON_PX = 22

# The screens from top to bottom; the last one stands apart at the bottom.
SCREENS = {
    "chat": ActionId.SHOW_CHAT,
    "models": ActionId.SHOW_MODELS,
    "compare": ActionId.SHOW_COMPARE,
    "inspect": ActionId.SHOW_INSPECT,
    "settings": ActionId.SHOW_SETTINGS,
}


class Rail(QWidget):
    """Five buttons, an icon over a word, exactly one of them checked.

    Attributes:
        _buttons: by the name of their screen, a key of SCREENS.

    Signals:
        chosen(screen): a person chose a screen, a key of SCREENS; not sent by set_screen().
    """

    chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rail")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(_WIDTH_PX)
        self._group = QButtonGroup(self)
        self._buttons = {screen: self._build_button(action_id) for screen, action_id in SCREENS.items()}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 12, 8, 12)
        layout.setSpacing(4)
        for screen, button in self._buttons.items():
            if screen == "settings":
                layout.addStretch()
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        self._group.idClicked.connect(self._on_clicked)
        self.set_theme(theme)
        self.set_screen("chat")

    @property
    def screen_name(self) -> str:
        """The active screen, a key of SCREENS."""
        return list(SCREENS)[self._group.checkedId()]

    def set_screen(self, screen: str) -> None:
        """Mark a screen as the active one; KeyError for an unknown one."""
        self._buttons[screen].setChecked(True)

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in a theme's colours: muted, and the accent where active."""
        for screen, button in self._buttons.items():
            button.setIcon(icon(ACTIONS[SCREENS[screen]].icon, theme, role="muted", active_role="accent"))

    def _build_button(self, action_id: ActionId) -> QToolButton:
        button = QToolButton()
        button.setText(ACTIONS[action_id].words())
        button.setToolTip(tooltip_for(action_id))
        button.setProperty("kind", "rail")
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
        button.setIconSize(QSize(_ICON_PX, _ICON_PX))
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        button.setFixedWidth(_BUTTON_WIDTH_PX)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        button.setCheckable(True)
        self._group.addButton(button, len(self._group.buttons()))
        return button

    def _on_clicked(self, button_id: int) -> None:
        self.chosen.emit(list(SCREENS)[button_id])
