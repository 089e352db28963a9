"""What a map of KV blocks says: its counts, and what is known of one block. Knows no widget.

The text that lies in a block is a stranger's: it is shortened and made harmless here, and whoever shows it shows it as
plain text.
"""

from __future__ import annotations

from typing import Final

from app import units
from app.i18n import _, ngettext
from app.telemetry.block_map import BlockSource, BlockState, BlockView
from ui.widgets.display_text import display_text

# As much of a block's text as a tooltip holds on two or three lines.
MAX_TEXT_CHARS: Final = 160
# First-strong isolate and its end: text from right to left must not turn the words around it.
_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"


def state_names(view: BlockView | None) -> dict[BlockState, str]:
    """Return the names for people of the states that a map can show; a logical one knows no sharing."""
    names = {BlockState.USED: _("used"), BlockState.KEPT: _("kept")}
    if view is not None and view.source is BlockSource.LOGICAL:
        return names | {BlockState.FREE: _("reserved")}
    return {BlockState.SHARED: _("shared")} | names | {BlockState.FREE: _("free")}


def summary(view: BlockView) -> str:
    """Return the counts in one line: "12 shared · 40 used · 8 kept · 452 free · 16 tokens each"."""
    names = state_names(view)
    counts = [f"{units.count_text(view.count(state))} {names[state]}" for state in names]
    return " · ".join([*counts, *size_words(view)])


def size_words(view: BlockView) -> list[str]:
    """Return how large a block is and what the blocks in use waste, where any are."""
    each = ngettext("{count} token each", "{count} tokens each", view.block_tokens).format(count=view.block_tokens)
    if not (view.states >= BlockState.USED).any():
        return [each]
    wasted = view.wasted_tokens
    places = ngettext("{count} place empty in last blocks", "{count} places empty in last blocks", wasted)
    return [each, places.format(count=units.count_text(wasted))]


def hint(view: BlockView, per_cell: int) -> str:
    """Return what a reader must know to read the map."""
    words = []
    if view.is_gone:
        words.append(_("the last that was seen"))
    if view.source is BlockSource.LOGICAL:
        words.append(_("logical map: {engine} shows no cells").format(engine=view.engine or _("the engine")))
    if per_cell > 1:
        words.append(_("a cell is {count} blocks").format(count=units.count_text(per_cell)))
    if not words and not view.count(BlockState.FREE):
        full = view.count(BlockState.KEPT) == 0
        words.append(_("full: what comes next waits") if full else _("full: the next takes the place of what is kept"))
    return " · ".join(words)


def cell_words(view: BlockView, blocks: range) -> str:
    """Return what is known of the blocks of a cell without asking the engine."""
    if len(blocks) == 1:
        return _block_words(view, blocks.start)
    states = view.states[blocks.start : blocks.stop]
    names = state_names(view)
    counts = {state: int((states == state).sum()) for state in names}
    parts = [f"{units.count_text(count)} {names[state]}" for state, count in counts.items() if count]
    where = _("blocks {first} to {last}").format(
        first=units.count_text(blocks.start), last=units.count_text(blocks.stop - 1)
    )
    return " · ".join([where, *parts])


def short_words(view: BlockView, blocks: range) -> str:
    """Return the same in as few words as there is room for beside a caption."""
    if len(blocks) > 1:
        return cell_words(view, blocks)
    state = state_names(view)[BlockState(int(view.states[blocks.start]))]
    return " · ".join([*_place_words(view, blocks.start), state])


def text_words(view: BlockView, blocks: range, text: str, users: int) -> str:
    """Return the same with the text that the engine found in one of them; users is how many it counted there."""
    words = _block_words(view, blocks.start, users) if len(blocks) == 1 else cell_words(view, blocks)
    shown = shortened(text)
    return _("{block}: “{text}”").format(block=words, text=shown) if shown else words


def block_with_text(view: BlockView, blocks: range) -> int:
    """Return the first of these blocks that holds tokens which the engine can tell; -1 for none."""
    if not view.can_describe:
        return -1
    return next((block for block in blocks if view.states[block] != BlockState.FREE), -1)


def shortened(text: str) -> str:
    """Return a block's text on one line, cut where a tooltip ends, its control characters visible."""
    shown = " ".join(display_text(text[: 4 * MAX_TEXT_CHARS]).split())
    if len(shown) > MAX_TEXT_CHARS:
        shown = shown[:MAX_TEXT_CHARS] + "…"
    return f"{_ISOLATE}…{shown}…{_END_OF_ISOLATE}" if shown else ""


def token_range(view: BlockView, block: int) -> tuple[int, int] | None:
    """Return the first and the last token of its text that lie in a block, counted from 0; None where unknown."""
    order, filled = int(view.orders[block]), int(view.filled[block])
    if order < 0 or filled < 1:
        return None
    first = order * view.block_tokens
    return first, first + filled - 1


def _block_words(view: BlockView, block: int, users: int = 0) -> str:
    state = BlockState(int(view.states[block]))
    parts = _place_words(view, block)
    if state is BlockState.FREE:
        parts.append(state_names(view)[state])
    elif state is BlockState.KEPT:
        parts.append(_("kept for a prompt that begins alike"))
    else:
        users = max(users, int(view.users[block]), 2 if state is BlockState.SHARED else 1)
        parts.append(ngettext("used by {count} chat", "used by {count} chats", users).format(count=users))
    empty = view.block_tokens - int(view.filled[block])
    if state >= BlockState.USED and empty:
        parts.append(ngettext("{count} place empty", "{count} places empty", empty).format(count=empty))
    return " · ".join(parts)


def _place_words(view: BlockView, block: int) -> list[str]:
    """Return which block it is, and which tokens of its text lie there."""
    parts = [_("block {number}").format(number=units.count_text(block))]
    tokens = token_range(view, block)
    if tokens is not None:
        words = _("tokens {first} to {last}") if tokens[0] != tokens[1] else _("token {first}")
        parts.append(words.format(first=units.count_text(tokens[0]), last=units.count_text(tokens[1])))
    return parts
