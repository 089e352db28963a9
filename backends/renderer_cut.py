"""Cuts a rendered dialogue where the template's text and the written text meet.

A chat template returns one string, in which a typed `<|im_end|>` looks like the template's own. The dialogue is
therefore rendered a second time with every content replaced by a mark; where the two renderings agree around the
marks, the contents lie between. The parts always join to the first rendering, character by character.

Knows nothing of Jinja, of processes or of any tokenizer.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from backends.errors import EngineError, ErrorCode
from backends.protocol import PlainPart, RenderedPrompt, TemplatePart, TokenPart
from backends.renderer_messages import RenderMessage

# Marks are made of one private character and digits, which no template trims, splits or changes the case of.
_PRIVATE_CHARACTERS = range(0xF0000, 0xFFFFE)

# Templates take earlier answers apart at these; they stay in place around the marks so that this still happens.
_THINK_TAG = re.compile(r"(</?think>)")

# Characters without which no vocabulary writes a special token. A content without them is harmless anywhere.
_SPECIAL_CHARACTER = re.compile(r"[<>\[\]|｜]")

RenderAgain = Callable[[Sequence[str]], str | None]


class _Passage(NamedTuple):
    """A piece of a content that one mark stands for."""

    message: int
    offset: int  # where in the content it begins
    text: str


class _Span(NamedTuple):
    """Where a piece of a content lies in the rendering."""

    start: int
    end: int
    passage: _Passage


class _MarkedRendering(NamedTuple):
    """The second rendering taken apart: literals[0], a passage, literals[1], a passage, ..., literals[-1]."""

    literals: list[str]
    passages: list[_Passage]


def cut_prompt(messages: Sequence[RenderMessage], rendered: str, render_again: RenderAgain) -> RenderedPrompt:
    """Return the rendering as parts: template text, written text, and the known ids of earlier answers.

    Args:
        messages: the dialogue that was rendered.
        rendered: what the template made of it.
        render_again: renders the same dialogue with these contents instead; None when the template refuses them.

    Raises:
        EngineError: TEMPLATE_BROKEN if written text that could pass for a special token cannot be told apart.
    """
    marked = _render_marked(messages, rendered, render_again)
    spans = _aligned(rendered, marked) if marked else None
    if spans is None:
        spans = _located(rendered, messages, every=True)
    if spans is None and marked:
        spans = _regions(rendered, marked, messages)
    if spans is None:
        spans = _located(rendered, messages, every=False)
    if spans is None:
        raise EngineError(ErrorCode.TEMPLATE_BROKEN, detail="it changes what was written", line=0)
    return RenderedPrompt(_parts(rendered, _joined(rendered, spans, messages), messages))


def _render_marked(
    messages: Sequence[RenderMessage], rendered: str, render_again: RenderAgain
) -> _MarkedRendering | None:
    """Render with marks for contents; None if that fails or invents marks."""
    taken = set(rendered).union(*(message.content for message in messages))
    mark = next((chr(code) for code in _PRIVATE_CHARACTERS if chr(code) not in taken), "")
    if not mark:
        return None
    passages: list[_Passage] = []
    contents = [_marked_content(index, message, mark, passages) for index, message in enumerate(messages)]
    marked = render_again(contents)
    if marked is None:
        return None
    pieces = re.split(f"{mark}([0-9]{{1,9}}){mark}", marked)
    numbers = [int(piece) for piece in pieces[1::2]]
    if any(number >= len(passages) for number in numbers) or any(mark in literal for literal in pieces[0::2]):
        return None
    return _MarkedRendering(pieces[0::2], [passages[number] for number in numbers])


def _marked_content(index: int, message: RenderMessage, mark: str, passages: list[_Passage]) -> str:
    """Replace a content by marks and note what they stand for. Blank text is harmless and stays as it is."""
    pieces = _THINK_TAG.split(message.content) if message.role == "assistant" else [message.content]
    offset = 0
    marked = []
    for number, piece in enumerate(pieces):
        is_tag = number % 2 == 1
        if is_tag or not piece.strip():
            marked.append(piece)
        else:
            marked.append(f"{mark}{len(passages)}{mark}")
            passages.append(_Passage(index, offset, piece))
        offset += len(piece)
    return "".join(marked)


def _aligned(rendered: str, marked: _MarkedRendering) -> list[_Span] | None:
    """Put each passage, as written or stripped, in place of its mark; None if that is not the rendering."""
    position = len(marked.literals[0])
    if not rendered.startswith(marked.literals[0]):
        return None
    spans = []
    for passage, literal in zip(marked.passages, marked.literals[1:], strict=True):
        text = passage.text
        forms = (text, text.strip(), text.lstrip(), text.rstrip(), text.strip("\n"), text.lstrip("\n"))
        fitting = (form for form in forms if rendered.startswith(form + literal, position))
        form = next(fitting, None)
        if form is None:
            return None
        spans.append(_Span(position, position + len(form), passage))
        position += len(form) + len(literal)
    return spans if position == len(rendered) else None


def _located(rendered: str, messages: Sequence[RenderMessage], *, every: bool) -> list[_Span] | None:
    """Find the contents that occur exactly as often as they were written.

    A content that occurs more often cannot be told from the template's own words. Unless every content must be
    found, it is left to the template if it is harmless.
    """
    writers: defaultdict[str, list[int]] = defaultdict(list)
    for index, message in enumerate(messages):
        if message.content.strip():
            writers[message.content.strip()].append(index)
    spans = []
    for text, indexes in writers.items():
        if rendered.count(text) == len(indexes):
            start = 0
            for index in indexes:
                start = rendered.index(text, start)
                spans.append(_widened(rendered, start, index, messages[index].content))
                start += len(text)
        elif every or _SPECIAL_CHARACTER.search(text):
            return None
    spans.sort()
    overlap = any(later.start < earlier.end for earlier, later in itertools.pairwise(spans))
    return None if overlap else spans


def _widened(rendered: str, start: int, index: int, content: str) -> _Span:
    """Return the span of a content found stripped, with its own white space where the rendering has it too."""
    stripped = content.strip()
    outer = start - (len(content) - len(content.lstrip()))
    if outer >= 0 and rendered.startswith(content, outer):
        return _Span(outer, outer + len(content), _Passage(index, 0, content))
    return _Span(start, start + len(stripped), _Passage(index, 0, stripped))


def _regions(rendered: str, marked: _MarkedRendering, messages: Sequence[RenderMessage]) -> list[_Span] | None:
    """Take everything between the template's own words as written, for templates that change what was written.

    Holds only if the words between two passages occur nowhere but where the template wrote them.
    """
    first, *between, last = marked.literals if marked.passages else ("", "")
    start, end_of_all = len(first), len(rendered) - len(last)
    if not marked.passages or not rendered.startswith(first) or not rendered.endswith(last) or start > end_of_all:
        return None
    middle, own_words = rendered[start:end_of_all], {literal for literal in between if literal.strip()}
    if any(middle.count(words) != "\0".join(between).count(words) for words in own_words):
        return None
    if any(words in message.content for words in own_words for message in messages):
        return None
    spans = []
    for number, passage in enumerate(marked.passages):
        is_last = number == len(between)
        literal = "" if is_last else between[number]
        if not is_last and not literal.strip():
            continue  # nothing marks the end of this passage: it goes with the next one
        end = end_of_all if is_last else rendered.find(literal, start, end_of_all)
        if end < 0:
            return None
        if end > start:
            spans.append(_Span(start, end, _Passage(passage.message, 0, rendered[start:end])))
        start = end + len(literal)
    return spans


def _joined(rendered: str, spans: list[_Span], messages: Sequence[RenderMessage]) -> list[_Span]:
    """Make one span of a content whose passages all lie where they were written."""
    joined: list[_Span] = []
    position = 0
    for span in spans:
        if span.start < position:  # already inside a whole content
            continue
        passage = span.passage
        content = messages[passage.message].content
        form = rendered[span.start : span.end]
        start = span.start - passage.offset - passage.text.find(form)
        # The white space around a stripped content may be the template's own, however much it looks like the content's.
        may_be_whole = form == passage.text or content == content.strip()
        if may_be_whole and start >= position and rendered.startswith(content, start):
            joined.append(_Span(start, start + len(content), _Passage(passage.message, 0, content)))
        else:
            joined.append(span)
        position = joined[-1].end
    return joined


def _parts(
    rendered: str, spans: list[_Span], messages: Sequence[RenderMessage]
) -> tuple[TemplatePart | PlainPart | TokenPart, ...]:
    """Turn spans into parts; an answer's ids stand in only for exactly its text."""
    parts: list[TemplatePart | PlainPart | TokenPart] = []
    position = 0
    for start, end, passage in spans:
        if start > position:
            parts.append(TemplatePart(rendered[position:start]))
        message = messages[passage.message]
        if message.token_ids and rendered[start:end] == message.content:
            parts.append(TokenPart(message.token_ids))
        else:
            parts.append(PlainPart(rendered[start:end]))
        position = end
    if position < len(rendered):
        parts.append(TemplatePart(rendered[position:]))
    return tuple(parts)
