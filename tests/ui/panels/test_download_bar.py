"""The thin bar: how much is filled, in which colour, and that it is drawn again only where a pixel changes."""

from __future__ import annotations

import pytest

from ui.panels.download_bar import DownloadBar
from ui.theme import load_theme

THEME = load_theme("dark")


@pytest.fixture
def bar(qtbot):
    made = DownloadBar(THEME)
    qtbot.addWidget(made)
    made.resize(100, 4)
    made.show()
    return made


def colours(bar):
    image = bar.grab().toImage()
    scale = image.width() / 100
    return [image.pixelColor(int(x * scale), image.height() // 2).name() for x in (10, 45, 60, 90)]


def test_it_is_filled_to_its_part(bar):
    accent, border, rest = (THEME.roles[role] for role in ("accent", "border", "rest"))
    bar.set_part(0.5)
    assert colours(bar) == [accent, accent, border, border]
    bar.set_part(0.5, is_quiet=True)
    assert colours(bar) == [rest, rest, border, border]
    bar.set_part(2.0)
    assert set(colours(bar)) == {accent}
    bar.set_part(0.0)
    assert set(colours(bar)) == {border}


def test_nothing_is_drawn_where_no_pixel_changes(bar, monkeypatch):
    bar.set_part(0.5)
    drawn = []
    monkeypatch.setattr(bar, "update", lambda: drawn.append(1))
    bar.set_part(0.5001)
    assert drawn == []
    bar.set_part(0.51)
    bar.set_theme(load_theme("light"))
    assert drawn == [1, 1]
