"""Prompts as they cross the pipe, and the base of every message. The messages are in backends/protocol.py.

The same rules for change hold here: a field may be added with a default, and nothing else happens to one.
"""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of everything that crosses the pipe."""


class TemplatePart(Message, frozen=True):
    """A piece of a rendered prompt that the chat template wrote: special tokens in it count."""

    text: str


class PlainPart(Message, frozen=True):
    """A piece of a rendered prompt that a person or a model wrote: special tokens in it stay text."""

    text: str


class TokenPart(Message, frozen=True):
    """A piece of a rendered prompt whose exact token ids are known, such as an earlier answer."""

    token_ids: tuple[int, ...]


class RenderedPrompt(Message, frozen=True):
    """A dialogue after the chat template, cut where trusted and untrusted text meet."""

    parts: tuple[TemplatePart | PlainPart | TokenPart, ...]


class Text(Message, frozen=True):
    """Raw text; special tokens count only if parse_special is set."""

    text: str
    parse_special: bool = False


class TokenIds(Message, frozen=True):
    """Token ids as they are, nothing added."""

    token_ids: tuple[int, ...]


Prompt = RenderedPrompt | Text | TokenIds
