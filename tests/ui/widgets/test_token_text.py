"""Tokens are pointed at by mouse and keys, and marked ones are told by their lines."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication

from ui.theme import load_theme
from ui.widgets.token_text import Mark, ShownToken, TokenText

TOKENS = (
    ShownToken("One"),
    ShownToken(" two", Mark.STRONG, "two: another"),
    ShownToken(" 三"),
    ShownToken("", Mark.NONE),
    ShownToken(" 😀", Mark.WEAK),
    ShownToken(".\n"),
    ShownToken("Next", Mark.STRONG),
)


@pytest.fixture
def text(qtbot):
    made = TokenText(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(400, 200)
    made.show()
    made.set_tokens(TOKENS)
    made.setFocus()
    return made


def picture(text: TokenText) -> QImage:
    return text.viewport().grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


def middle(text: TokenText, number: int) -> QPoint:
    return text.place_of(number).center().toPoint()


def test_the_first_strongly_marked_token_is_pointed_at_first(text):
    assert text.pointed_at == 1
    assert text.accessibleDescription() == "two: another"
    text.set_tokens(TOKENS[:1])
    assert text.pointed_at == 0
    text.set_tokens(())
    assert text.pointed_at == -1


def test_the_mouse_points_and_gives_back_what_the_keys_had(text, qtbot):
    seen = []
    text.pointed.connect(seen.append)
    for number in (0, 2, 4, 6):
        qtbot.mouseMove(text.viewport(), middle(text, number))
        assert text.pointed_at == number
    QApplication.sendEvent(text.viewport(), QEvent(QEvent.Type.Leave))
    assert seen == [0, 2, 4, 6, 1]


def test_a_click_takes_the_key_focus_along(text, qtbot):
    qtbot.mouseClick(text.viewport(), Qt.MouseButton.LeftButton, pos=middle(text, 4))
    QApplication.sendEvent(text.viewport(), QEvent(QEvent.Type.Leave))
    assert text.pointed_at == 4


def test_arrows_go_by_token_by_line_and_by_mark(text, qtbot):
    def press(key, modifier=Qt.KeyboardModifier.NoModifier):
        qtbot.keyClick(text, key, modifier)
        return text.pointed_at

    control = Qt.KeyboardModifier.ControlModifier
    assert [press(Qt.Key.Key_Right) for _ in range(3)] == [2, 3, 4]
    assert press(Qt.Key.Key_Right, control) == 6
    assert press(Qt.Key.Key_Right, control) == 6, "there is none behind it"
    assert press(Qt.Key.Key_Left, control) == 1
    assert press(Qt.Key.Key_Home) == 0
    assert press(Qt.Key.Key_Left) == 0
    assert press(Qt.Key.Key_Down) == 6
    assert press(Qt.Key.Key_Down) == 6
    assert press(Qt.Key.Key_Up) in (0, 1)
    assert press(Qt.Key.Key_End) == 6


def test_a_strong_mark_has_a_solid_line_and_a_weak_one_a_dotted_one(text):
    strong, weak = QColor(load_theme("dark").color("limit")), QColor(load_theme("dark").color("muted"))

    def share(number: int, color: QColor) -> float:
        place = text.place_of(number).toRect()
        image = picture(text)
        row = [
            max(image.pixel(x, y) == color.rgb() for y in range(place.bottom() - 2, place.bottom() + 4))
            for x in range(place.left() + 6, place.right() - 1)
        ]
        return sum(row) / len(row)

    assert share(1, strong) > 0.9
    assert 0.2 < share(4, weak) < 0.8
    assert share(2, strong) == 0


def test_a_long_text_scrolls_to_the_token_that_is_pointed_at(text, qtbot):
    text.set_tokens([ShownToken(f" word{number}") for number in range(500)])
    assert text.verticalScrollBar().value() == 0

    text.point_at(499)

    assert text.viewport().rect().contains(middle(text, 499))
    qtbot.keyClick(text, Qt.Key.Key_Home)
    assert text.viewport().rect().contains(middle(text, 0))


def test_every_token_keeps_its_place_when_the_width_changes(text):
    before = text.place_of(6).top()
    text.resize(120, 200)
    assert text.place_of(6).top() > before
    for number in range(len(TOKENS)):
        assert text._token_at(QPointF(middle(text, number))) == number or TOKENS[number].text == ""


def test_text_from_right_to_left_is_pointed_at_too(text, qtbot):
    text.set_tokens([ShownToken("שלום"), ShownToken(" עולם"), ShownToken(" end")])
    for number in range(3):
        qtbot.mouseMove(text.viewport(), middle(text, number))
        assert text.pointed_at == number
