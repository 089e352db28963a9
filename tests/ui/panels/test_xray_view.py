"""An X-ray is summed up, its tokens are marked, and both distributions follow the token that is pointed at."""

from __future__ import annotations

import csv

import pytest
from PySide6.QtCore import Qt

from app.compare.xray_types import Xray, XrayToken
from tests.helpers.xray_values import DRAWN, NOTHING, OTHERS, WORDS, sample_xray
from ui.panels.xray_view import XrayView
from ui.theme import load_theme
from ui.widgets.token_text import Mark


@pytest.fixture
def view(qtbot):
    made = XrayView(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(1000, 660)
    made.show()
    return made


def test_tokens_are_marked_by_what_the_other_would_have_done(view):
    view.show_xray(sample_xray())

    marks = {number: token.mark for number, token in enumerate(view.text._tokens) if token.mark is not Mark.NONE}
    assert marks == {place: Mark.WEAK if place in DRAWN else Mark.STRONG for place in OTHERS}
    assert view._sentence.text() == "Q4_0 would have chosen 67 of 74 tokens the same."
    assert "1 was drawn by chance" in view._chance.text()


def test_both_distributions_follow_the_token_that_is_pointed_at(view, qtbot):
    view.show_xray(sample_xray())

    view.text.point_at(25)

    assert view._place.text() == "26 of 74: ␣commonly"
    assert view._verdict.text() == "Q4_0 would have chosen ␣about."
    assert [bar.text for bar in view._other_bars.bars][:2] == ["␣about", "␣commonly"]
    assert [bar.is_written for bar in view._own_bars.bars][:2] == [True, False]
    qtbot.keyClick(view.text, Qt.Key.Key_Right)
    assert view._place.text().startswith("27 of 74")
    assert view._verdict.text() == "Q4_0 would have chosen it too."


def test_the_written_token_has_a_bar_where_it_is_not_among_the_likeliest(view):
    view.show_xray(sample_xray())

    view.text.point_at(41)

    assert [bar.text for bar in view._other_bars.bars][-1] == "␣into"
    assert view._other_bars.bars[-1].is_written
    assert len(view._other_bars.bars) == 6


def test_what_both_found_likelier_is_said_to_be_chance(view):
    view.show_xray(sample_xray())
    view.text.point_at(10)
    assert view._verdict.text() == "Drawn by chance: both found ␣may likelier."


def test_without_the_writer_one_distribution_is_shown(view):
    view.show_xray(sample_xray(has_own=False))

    assert view._own_bars.isHidden()
    assert view._chance.isHidden()
    assert "Dotted" not in view._legend.text()


def test_a_token_without_figures_says_so(view):
    view.show_xray(Xray("Q4_0", "", (XrayToken(1, "a", NOTHING),), notes=("A note.",)))

    assert view._verdict.text() == "Q4_0 gave no figures here."
    assert view._other_bars.bars == ()
    assert view._notes.text() == "A note."


def test_the_table_twin_holds_the_same_and_stands_at_the_same_token(view):
    view.show_xray(sample_xray())
    view.text.point_at(25)

    view.twin_button.click()

    assert view.table.isVisible()
    assert view.table.model().rowCount() == len(WORDS)
    assert view.table.currentIndex().row() == 25
    assert view.table.model().index(25, 2).data() == "another"
    assert view.twin_button.text() == "Show as text"
    view.twin_button.click()
    assert view.text.isVisible()


def test_the_figures_are_written_as_csv(view, tmp_path):
    view.show_xray(sample_xray())

    view.export_to(tmp_path / "xray.csv")

    with (tmp_path / "xray.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(WORDS)
    assert rows[25]["text"] == "␣commonly"
    shown = view.xray.tokens[25].other.probability
    assert float(rows[25]["other_probability"]) == pytest.approx(shown, abs=1e-6)
    assert view.status_text() == "Saved as xray.csv."
    view.export_to(tmp_path / "nowhere" / "xray.csv")
    assert "was not written" in view.status_text()


def test_another_theme_is_taken_over(view):
    view.show_xray(sample_xray())
    view.set_theme(load_theme("light"))
    assert view.text._theme.name == "light"
