"""A chat store in a folder of the test's own."""

from __future__ import annotations

import pytest

from app.chat.store import open_store


@pytest.fixture
def path(tmp_path):
    """Where the store lies."""
    return tmp_path / "chats.db"


@pytest.fixture
def store(path):
    """An empty store, closed after the test."""
    opened = open_store(path)
    assert opened.notices == ()
    yield opened.store
    opened.store.close()
