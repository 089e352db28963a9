"""The list is sorted by last use and changes row by row."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from app.chat.messages import Chat
from ui.models.chat_list_model import CHAT_ID_ROLE, ChatFilter, ChatListModel, folded


def chat(chat_id, title="", updated_s=None):
    return Chat(chat_id, title, 0.0, float(chat_id if updated_s is None else updated_s))


@pytest.fixture
def model(qapp):
    made = ChatListModel()
    made.tester = QAbstractItemModelTester(made, QAbstractItemModelTester.FailureReportingMode.Fatal)
    return made


def titles(model):
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def ids(model):
    return [model.index(row, 0).data(CHAT_ID_ROLE) for row in range(model.rowCount())]


def test_the_last_used_chat_is_first_and_an_untitled_one_is_a_new_chat(model):
    model.set_chats([chat(1, "one"), chat(3), chat(2, "two\n lines")])
    assert titles(model) == ["New chat", "two lines", "one"]


def test_ids_of_53_bits_survive_the_model_and_its_signal(model, qtbot):
    model.set_chats([chat(2**53 - 1, "one")])
    with qtbot.waitSignal(model.rename_requested) as caught:
        model.setData(model.index(0), " new  name\n")
    assert caught.args == [2**53 - 1, "new name"]
    assert titles(model) == ["one"]  # until the store has it


def test_a_title_that_did_not_change_asks_for_nothing(model, qtbot):
    model.set_chats([chat(1, "one")])
    with qtbot.assertNotEmitted(model.rename_requested):
        assert model.setData(model.index(0), " one ")
        assert not model.setData(model.index(0), "x", Qt.ItemDataRole.DisplayRole)


def test_a_used_chat_moves_to_the_top_and_a_persistent_index_follows_it(model):
    from PySide6.QtCore import QPersistentModelIndex

    model.set_chats([chat(1), chat(2), chat(3)])
    index = QPersistentModelIndex(model.index(2))
    model.put(chat(1, "used", updated_s=9))
    assert ids(model) == [1, 3, 2]
    assert index.row() == 0
    model.put(chat(1, "used", updated_s=2.5))
    assert ids(model) == [3, 1, 2]
    model.put(chat(1, "used", updated_s=0))
    assert ids(model) == [3, 2, 1]


def test_only_a_changed_title_is_announced(model, qtbot):
    model.set_chats([chat(1, "one"), chat(2, "two")])
    with qtbot.assertNotEmitted(model.dataChanged):
        model.set_chats([chat(1, "one"), chat(2, "two", updated_s=5)])
    with qtbot.waitSignal(model.dataChanged):
        model.put(chat(1, "uno"))
    assert titles(model) == ["two", "uno"]


def test_any_set_of_chats_replaces_any_other(model):
    first = [chat(number) for number in range(1, 9)]
    second = [chat(number, "x", updated_s=(number * 7) % 11) for number in range(4, 14)]
    for wanted in (first, second, [], second, first, [chat(n) for n in range(500)], first):
        model.set_chats(wanted)
        assert ids(model) == [c.chat_id for c in sorted(wanted, key=lambda c: (-c.updated_s, -c.chat_id))]


def test_removing_and_neighbours(model):
    model.set_chats([chat(1), chat(2), chat(3)])
    assert model.neighbour_of(3) == 2
    assert model.neighbour_of(1) == 2
    model.remove(2)
    model.remove(2)
    assert ids(model) == [3, 1]
    model.remove(3)
    assert model.neighbour_of(1) is None
    assert model.neighbour_of(99) is None


def test_a_tooltip_shows_markup_as_text(model):
    model.set_chats([chat(1, "<img src=x>")])
    assert "<img" not in model.index(0).data(Qt.ItemDataRole.ToolTipRole)
    assert model.index(0).data() == "<img src=x>"


def test_a_title_of_a_megabyte_is_cut(model):
    model.set_chats([chat(1, "x" * 1_000_000)])
    assert len(model.index(0).data()) == 200


def test_the_search_ignores_case_and_accents_and_wants_every_word(model):
    model.set_chats([chat(1, "Trip to Kraków"), chat(2, "Regex"), chat(3, "ＦＵＬＬ width"), chat(4)])
    found = ChatFilter(model)
    found.search("KRAKOW trip")
    assert titles(found) == ["Trip to Kraków"]
    found.search("full")
    assert titles(found) == ["ＦＵＬＬ width"]
    found.search("new")
    assert titles(found) == ["New chat"]
    found.search("regex trip")
    assert titles(found) == []
    found.search("  ")
    assert found.rowCount() == 4
    assert folded("Straße É") == "strasse e"


def test_a_renamed_chat_appears_in_or_leaves_a_search(model):
    model.set_chats([chat(1, "one"), chat(2, "two")])
    found = ChatFilter(model)
    found.search("two")
    model.put(chat(1, "two as well"))
    model.put(chat(2, "three"))
    assert titles(found) == ["two as well"]
