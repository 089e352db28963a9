"""The header of a file that does not exist yet has the size that it has once it does."""

from __future__ import annotations

import pytest
from gguf import GGUFReader

from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.gguf_draft import GgufDraft
from tests.helpers.small_llama import write_small_llama


def test_an_unchanged_header_has_its_own_size_and_every_value_adds_its_bytes(tmp_path) -> None:
    path = write_small_llama(tmp_path / "small.gguf")
    with GgufDraft(path) as draft:
        assert draft.number("general.file_type") == 1
        assert (draft.text("general.name"), draft.text("llama.block_count")) == ("Small-Llama", "")
        plain = draft.header_bytes(1, {})
        longer = draft.header_bytes(1, {"cutaway.requantized_from": "x" * 640})
    # llama.cpp adds the version of quantization, which this file lacks: key, type, number
    added = 8 + len("general.quantization_version") + 4 + 4
    assert 0 <= plain - GGUFReader(path).data_offset - added < 32
    assert longer - plain >= 640


def test_what_is_no_model_file_is_refused(tmp_path) -> None:
    path = tmp_path / "none.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(EngineError) as caught, GgufDraft(path):
        pass
    assert caught.value.code is ErrorCode.LOAD_FAILED
