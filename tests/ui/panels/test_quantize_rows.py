"""The rows of quantizations: large ones first, what cannot be ticked says why, what was ticked stays so."""

from __future__ import annotations

import pytest

from tests.helpers.quantize_states import planned
from ui.panels.quantize_rows import QuantizeRows
from ui.theme import load_theme
from ui.widgets.labels import PlainLabel


@pytest.fixture
def rows(qtbot):
    made = QuantizeRows(load_theme("dark"))
    qtbot.addWidget(made)
    made.show_planned(planned(), {"Q4_0"})
    return made


def texts(rows) -> list[str]:
    return [label.text() for label in rows.findChildren(PlainLabel)]


def test_rows_go_from_large_to_small_under_headings(rows) -> None:
    assert list(rows.boxes)[:3] == ["Q8_0", "Q6_K", "Q5_K_M"]
    assert [text for text in texts(rows) if text in ("Large", "Balanced", "Small", "Not possible")] == [
        "Large", "Balanced", "Small", "Not possible",
    ]  # fmt: skip


def test_what_is_there_or_impossible_cannot_be_ticked_and_says_why(rows) -> None:
    assert not rows.boxes["Q4_0"].isEnabled()
    assert "there already" in rows.boxes["Q4_0"].accessibleDescription()
    assert not rows.boxes["Q1_0"].isEnabled()
    assert "No type is defined" in rows.boxes["Q1_0"].accessibleDescription()
    assert "needs an importance matrix" in rows.boxes["IQ2_M"].accessibleDescription()


def test_ticks_are_told_and_outlive_a_new_list(rows, qtbot) -> None:
    with qtbot.waitSignal(rows.ticked):
        rows.boxes["Q6_K"].click()
    assert [one.quantization for one in rows.chosen] == ["Q6_K"]
    rows.show_planned(planned(), {"Q4_0"})
    assert [one.quantization for one in rows.chosen] == ["Q6_K"]
    rows.show_planned(planned(), {"Q4_0", "Q6_K"})  # it was made
    assert rows.chosen == ()


def test_tensors_that_fell_back_are_counted(rows) -> None:
    rows.show_planned(planned(fell_back=180))
    assert "180 of 291 tensors" in rows.boxes["Q4_K_M"].accessibleDescription()
    rows.set_theme(load_theme("light"))
    rows.show_planned(())
    assert not rows.boxes
