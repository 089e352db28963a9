"""What `cutaway fit` says of a model: by owner, in words, and of a model that is only an address."""

from __future__ import annotations

import pytest

from app.cli_fit import find_model, fit_json, fit_lines, fit_table
from app.errors import AppError
from app.models.entry import ModelEntry
from app.models.fit_types import Device, Fit, FitQuestion, Measured, MemoryEstimate, Verdict
from app.models.http_faults import RemoteError
from backends.protocol import LoadParams, MemorySplit
from tests.helpers.gguf_files import TinyGguf, string_entry
from tests.helpers.range_server import RangeServer

MIB = 2**20
QUESTION = FitQuestion("llama_cpp", LoadParams(context_tokens=1024, kv_type="q8_0"))
ENTRY = ModelEntry("ann/Tiny:Q4_1", "Tiny", None, "Q4_1")
DEVICE = Device("CPU", "This computer", 8192 * MIB, 4096 * MIB)
ESTIMATE = MemoryEstimate(100 * MIB, 20 * MIB, 10 * MIB, 1 * MIB, 0, 0, 50 * MIB, "probe", tables_bytes=19 * MIB)
FIT = Fit(
    Verdict.FITS,
    ESTIMATE,
    1024,
    {"f16": 4096, "q8_0": 8192, "q4_0": None},
    decode_tokens_per_s=40.0,
    free_bytes=4096 * MIB,
    device=DEVICE,
)
UNKNOWN = Fit(Verdict.UNKNOWN, None, 1024, {"f16": None}, reason="Nobody knows this shape.")
SPLIT = MemorySplit(weights_bytes=100 * MIB, kv_reserved_bytes=22 * MIB, compute_bytes=10 * MIB, output_bytes=MIB)
MEASURED = Measured("llama_cpp", "CPU", 1024, "q8_0", 512, "chat", 1, SPLIT, 203 * MIB, 50 * MIB)


def test_json_has_the_same_owners_for_what_was_predicted_and_measured():
    told = fit_json(ENTRY, QUESTION, FIT, MEASURED)
    assert told["predicted"] == {
        "weights_bytes": 100 * MIB,
        "kv_reserved_bytes": 20 * MIB,
        "kv_used_bytes": 0,
        "compute_bytes": 11 * MIB,
        "rest_bytes": 69 * MIB,
        "total_bytes": 200 * MIB,
    }
    assert told["measured"] == told["predicted"] | {
        "kv_reserved_bytes": 22 * MIB,
        "rest_bytes": 70 * MIB,
        "total_bytes": 203 * MIB,
    }
    assert (told["fits"], told["verdict"], told["device"], told["source"]) == (True, "fits", "CPU", "probe")


def test_what_nobody_knows_is_null_and_never_a_number():
    told = fit_json(ENTRY, QUESTION, UNKNOWN, None)
    assert (told["predicted"], told["measured"], told["fits"], told["source"]) == (None, None, None, None)
    assert told["sentence"] == "Nobody knows this shape."
    assert fit_lines(ENTRY, QUESTION, UNKNOWN) == ["ann/Tiny:Q4_1: Nobody knows this shape."]


def test_a_table_says_how_far_off_each_owner_was():
    rows = {row[0]: row[1:] for row in fit_table(FIT, MEASURED)}
    assert rows["Owner"] == ["Predicted", "Measured", "Off"]
    assert [cell.replace("\u00a0", " ") for cell in rows["KV cache"]] == ["20.0 MiB", "22.0 MiB", "+10.0 %"]
    assert {row[0]: row[2] for row in fit_table(FIT, None)}["KV cache"] == "-"


def test_the_lines_name_the_room_the_speed_and_the_source():
    lines = [line.replace("\u00a0", " ") for line in fit_lines(ENTRY, QUESTION, FIT)]
    assert lines[1:] == [
        "Largest context by KV type: f16: 4,096 tokens, q8_0: 8,192 tokens",
        "Speed predicted: about 40.0 tokens/s",
        "Told by the engine's allocator, nothing loaded, for 1,024 tokens with q8_0 KV.",
    ]


def test_another_engine_than_the_first_is_named():
    told = fit_json(ENTRY, FitQuestion("torch", LoadParams()), FIT, None)
    assert told["backend"] == "torch"
    assert fit_lines(ENTRY, FitQuestion("torch", LoadParams()), FIT)[-1] == "Asked for the torch engine."


def test_an_address_is_answered_from_the_first_bytes():
    model = TinyGguf(metadata=(string_entry("general.name", "Tiny"),)).to_bytes()
    with RangeServer(model) as server:
        entry = find_model(None, f"{server.url}/tiny.Q8_0.gguf")
        assert (entry.name, entry.architecture, entry.size_bytes) == ("Tiny", "llama", len(model))
        with pytest.raises(RemoteError):
            find_model(None, "http://127.0.0.1:9/gone.gguf")
    with RangeServer(b"<html>" + bytes(500)) as server, pytest.raises(AppError, match="could not be read"):
        find_model(None, f"{server.url}/page.gguf")
