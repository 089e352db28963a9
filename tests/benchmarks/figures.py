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


def _fit_rows(model: str, title: str) -> tuple[Row, ...]:
    """Return the worst of a model's loads; "off" is predicted against measured, before anything was loaded."""
    key = f"fit.{model}"
    return (
        Row(f"{key}_probe_kv_off_mib", f"{title}: KV cache off, worst of nine loads", "MiB", 0.049),
        Row(f"{key}_probe_compute_off_mib", "the same: compute buffer off, with the probe", "MiB", 0.049),
        Row(f"{key}_probe_total_off_percent", "the same: whole process off, with the probe", "%", 1),
        Row(f"{key}_header_total_off_percent", "the same: whole process off, header alone", "%", 3),
        Row(f"{key}_header_kv_off_mib", "the same: KV cache off, header alone", "MiB", 0.049),
        Row(f"{key}_header_compute_off_mib", "the same: compute buffer off, header alone", "MiB"),
        Row(f"{key}_predicted_to_written", "the same: speed predicted from bandwidth against written", ""),
        Row(f"{key}_written_tokens_per_s", "the same: written", "tokens/s"),
    )


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
    Row("plots.map_median_ms", "a new map of 5,000 KV blocks drawn and painted, all cells in sight: median", "ms", 4),
    Row("plots.map_p99_ms", "the same: p99"),
    Row("plots.map_whole_median_ms", "every cell of it drawn and painted anew: median", "ms", 4),
    Row("plots.map_pace_gap_p99_ms", "frame gap, panel open, 150 steps and five such maps a second: p99", "ms", 33, 20),
    Row("plots.map_pace_gap_worst_ms", "the same: worst", "ms", 100, 50),
    *_fit_rows("starter", "SmolLM2 135M Q4_1"),
    *_fit_rows("gemma", "Gemma 3 270M Q4_K_M"),
    _ratio("fit.shapes", "shapes of models, 135M to 108B, header alone against the engine's allocator", 12),
    Row("fit.shapes_kv_off_mib", "KV cache and states off: worst of all shapes and KV types", "MiB", 0.049),
    Row("fit.shapes_compute_off_mib", "compute buffer off: worst", "MiB"),
    Row("fit.shapes_total_off_percent", "all buffers together off: worst", "%", 3),
    Row("fit.shapes_probe_s", "asking the allocator in a fresh worker: median", "s"),
    Row("fit.remote_requests", "header of a 70B model over HTTP: requests", "", 3),
    Row("fit.remote_sent_mib", "the same: received", "MiB", 16),
    Row("fit.remote_header_mib", "the same: size of the header", "MiB"),
    _ratio("download.to_curl", "downloading over a line of 100 MB/s, hashed and flushed, against curl", 0.95, 0.98),
    Row("download.cpu_s_per_gb", "the same: the processor's time for 1 GB", "s"),
    Row("download.curl_cpu_s_per_gb", "curl's, which neither hashes nor flushes", "s"),
    Row("download.gap_p99_ms", "gap of a 16 ms tick in the process that downloads: p99", "ms", 33, 20),
    Row("download.gap_worst_ms", "the same: worst", "ms", 100, 50),
    Row("download_window.busy_p99_ms", "frame gap of the window while it downloads at 100 MB/s: p99", "ms", 33, 20),
    Row("download_window.busy_worst_ms", "the same: worst", "ms", 100, 50),
    Row("download_window.rest_p99_ms", "frame gap of the same window at rest: p99"),
    Row("download_window.rest_worst_ms", "the same: worst"),
    Row("download_window.p99_to_rest", "p99 while downloading against at rest; 1 is unaffected", ""),
    Row("download_window.mb_per_s", "what came meanwhile", "MB/s"),
    Row("download.stop_worst_ms", "stopping a download whose server is silent: worst of twenty", "ms", 1000, 500),
    _ratio("compare.forward_share", "scoring a window of 512 tokens: share that the engine's forward passes take", 0.9),
    _ratio("compare.score_to_prefill", "the same against reading 512 tokens, of which one row of logits is wanted"),
    Row("compare.score_tokens_per_s", "the same: scored", "tokens/s"),
    Row("compare.quick_s", "a Quick comparison of F16 and seven quantizations, SmolLM2 135M", "s", 600),
    Row("compare.quick_off_percent", "the same: predicted by two probes of two seconds, off", "%", 25),
    Row("compare.normal_s", "a Normal comparison of F16 and three quantizations", "s"),
    Row("compare.normal_off_percent", "the same: predicted by two probes of two seconds, off", "%", 25),
    Row("compare.thorough_s", "a Thorough comparison of F16 and one quantization", "s"),
    Row("compare.thorough_off_percent", "the same: predicted by two probes of two seconds, off", "%", 25),
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


def load_table(found: Figures) -> str:
    """Return the loads of the real models, predicted against measured, as a Markdown table; "" for none."""
    loads = list(dict.fromkeys(key.rpartition(".")[0] for key in found if key.startswith("fit.load.")))
    lines = [
        "| model | context | KV | process | predicted, header | off | predicted, probe | off |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for load in loads:
        _fit, _load, model, context, kv_type = load.split(".")
        cells = [model, f"{int(context):,}", kv_type, f"{found[f'{load}.process_mib']:.1f} MiB"]
        for source in ("header", "probe"):
            cells += [f"{found[f'{load}.{source}_mib']:.1f} MiB"]
            cells += [f"{found[f'{load}.{source}_total_off_percent']:+.1f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if loads else ""
