"""Words come from the catalogue of the language, English where it has none."""

from __future__ import annotations

from app import i18n


def test_without_a_catalogue_the_words_are_english() -> None:
    i18n.use_language("xx_XX")
    assert i18n._("Send") == "Send"
    assert i18n.ngettext("{count} chat", "{count} chats", 1) == "{count} chat"
    assert i18n.ngettext("{count} chat", "{count} chats", 2) == "{count} chats"
    i18n.use_language("en")
