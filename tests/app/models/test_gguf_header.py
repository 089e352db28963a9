"""The GGUF pre-check of trust.md S-01 and S-02, check by check; its mutations are in test_gguf_mutations.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.models import gguf_header
from app.models.gguf_header import ArrayNote, GgufHeader, HeaderError, TensorInfo, read_header
from backends.errors import ErrorCode
from tests.helpers import gguf_files
from tests.helpers.gguf_files import (
    ARRAY,
    BOOL,
    F32,
    I32,
    STRING,
    TYPE_F32,
    TYPE_Q4_0,
    TYPE_Q4_K,
    U8,
    U16,
    U32,
    U64,
    TinyGguf,
    array_entry,
    entry,
    string_entry,
    tensor,
    text,
    u32,
    u64,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for one file."""
    return tmp_path / "model.gguf"


def header_of(path: Path, model: TinyGguf) -> GgufHeader:
    return read_header(model.write(path))


def refusal(path: Path, model: TinyGguf | bytes) -> HeaderError:
    path.write_bytes(model if isinstance(model, bytes) else model.to_bytes())
    with pytest.raises(HeaderError) as caught:
        read_header(path)
    assert str(caught.value).endswith(".")
    return caught.value


# ------------------------------------------------------------------------------------------ honest files


def test_the_starter_model_says_what_it_is(starter_model: Path) -> None:
    header = read_header(starter_model)
    assert (header.version, header.alignment, header.data_offset) == (3, 32, 1_785_664)
    assert (header.architecture, header.quantization) == ("llama", "Q4_1")
    assert header.name == "Smollm2 135M 8k Lc100K Mix1 Ep2"
    assert (header.context_length, header.block_count) == (8_192, 30)
    assert header.parameters_count == 134_515_008
    assert (header.tensor_bytes, header.file_bytes) == (96_576_768, 98_362_432)
    assert header.tensors[0] == TensorInfo("token_embd.weight", (576, 49_152), "Q8_0", 0, 30_081_024)
    assert len(header.tensors) == 272
    assert header.chat_template.startswith("{% for message in messages %}")


def test_the_vocabulary_is_noted_and_not_kept(starter_model: Path) -> None:
    metadata = read_header(starter_model).metadata
    assert metadata["tokenizer.ggml.tokens"] == ArrayNote("string", 49_152)
    assert metadata["tokenizer.ggml.merges"] == ArrayNote("string", 48_900)
    assert metadata["tokenizer.ggml.token_type"] == ArrayNote("int32", 49_152)


def test_the_header_ends_where_the_obvious_reader_says(starter_model: Path) -> None:
    layout = gguf_files.layout_of(gguf_files.header_of(starter_model))
    header = read_header(starter_model)
    assert layout.data_offset == header.data_offset
    assert len(layout.offsets) == len(header.tensors)


def test_every_type_of_value_is_read(path: Path) -> None:
    values = (
        entry("a", U8, b"\xff"),
        entry("b", U16, b"\xff\xff"),
        entry("c", I32, b"\xff\xff\xff\xff"),
        entry("d", F32, b"\0\0\x80\x3f"),
        entry("e", BOOL, b"\1"),
        entry("f", U64, u64(2**64 - 1)),
        string_entry("g", "Grüße"),
        array_entry("h", U32, 3, u32(1) + u32(2) + u32(3)),
        array_entry("i", BOOL, 2, b"\0\1"),
        array_entry("j", STRING, 2, text("x") + text("y")),
        array_entry("k", U8, 0, b""),
    )
    metadata = header_of(path, TinyGguf(metadata=values)).metadata
    assert dict(metadata) == {
        "general.architecture": "llama",
        "a": 255,
        "b": 65_535,
        "c": -1,
        "d": 1.0,
        "e": True,
        "f": 2**64 - 1,
        "g": "Grüße",
        "h": (1, 2, 3),
        "i": (False, True),
        "j": ArrayNote("string", 2),
        "k": (),
    }


def test_long_arrays_and_texts_are_noted_with_their_length(path: Path) -> None:
    values = (
        array_entry("just", U8, 4_096, bytes(4_096)),
        array_entry("over", U8, 4_097, bytes(4_097)),
        array_entry("bools", BOOL, 70_000, b"\1" * 70_000),
        string_entry("essay", b"x" * (4 * 2**20 + 1)),
        entry("last", U8, b"\7"),
    )
    metadata = header_of(path, TinyGguf(metadata=values)).metadata
    assert metadata["just"] == (0,) * 4_096
    assert metadata["over"] == ArrayNote("uint8", 4_097)
    assert metadata["bools"] == ArrayNote("bool", 70_000)
    assert metadata["essay"] == ArrayNote("text", 4 * 2**20 + 1)
    assert metadata["last"] == 7


def test_what_is_kept_in_all_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_header, "KEPT_TOTAL_BYTES", 10)
    values = (string_entry("a", "123"), array_entry("b", U8, 3, b"123"), string_entry("c", "12345"))
    metadata = header_of(path, TinyGguf(metadata=values, architecture=string_entry("general.architecture", "t5")))
    assert list(metadata.metadata.values()) == ["t5", "123", (49, 50, 51), ArrayNote("text", 5)]


def test_version_2_and_another_alignment_are_read(path: Path) -> None:
    tensors = (tensor("a", [3], TYPE_F32, 0), tensor("b", [3], TYPE_F32, 64))
    model = TinyGguf(version=2, metadata=(entry("general.alignment", U32, u32(64)),), tensors=tensors, data_bytes=256)
    header = header_of(path, model)
    assert (header.version, header.alignment) == (2, 64)
    assert header.data_offset % 64 == 0
    assert [one.offset for one in header.tensors] == [0, 64]


@pytest.mark.parametrize(
    ("metadata", "label"),
    [
        ((entry("general.file_type", U32, u32(15)),), "Q4_K_M"),
        ((entry("general.file_type", U32, u32(3)),), "Q4_1"),
        ((entry("general.file_type", U32, u32(1_024 + 7)),), "Q8_0"),
        ((entry("general.file_type", U32, u32(999)),), "Q4_0"),
        ((string_entry("general.file_type", "3"),), "Q4_0"),
        ((), "Q4_0"),
    ],
)
def test_the_label_is_the_files_own_else_the_type_of_most_weights(
    path: Path, metadata: tuple[bytes, ...], label: str
) -> None:
    tensors = (
        tensor("a", [8], TYPE_F32, 0),
        tensor("b", [8], TYPE_F32, 32),
        tensor("c", [32], TYPE_Q4_0, 64),
    )
    assert header_of(path, TinyGguf(metadata=metadata, tensors=tensors)).quantization == label


def test_facts_that_are_missing_or_of_a_wrong_type_are_empty(path: Path) -> None:
    values = (
        string_entry("llama.context_length", "many"),
        entry("general.name", U8, b"\1"),
        entry("tokenizer.chat_template", BOOL, b"\1"),
    )
    header = header_of(path, TinyGguf(metadata=values))
    assert (header.context_length, header.block_count, header.name, header.chat_template) == (0, 0, "", "")


def test_the_first_part_of_a_split_model_may_hold_no_tensors(path: Path) -> None:
    model = TinyGguf(metadata=(entry("split.count", U16, b"\3\0"),), tensors=(), data_bytes=0)
    assert header_of(path, model).metadata["split.count"] == 3


# ------------------------------------------------------------------------------------------ no GGUF at all


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"PK\3\4 and more", "ZIP archive or a PyTorch file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"tjgg\1\0\0\0", "format before GGUF"),
        (bytes(4_096), "zeros only"),
        (b"GGU", "not a GGUF model file"),
        (b"\x89PNG\r\n\x1a\n", "not a GGUF model file"),
        (b"G", "not a GGUF model file"),
    ],
)
def test_other_files_are_named_for_what_they_are(path: Path, head: bytes, words: str) -> None:
    error = refusal(path, head)
    assert words in str(error)
    assert (error.code, error.is_gguf) == (ErrorCode.NOT_A_MODEL, False)


def test_missing_files_folders_and_fifos_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.gguf")
    for name, words in (("none.gguf", "no such file"), (".", "folder"), ("fifo.gguf", "a pipe")):
        with pytest.raises(HeaderError, match=words):
            read_header(tmp_path / name)


# ------------------------------------------------------------------------------------------ hostile headers


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (TinyGguf(version=1), "version 1"),
        (TinyGguf(version=3 << 24), "big-endian"),
        (TinyGguf(version=0), "version 0; only 2 and 3"),
        (TinyGguf(version=4), "version 4; only 2 and 3"),
        (TinyGguf(num_tensors=65_537), "claims 65,537 tensors; at most 65,536"),
        (TinyGguf(num_metadata=2**63), "metadata entries; at most 65,536"),
        (TinyGguf(tensors=(), data_bytes=0), "no weights"),
        (TinyGguf(architecture=b""), "architecture in a plain word"),
        (TinyGguf(architecture=string_entry("general.architecture", "../x")), "architecture in a plain word"),
        (TinyGguf(architecture=string_entry("general.architecture", "x" * 65)), "architecture in a plain word"),
        (TinyGguf(architecture=entry("general.architecture", U8, b"\1")), "architecture in a plain word"),
    ],
)
def test_a_hostile_beginning_is_refused(path: Path, model: TinyGguf, words: str) -> None:
    error = refusal(path, model)
    assert words in str(error)
    assert (error.code, error.is_gguf) == (ErrorCode.HEADER_INVALID, True)


@pytest.mark.parametrize(
    ("hostile", "words"),
    [
        (entry("", U8, b"\1"), "key is empty"),
        (entry(b"\xff\xfe", U8, b"\1"), "key is not valid text"),
        (entry("ключ", U8, b"\1"), "not plain text"),
        (entry("a\nb", U8, b"\1"), "not plain text"),
        (entry("x" * 65_536, U8, b"\1"), "key claims 65,536 bytes"),
        (u64(2**64 - 1), "key claims 18,446,744,073,709,551,615 bytes"),
        (entry("general.architecture", U8, b"\1"), "'general.architecture' stands twice"),
        (entry("a", 13, b""), "unknown type 13"),
        (entry("a", 2**32 - 1, b""), "unknown type 4,294,967,295"),
        (entry("a", BOOL, b"\2"), "yes-or-no value of 'a' is neither"),
        (array_entry("a", BOOL, 2, b"\1\xff"), "yes-or-no value of 'a' is neither"),
        (array_entry("a", BOOL, 5_000, bytes(4_999) + b"\2"), "yes-or-no value of 'a' is neither"),
        (entry("a", STRING, u64(64 * 2**20 + 1)), "claims 67,108,865 bytes; at most 67,108,864"),
        (entry("a", STRING, u64(64 * 2**20)), "ends in the middle"),
        (entry("a", STRING, u64(1_000_000)), "ends in the middle"),
        (array_entry("a", ARRAY, 1, u32(U8) + u64(1) + b"\1"), "holds arrays"),
        (array_entry("a", 99, 1, b""), "unknown type 99"),
        (array_entry("a", U8, 2**40, b""), "claims 1,099,511,627,776 elements"),
        (array_entry("a", U64, 2**61, b""), "more than can be there"),
        (array_entry("a", STRING, 1_000, b""), "claims 1,000 texts, more than can be there"),
        (array_entry("a", STRING, 2**64 - 1, b""), "more than can be there"),
        (array_entry("a", STRING, 2, text("x") + u64(2**63)), "text in the header claims"),
        (entry("general.alignment", U32, u32(48)), "power of two"),
        (entry("general.alignment", U32, u32(0)), "power of two"),
        (entry("general.alignment", U32, u32(4)), "power of two"),
        (entry("general.alignment", U32, u32(2**21)), "power of two"),
        (string_entry("general.alignment", "32"), "power of two"),
        (entry("llama.block_count", U32, u32(513)), "layers is not between 1 and 512"),
        (entry("llama.block_count", U32, u32(0)), "layers is not between 1 and 512"),
        (entry("llama.block_count", F32, u32(0)), "layers is not between 1 and 512"),
    ],
)
def test_hostile_metadata_is_refused(path: Path, hostile: bytes, words: str) -> None:
    error = refusal(path, TinyGguf(metadata=(hostile,)))
    assert words in str(error)
    assert error.is_gguf


@pytest.mark.parametrize("key", ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"])
def test_fewer_facts_than_tokens_are_refused(path: Path, key: str) -> None:
    # llama.cpp reads such an array by the number of tokens.
    tokens = array_entry("tokenizer.ggml.tokens", STRING, 3, text("a") * 3)
    short, enough = array_entry(key, I32, 2, bytes(8)), array_entry(key, I32, 3, bytes(12))
    assert "3 tokens and only 2 entries" in str(refusal(path, TinyGguf(metadata=(tokens, short))))
    assert header_of(path, TinyGguf(metadata=(tokens, enough))).metadata[key] == (0, 0, 0)


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ((tensor("", [8, 4]),), "name of a tensor is empty"),
        ((tensor("a\tb", [8, 4]),), "not plain text"),
        ((tensor(b"\xc3\x28", [8, 4]),), "not valid text"),
        ((tensor("x" * 64, [8, 4]),), "claims 64 bytes; at most 63"),
        ((tensor("a", []),), "claims 0 dimensions; 1 to 4"),
        ((tensor("a", [1] * 5),), "claims 5 dimensions; 1 to 4"),
        ((tensor("a", [0]),), "impossible shape"),
        ((tensor("a", [2**32, 2**31]),), "impossible shape"),
        ((tensor("a", [2**63, 2, 2**63, 2]),), "impossible shape"),
        ((tensor("a", [32], 4),), "unknown type 4"),
        ((tensor("a", [32], 43),), "unknown type 43"),
        ((tensor("a", [32], 2**32 - 1),), "unknown type 4,294,967,295"),
        ((tensor("a", [33], TYPE_Q4_0),), "no whole blocks of Q4_0"),
        ((tensor("a", [128, 2], TYPE_Q4_K),), "no whole blocks of Q4_K"),
        ((tensor("a", [33]),), "beyond the end of the file"),
        ((tensor("a", [2**40]),), "beyond the end of the file"),
        ((tensor("a", [8], TYPE_F32, 128),), "beyond the end of the file"),
        ((tensor("a", [8], TYPE_F32, 2**64 - 32),), "beyond the end of the file"),
        ((tensor("a", [8], TYPE_F32, 8),), "multiple of 32 bytes"),
        ((tensor("a", [8], TYPE_F32, 32),), "gap in front"),
        ((tensor("a", [16]), tensor("b", [8], TYPE_F32, 32)), "'b' lies upon the one before it"),
        ((tensor("a", [8]), tensor("b", [8], TYPE_F32, 0)), "'b' lies upon the one before it"),
        ((tensor("a", [8]), tensor("a", [8], TYPE_F32, 32)), "'a' stands twice"),
    ],
)
def test_hostile_tensors_are_refused(path: Path, tensors: tuple[bytes, ...], words: str) -> None:
    error = refusal(path, TinyGguf(tensors=tensors))
    assert words in str(error)
    assert error.is_gguf


def test_the_largest_allowed_name_and_shape_are_read(path: Path) -> None:
    header = header_of(path, TinyGguf(tensors=(tensor("x" * 63, [8, 2, 2, 1]),)))
    assert header.tensors == (TensorInfo("x" * 63, (8, 2, 2, 1), "F32", 0, 128),)


def test_a_file_cut_anywhere_is_refused(path: Path) -> None:
    whole = TinyGguf(metadata=(string_entry("general.name", "x"), array_entry("a", U32, 2, bytes(8)))).to_bytes()
    for length in range(1, len(whole)):
        refusal(path, whole[:length])
    path.write_bytes(whole)
    assert read_header(path).name == "x"


@pytest.mark.parametrize(
    ("limit", "value", "hostile", "words"),
    [
        ("MAX_TEXTS", 9, array_entry("a", STRING, 10, bytes(80)), "claims 10 texts"),
        ("MAX_HEADER_BYTES", 2**20, string_entry("a", bytes(2**20)), "larger than 1 MiB"),
        ("KEPT_KEYS_BYTES", 29, entry("x" * 10, U8, b"\1"), "keys are longer"),
    ],
)
def test_the_work_for_a_hostile_header_is_bounded(
    path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, hostile: bytes, words: str
) -> None:
    monkeypatch.setattr(gguf_header, limit, value)
    assert words in str(refusal(path, TinyGguf(metadata=(hostile,))))


def test_a_header_of_empty_texts_in_a_huge_file_comes_to_an_end(path: Path) -> None:
    # A hole of 1 TB reads as empty texts without end; only the budget stops it.
    head = b"GGUF" + u32(3) + u64(1) + u64(1) + array_entry("a", STRING, 100_000_000_000, b"")
    gguf_files.write_header_only(head, 2**40, path)
    with pytest.raises(HeaderError, match="claims 100,000,000,000 texts"):
        read_header(path)
