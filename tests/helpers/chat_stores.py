"""Chat stores for tests: dialogues in them, and looks at the file past the program."""

from __future__ import annotations

import sqlite3

from app.chat.messages import MessageState, Role

# For waits that end at once when all is well.
PATIENCE_S = 30.0


def dialogue(store, *texts):
    """Add a chat with these messages in turn, the person first; return the chat and the messages."""
    chat = store.add_chat("Talk")
    messages = []
    for place, text in enumerate(texts):
        parent_id = messages[-1].message_id if messages else None
        role = Role.ASSISTANT if place % 2 else Role.USER
        messages.append(store.add_message(chat.chat_id, parent_id, role, text))
    return store.chat(chat.chat_id), messages


def streaming(store, text=""):
    """Add a chat with an answer in progress; return the answer."""
    chat = store.add_chat()
    return store.add_message(chat.chat_id, None, Role.ASSISTANT, text, state=MessageState.STREAMING)


def sql(path, query, values=()):
    """Run one statement on the file, past the program; return its rows."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()
