"""A reference made from a quantization is found out, an original one is not accused, a damaged one is a doubt."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as GgmlType
from gguf.quants import dequantize, quantize

from app.compare.provenance import REQUANTIZED_KEY, Provenance, check_file
from tests.helpers.gguf_files import KINDS, TinyGguf, mutate_model
from tests.helpers.hf_folders import smol_folder

FINE = Provenance(is_requantized=False)
NOTHING_TO_SEE = Provenance(is_requantized=False, is_known=False)
ROWS, COLUMNS = 64, 256


def matrices(stored: GgmlType | None = None, count: int = 8) -> dict[str, np.ndarray]:
    """Return some layers of normal weights, by way of a quantization if one is named."""
    draw = np.random.default_rng(11)
    made = {}
    for number in range(count):
        values = (draw.standard_normal((ROWS, COLUMNS)) * 0.02).astype(np.float32)
        if stored is not None:
            values = dequantize(quantize(values, stored), stored).reshape(ROWS, COLUMNS)
        made[f"blk.{number}.attn_q.weight"] = values
    return made


def write_gguf(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> Path:
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in (metadata or {}).items():
        writer.add_string(key, value)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(COLUMNS, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_folder(folder: Path, tensors: dict[str, np.ndarray], dtype: str = "F16", **config: object) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}), encoding="utf-8")
    header, blob = {}, b""
    for name, values in tensors.items():
        data = values.astype("<f2" if dtype == "F16" else "<f4").tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + blob)
    return folder


def as_f16(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values.astype(np.float16) for name, values in tensors.items()}


def test_original_weights_are_not_accused(tmp_path: Path):
    assert check_file(write_gguf(tmp_path / "f32.gguf", matrices())) == FINE
    assert check_file(write_gguf(tmp_path / "f16.gguf", as_f16(matrices()))) == FINE
    assert check_file(write_folder(tmp_path / "folder", matrices())) == FINE
    assert check_file(write_folder(tmp_path / "folder32", matrices(), "F32")) == FINE


@pytest.mark.parametrize(("stored", "words"), [(GgmlType.Q4_1, "few values (4 bits"), (GgmlType.Q8_0, "grid (8 bits")])
def test_dequantized_weights_are_found_out(tmp_path: Path, stored: GgmlType, words: str):
    found = [
        check_file(write_gguf(tmp_path / "f16.gguf", as_f16(matrices(stored)))),
        check_file(write_folder(tmp_path / "folder", matrices(stored))),
    ]

    for one in found:
        assert one.is_requantized
        assert words in one.detail
        assert "6 of 6 matrices" in one.detail


def test_most_matrices_decide(tmp_path: Path):
    """A model may hold a matrix of few values by nature: one of eight is no sign."""
    mixed = matrices() | dict(list(matrices(GgmlType.Q4_0).items())[:1])

    assert check_file(write_gguf(tmp_path / "f16.gguf", as_f16(mixed))) == FINE


def test_our_own_note_in_a_file_is_believed(tmp_path: Path):
    path = write_gguf(tmp_path / "q.gguf", matrices(), {REQUANTIZED_KEY: "Q4_1 \u202e of a model"})

    found = check_file(path)

    assert found.is_requantized
    assert "(Q4_1 of a model)" in found.detail


def test_the_weights_of_a_quantization_tell_nothing(tmp_path: Path, starter_model: Path):
    assert check_file(starter_model) == NOTHING_TO_SEE
    folder = write_folder(tmp_path / "folder", matrices(), quantization_config={"quant_method": "gptq", "bits": 4})
    assert check_file(folder) == NOTHING_TO_SEE
    assert check_file(TinyGguf().write(tmp_path / "tiny.gguf")) == NOTHING_TO_SEE


def test_a_real_folder_that_was_dequantized_is_found_out():
    """The starter model's folder of bfloat16 was made from its Q4_1."""
    found = check_file(smol_folder())

    assert found.is_requantized
    assert "4 bits" in found.detail


def test_what_is_not_there_or_no_model_is_a_doubt_in_words(tmp_path: Path):
    (tmp_path / "text.gguf").write_text("not a model", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.safetensors").write_bytes(b"\0" * 64)

    for name in ("gone.gguf", "text.gguf", "empty", "file.safetensors"):
        found = check_file(tmp_path / name)
        assert not found.is_requantized
        assert not found.is_known
        assert found.detail.startswith("Whether these are the original weights could not be found out: ")


def test_damaged_files_never_raise(tmp_path: Path):
    source = write_gguf(tmp_path / "f16.gguf", as_f16(matrices(count=3)))
    for seed in range(12 * len(KINDS)):
        what = mutate_model(source, tmp_path / "damaged.gguf", seed)

        found = check_file(tmp_path / "damaged.gguf")

        assert isinstance(found, Provenance), what


def test_a_split_model_is_looked_at_in_several_parts(tmp_path: Path):
    """Only the last part's weights are here: those of the first are gone, which is a doubt."""
    write_gguf(tmp_path / "m-00002-of-00002.gguf", as_f16(matrices(GgmlType.Q4_0)))
    first = write_gguf(tmp_path / "m-00001-of-00002.gguf", as_f16(matrices(GgmlType.Q4_0)))

    assert check_file(first).is_requantized
    first.unlink()
    assert not check_file(first).is_known
