"""The reference is the nearest to the original that fits, and what it stands in for is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.compare.provenance import Provenance
from app.compare.reference import candidates_for, is_same_model, make_run_spec, propose_reference
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Verdict
from app.models.shape import ModelShape
from tests.helpers.model_entries import LADDER, entry, fit

NAME = "Tiny-1B"


def ladder(*names: str) -> list[ModelEntry]:
    bits = {name: bits for name, bits, _context, _speed in LADDER} | {"F32": 32.0, "BF16": 16.0}
    return [entry(NAME, name, bits[name], parameters_count=10**9) for name in names]


def genuine(_path: Path) -> Provenance:
    return Provenance(False)


def fits_of(entries: list[ModelEntry], *too_large: str) -> dict[str, Fit]:
    return {one.key: fit(one, 0 if one.quantization in too_large else 8192) for one in entries}


@pytest.mark.parametrize(
    ("at_hand", "chosen", "is_stand_in"),
    [
        (("Q4_K_M", "F16", "F32", "Q8_0"), "F32", False),
        (("Q4_K_M", "F16", "Q8_0"), "F16", False),
        (("Q4_K_M", "BF16", "Q8_0"), "BF16", False),
        (("Q4_K_M", "Q8_0", "Q6_K"), "Q8_0", True),
        (("Q4_K_M", "Q2_K", "Q6_K"), "Q6_K", True),
        (("Q2_K",), "Q2_K", True),
    ],
)
def test_the_nearest_to_the_original_is_proposed(at_hand: tuple[str, ...], chosen: str, is_stand_in: bool):
    found = propose_reference(ladder(*at_hand), check=genuine)

    assert found is not None
    assert (found.entry.quantization, found.is_stand_in) == (chosen, is_stand_in)
    assert found.reason.startswith(f"{chosen}: ")
    assert bool(found.warnings) is is_stand_in


def test_a_stand_in_is_called_one_and_a_small_reference_is_said_to_be_poor():
    q8, q4 = (propose_reference(ladder(name), check=genuine) for name in ("Q8_0", "Q4_K_M"))

    assert "stand-in" in q8.reason
    assert "Q8_0, not the original" in q8.warnings[0]
    assert "4.89" in q4.reason
    assert len(q4.warnings) == 2
    assert "could look worse" in q4.warnings[1]


def test_what_does_not_fit_is_stepped_over_in_words():
    entries = ladder("F16", "Q8_0", "Q4_K_M")

    found = propose_reference(entries, fits_of(entries, "F16"), genuine)

    assert found.entry.quantization == "Q8_0"
    assert [one.quantization for one in found.passed_over] == ["F16"]
    assert found.warnings[0].startswith("F16 would be the better reference, but does not fit into memory: needs ")


def test_where_nothing_fits_the_smallest_is_taken_and_it_is_said():
    entries = ladder("F16", "Q4_K_M")

    found = propose_reference(entries, fits_of(entries, "F16", "Q4_K_M"), genuine)

    assert found.entry.quantization == "Q4_K_M"
    assert "may not fit" in found.warnings[-1]


def test_of_two_in_16_bits_the_one_with_weights_of_its_own_is_taken():
    made, own = ladder("F16", "BF16")
    made = replace(made, size_bytes=own.size_bytes + 1)

    def check(path: Path) -> Provenance:
        return Provenance(path == made.path, "Made from Q4_1.")

    found = propose_reference([made, own], check=check)

    assert found.entry == own
    alone = propose_reference([made], check=check)
    assert alone.entry == made
    assert alone.warnings == (
        "Made from Q4_1. Figures made with such a reference are biased: quantizations on a similar grid look better "
        "than they are.",
    )


def test_a_model_that_cannot_be_loaded_is_no_reference():
    broken = [replace(one, fault="It is damaged.") for one in ladder("F16")]

    assert propose_reference(broken, check=genuine) is None
    assert propose_reference([], check=genuine) is None
    assert propose_reference([*broken, *ladder("Q4_K_M")], check=genuine).entry.quantization == "Q4_K_M"


def test_candidates_are_the_other_quantizations_of_the_same_model_largest_first():
    f16, q4, q2 = ladder("F16", "Q4_K_M", "Q2_K")
    other = entry("Another-1B", "Q4_0", 4.5)
    broken = replace(ladder("Q8_0")[0], fault="It is damaged.")

    assert candidates_for(f16, [q2, other, f16, broken, q4]) == (q4, q2)


def test_the_name_alone_does_not_make_one_model():
    first = entry(NAME, "F16", 16.0, parameters_count=10**9, shape=shape(32_000))

    def like(**fields: object) -> ModelEntry:
        return entry(**{"name": NAME.upper(), "quantization": "Q4_0", "shape": shape(32_000), **fields})

    assert is_same_model(first, like(parameters_count=10**9))
    assert is_same_model(first, like(parameters_count=10**9 + 32_000 * 64)), "an output matrix of its own"
    assert is_same_model(first, like(parameters_count=10**9, owner="somebody"))
    assert is_same_model(first, like(parameters_count=10**9, shape=None)), "nobody knows its vocabulary"
    assert not is_same_model(first, like(parameters_count=3 * 10**9))
    assert not is_same_model(first, like(parameters_count=10**9, shape=shape(50_000)))
    owned = replace(first, owner="maker")
    assert not is_same_model(owned, like(parameters_count=0, owner="somebody"))
    assert is_same_model(owned, like(parameters_count=10**9, owner="somebody"))


def shape(vocabulary_tokens: int) -> ModelShape:
    return ModelShape(architecture="llama", vocabulary_tokens=vocabulary_tokens, embedding_length=64)


def test_a_run_is_named_for_files_and_for_people():
    q4 = ladder("Q4_K_M")[0]

    plain = make_run_spec(q4)
    small = make_run_spec(q4, "q8_0", taken=["Q4_K_M"], note="Made here.")

    assert (plain.run_id, plain.label, plain.key) == ("Q4_K_M", "Q4_K_M", q4.key)
    assert (small.run_id, small.label, small.kv_type) == ("Q4_K_M-kv-q8_0", "Q4_K_M · KV q8_0", "q8_0")
    assert (small.note, small.bits_per_weight, small.path) == ("Made here.", 4.89, str(q4.path))


def test_a_run_id_is_never_there_twice_nor_leaves_its_folder():
    hostile = replace(ladder("Q4_K_M")[0], quantization="../../etc:passwd", owner="maker")

    first = make_run_spec(hostile)
    second = make_run_spec(hostile, taken=[first.run_id.upper()])

    assert first.run_id == "etc-passwd"
    assert second.run_id == "etc-passwd-2"
    assert second.label.endswith("(maker)")
    assert make_run_spec(replace(hostile, quantization="", name="…")).run_id == "run"


def test_a_fit_that_nobody_knows_is_no_obstacle():
    entries = ladder("F16", "Q8_0")
    unknown = {one.key: fit(one, None) for one in entries}

    assert unknown[entries[0].key].verdict is Verdict.UNKNOWN
    assert propose_reference(entries, unknown, genuine).entry.quantization == "F16"
