"""The figures of RESULTS.md: what each is called, its unit, and the floor and goal that the design gives it.

Knows no measuring. A benchmark returns values by key; keys that have no row here are shown with --all only.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.benchmarks.measure import Figures


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        key: how its benchmark calls it.
        words: what it is.
        unit: "" for a ratio or a count.
        floor: what a release must reach; None for none.
        goal: what we want; None for none.
        more_is_better: whether floor and goal bound it from below.
    """

    key: str
    words: str
    unit: str = "ms"
    floor: float | None = None
    goal: float | None = None
    more_is_better: bool = False

    def verdict(self, value: float) -> str:
        """Return "goal", "floor", "below the floor", or "" where nothing is asked."""
        for name, bound in (("goal", self.goal), ("floor", self.floor)):
            if bound is not None and (value >= bound if self.more_is_better else value <= bound):
                return name
        return "" if self.floor is None else "below the floor"

    def text(self, value: float | None) -> str:
        """Return a value with its unit; "" for none."""
        if value is None:
            return ""
        decimals = 0 if value == int(value) else 3 if self.unit in ("", "s") else 1
        return f"{value:.{decimals}f} {self.unit}".strip()


def _ratio(key: str, words: str, floor: float | None = None, goal: float | None = None) -> Row:
    return Row(key, words, "", floor, goal, more_is_better=True)


ROWS: tuple[Row, ...] = (
    Row("first_paint.cold_s", "first paint from the tree, nothing in the page cache", "s", 1.0, 0.6),
    Row("first_paint.warm_s", "first paint from the tree, warm: median of five", "s", 1.0, 0.6),
    Row("first_paint.warm_worst_s", "the same: worst", "s"),
    _ratio("first_paint.probe_parts_painted", "parts of the window painted by then, of all looked at"),
    Row("rest.folded_rss_mb", "window process at rest, model loaded, plots folded: RSS", "MB", 200, 170),
    Row("rest.folded_uss_mb", "the same: private (USS)", "MB"),
    Row("rest.open_rss_mb", "window process at rest, model loaded, plots open: RSS", "MB", 200, 170),
    Row("rest.open_uss_mb", "the same: private (USS)", "MB"),
    Row("token_to_paint.median_ms", "token at the worker to the end of its paint, plots open: median", "ms", 40, 25),
    Row("token_to_paint.p99_ms", "the same: p99", "ms", 80, 50),
    Row("frame_gap.open_p99_ms", "frame gap while a model writes on all cores, plots open: p99", "ms", 33, 20),
    Row("frame_gap.open_worst_ms", "the same: worst", "ms", 100, 50),
    Row("frame_gap.closed_p99_ms", "frame gap, plots folded: p99", "ms", 33, 20),
    Row("frame_gap.closed_worst_ms", "the same: worst", "ms", 100, 50),
    _ratio("frame_gap.open_to_closed", "decode with all plots open against folded", 0.95, 0.98),
    Row("frame_gap.open_tokens_per_s", "decode in the window, plots open", "tokens/s"),
    _ratio("null_sink.decode_to_bare", "decode through the protocol, null sink, against a bare loop", 0.95, 0.97),
    _ratio("null_sink.decode_to_peer", "decode through the protocol, null sink, against llama-bench tg128", 0.95, 0.97),
    _ratio("null_sink.prefill_to_bare", "prefill of 512 tokens through the protocol, against a bare loop", 0.95, 0.97),
    _ratio("null_sink.prefill_to_peer", "prefill of 512 tokens, against llama-bench pp512", 0.95, 0.97),
    Row("null_sink.ours_decode_tokens_per_s", "decode through the protocol", "tokens/s"),
    Row("null_sink.ours_prefill_tokens_per_s", "prefill through the protocol", "tokens/s"),
    Row("stop.reading_median_ms", "Stop while reading a prompt: median"),
    Row("stop.reading_worst_ms", "the same: worst of twenty", "ms", 200),
    Row("stop.writing_median_ms", "Stop while writing: median"),
    Row("stop.writing_worst_ms", "the same: worst of twenty", "ms", 200),
    Row("message_view.open_s", "opening a chat of 10,000 mixed plain messages, fresh process", "s", 0.5, 0.3),
    Row("message_view.open_read_s", "of it: reading the store", "s"),
    Row("message_view.scroll_p99_ms", "scrolling it by the wheel: p99 of a frame", "ms", 33, 16),
    Row("message_view.jump_p99_ms", "jumping to anywhere in it: p99 of a frame"),
    Row(
        "message_view.append_first_ms",
        "a frame of five tokens appended and painted, tokens 2,000 to 4,000 of a message: median",
    ),
    Row("message_view.append_last_ms", "the same, 18,000 to 20,000: median"),
    Row("message_view.append_growth", "the later against the earlier; 1 is flat", ""),
    Row("store.lag_worst_ms", "an answer's text behind on disk at 200 tokens/s: worst", "ms", 1000),
    Row("store.lag_median_ms", "the same: median"),
    Row("store.append_median_us", "handing a token to the store: median", "µs"),
    Row("store.core_percent", "one core's share for storing 200 tokens/s", "%"),
    Row("plots.redraw_median_ms", "one redraw of the panel's three plots, 60 s of readings: median"),
    Row("plots.redraw_p99_ms", "the same: p99"),
    Row("plots.flood_gap_worst_ms", "frame gap while 20,000 readings flood in: worst"),
    Row("plots.flood_us_a_step", "recording one of them", "µs"),
)


def table(found: Figures) -> str:
    """Return the rows that were measured as a Markdown table."""
    lines = ["| figure | floor | goal | measured | meets |", "|---|---|---|---|---|"]
    for row in ROWS:
        if row.key in found:
            value = found[row.key]
            cells = (row.words, row.text(row.floor), row.text(row.goal), row.text(value), row.verdict(value))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
