"""From a token at the worker to the end of the paint that shows it, while a model answers at full speed, plots open.

The worker stamps each step with its monotonic clock (StepStats.ended_s), which on Linux is ours too. The paint is that
of the message view; a wrapper around its paintEvent notes when it ends. Flushing to the screen comes after and is not
counted.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator

from PySide6.QtGui import QPaintEvent

from app.chat.session_events import MessageChanged, SessionEvent
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
        _born: step times of text that the view does not have yet, each with the length of the answer after it.
        _handed: step times of text that the view has and has not painted.
        _length: length of the answer so far, in characters; of the reader thread.
    """

    def __init__(self) -> None:
        self.delays_ms: list[float] = []
        self._born: deque[tuple[float, float]] = deque()
        self._handed: list[float] = []
        self._length = 0

    def on_engine_event(self, event: EngineEvent) -> None:
        """Note a step's text, before the session hears of it; on the reader thread."""
        match event:
            case protocol.StepDone():
                added = sum(len(piece.text) for piece in event.pieces)
                self._length += added
                if added:
                    self._born.append((event.stats.ended_s, self._length))
            case protocol.RequestFinished():
                self._length = 0

    def on_text_appended(self, _chat_id: int, _message_id: int, start: int, text: str) -> None:
        """Note what the view is given in this frame."""
        self._hand_over(start + len(text))

    def on_session_event(self, event: SessionEvent) -> None:
        """Note that the view is given the whole answer, which may be quicker than its last frame."""
        if isinstance(event, MessageChanged):
            self._hand_over(math.inf)

    def _hand_over(self, length: float) -> None:
        while self._born and self._born[0][1] <= length:
            self._handed.append(self._born.popleft()[0])

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
        stage.program._bridge.session_event.connect(watch.on_session_event)
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
