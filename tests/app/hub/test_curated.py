"""Picked for you: what fits this machine, with a reason, and nothing that does not."""

from __future__ import annotations

import datetime
import functools

import pytest

from app.hub.curated import CuratedList, curated_shape, load_curated, picks
from app.hub.reference import is_repo_name
from app.models.fit import fit
from app.models.fit_types import Device, FitQuestion, Machine, Verdict
from app.models.gguf_header import read_header
from app.models.quantization import meaning
from app.models.shape_gguf import shape_of_gguf
from backends.protocol import LoadParams
from tests.helpers import shape_files

GIB = 2**30
TWINS = {
    "Llama 3.1 8B": "llama-3.1-8b",
    "Mistral 7B v0.3": "mistral-7b-v0.3",
    "Qwen3 8B": "qwen3-8b",
    "Qwen3 30B A3B": "qwen3-30b-a3b",
    "Gemma 3 12B": "gemma-3-12b",
    "Phi-4": "phi-4",
    "gpt-oss 20B": "gpt-oss-20b",
}


def machine(total_gib: float, free_gib: float | None = None, speed: float = 0.0) -> Machine:
    free = total_gib * 0.8 if free_gib is None else free_gib
    return Machine((Device("CPU", "This computer", int(total_gib * GIB), int(free * GIB), speed),))


def picked(where: Machine, **options: object) -> list:
    question = FitQuestion(params=LoadParams(context_tokens=0))
    return picks(where, lambda shape: fit(shape, question, where), **options)


def test_the_list_is_dated_and_complete():
    curated = load_curated()
    assert datetime.date.fromisoformat(curated.as_of) >= datetime.date(2026, 11, 1)
    assert len(curated.models) >= 14
    assert len({model.repo for model in curated.models}) == len(curated.models)
    counts = [model.parameters_count for model in curated.models]
    assert counts[0] < 1e9
    assert counts[-1] > 6e10
    for model in curated.models:
        assert is_repo_name(model.repo)
        assert model.repo.lower().endswith("gguf")
        assert model.licence
        assert model.sizes_mb
        for quantization, size_mb in model.sizes_mb.items():
            assert meaning(quantization).is_known
            bits = 8e6 * size_mb / model.parameters_count
            assert 4.3 < bits < 9.2, (model.name, quantization, bits)


@pytest.mark.parametrize(("name", "twin"), TWINS.items())
def test_its_numbers_are_those_of_the_real_headers(name, twin, tmp_path):
    model = next(model for model in load_curated().models if model.name == name)
    real = shape_of_gguf(read_header(shape_files.write_shape(twin, tmp_path)))
    ours = curated_shape(model, real.weights_bytes)
    roomy = machine(400, 400)
    for context_tokens in (512, 4096, 32_768):
        question = FitQuestion(params=LoadParams(context_tokens=context_tokens))
        known, guessed = fit(real, question, roomy).estimate, fit(ours, question, roomy).estimate
        assert guessed.kv_bytes == known.kv_bytes
        assert guessed.compute_bytes == known.compute_bytes
        assert abs(guessed.needed_bytes / known.needed_bytes - 1) < 0.01
    assert abs(model.parameters_count / real.parameters_count - 1) < 1e-4
    assert abs(ours.read_bytes / real.read_bytes - 1) < 0.15


@pytest.mark.parametrize("total_gib", [1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256])
def test_nothing_is_picked_that_does_not_fit_with_room(total_gib):
    for pick in picked(machine(total_gib)):
        assert pick.fit.verdict is Verdict.FITS
        assert pick.fit.max_context_tokens["f16"] >= 8_192
        assert pick.size_bytes < total_gib * 0.8 * GIB
        assert pick.reference == f"{pick.repo}:{pick.quantization}"


def test_a_full_machine_is_offered_nothing():
    assert picked(machine(16, 0.3)) == []


def test_a_small_machine_gets_the_small_ones_first_and_a_large_one_the_able_ones():
    small = [pick.parameters_count for pick in picked(machine(8))]
    assert small == sorted(small)
    large = picked(machine(32, speed=4e10))
    assert large[0].parameters_count > 1e10
    assert "at about" in large[0].reason


def test_small_models_are_taken_as_large_as_they_come():
    by_name = {pick.name: pick.quantization for pick in picked(machine(16))}
    assert by_name["Qwen3 0.6B"] == "Q8_0"
    assert by_name["Llama 3.1 8B"] == "Q4_K_M"


def test_the_reason_says_what_it_is_good_at_and_how_it_fits():
    (first, *_rest) = picked(machine(4))
    assert first.reason == (
        "Small and quick on any computer; good for short questions and rewording. It fits this machine, with room for "
        "17k tokens."
    )


def test_what_is_slow_here_comes_last_and_says_so():
    found = picked(machine(64))
    slow = ["is slow on this machine" in pick.reason for pick in found]
    assert slow == sorted(slow)
    assert any(slow)
    assert found[-1].fit.decode_tokens_per_s is None
    with_speed = picked(machine(64, speed=2e10))
    assert "is slow on this machine" in next(pick for pick in with_speed if pick.name == "Llama 3.3 70B").reason


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"models": [{"repo": "a/b"}]}', b"\xff" * 9])
def test_a_damaged_list_is_an_empty_one(tmp_path, content):
    path = tmp_path / "curated.json"
    path.write_bytes(content)
    assert load_curated(path) == CuratedList()
    assert load_curated(tmp_path / "nothing.json") == CuratedList()
    assert picked(machine(16), curated=CuratedList()) == []


@functools.cache
def _unknown() -> object:
    return fit(None, FitQuestion(), machine(16))


def test_where_nobody_can_tell_nothing_is_picked():
    assert picks(machine(16), lambda shape: _unknown()) == []
