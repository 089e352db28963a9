"""No label and no tooltip reads its text as markup."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from ui.widgets.labels import (
    CaptionLabel,
    ElidedLabel,
    FigureLabel,
    MutedLabel,
    PlainLabel,
    TitleLabel,
    plain_tooltip,
    plain_words,
    set_kind,
)

HOSTILE = "<img src='file:///x.png'><b>x</b>"


@pytest.mark.parametrize("kind", [PlainLabel, MutedLabel, CaptionLabel, TitleLabel, ElidedLabel])
def test_a_label_shows_markup_as_text(qtbot, kind):
    label = kind(HOSTILE)
    qtbot.addWidget(label)
    assert label.textFormat() is Qt.TextFormat.PlainText
    assert label.text() == HOSTILE


def test_labels_carry_the_kind_their_style_rule_asks_for(qtbot):
    for label, kind in ((MutedLabel(), "muted"), (CaptionLabel(), "caption"), (TitleLabel(), "title")):
        qtbot.addWidget(label)
        assert label.property("kind") == label.kind == kind


def test_a_tooltip_shows_markup_as_text(qapp):
    assert plain_tooltip("a plain one & more") == "a plain one & more"
    assert plain_tooltip("<b>x</b>") == "<qt>&lt;b&gt;x&lt;/b&gt;</qt>"


def test_words_of_a_button_hold_no_shortcut():
    assert plain_words("a & b\tc\nd") == "a && b c d"


def test_a_line_that_does_not_fit_is_shortened_and_told_in_its_tooltip(qtbot):
    label = ElidedLabel("one two\nthree " * 10)
    qtbot.addWidget(label)
    label.resize(80, 20)
    label.show()
    assert label.minimumSizeHint().width() == 0
    assert label._shown_text().endswith("…")
    assert label.toolTip().startswith("one two three one")
    label.resize(2000, 20)
    assert label.toolTip() == ""
    label.grab()


def test_a_figure_tells_its_number_unit_and_name(qtbot):
    figure = FigureLabel("Decode speed", "tokens/s")
    qtbot.addWidget(figure)
    figure.set_value("151")
    assert figure.accessibleName() == "Decode speed"
    assert figure.accessibleDescription() == "151 tokens/s"
    assert {label.text() for label in figure.findChildren(PlainLabel)} == {"151", "tokens/s", "Decode speed"}


def test_another_kind_is_another_rule(qtbot):
    label = PlainLabel("x")
    qtbot.addWidget(label)
    set_kind(label, "error")
    assert label.property("kind") == "error"
    set_kind(label, "error")
    set_kind(label, "")
    assert label.property("kind") == ""
