"""Both themes can be read by everyone, and the switch follows the person or the desktop."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette

from ui.theme import (
    ROLES,
    Theme,
    ThemeMode,
    ThemeSwitch,
    apply_theme,
    load_theme,
    mono_font,
    palette,
    stylesheet,
    ui_font,
)

NAMES = ("dark", "light")
BACKGROUNDS = ("window", "surface", "raised", "bubble", "code")
DATA = ("weights", "kv", "compute", "rest", "draft")

# The order in which memory is stacked; a draft model's share lies on top.
STACK = ("rest", "weights", "compute", "kv", "draft")

# Smallest difference of CIE lightness (0 to 100) at which two flat bands part clearly in grey.
MIN_LIGHTNESS_STEP = 6.0


def luminance(color: QColor) -> float:
    """WCAG 2.2 relative luminance."""

    def linear(channel: float) -> float:
        return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF())


def contrast(one: QColor, other: QColor) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lightness(color: QColor) -> float:
    return 116 * luminance(color) ** (1 / 3) - 16


@pytest.fixture
def restored_app(qapp):
    sheet, colors, font = qapp.styleSheet(), qapp.palette(), qapp.font()
    yield qapp
    qapp.setStyleSheet(sheet)
    qapp.setPalette(colors)
    qapp.setFont(font)


@pytest.mark.parametrize("name", NAMES)
def test_a_theme_has_exactly_the_roles(name):
    assert tuple(load_theme(name).roles) == ROLES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", ["text", "muted"])
@pytest.mark.parametrize("background", BACKGROUNDS)
def test_text_reaches_a_contrast_of_four_and_a_half_on_every_background(name, role, background):
    theme = load_theme(name)
    assert contrast(theme.color(role), theme.color(background)) >= 4.5


@pytest.mark.parametrize("name", NAMES)
def test_the_main_button_and_marked_text_reach_a_contrast_of_four_and_a_half(name):
    theme = load_theme(name)
    assert contrast(theme.color("accent_text"), theme.color("accent")) >= 4.5
    for over in ("window", "surface", "bubble"):
        assert contrast(theme.color("text"), theme.selection(over)) >= 4.5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("role", [*DATA, "limit", "accent"])
def test_data_marks_reach_a_contrast_of_three(name, role):
    theme = load_theme(name)
    assert contrast(theme.color(role), theme.color("surface")) >= 3.0


@pytest.mark.parametrize("name", NAMES)
def test_neighbours_in_a_stack_differ_in_lightness(name):
    theme = load_theme(name)
    for lower, upper in pairwise(STACK):
        step = abs(lightness(theme.color(lower)) - lightness(theme.color(upper)))
        assert step >= MIN_LIGHTNESS_STEP, f"{lower} and {upper} look alike in grey: {step:.1f}"


@pytest.mark.parametrize("name", NAMES)
def test_the_stylesheet_is_filled_in_and_holds_no_colour_of_its_own(name):
    sheet = re.sub(r"/\*.*?\*/", "", stylesheet(load_theme(name)), flags=re.DOTALL)
    assert "$" not in sheet
    from ui import theme as module

    template = (module._RESOURCES / "style.qss").read_text(encoding="utf-8")
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?=\s*[;,}])", template)


def test_a_file_with_other_roles_is_refused(tmp_path, monkeypatch):
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes" / "odd.json").write_text('{"window": "#000000"}', encoding="utf-8")
    monkeypatch.setattr("ui.theme._RESOURCES", tmp_path)
    with pytest.raises(ValueError, match="other roles"):
        load_theme("odd")


def test_an_unknown_role_is_an_error():
    with pytest.raises(KeyError):
        load_theme("dark").color("pink")


def test_a_mix_lies_between_its_colours():
    theme = Theme("t", {"a": "#000000", "b": "#c8c8c8"})
    assert theme.mix("b", "a", 0.5).name() == "#646464"
    assert theme.mix("b", "a", 1.0).name() == "#c8c8c8"


def test_fonts_have_their_size_in_pixels_and_figures_of_equal_width(qapp):
    for font in (ui_font(15), mono_font(15)):
        assert font.pixelSize() == 15
        assert [tag.toString() for tag in font.featureTags()] == [b"tnum"]


def test_applying_a_theme_sets_palette_and_stylesheet(restored_app):
    theme = load_theme("light")
    apply_theme(restored_app, theme)
    assert restored_app.palette().color(QPalette.ColorRole.Window) == theme.color("window")
    assert theme.roles["accent"] in restored_app.styleSheet()
    assert restored_app.font().pixelSize() == 13


def test_placeholders_are_muted_but_readable():
    theme = load_theme("dark")
    assert palette(theme).color(QPalette.ColorRole.PlaceholderText) == theme.color("muted")


def test_the_switch_applies_another_theme_and_says_so(restored_app, qtbot):
    switch = ThemeSwitch(restored_app, "light")
    assert (switch.mode, switch.theme.name) == (ThemeMode.LIGHT, "light")
    with qtbot.waitSignal(switch.changed) as told:
        switch.set_mode("dark")
    assert told.args == [switch.theme]
    assert switch.theme.name == "dark"
    assert restored_app.palette().color(QPalette.ColorRole.Window) == load_theme("dark").color("window")


def test_the_switch_is_silent_when_nothing_changes(restored_app, qtbot):
    switch = ThemeSwitch(restored_app, "dark")
    with qtbot.assertNotEmitted(switch.changed):
        switch.set_mode("dark")


def test_the_switch_follows_the_desktop_in_system_mode_only(restored_app, qtbot, monkeypatch):
    hints = FakeHints()
    monkeypatch.setattr(QGuiApplication, "styleHints", staticmethod(lambda: hints))
    switch = ThemeSwitch(restored_app, "system")
    assert switch.theme.name == "light"
    hints.turn(Qt.ColorScheme.Dark)
    assert switch.theme.name == "dark"
    switch.set_mode("light")
    hints.turn(Qt.ColorScheme.Dark)
    assert switch.theme.name == "light"
    switch.set_mode("system")
    assert switch.theme.name == "dark"


def test_an_unknown_mode_is_refused(restored_app):
    switch = ThemeSwitch(restored_app, "dark")
    with pytest.raises(ValueError, match="sepia"):
        switch.set_mode("sepia")


class FakeHints:
    """A desktop whose colour scheme a test can turn."""

    def __init__(self):
        self.desktop = Qt.ColorScheme.Unknown
        self.asked = Qt.ColorScheme.Unknown
        self.slots = []
        self.colorSchemeChanged = self

    def connect(self, slot):
        self.slots.append(slot)

    def turn(self, scheme):
        self.desktop = scheme
        for slot in self.slots:
            slot(scheme)

    def colorScheme(self):
        return self.desktop if self.asked is Qt.ColorScheme.Unknown else self.asked

    def setColorScheme(self, scheme):
        self.asked = scheme

    def unsetColorScheme(self):
        self.asked = Qt.ColorScheme.Unknown
