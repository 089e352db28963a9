"""Rows under headings, whatever they are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from ui.models.grouped_table_model import Group, GroupedTableModel, alignment
from ui.models.hub_columns import HubColumn
from ui.theme import load_theme


@dataclass
class Press:
    label: str
    can_press: bool

    def words(self):
        return self.label


class Made(GroupedTableModel):
    """Two columns: the key itself, and a button."""

    def cell_data(self, key, column, role):
        return f"{key}{column}" if role == Qt.ItemDataRole.DisplayRole else None

    def action_of_key(self, key):
        return Press(key, key != "quiet")


def column(title, is_number=False):
    return HubColumn(lambda: title, lambda _facts: "", lambda: f"about {title}", is_number)


@pytest.fixture
def model(qtbot):
    made = Made((column("first"), column("", is_number=True)), load_theme("dark"))
    made.tester = QAbstractItemModelTester(made)
    made._show_rows([(Group.LARGE, "big"), (Group.SMALL, "a"), (Group.SMALL, "quiet")])
    return made


def test_headings_stand_in_their_order_and_rows_keep_theirs(model):
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == ["Small", "a0", "quiet0", "Large", "big0"]
    assert model.heading_rows() == [0, 3]
    assert model.keys() == ["a", "quiet", "big"]
    assert [model.row_of(key) for key in ("a", "big", "", "none")] == [1, 4, None, None]
    assert model.key_at(-1) == model.key_at(99) == model.key_at(0) == ""


def test_headings_cannot_be_chosen_and_some_rows_have_no_button(model):
    assert model.index(0, 0).flags() == Qt.ItemFlag.NoItemFlags
    assert model.index(1, 0).flags() & Qt.ItemFlag.ItemIsSelectable
    assert [model.can_press(row) for row in range(5)] == [False, True, False, False, True]
    assert model.index(0, 1).data() is None


def test_the_header_has_names_sides_and_reasons(model):
    horizontal = Qt.Orientation.Horizontal
    assert model.headerData(0, horizontal) == "first"
    assert model.headerData(1, horizontal, Qt.ItemDataRole.AccessibleTextRole) == "Action"
    assert model.headerData(0, horizontal, Qt.ItemDataRole.ToolTipRole) == "about first"
    assert model.headerData(0, Qt.Orientation.Vertical) is None
    assert model.headerData(1, horizontal, Qt.ItemDataRole.TextAlignmentRole) == alignment(model.columns[1])
    assert alignment(model.columns[0]) & int(Qt.AlignmentFlag.AlignLeft)
    assert alignment(model.columns[1]) & int(Qt.AlignmentFlag.AlignRight)


def test_a_row_is_told_alone_and_a_theme_to_all(model, qtbot):
    with qtbot.waitSignal(model.dataChanged) as caught:
        model._tell_row("big")
    assert (caught.args[0].row(), caught.args[1].row(), caught.args[1].column()) == (4, 4, 1)
    with qtbot.assertNotEmitted(model.dataChanged):
        model._tell_row("none")
    with qtbot.waitSignal(model.dataChanged) as caught:
        model.set_theme(load_theme("light"))
    assert (caught.args[0].row(), caught.args[1].row()) == (0, 4)
    assert model.theme.name == "light"


@pytest.mark.parametrize("group", list(Group))
def test_every_group_has_words(group):
    assert group.words()


def test_the_bare_model_says_nothing_of_its_rows():
    bare = GroupedTableModel((), load_theme("dark"))
    with pytest.raises(NotImplementedError):
        bare.cell_data("a", 0, 0)
    with pytest.raises(NotImplementedError):
        bare.action_of_key("a")
