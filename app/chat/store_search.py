"""Finding messages by words, in the store's full-text index or, where that cannot help, by reading every text.

Whatever a person types is taken as words, never as the index's own query language. Knows no thread and no file.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from typing import Any

from app.chat.messages import Role, SearchHit

_MAX_HITS = 200

# Longer searches are pasted by accident; the index would take them, slowly.
_MAX_CHARACTERS = 500
_MAX_WORDS = 32

_SNIPPET_TOKENS = 16
_SNIPPET_CHARACTERS = 100
_ELLIPSIS = "…"

# Characters that no text may hold by Unicode's rules, to find a hit's marks again.
_MARK_START = "\ufdd0"
_MARK_END = "\ufdd1"

# Written without spaces, so the index, which cuts at spaces, holds whole sentences as one word.
_SPACELESS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def find_messages(connection: sqlite3.Connection, words: str) -> list[SearchHit]:
    """Return messages that hold all the words, the best first; the last word may be unfinished.

    Case and accents do not matter. An answer in progress is not found.
    """
    wanted = _words_of(words)
    if not wanted:
        return []
    if _SPACELESS.search(words) or not _has_index(connection):
        return _find_by_reading(connection, wanted)
    return _find_in_index(connection, wanted)


def _words_of(words: str) -> list[str]:
    """Return the words worth looking for: those with a letter or digit, free of what no text can hold."""
    visible = "".join(" " if unicodedata.category(c) in {"Cc", "Cs"} else c for c in words[:_MAX_CHARACTERS])
    return [word for word in visible.split() if any(c.isalnum() for c in word)][:_MAX_WORDS]


def _has_index(connection: sqlite3.Connection) -> bool:
    """Return whether the store has the index; one of version 1, opened read-only, does not."""
    query = "SELECT 1 FROM sqlite_schema WHERE name = 'message_search'"
    return connection.execute(query).fetchone() is not None


def _find_in_index(connection: sqlite3.Connection, words: Sequence[str]) -> list[SearchHit]:
    # Quoted, a word is a phrase and nothing in it is an operator. https://www.sqlite.org/fts5.html section 3
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    rows = connection.execute(
        """SELECT m.message_id, m.chat_id, c.title, m.role,
                  snippet(message_search, 0, ?, ?, ?, ?), m.created_s
           FROM message_search JOIN messages m ON m.message_id = message_search.rowid JOIN chats c USING (chat_id)
           WHERE message_search MATCH ? ORDER BY rank LIMIT ?""",
        (_MARK_START, _MARK_END, _ELLIPSIS, _SNIPPET_TOKENS, " ".join(quoted) + "*", _MAX_HITS),
    ).fetchall()
    return [_hit(row) for row in rows]


def _find_by_reading(connection: sqlite3.Connection, words: Sequence[str]) -> list[SearchHit]:
    patterns = ["%" + re.sub(r"[%_!]", r"!\g<0>", word) + "%" for word in words]
    conditions = " AND ".join(["m.text LIKE ? ESCAPE '!'"] * len(words))
    rows = connection.execute(
        f"""SELECT m.message_id, m.chat_id, c.title, m.role, m.text, m.created_s
            FROM messages m JOIN chats c USING (chat_id)
            WHERE {conditions} AND m.state <> 'streaming' ORDER BY m.created_s DESC LIMIT ?""",
        (*patterns, _MAX_HITS),
    ).fetchall()
    return [_hit((*row[:4], _marked_snippet(row[4], words), row[5])) for row in rows]


def _marked_snippet(text: str, words: Sequence[str]) -> str:
    """Return a piece of the text around its first word found, with every word in it marked."""
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, (first.start() if first else 0) - _SNIPPET_CHARACTERS // 4)
    end = start + _SNIPPET_CHARACTERS
    piece = pattern.sub(lambda match: f"{_MARK_START}{match.group()}{_MARK_END}", text[start:end])
    return f"{_ELLIPSIS if start else ''}{piece}{_ELLIPSIS if end < len(text) else ''}"


def _hit(row: Sequence[Any]) -> SearchHit:
    message_id, chat_id, title, role, marked, created_s = row
    snippet: list[str] = []
    marks: list[tuple[int, int]] = []
    length, start = 0, 0
    for piece in re.split(f"([{_MARK_START}{_MARK_END}])", marked):
        if piece == _MARK_START:
            start = length
        elif piece == _MARK_END:
            marks.append((start, length))
        else:
            snippet.append(piece)
            length += len(piece)
    return SearchHit(message_id, chat_id, title, Role(role), "".join(snippet), tuple(marks), created_s)
