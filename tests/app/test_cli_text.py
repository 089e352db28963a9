"""The texts of the command line."""

from __future__ import annotations

from pathlib import Path

from app.chat.messages import Message, Role
from app.cli_text import answer_json, figures_line, model_json, models_table, safe_line, table, terminal_safe, width
from app.models.fit_types import Fit, MemoryEstimate, Verdict
from app.models.library import ModelEntry
from backends.protocol import ModelLoaded

STATS = {
    "prompt_tokens": 1200,
    "new_tokens": 54,
    "ttft_s": 0.0912,
    "prefill_tokens_per_s": 400.0,
    "decode_tokens_per_s": 151.2,
    "stop_reason": "end_of_text",
}
LOADED = ModelLoaded(backend="llama_cpp", model_path="/m.gguf", context_tokens=8, quantization="Q4_1", device="CPU")


def answer(**stats: object) -> Message:
    return Message(2, 1, 1, Role.ASSISTANT, "Yes.", stats=stats)


def test_nothing_in_a_safe_text_drives_a_terminal():
    every_control = "".join(map(chr, [*range(32), *range(127, 160)]))
    safe = terminal_safe(every_control)
    assert [c for c in safe if ord(c) < 32 or 127 <= ord(c) < 160] == ["\t", "\n"]
    assert terminal_safe("\x1b]0;title\x07\x9b31m\x7f") == "␛]0;title␇\ufffd31m␡"
    assert terminal_safe("over\rwritten\r\n") == "overwritten\n"
    assert terminal_safe("a\u202eb\u2066c\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert terminal_safe("é 漢字 🌳 العربية\n\tx") == "é 漢字 🌳 العربية\n\tx"


def test_a_text_made_safe_piece_by_piece_is_safe_as_a_whole():
    text = "a\x1b[31mb\r\nc"
    assert "".join(terminal_safe(character) for character in text) == terminal_safe(text)


def test_a_safe_line_is_one_line():
    assert safe_line(" a\n\nb\tc\x1b ") == "a b c␛"


def test_figures_stand_in_one_line():
    assert figures_line(answer(**STATS, reused_tokens=1000)) == (
        "54 tokens written · 200 read · 1,000 reused · first token after 91.2 ms · 151 tokens/s · ended by itself"
    )
    assert figures_line(answer(**(STATS | {"ttft_s": 0, "decode_tokens_per_s": 0.0, "stop_reason": "new"}))) == (
        "54 tokens written · 1,200 read · 0 reused"
    )
    assert figures_line(answer(stop_reason="aborted")) == ""


def test_figures_of_0_that_the_engine_left_out_are_0_and_unknown_ones_are_null():
    told = answer_json(answer(**STATS), LOADED, "owner/m:Q4_1")
    assert (told["reused_tokens"], told["draft_proposed"], told["draft_accepted"]) == (0, 0, 0)
    assert (told["model"], told["backend"], told["device"], told["quantization"]) == (
        *("owner/m:Q4_1", "llama_cpp", "CPU", "Q4_1"),
    )
    unknown = answer_json(answer(), None, "m")
    assert [name for name, value in unknown.items() if value is None] == [
        *("stop_reason", "prompt_tokens", "reused_tokens", "new_tokens", "ttft_s", "prefill_tokens_per_s"),
        *("decode_tokens_per_s", "draft_proposed", "draft_accepted", "backend", "device", "quantization"),
    ]


def entry(key: str, fault: str = "", size_bytes: int = 2048) -> ModelEntry:
    return ModelEntry(
        key=key,
        name=key,
        path=Path("/m") / key,
        quantization="" if fault else "Q8_0",
        architecture="llama",
        size_bytes=size_bytes,
        parameters_count=7,
        context_tokens=0 if fault else 8192,
        origin="imported",
        fault=fault,
        bits_per_weight=0.0 if fault else 8.5,
    )


def test_the_fault_column_is_there_only_where_a_model_has_one():
    fits = {"a": Fit(Verdict.FITS, MemoryEstimate(1, 1, 1, 1, 0, 0, 1, "header"), 512, {"f16": 8192})}
    assert models_table([entry("a")], fits) == [
        "Name  Bits/weight  Size      On this machine  Where",
        "a     8.50         2.00 KiB  room for 8k      /m/a",
    ]
    assert models_table([entry("a"), entry("b", fault="It is\x1b gone.", size_bytes=0)], fits) == [
        "Name  Bits/weight  Size      On this machine  Where  Fault",
        "a     8.50         2.00 KiB  room for 8k      /m/a",
        "b     -            -         -                /m/b   It is␛ gone.",
    ]


def test_columns_are_even_for_wide_and_combining_characters():
    assert (width("漢a"), width("e\u0301")) == (3, 1)
    assert table([["漢", "x"], ["abc", "y"]]) == ["漢   x", "abc  y"]


def test_a_model_is_json_with_units_in_its_keys():
    assert model_json(entry("a")) == {
        "key": "a",
        "name": "a",
        "owner": "",
        "quantization": "Q8_0",
        "architecture": "llama",
        "format": "gguf",
        "size_bytes": 2048,
        "bits_per_weight": 8.5,
        "fallback_tensors": 0,
        "has_importance_matrix": False,
        "parameters_count": 7,
        "context_tokens": 8192,
        "path": "/m/a",
        "parts": [],
        "origin": "imported",
        "identity": "",
        "note": "",
        "fault": "",
    }
