"""The ladder: each rung one part more, the same requests, the same room, and the waste counted as it says."""

from __future__ import annotations

import pytest

from app.bench.engine_run import BLOCK_TOKENS, EngineRun, Round
from app.bench.ladder import (
    RUNGS,
    STATIC_SEQUENCES,
    RungResult,
    gains,
    ladder_json,
    room_tokens,
    run_ladder,
    rung_params,
)
from app.bench.workload import Workload
from app.engines.supervisor import LoadRequest
from backends import protocol
from backends.echo_engine import EchoScript
from tests.helpers.engine_client import write_script

WORK = Workload(prompt_tokens=20, new_tokens=8, requests=6, shared_tokens=15, is_uneven=True)
NAMES = ["no_kv_cache", "kv_cache", "static_batch", "continuous_batch", "paged", "prefix_sharing"]
LOADED = protocol.ModelLoaded(backend="torch", model_path="m", context_tokens=8, attention_path="paged")


def test_each_rung_switches_one_part_on() -> None:
    assert [rung.name for rung in RUNGS] == NAMES
    params = [rung_params(rung, WORK, protocol.LoadParams(threads=3)) for rung in RUNGS]
    assert [one.reuse_kv for one in params] == [False, True, True, True, True, True]
    assert [one.max_sequences for one in params] == [1, 1, STATIC_SEQUENCES, STATIC_SEQUENCES, 6, 6]
    assert [one.prefix_cache for one in params] == [False] * 5 + [True]
    assert [rung.waits for rung in RUNGS] == [False, False, True, False, False, False]
    assert {(one.context_tokens, one.threads) for one in params} == {(room_tokens(WORK), 3)}
    assert all(rung.title for rung in RUNGS)


def test_the_room_is_for_the_longest_requests_in_whole_blocks() -> None:
    assert room_tokens(WORK) == 3 * BLOCK_TOKENS * STATIC_SEQUENCES
    assert room_tokens(Workload(20, 8, 2)) == 3 * BLOCK_TOKENS * 2


def result_of(name: str, **fields: object) -> RungResult:
    rung = next(rung for rung in RUNGS if rung.name == name)
    return RungResult(rung, LOADED, (Round(**fields),), longest_tokens=28)


def test_memory_set_aside_counts_the_longest_request_for_each_that_runs() -> None:
    found = result_of("continuous_batch", running=4, held_tokens=70, mapped_places=96, mapped_empty=3)
    assert (found.reserved_tokens, found.wasted_share) == (112, pytest.approx(1 - 70 / 112))


def test_with_blocks_only_what_they_hold_beside_tokens_is_wasted() -> None:
    mapped = result_of("paged", running=4, held_tokens=70, held_places=80, mapped_places=96, mapped_empty=12)
    assert (mapped.reserved_tokens, mapped.wasted_share) == (96, 0.125)
    unmapped = result_of("paged", running=4, held_tokens=70, held_places=80)
    assert (unmapped.reserved_tokens, unmapped.wasted_share) == (80, 0.125)


def test_shared_tokens_are_no_negative_waste() -> None:
    assert result_of("prefix_sharing", running=4, held_tokens=200, held_places=80).wasted_share == 0.0


def test_without_a_cache_there_is_no_waste() -> None:
    assert result_of("no_kv_cache", running=1, held_tokens=70).reserved_tokens == 0
    assert result_of("no_kv_cache").wasted_share == 0.0


def test_gains_are_over_the_rung_below() -> None:
    figures = [protocol.RequestFigures(new_tokens=n) for n in (10, 40, 20)]
    results = [result_of(name, figures=[one], wall_s=1.0) for name, one in zip(NAMES, figures, strict=False)]
    assert gains(results) == [1.0, 4.0, 0.5]


def test_every_rung_is_a_worker_of_its_own_and_names_its_path(tmp_path) -> None:
    path = write_script(tmp_path / "script.json", EchoScript("hello"))
    opened, told = [], []

    def open_run() -> EngineRun:
        opened.append(EngineRun(lambda: tmp_path / "worker.log"))
        return opened[-1]

    results = run_ladder(open_run, LoadRequest(str(path), "echo"), WORK, 1, lambda rung: told.append(rung.name))
    assert told == NAMES
    assert len(opened) == len(NAMES)
    assert all(run._engine.pid == 0 for run in opened)
    said = ladder_json(results, WORK, "M")
    assert [rung["rung"] for rung in said["rungs"]] == NAMES
    assert {rung["backend"] for rung in said["rungs"]} == {"echo"}
    assert all(rung["total_tokens_per_s"]["median"] > 0 for rung in said["rungs"])
    assert (said["requests"], said["shared_tokens"], said["room_tokens"]) == (6, 15, room_tokens(WORK))
