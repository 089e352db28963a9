"""Headers over HTTP from a local server: few requests, few megabytes, the same facts as from the file."""

from __future__ import annotations

import functools
import random
from pathlib import Path

import pytest

from app.models.byte_source import HeaderError
from app.models.gguf_header import read_header
from app.models.http_faults import RemoteError, RemoteFault
from app.models.http_source import HttpLimits
from app.models.remote_header import read_remote_header, read_remote_tensors
from tests.helpers import gguf_files, safetensors_files
from tests.helpers.gguf_files import ARRAY, I32, STRING, U32, TinyGguf, entry, string_entry, tensor, text, u32, u64
from tests.helpers.range_server import RangeServer

MIB = 2**20
Q4_K, F32 = 12, 0


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' servers are this machine; a proxy of the environment has no part in it."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def words(draw: random.Random, count: int, least: int, most: int) -> bytes:
    return b"".join(text(bytes(draw.randint(least, most))) for _ in range(count))


@functools.cache
def llama_70b() -> tuple[bytes, int]:
    """Return the header of a Llama 3 70B in Q4_K with its vocabulary of 8 MiB, and the file's size."""
    draw = random.Random(70)
    shapes: list[tuple[str, list[int], int]] = [
        ("output.weight", [8_192, 128_256], Q4_K),
        ("token_embd.weight", [8_192, 128_256], Q4_K),
        ("output_norm.weight", [8_192], F32),
    ]
    for block in range(80):
        shapes += [(f"blk.{block}.{name}.weight", dims, Q4_K if len(dims) > 1 else F32) for name, dims in LAYER]
    infos, offset = [], 0
    for name, dims, number in shapes:
        infos.append(tensor(name, dims, number, offset))
        rows = dims[1] if len(dims) > 1 else 1
        offset += dims[0] * 4 if number == F32 else dims[0] // 256 * 144 * rows
    metadata = (
        string_entry("general.name", "Llama 3 70B"),
        entry("llama.block_count", U32, u32(80)),
        entry("llama.context_length", U32, u32(8_192)),
        entry("tokenizer.ggml.tokens", ARRAY, u32(STRING) + u64(128_256) + words(draw, 128_256, 2, 12)),
        entry("tokenizer.ggml.token_type", ARRAY, u32(I32) + u64(128_256) + bytes(4 * 128_256)),
        entry("tokenizer.ggml.merges", ARRAY, u32(STRING) + u64(280_147) + words(draw, 280_147, 6, 16)),
        string_entry("tokenizer.chat_template", "{% for m in messages %}{{ m }}{% endfor %}"),
    )
    head = TinyGguf(metadata=metadata, tensors=infos, data_bytes=0).to_bytes()
    return head, len(head) + offset


LAYER = (
    ("attn_norm", [8_192]),
    ("attn_q", [8_192, 8_192]),
    ("attn_k", [8_192, 1_024]),
    ("attn_v", [8_192, 1_024]),
    ("attn_output", [8_192, 8_192]),
    ("ffn_norm", [8_192]),
    ("ffn_gate", [8_192, 28_672]),
    ("ffn_up", [8_192, 28_672]),
    ("ffn_down", [28_672, 8_192]),
)


def test_the_header_of_a_70b_takes_3_requests_and_16_mib_at_most() -> None:
    head, size_bytes = llama_70b()
    assert 7_700_000 < len(head) < 9_000_000  # the real one takes 7.8 MB
    with RangeServer(head, size_bytes) as server:
        remote = read_remote_header(server.url)
        assert len(server.script.requests) == remote.requests == 2
        assert server.script.sent_bytes == remote.read_bytes == 10 * MIB
    assert (remote.size_bytes, remote.header.file_bytes) == (size_bytes, size_bytes)
    assert (remote.header.name, remote.header.block_count, len(remote.header.tensors)) == ("Llama 3 70B", 80, 723)
    assert remote.header.parameters_count == 70_553_706_496
    assert size_bytes > 39 * 10**9


def test_the_same_through_a_redirect_stays_within_3_requests() -> None:
    head, size_bytes = llama_70b()
    with RangeServer(head, size_bytes) as cdn, RangeServer(b"", 1) as hub:
        hub.script.locations = [cdn.url]
        remote = read_remote_header(hub.url, {"Authorization": "Bearer secret"})
        assert (remote.requests, remote.final_url) == (3, cdn.url)
        assert all("authorization" not in headers for _path, headers in cdn.script.requests)


def test_a_small_header_takes_one_request_and_says_what_the_file_says(starter_model: Path) -> None:
    with RangeServer(gguf_files.header_of(starter_model), starter_model.stat().st_size) as server:
        remote = read_remote_header(server.url)
    assert (remote.requests, remote.read_bytes) == (1, 2 * MIB)
    assert remote.header == read_header(starter_model)


def test_a_server_without_ranges_gives_the_header_in_one_request(starter_model: Path) -> None:
    with RangeServer(gguf_files.header_of(starter_model), 40 * 2**30) as server:
        server.script.fault = "range_ignored"
        with pytest.raises(RemoteError) as caught:  # the rest of this file is zeros, not weights
            read_remote_header(server.url, limits=HttpLimits(total_bytes=MIB))
        assert caught.value.fault is RemoteFault.TOO_LARGE
        server.script.size_bytes = starter_model.stat().st_size
        remote = read_remote_header(server.url)
    assert remote.requests == 1
    assert remote.read_bytes <= 4 * MIB
    assert remote.header == read_header(starter_model)


def test_a_file_that_was_not_uploaded_whole_is_refused(starter_model: Path) -> None:
    header = gguf_files.header_of(starter_model)
    with RangeServer(header, 50_000_000) as server, pytest.raises(HeaderError, match="beyond the end of the file"):
        read_remote_header(server.url)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"<!DOCTYPE html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"PK\3\4", "ZIP archive"),
        (b"GGUF\3\0\0\0" + b"\xff" * 16, "claims 18,446,744,073,709,551,615 tensors"),
    ],
)
def test_a_stranger_on_a_server_is_named_for_what_it_is(head: bytes, words: str) -> None:
    with RangeServer(head, 2**30) as server, pytest.raises(HeaderError, match=words):
        read_remote_header(server.url)


def test_the_first_part_of_a_set_is_read_and_a_later_one_refused() -> None:
    first, second = gguf_files.split_model(2)
    with RangeServer(first.to_bytes()) as server:
        assert read_remote_header(server.url).header.number("split.count") == 2
    with RangeServer(second.to_bytes()) as server, pytest.raises(HeaderError, match="open the first part"):
        read_remote_header(server.url)


def test_a_fault_of_the_server_in_the_middle_reaches_the_caller() -> None:
    head, size_bytes = llama_70b()
    with RangeServer(head, size_bytes) as server:
        server.script.fault = "new_version"
        with pytest.raises(RemoteError) as caught:
            read_remote_header(server.url)
    assert caught.value.fault is RemoteFault.CHANGED


def test_the_tensors_of_a_safetensors_file_are_read_the_same_way() -> None:
    whole = safetensors_files.file_bytes({"a": ("BF16", [4, 2])}, hole=True)
    with RangeServer(whole, len(whole) + 16) as server:
        remote = read_remote_tensors(server.url)
    assert [(one.name, one.dtype, one.dims, one.size_bytes) for one in remote.header] == [("a", "BF16", (4, 2), 16)]
    assert (remote.requests, remote.size_bytes) == (1, len(whole) + 16)
