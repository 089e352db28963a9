"""Icons come from the installed font in a colour of the theme, and their absence is no accident."""

from __future__ import annotations

import logging
from importlib.machinery import ModuleSpec

import pytest
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QImage, QPainter

from ui.theme import load_theme
from ui.widgets import icons

USED = ("content-copy", "check", "arrow-down", "chevron-down", "alert-circle-outline")


def colors(image):
    return {
        image.pixelColor(x, y).name()
        for x in range(image.width())
        for y in range(image.height())
        if image.pixelColor(x, y).alpha() == 255
    }


@pytest.mark.parametrize("name", USED)
def test_an_icon_is_drawn_in_the_colour_of_its_role(qapp, name):
    theme = load_theme("dark")
    made = icons.icon(name, theme, "kv", "limit")
    assert theme.roles["kv"] in colors(made.pixmap(QSize(32, 32)).toImage())
    assert theme.roles["limit"] in colors(made.pixmap(QSize(32, 32), QIcon.Mode.Active).toImage())


def test_an_icon_is_made_once(qapp):
    theme = load_theme("dark")
    assert icons._icon.cache_info().maxsize is None
    icons.icon("check", theme)
    before = icons._icon.cache_info().misses
    icons.icon("check", theme)
    assert icons._icon.cache_info().misses == before


def test_the_programs_own_icon_can_be_drawn(qapp):
    image = icons.app_icon().pixmap(QSize(64, 64)).toImage()
    assert image.pixelColor(32, 32).alpha() == 255
    assert image.pixelColor(0, 0).alpha() == 0


def test_an_unknown_glyph_draws_nothing(qapp):
    image = QImage(16, 16, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    icons.paint_icon(painter, QRectF(0, 0, 16, 16), "no-such-icon", QColor("white"))
    painter.end()
    assert colors(image) == set()


def test_a_missing_font_is_logged_and_leaves_icons_empty(qapp, monkeypatch, caplog, allow_log):
    monkeypatch.setattr(icons, "find_spec", lambda _name: ModuleSpec("qtawesome", None))
    with caplog.at_level(logging.INFO):
        assert icons._font.__wrapped__() == ("", {})
    assert "words only" in caplog.text
