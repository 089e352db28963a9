"""What length costs the message view: opening 10,000 messages, writing a very long one, scrolling.

The chat is written to a store beforehand; opening it in a fresh process is timed from asking the store to the end of
the paint. The messages are mixed plain text: short questions, long answers, lists, code, tables, CJK and emoji. Every
frame is painted synchronously, so a frame's cost is all the GUI thread spends on it.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.chat.messages import Message, MessageState, Role
from app.chat.store import open_store
from tests.benchmarks.measure import Bench, Figures, percentile, tell

_MESSAGES, _QUICK_MESSAGES = 10_000, 400
_TOKENS, _QUICK_TOKENS = 20_000, 2_000
_SCROLL_FRAMES, _QUICK_SCROLL_FRAMES = 600, 60
_WHEEL_PX = 120
_TOKENS_A_FRAME = 5  # what 33 ms bring at 150 tokens a second
_SEED = 3
_TEXT = (
    "a paged cache is cut into small blocks of sixteen tokens and a chat takes one when the last is full so that "
    "reading a prompt twice costs nothing while writing costs what memory can read in that time"
)
_WORDS = _TEXT.split()


def measure(bench: Bench) -> Figures:
    """Return the time to open in seconds, costs of appended tokens and of scrolled frames in milliseconds."""
    bench.child("message_view", "fill", bench.pick(_MESSAGES, _QUICK_MESSAGES))
    found = bench.child("message_view", "open")
    found |= bench.child("message_view", "scroll", bench.pick(_SCROLL_FRAMES, _QUICK_SCROLL_FRAMES))
    return found | bench.child("message_view", "append", bench.pick(_TOKENS, _QUICK_TOKENS))


def _store_path() -> Path:
    return Path(os.environ["CUTAWAY_HOME"]) / "chats.sqlite3"


def _fill(count: int) -> None:
    """Write the chat to the store."""
    rng = random.Random(_SEED)
    store = open_store(_store_path()).store
    chat = store.add_chat("long")
    parent_id = None
    for number in range(count):
        role = Role.ASSISTANT if number % 2 else Role.USER
        stats = {"decode_tokens_per_s": 150.0, "ttft_s": 0.1, "prompt_tokens": 100, "stop_reason": "end_of_text"}
        message: Message = store.add_message(
            chat.chat_id,
            parent_id,
            role,
            _mixed_text(rng, number),
            stats=stats if role is Role.ASSISTANT else {},
            state=MessageState.COMPLETE,
        )
        parent_id = message.message_id
    store.flush(120.0)
    store.close()
    tell({})


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words)) + "."


def _mixed_text(rng: random.Random, number: int) -> str:
    """Return a question for an even number, else an answer of one of six kinds."""
    if number % 2 == 0:
        return _sentence(rng, rng.randint(4, 30))
    kinds: tuple[Callable[[], str], ...] = (
        lambda: "\n\n".join(_sentence(rng, rng.randint(20, 90)) for _ in range(rng.randint(1, 5))),
        lambda: "\n".join(f"{row}. {_sentence(rng, rng.randint(4, 14))}" for row in range(1, rng.randint(4, 12))),
        lambda: "```python\n" + "\n".join(f"    x[{row}] = f({row}, key={row}.5)" for row in range(18)) + "\n```",
        lambda: "\n".join("| " + " | ".join(rng.choice(_WORDS) for _ in range(4)) + " |" for _ in range(10)),
        lambda: "分页缓存把内存切成小块，每个对话按需取用。" * rng.randint(2, 20),
        lambda: "Done ✅ 😀👩‍👩‍👧 " + _sentence(rng, 25) + " 🚀" * rng.randint(1, 9),
    )
    return kinds[(number // 2) % len(kinds)]()


def _view() -> tuple[Any, Any]:
    """Return the application and an empty view of a usual size, on screen."""
    from PySide6.QtWidgets import QApplication

    from ui.theme import ThemeSwitch
    from ui.widgets.message_view import MessageView

    app = QApplication(["cutaway"])
    view = MessageView(ThemeSwitch(app, "dark").theme)
    view.resize(900, 800)
    view.show()
    deadline_s = time.monotonic() + 10
    while not view.windowHandle().isExposed() and time.monotonic() < deadline_s:
        app.processEvents()
    app.processEvents()
    return app, view


def _open_chat(view: Any) -> Figures:
    """Show the stored chat; returns how long that took, in seconds, and what of it was reading the store."""
    from ui.panels.message_items import message_item

    store = open_store(_store_path()).store
    began_s = time.perf_counter()
    messages = store.branch(store.chats()[0].chat_id)
    read_s = time.perf_counter()
    view.set_messages([message_item(message) for message in messages])
    view.viewport().repaint()
    ended_s = time.perf_counter()
    store.close()
    return {
        "message_view.messages": float(len(messages)),
        "message_view.open_s": ended_s - began_s,
        "message_view.open_read_s": read_s - began_s,
        "message_view.open_view_s": ended_s - read_s,
    }


def _open() -> None:
    app, view = _view()
    found = _open_chat(view)
    began_s = time.perf_counter()
    app.processEvents()  # what the view left for later belongs to opening
    found["message_view.open_s"] += time.perf_counter() - began_s
    tell(found)


def _scroll(frames: int) -> None:
    _app, view = _view()
    _open_chat(view)
    bar = view.verticalScrollBar()
    rng = random.Random(_SEED)
    wheel_ms = list(_frames_ms(view, (bar.value() - _WHEEL_PX for _ in range(frames))))
    jumps_ms = list(_frames_ms(view, (rng.randint(0, bar.maximum()) for _ in range(frames // 6))))
    tell(
        {
            "message_view.scroll_median_ms": statistics.median(wheel_ms),
            "message_view.scroll_p99_ms": percentile(wheel_ms, 99),
            "message_view.scroll_worst_ms": max(wheel_ms),
            "message_view.jump_p99_ms": percentile(jumps_ms, 99),
        }
    )


def _frames_ms(view: Any, places_px: Iterator[int]) -> Iterator[float]:
    """Scroll from place to place and yield what each frame costs."""
    bar = view.verticalScrollBar()
    for place_px in places_px:
        began_s = time.perf_counter()
        bar.setValue(place_px)
        view.viewport().repaint()
        yield (time.perf_counter() - began_s) * 1000


def _append(tokens: int) -> None:
    """Write one long message frame by frame; compare the second tenth, by which the view is full, with the last."""
    from ui.widgets.message_layout import MessageItem

    _app, view = _view()
    rng = random.Random(_SEED)
    view.set_messages([MessageItem(1, "user", "Go on."), MessageItem(2, "assistant", "", is_streaming=True)])
    costs_ms = []
    frames = tokens // _TOKENS_A_FRAME
    for number in range(frames):
        words = " ".join(rng.choice(_WORDS) for _ in range(_TOKENS_A_FRAME))
        text = words + (".\n\n" if number % 14 == 13 else " ")
        began_s = time.perf_counter()
        view.append_text(2, text)
        view.viewport().repaint()
        costs_ms.append((time.perf_counter() - began_s) * 1000)
    tenth = frames // 10
    first_ms, last_ms = (statistics.median(part) for part in (costs_ms[tenth : 2 * tenth], costs_ms[-tenth:]))
    tell(
        {
            "message_view.append_first_ms": first_ms,
            "message_view.append_last_ms": last_ms,
            "message_view.append_growth": last_ms / first_ms,
            "message_view.append_last_p99_ms": percentile(costs_ms[-tenth:], 99),
        }
    )


if __name__ == "__main__":
    import sys

    parts: dict[str, Callable[..., None]] = {"fill": _fill, "open": _open, "scroll": _scroll, "append": _append}
    parts[sys.argv[1]](*map(int, sys.argv[2:]))
