"""An order of several quantizations: made one after the other, in the library afterwards, the warning as a note."""

from __future__ import annotations

import pytest

from app.bench.engine_run import StoppedError
from app.compare.plan import TextSpec
from app.compare.quantize_order import QuantizeOrder, carry_out, importance_of, names_of
from app.compare.quantizing import QuantizeError, Quantizer
from app.compare.texts import calibration_text
from app.errors import AppError
from app.models.library import Library
from app.paths import install_folder
from tests.helpers.small_llama import write_small_llama


@pytest.fixture
def library(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    made = Library(data, install_folder(), {})
    yield made
    made.close()


@pytest.fixture
def source(library, tmp_path):
    return library.import_path(write_small_llama(tmp_path / "Small-Llama-F16.gguf"))


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def order_of(source, out, *quantizations, **fields):
    return QuantizeOrder(source=source, quantizations=quantizations, folder=out, **fields)


def nothing(_quantization, _phase, _fraction) -> None:
    """Nobody looks on."""


def test_what_was_made_is_in_the_library_under_the_model_s_name(library, source, out) -> None:
    told = []
    outcome = carry_out(
        order_of(source, out, "Q8_0", "Q4_0"), library, Quantizer(), lambda *step: told.append(step[:2])
    )
    assert names_of(outcome.made) == ["Q8_0", "Q4_0"]
    assert [(entry.name, entry.quantization, entry.note) for entry in outcome.entries] == [
        ("Small-Llama", "Q8_0", ""),
        ("Small-Llama", "Q4_0", ""),
    ]
    assert [path.name for path in sorted(out.iterdir())] == ["Small-Llama-Q4_0.gguf", "Small-Llama-Q8_0.gguf"]
    assert list(dict.fromkeys(told)) == [
        ("Q8_0", "quantize"), ("Q8_0", "verify"), ("Q4_0", "quantize"), ("Q4_0", "verify")
    ]  # fmt: skip
    assert {entry.key for entry in library.entries()} >= {entry.key for entry in outcome.entries}


def test_a_warning_becomes_a_note_unless_the_person_wrote_one(library, source, out) -> None:
    first = carry_out(order_of(source, out, "Q4_0"), library, Quantizer(), nothing).entries[0]
    again = order_of(first, out, "Q8_0", allow_requantize=True)
    made = carry_out(again, library, Quantizer(), nothing).entries[0]
    assert "(Q4_0)" in library.find(made.key).note


def test_a_text_is_read_once_for_all_and_its_matrix_is_kept(library, source, out, monkeypatch) -> None:
    monkeypatch.setattr("app.compare.quantizing.MOST_WINDOWS", 2)
    told = []
    outcome = carry_out(
        order_of(source, out, "Q2_K_S", importance=calibration_text()),
        library,
        Quantizer(),
        lambda *step: told.append(step[:2]),
    )
    assert ("", "importance") in told
    assert outcome.importance_path == out / "Small-Llama-calibration-imatrix.gguf"
    assert outcome.importance_path.is_file()
    assert outcome.entries[0].has_importance_matrix
    # the library knows that this is no model
    assert all(entry.path != outcome.importance_path for entry in library.entries())


def test_nothing_is_begun_that_cannot_be_ended(library, source, out) -> None:
    (out / "Small-Llama-Q4_0.gguf").write_text("mine")
    for order, part in (
        (order_of(source, out, "Q8_0", "Q4_0"), "there already"),
        (order_of(source, out, "Q8_0", "IQ1_S"), "Without an importance matrix"),
        (order_of(source, out, "Q8_0", "Q9"), "no quantization"),
        (order_of(source, out / "none", "Q8_0"), "is not there"),
    ):
        with pytest.raises(AppError) as caught:
            carry_out(order, library, Quantizer(), nothing)
        assert part in caught.value.words.message
    assert [path.name for path in out.iterdir()] == ["Small-Llama-Q4_0.gguf"]


def test_all_of_them_must_have_room(library, source, out, monkeypatch) -> None:
    monkeypatch.setattr("app.compare.quantizing.free_bytes", lambda _folder: 10**9 + 2_000_000)
    with pytest.raises(QuantizeError) as caught:
        carry_out(order_of(source, out, "Q8_0", "Q6_K"), library, Quantizer(), nothing)
    assert "no room" in caught.value.words.message


def test_a_cancelled_order_keeps_what_was_whole(library, source, out) -> None:
    cancelled = []

    def cancel_the_second(quantization, _phase, _fraction) -> None:
        cancelled.extend([1] if quantization == "Q4_0" else [])

    with pytest.raises(StoppedError):
        carry_out(order_of(source, out, "Q8_0", "Q4_0"), library, Quantizer(lambda: bool(cancelled)), cancel_the_second)
    assert [path.name for path in out.iterdir()] == ["Small-Llama-Q8_0.gguf"]


def test_a_file_is_a_matrix_or_a_text_by_what_it_holds(tmp_path) -> None:
    text, matrix, old = tmp_path / "text.txt", tmp_path / "matrix", tmp_path / "old.dat"
    text.write_text("words and " * 200)
    matrix.write_bytes(b"GGUF....")
    old.write_bytes(b"\1\0\0\0")
    assert isinstance(importance_of(text), TextSpec)
    assert importance_of(matrix) == matrix
    assert importance_of(old) == old
    with pytest.raises(AppError):
        importance_of(tmp_path / "none.txt")
