"""From a token at the worker to the end of the paint that shows it, while a model answers at full speed, plots open.

The worker stamps each step with its monotonic clock (StepStats.ended_s), which on Linux is ours too. The paint is that of
the message view; a wrapper around its paintEvent notes when it ends. Flushing to the screen comes after and is not counted.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

from PySide6.QtGui import QPaintEvent

from app.engines.supervisor import EngineEvent
from backends import protocol
from tests.benchmarks.measure import Bench, Figures, spread, tell
from ui.widgets.message_view import MessageView

_ANSWER_TOKENS, _QUICK_ANSWER_TOKENS = 300, 24
_ANSWERS, _QUICK_ANSWERS = 6, 1


def measure(bench: Bench) -> Figures:
    """Return median, p99 and worst in milliseconds over every token that has text."""
    return bench.child(
        "token_to_paint", bench.pick(_ANSWERS, _QUICK_ANSWERS), bench.pick(_ANSWER_TOKENS, _QUICK_ANSWER_TOKENS)
    )


class TokenWatch:
    """Follows every piece of text from its step to its paint.

    Attributes:
        delays_ms: one for each step that brought text.
        _born: step times of text not yet handed to the view, with its length; written by the reader thread.
        _handed: step times of text that the view has and has not painted.
        _length: how much text was handed over beyond the last whole step.
    """

    def __init__(self) -> None:
        self.delays_ms: list[float] = []
        self._born: deque[tuple[float, int]] = deque()
        self._handed: list[float] = []
        self._length = 0

    def on_engine_event(self, event: EngineEvent) -> None:
        """Note a step's text; hears of it before the session does."""
        if isinstance(event, protocol.StepDone):
            length = sum(len(piece.text) for piece in event.pieces)
            if length:
                self._born.append((event.stats.ended_s, length))

    def on_text_appended(self, _chat_id: int, _message_id: int, text: str) -> None:
        """Note what the view was given in this frame."""
        self._length += len(text)
        while self._born and self._length >= self._born[0][1]:
            ended_s, length = self._born.popleft()
            self._length -= length
            self._handed.append(ended_s)

    def on_painted(self) -> None:
        """Note that all the view has is on screen now."""
        now_s = time.monotonic()
        self.delays_ms += [(now_s - ended_s) * 1000 for ended_s in self._handed]
        self._handed.clear()

    def install(self) -> None:
        """Watch the message view that is made from now on."""
        watch, paint = self, MessageView.paintEvent

        def paint_watched(view: MessageView, event: QPaintEvent) -> None:
            paint(view, event)
            watch.on_painted()

        MessageView.paintEvent = paint_watched  # type: ignore[method-assign]


def _child(answers: int, answer_tokens: int) -> None:
    from tests.benchmarks import window

    watch = TokenWatch()
    watch.install()

    def scenario(stage: window.Stage) -> Iterator[window.Wait]:
        # Before the sessions hear of a step, so that its time is there when its text arrives.
        hand_on = stage.context.engine._on_event

        def hear_first(event: EngineEvent) -> None:
            watch.on_engine_event(event)
            hand_on(event)

        stage.context.engine._on_event = hear_first
        stage.program._bridge.text_appended.connect(watch.on_text_appended)
        yield stage.is_ready
        stage.fold(False)
        stage.fix_params(answer_tokens)
        for _number in range(answers):
            yield from stage.answer()
            yield 0.3

    window.run(scenario)
    found = {f"token_to_paint.{name}_ms": value for name, value in spread(watch.delays_ms).items()}
    tell(found | {"token_to_paint.tokens": float(len(watch.delays_ms))})


if __name__ == "__main__":
    import sys

    _child(int(sys.argv[1]), int(sys.argv[2]))
