"""Finding messages by words."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from app.chat import rows
from app.chat.messages import Chat, DeletedChat, Message, MessageState, Role
from app.chat.schema import migrate
from app.chat.store_search import find_messages

TEXTS = {
    1: "The platypus lays eggs.",
    2: "A café in Zürich, and nothing else",
    3: "我喜欢喝绿茶。",
    4: 'He said "AND" (NOT OR) and left * : ^ {}',
    5: "word " * 200 + "needle " + "word " * 200,
    6: "100 % of the platypus_files",
}


@pytest.fixture(params=[2, 1], ids=["indexed", "version 1, without index"])
def connection(request):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        migrate(opened, up_to=request.param)
        messages = tuple(Message(key, 1, None, Role.USER, text, created_s=key) for key, text in TEXTS.items())
        streaming = Message(9, 1, None, Role.ASSISTANT, "platypus streaming", state=MessageState.STREAMING)
        rows.restore_chat(opened, DeletedChat(Chat(1, "Talk", 1.0, 1.0), (*messages, streaming)), writer_id=1)
        yield opened


@pytest.fixture
def indexed():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        migrate(opened)
        messages = tuple(Message(key, 1, None, Role.USER, text, created_s=key) for key, text in TEXTS.items())
        rows.restore_chat(opened, DeletedChat(Chat(1, "Talk", 1.0, 1.0), messages), writer_id=1)
        yield opened


def ids(connection, words):
    return {hit.message_id for hit in find_messages(connection, words)}


def marked(hit):
    return [hit.snippet[start:end] for start, end in hit.marks]


def test_all_words_must_be_there_in_any_order_and_case(connection):
    assert ids(connection, "EGGS platypus") == {1}
    assert ids(connection, "eggs needle") == set()


def test_the_last_word_may_be_unfinished(connection):
    assert ids(connection, "lays eg") == {1}


def test_a_hit_says_where_the_words_are(connection):
    (hit,) = find_messages(connection, "platypus eggs")
    assert (hit.message_id, hit.chat_id, hit.chat_title, hit.role) == (1, 1, "Talk", Role.USER)
    assert hit.snippet == "The platypus lays eggs."
    assert marked(hit) == ["platypus", "eggs"]


def test_the_snippet_of_a_long_text_is_cut_around_the_word(connection):
    (hit,) = find_messages(connection, "needle")
    assert marked(hit) == ["needle"]
    assert len(hit.snippet) < 120
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")


def test_words_of_languages_without_spaces_are_found(connection):
    (hit,) = find_messages(connection, "绿茶")
    assert (hit.message_id, marked(hit)) == (3, ["绿茶"])


def test_signs_of_sqls_patterns_are_only_signs(connection):
    assert ids(connection, "platypus_files") == {6}
    assert ids(connection, "pl%s") == set()


def test_accents_do_not_matter_to_the_index(indexed):
    assert ids(indexed, "cafe zurich") == {2}


@pytest.mark.parametrize(
    "words",
    [
        "",
        "   ",
        '"',
        "* ^ : ( ) { } - +",
        "\0",
        "NEAR(",
        "text:",
        'a" OR "b',
        "AND",
        "NOT platypus OR",
        "'; DROP TABLE chats; --",
        "x" * 1_000_000,
        "🦭" * 600,
        "a\ud800b \uffff",
        "{" * 500,
        "a " * 500,
    ],
)
def test_hostile_input_is_only_words(connection, words):
    assert isinstance(find_messages(connection, words), list)
    assert ids(connection, "eggs") == {1}


def test_operators_are_looked_for_as_words(indexed):
    assert ids(indexed, "NOT OR AND") == {4}
    assert ids(indexed, 'said "AND"') == {4}
