"""The line at the foot: hidden without news, drawn again only when it says something else, opened like a button."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.downloads.types import DownloadState
from app.units import NBSP
from tests.helpers.hub_values import download
from ui.panels.download_strip import DownloadStrip
from ui.theme import load_theme

STATE = DownloadState
THEME = load_theme("dark")


@pytest.fixture
def strip(qtbot):
    made = DownloadStrip(THEME)
    qtbot.addWidget(made)
    made.resize(290, made.sizeHint().height())
    return made


def colours(strip):
    image = strip.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_it_is_there_only_when_there_is_something_to_say(strip):
    assert strip.isHidden()
    strip.set_downloads([download(STATE.RUNNING, part=0.5)])
    assert not strip.isHidden()
    assert strip.words.replace(NBSP, " ").endswith("48 MB/s")
    strip.set_downloads([])
    assert strip.isHidden()


def test_the_bar_is_drawn_only_while_something_is_on_its_way(strip):
    strip.set_downloads([download(STATE.RUNNING)])
    assert THEME.roles["accent"] in colours(strip)
    strip.set_downloads([download(STATE.FAILED)])
    assert strip.words == "1 download stopped"
    assert THEME.roles["accent"] not in colours(strip)
    assert THEME.roles["limit"] in colours(strip)
    strip.set_theme(load_theme("light"))
    assert load_theme("light").roles["limit"] in colours(strip)


def test_the_same_is_not_drawn_twice(strip, monkeypatch):
    strip.set_downloads([download(STATE.RUNNING)])
    drawn = []
    monkeypatch.setattr(strip, "update", lambda: drawn.append(1))
    strip.set_downloads([download(STATE.RUNNING)])
    assert drawn == []
    strip.set_downloads([download(STATE.RUNNING, part=0.9)])
    assert drawn == [1]


def test_it_is_pressed_by_key_and_named(strip, qtbot):
    strip.set_downloads([download(STATE.RUNNING)])
    strip.show()
    strip.setFocus()
    with qtbot.waitSignal(strip.clicked):
        qtbot.keyClick(strip, Qt.Key.Key_Space)
    assert strip.accessibleName() == "Downloads"
    assert strip.minimumSizeHint().width() < 100
    strip.grab()
