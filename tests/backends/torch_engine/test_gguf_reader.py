"""A GGUF's header with its vocabulary, and mutated ones refused in words."""

from __future__ import annotations

import random
from pathlib import Path

import gguf
import pytest

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.gguf_reader import read_gguf
from tests.helpers.tiny_models import tiny_model
from tests.helpers.torch_folders import tiny_gguf, tiny_tokens


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", tiny_model("llama"))


def test_a_header_is_read_whole(tiny) -> None:
    file = read_gguf(tiny)
    assert file.architecture == "llama"
    assert file.texts("tokenizer.ggml.tokens") == tiny_tokens()
    assert file.numbers("tokenizer.ggml.token_type")[:4] == [3, 3, 3, 1]
    assert file.number("llama.block_count") == 3
    assert file.number("nothing", 7) == 7
    assert (file.text("nothing"), file.texts("nothing"), file.numbers("nothing")) == ("", [], [])
    with pytest.raises(EngineError):
        file.number("nothing")
    assert file.tensors["token_embd.weight"].shape == (300, 32)


def test_tensors_lie_where_gguf_s_own_reader_finds_them(tiny) -> None:
    file, judge = read_gguf(tiny), gguf.GGUFReader(tiny)
    assert len(judge.tensors) == len(file.tensors)
    for tensor in judge.tensors:
        ours = file.tensors[tensor.name]
        assert (ours.offset, ours.size_bytes, ours.kind) == (tensor.data_offset, tensor.n_bytes, tensor.tensor_type)
        assert ours.elements == tensor.n_elements


def test_what_is_no_gguf_says_so(tmp_path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"PK\x03\x04")
    for path, code in ((tmp_path / "x.gguf", ErrorCode.NOT_A_MODEL), (tmp_path / "no.gguf", ErrorCode.FILE_MISSING)):
        with pytest.raises(EngineError) as caught:
            read_gguf(path)
        assert caught.value.code is code
    with pytest.raises(EngineError) as caught:
        read_gguf(tmp_path)
    assert caught.value.code is ErrorCode.FILE_UNREADABLE


@pytest.mark.parametrize("seed", range(60))
def test_a_mutated_header_is_refused_or_read(tiny, tmp_path, seed) -> None:
    draw = random.Random(seed)
    data = bytearray(tiny.read_bytes())
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(4, 6_000)
        data[place : place + 8] = draw.choice((b"\xff" * 8, bytes(8), draw.randbytes(8)))
    if seed % 5 == 0:
        del data[draw.randrange(len(data)) :]
    path = tmp_path / "changed.gguf"
    path.write_bytes(data)
    try:
        file = read_gguf(path)
    except EngineError as error:
        assert error.code in (ErrorCode.HEADER_INVALID, ErrorCode.NOT_A_MODEL)  # noqa: PT017 - both ends are fine
        return
    assert all(tensor.offset + tensor.size_bytes <= len(data) for tensor in file.tensors.values())
