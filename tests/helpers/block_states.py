"""The states of the map of KV blocks that the gallery shows; all run scripts of the echo engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backends.echo_blocks import EchoSequence
from backends.echo_engine import EchoScript
from tests.helpers.echo_window import OpenWindow
from tests.helpers.window_states import (
    ANSWER,
    NARROW,
    QUESTION,
    State,
    ask,
    opened,
    scripted,
    wait,
    wait_for,
    with_chats,
)

# Two chats that begin alike, and a third of its own: 12 blocks are shared.
NEIGHBOURS = (EchoSequence(700, 12), EchoSequence(535, 12), EchoSequence(330))
BLOCKS = 512
SMALL_POOL = 96
LARGE_POOL = 20_000


def _shown(folder: Path, **script: object) -> OpenWindow:
    script = {"token_s": 0.004, "prefill_s": 0.09, "blocks": BLOCKS, **script}
    context = with_chats(scripted(folder, EchoScript(ANSWER, **script)))
    context.settings.change(panel_folded=False)
    return opened(context)


def _writing(folder: Path, **script: object) -> OpenWindow:
    window = _shown(folder, token_s=0.02, **script)
    ask(window, QUESTION)
    wait_for(lambda: len(window.texts) == 2 and len(window.texts[-1]) > 90)
    return window


def blocks_empty(folder: Path) -> Iterator[OpenWindow]:
    """A model is loaded and nothing was asked: every block is free."""
    yield _shown(folder)


def blocks_kept(folder: Path) -> Iterator[OpenWindow]:
    """An answer has ended: its blocks are kept."""
    window = _shown(folder)
    ask(window, QUESTION)
    wait_for(window.is_idle)
    wait(0.5)
    yield window


def blocks_busy(folder: Path) -> Iterator[OpenWindow]:
    """Four sequences, two of which share a beginning, and some blocks that are kept."""
    yield _writing(folder, sequences=NEIGHBOURS, kept_blocks=20)


def blocks_hover(folder: Path) -> Iterator[OpenWindow]:
    """The cursor on a shared block."""
    for window in blocks_busy(folder):
        window.window.plots.panel.blocks.canvas.set_cursor(5)
        wait(0.3)
        yield window


def blocks_full(folder: Path) -> Iterator[OpenWindow]:
    """A small pool that is full."""
    yield _writing(folder, sequences=(EchoSequence(1100, 4), EchoSequence(420, 4)), blocks=SMALL_POOL)


def blocks_logical(folder: Path) -> Iterator[OpenWindow]:
    """An engine without blocks: the logical map."""
    yield _writing(folder, blocks=0)


def blocks_inspect(folder: Path) -> Iterator[OpenWindow]:
    """The map at full size."""
    for window in blocks_busy(folder):
        window.window.show_screen("inspect")
        window.window.plots.inspect.blocks.canvas.set_cursor(40)
        wait(0.6)
        yield window


def blocks_inspect_large(folder: Path) -> Iterator[OpenWindow]:
    """More blocks than there is room for."""
    sequences = (EchoSequence(70_000, 900), EchoSequence(53_000, 900), EchoSequence(33_000))
    window = _writing(folder, sequences=sequences, blocks=LARGE_POOL, kept_blocks=1200)
    window.window.show_screen("inspect")
    wait(0.6)
    yield window


def narrow_blocks(folder: Path) -> Iterator[OpenWindow]:
    """The map in the smallest window."""
    for window in blocks_busy(folder):
        window.window.resize(*NARROW)
        wait(0.5)
        yield window


def narrow_blocks_inspect(folder: Path) -> Iterator[OpenWindow]:
    """The same at full size."""
    for window in narrow_blocks(folder):
        window.window.show_screen("inspect")
        wait(0.6)
        yield window


STATES: tuple[State, ...] = (
    *(blocks_empty, blocks_kept, blocks_busy, blocks_hover, blocks_full, blocks_logical),
    *(blocks_inspect, blocks_inspect_large, narrow_blocks, narrow_blocks_inspect),
)
