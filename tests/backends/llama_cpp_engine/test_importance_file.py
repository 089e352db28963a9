"""Importance matrices of both formats are read, ours are the newer one, and a damaged file is said to be one."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from gguf import GGUFReader

from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.importance_file import Sums, read_importance, write_importance

NAME = "blk.0.ffn_down.weight"


def written(path, squares=((8.0, 2.0, 0.0), (9.0, 9.0, 9.0)), counts=(4.0, 0.0)):
    sums = {NAME: Sums(np.array(squares), np.array(counts))}
    write_importance(path, sums, windows=3, window_tokens=512, source="a text")
    return path


def record(name: bytes, calls: int, values: list[float]) -> bytes:
    head = struct.pack("<i", len(name)) + name + struct.pack("<ii", calls, len(values))
    return head + struct.pack(f"<{len(values)}f", *values)


def test_what_is_written_is_read_again_as_means_and_an_unused_expert_counts_all_alike(tmp_path) -> None:
    found = read_importance(written(tmp_path / "i.gguf"))
    assert (found.chunks, found.source) == (3, "a text")
    assert found.means[NAME].tolist() == [2.0, 0.5, 0.0, 1.0, 1.0, 1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["i.gguf"]


def test_the_gguf_package_reads_the_file_as_llama_cpp_does(tmp_path) -> None:
    reader = GGUFReader(written(tmp_path / "i.gguf"))
    assert [tensor.name for tensor in reader.tensors] == [f"{NAME}.in_sum2", f"{NAME}.counts"]
    assert [tuple(tensor.shape) for tensor in reader.tensors] == [(3, 2), (1, 2)]
    assert reader.tensors[0].data.tolist() == [[8.0, 2.0, 0.0], [9.0, 9.0, 9.0]]
    values = {name: field.contents() for name, field in reader.fields.items() if name.startswith(("imatrix", "gen"))}
    assert values == {
        "general.type": "imatrix",
        "imatrix.datasets": ["a text"],
        "imatrix.chunk_count": 3,
        "imatrix.chunk_size": 512,
    }


def test_the_older_format_is_read_with_and_without_its_end(tmp_path) -> None:
    path = tmp_path / "old.dat"
    body = struct.pack("<i", 2) + record(b"blk.0.attn_q.weight", 2, [4.0, 6.0]) + record(b"blk.1.x.weight", 0, [5.0])
    path.write_bytes(body)
    found = read_importance(path)
    assert {name: values.tolist() for name, values in found.means.items()} == {
        "blk.0.attn_q.weight": [2.0, 3.0],
        "blk.1.x.weight": [5.0],
    }
    path.write_bytes(body + struct.pack("<ii", 7, 4) + b"wiki")
    found = read_importance(path)
    assert (found.chunks, found.source) == (7, "wiki")


def test_every_cut_of_a_file_is_told_and_none_reads_beyond_it(tmp_path) -> None:
    whole = written(tmp_path / "i.gguf").read_bytes()
    path = tmp_path / "cut.gguf"
    for length in [*range(0, 300, 7), len(whole) - 33]:
        path.write_bytes(whole[:length])
        with pytest.raises(EngineError) as caught:
            read_importance(path)
        assert caught.value.code is ErrorCode.IMPORTANCE_UNREADABLE
        assert caught.value.parameters["detail"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw.replace(b"imatrix", b"mmproj\0", 1),  # another kind of file
        lambda raw: raw.replace(b".counts", b".count_", 1),  # sums without counts
        lambda raw: raw.replace(struct.pack("<f", 8.0), struct.pack("<f", float("nan")), 1),
        lambda raw: raw.replace(struct.pack("<f", 8.0), struct.pack("<f", -8.0), 1),
        lambda raw: raw[:8] + struct.pack("<Q", 2**60) + raw[16:],  # more tensors than can be
        lambda raw: raw[:4] + struct.pack("<I", 99) + raw[8:],
    ],
)
def test_a_damaged_file_is_said_to_be_one(tmp_path, damage) -> None:
    path = written(tmp_path / "i.gguf")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(EngineError) as caught:
        read_importance(path)
    assert caught.value.code is ErrorCode.IMPORTANCE_UNREADABLE


def test_a_file_that_is_not_there_and_a_folder_that_is_not_there_are_told(tmp_path) -> None:
    with pytest.raises(EngineError) as caught:
        read_importance(tmp_path / "none.gguf")
    assert caught.value.code is ErrorCode.IMPORTANCE_UNREADABLE
    with pytest.raises(EngineError) as caught:
        written(tmp_path / "none" / "i.gguf")
    assert caught.value.code is ErrorCode.WRITE_FAILED
