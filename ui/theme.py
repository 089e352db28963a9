"""The look: colour roles read from resources/themes, the fonts, and the one stylesheet made from them.

A theme is seventeen named colours and nothing else; every widget takes its colours from here. Knows no panel and no
setting: whoever stores the person's choice hands the mode to `ThemeSwitch`.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

_RESOURCES: Final = Path(__file__).resolve().parent.parent / "resources"

ROLES: Final = (
    *("window", "surface", "raised", "border", "text", "muted", "accent", "accent_text", "bubble"),
    *("weights", "kv", "compute", "rest", "draft", "limit", "grid", "code"),
)

# Sizes of type in pixels.
BASE_PX: Final = 13
MUTED_PX: Final = 12
READING_PX: Final = 15
FIGURE_PX: Final = 22
TITLE_PX: Final = 16

# How much of the accent lies over the background of selected text: text stays above a contrast of 4.5 on it.
_SELECTION_SHARE: Final = 0.3


class ThemeMode(enum.StrEnum):
    """Which theme the person asked for."""

    SYSTEM = "system"  # what the desktop says, now and when it changes
    LIGHT = "light"  # always light
    DARK = "dark"  # always dark


@dataclass(frozen=True, slots=True)
class Theme:
    """One set of colours.

    Attributes:
        name: "dark" or "light".
        roles: colour of each role in `ROLES`, as "#rrggbb".
    """

    name: str
    roles: Mapping[str, str]

    def color(self, role: str) -> QColor:
        """Return the colour of a role; KeyError for a role that does not exist."""
        return QColor(self.roles[role])

    def mix(self, role: str, over: str, share: float) -> QColor:
        """Return `role` laid over `over`; share is 0 (only `over`) to 1 (only `role`)."""
        top, bottom = self.color(role), self.color(over)
        channels = ((top.red(), bottom.red()), (top.green(), bottom.green()), (top.blue(), bottom.blue()))
        return QColor(*(round(a * share + b * (1 - share)) for a, b in channels))

    def selection(self, over: str) -> QColor:
        """Return the background of selected text on a role."""
        return self.mix("accent", over, _SELECTION_SHARE)


def load_theme(name: str) -> Theme:
    """Read a theme of resources/themes.

    Raises:
        ValueError: if the file's roles are not exactly `ROLES`.
        OSError: if there is no such theme.
    """
    roles = json.loads((_RESOURCES / "themes" / f"{name}.json").read_text(encoding="utf-8"))
    if set(roles) != set(ROLES):
        raise ValueError(f"theme {name} has other roles than expected: {sorted(set(roles) ^ set(ROLES))}")
    return Theme(name=name, roles=roles)


def stylesheet(theme: Theme) -> str:
    """Return the stylesheet of a theme: resources/style.qss with its $roles filled in."""
    derived = {
        "accent_hover": theme.mix("accent", "text", 0.88).name(),
        "accent_pressed": theme.mix("accent", "window", 0.85).name(),
        "raised_hover": theme.mix("muted", "raised", 0.14).name(),
        "quiet_focus": theme.mix("accent", "border", 0.6).name(),
        "faint": theme.mix("muted", "surface", 0.6).name(),
        "selection": theme.selection("surface").name(),
        "icons": (_RESOURCES / "icons").as_posix(),
    }
    template = Template((_RESOURCES / "style.qss").read_text(encoding="utf-8"))
    return template.substitute({**theme.roles, **derived})


def ui_font(pixel_size: int = BASE_PX, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """Return the system's font in a size in pixels, with figures of equal width where the font has them."""
    return _sized(QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont), pixel_size, weight)


def mono_font(pixel_size: int = BASE_PX) -> QFont:
    """Return the system's font of fixed width in a size in pixels."""
    return _sized(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont), pixel_size, QFont.Weight.Normal)


def palette(theme: Theme) -> QPalette:
    """Return the palette for what no stylesheet rule reaches (native dialogs, placeholder text)."""
    result = QPalette()
    role = QPalette.ColorRole
    for target, name in (
        *((role.Window, "window"), (role.Base, "surface"), (role.AlternateBase, "raised"), (role.Button, "raised")),
        *((role.WindowText, "text"), (role.Text, "text"), (role.ButtonText, "text"), (role.BrightText, "limit")),
        *((role.ToolTipBase, "raised"), (role.ToolTipText, "text"), (role.PlaceholderText, "muted")),
        *((role.HighlightedText, "text"), (role.Link, "accent"), (role.LinkVisited, "accent")),
        *((role.Mid, "border"), (role.Midlight, "border"), (role.Dark, "border"), (role.Accent, "accent")),
    ):
        result.setColor(target, theme.color(name))
    result.setColor(role.Highlight, theme.selection("surface"))
    for target in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, target, theme.mix("muted", "surface", 0.6))
    return result


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Give the whole program a theme: Fusion style, font, palette and stylesheet."""
    app.setStyle("Fusion")
    app.setFont(ui_font())
    app.setPalette(palette(theme))
    app.setStyleSheet(stylesheet(theme))


class ThemeSwitch(QObject):
    """Holds the theme in use and changes it by the person's choice or with the desktop.

    Attributes:
        mode: what the person asked for.
        theme: the theme in use.

    Signals:
        changed(Theme): another theme was applied to the application; custom-painted widgets take it over.
    """

    changed = Signal(object)

    def __init__(self, app: QApplication, mode: str = ThemeMode.SYSTEM, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._app = app
        self._mode = ThemeMode(mode)
        self._theme = load_theme(self._wanted_name())
        apply_theme(app, self._theme)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_color_scheme_changed)

    @property
    def mode(self) -> ThemeMode:
        """What the person asked for."""
        return self._mode

    @property
    def theme(self) -> Theme:
        """The theme in use."""
        return self._theme

    def set_mode(self, mode: str) -> None:
        """Follow the system or stay light or dark; ValueError for another word."""
        self._mode = ThemeMode(mode)
        self._use(self._wanted_name())

    def _on_color_scheme_changed(self, _scheme: Qt.ColorScheme) -> None:
        if self._mode is ThemeMode.SYSTEM:
            self._use(self._wanted_name())

    def _wanted_name(self) -> str:
        # Asking Qt for the scheme also turns the title bar and native dialogs, where the platform can.
        hints = QGuiApplication.styleHints()
        if self._mode is ThemeMode.SYSTEM:
            hints.unsetColorScheme()
            return "dark" if hints.colorScheme() is Qt.ColorScheme.Dark else "light"
        hints.setColorScheme(Qt.ColorScheme.Dark if self._mode is ThemeMode.DARK else Qt.ColorScheme.Light)
        return self._mode.value

    def _use(self, name: str) -> None:
        if name == self._theme.name:
            return
        self._theme = load_theme(name)
        apply_theme(self._app, self._theme)
        self.changed.emit(self._theme)


def _sized(font: QFont, pixel_size: int, weight: QFont.Weight) -> QFont:
    font.setPixelSize(pixel_size)
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font
