"""Bars are as long as the probabilities, and the written token stands out."""

from __future__ import annotations

from PySide6.QtGui import QImage

from ui.theme import load_theme
from ui.widgets.chance_bars import ROWS, Bar, ChanceBars


def test_bars_are_as_long_as_their_probabilities(qtbot):
    theme = load_theme("dark")
    bars = ChanceBars(theme)
    qtbot.addWidget(bars)
    bars.resize(300, bars.sizeHint().height())
    bars.show()
    bars.set_bars([Bar("a", 0.8), Bar("b", 0.2, is_written=True), Bar("c", 0.0), Bar("d", float("nan"))][:3])

    image = bars.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    row_px = bars.height() // ROWS

    def count(row: int, role: str) -> int:
        y = row * row_px + row_px // 2
        return sum(image.pixel(x, y) == theme.color(role).rgb() for x in range(130, 230))

    long, short = count(0, "muted"), count(1, "accent")
    assert 3.5 < long / short < 4.5
    assert count(1, "muted") == 0
    assert "a 80.0" in bars.accessibleDescription()


def test_no_more_rows_are_kept_than_there_is_room_for(qtbot):
    bars = ChanceBars(load_theme("light"))
    qtbot.addWidget(bars)
    bars.set_bars([Bar(str(number), 0.1) for number in range(20)])
    assert len(bars.bars) == ROWS
    assert bars.minimumSizeHint().height() == bars.sizeHint().height()
