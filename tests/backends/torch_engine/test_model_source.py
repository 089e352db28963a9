"""A folder and a GGUF file are told in the same words."""

from __future__ import annotations

import gguf
import pytest
import torch

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.torch_engine.model_source import open_source
from backends.torch_engine.model_weights import LoadProgress
from tests.helpers.tiny_models import tiny_model
from tests.helpers.torch_folders import TEMPLATE, change_json, tiny_folder, tiny_gguf


def test_a_folder_and_a_file_of_one_model_say_the_same(tmp_path) -> None:
    model = tiny_model("llama")
    folder = open_source(tiny_folder(tmp_path / "model"))
    file = open_source(tiny_gguf(tmp_path / "model.gguf", model))
    assert folder.shapes == file.shapes
    assert folder.elements == file.elements
    assert folder.chat_template == file.chat_template == TEMPLATE
    assert (folder.dtype, folder.quantization, file.quantization) == ("F32", "F32", "F32")
    one, other = folder.vocabulary(300), file.vocabulary(300)
    assert one.encode(protocol.Text("hello <|im_end|>")) == other.encode(protocol.Text("hello <|im_end|>"))
    assert (one.bos, one.eos_text, one.ends_text(2)) == (other.bos, other.eos_text, other.ends_text(2))
    progress = LoadProgress(1, lambda _event: None)
    for name, weight in folder.weights(progress, torch.float32).items():
        torch.testing.assert_close(weight[...], file.weights(progress, torch.float32)[name][...], rtol=0, atol=0)


def test_a_quantized_file_is_computed_in_bfloat16(tmp_path) -> None:
    source = open_source(tiny_gguf(tmp_path / "x.gguf", tiny_model("llama"), gguf.GGMLQuantizationType.Q8_0))
    assert (source.dtype, source.quantization) == ("BF16", "Q8_0")
    assert source.largest_elements == 300 * 32


def test_what_steers_a_load_never_reaches_transformers(tmp_path) -> None:
    folder = tiny_folder(tmp_path / "model")
    change_json(folder / "config.json", transformers_weights="x.safetensors", _name_or_path="a/b")
    assert not {"transformers_weights", "_name_or_path"} & set(open_source(folder).config)


def test_ends_come_from_every_config(tmp_path) -> None:
    folder = tiny_folder(tmp_path / "model")
    change_json(folder / "config.json", eos_token_id=[40])
    (folder / "generation_config.json").write_text('{"eos_token_id": [50, 2]}', encoding="utf-8")
    vocabulary = open_source(folder).vocabulary(300)
    assert [id_ for id_ in range(vocabulary.size) if vocabulary.ends_text(id_)] == [2, 40, 50]


def test_a_path_to_nothing_says_so(tmp_path) -> None:
    for name in ("x.gguf", "folder", "x.safetensors"):
        with pytest.raises(EngineError) as caught:
            open_source(tmp_path / "no" / name)
        assert caught.value.code is ErrorCode.FILE_MISSING
