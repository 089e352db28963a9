"""An icon button says what it does without its icon."""

from __future__ import annotations

from ui.theme import load_theme
from ui.widgets.icon_button import IconButton


def test_its_words_are_its_tooltip_and_its_accessible_name(qtbot):
    button = IconButton("check", "Copy the answer", load_theme("dark"))
    qtbot.addWidget(button)
    assert button.accessibleName() == button.toolTip() == button.words == "Copy the answer"


def test_another_icon_shows_for_a_moment_only(qtbot):
    button = IconButton("content-copy", "Copy", load_theme("dark"))
    qtbot.addWidget(button)
    button.set_size(28, 16)
    usual = button.icon().cacheKey()
    button.flash("check")
    assert button.icon().cacheKey() != usual
    button._flash_end.timeout.emit()
    assert button.icon().cacheKey() == usual
    button._flash_end.stop()


def test_another_theme_gives_another_icon(qtbot):
    button = IconButton("content-copy", "Copy", load_theme("dark"))
    qtbot.addWidget(button)
    usual = button.icon().cacheKey()
    button.set_theme(load_theme("light"))
    assert button.icon().cacheKey() != usual
