"""What a file is, by its bytes."""

from __future__ import annotations

import hashlib
import os

import pytest

from app.models.bounded_file import HeaderError
from app.models.identity import FULL, PROVISIONAL, full_identity, provisional_identity, weight_files
from backends.errors import ErrorCode

MIB = 2**20


def write(path, data):
    path.write_bytes(data)
    return path


def expected(*files):
    """Return the provisional identity the obvious way."""
    size = sum(len(data) for data in files).to_bytes(16, "little")
    return PROVISIONAL + hashlib.sha256(size + files[0][:MIB] + files[-1][-MIB:]).hexdigest()


@pytest.mark.parametrize("size", [1, 5, MIB - 1, MIB, MIB + 1, 3 * MIB + 7])
def test_a_provisional_identity_is_size_head_and_tail(tmp_path, size):
    data = os.urandom(size)
    assert provisional_identity([write(tmp_path / "a.gguf", data)]) == expected(data)


def test_a_copy_under_another_name_is_the_same_and_another_model_is_not(tmp_path):
    data = os.urandom(3 * MIB)
    one, copy = write(tmp_path / "a.gguf", data), write(tmp_path / "b.gguf", data)
    head = write(tmp_path / "c.gguf", b"x" + data[1:])
    tail = write(tmp_path / "d.gguf", data[:-1] + b"x")
    longer = write(tmp_path / "e.gguf", data + b"x")
    assert provisional_identity([one]) == provisional_identity([copy])
    assert len({provisional_identity([path]) for path in (one, head, tail, longer)}) == 4


def test_what_differs_in_the_middle_only_a_full_identity_tells(tmp_path):
    data = os.urandom(3 * MIB)
    one = write(tmp_path / "a.gguf", data)
    other = write(tmp_path / "b.gguf", data[: 3 * MIB // 2] + b"x" + data[3 * MIB // 2 + 1 :])
    assert provisional_identity([one]) == provisional_identity([other])
    assert full_identity([one]) != full_identity([other])


def test_the_parts_of_a_set_count_together(tmp_path):
    parts = [os.urandom(2 * MIB) for _ in range(3)]
    paths = [write(tmp_path / f"{number}.gguf", data) for number, data in enumerate(parts)]
    assert provisional_identity(paths) == expected(*parts)
    digests = b"".join(hashlib.sha256(data).digest() for data in parts)
    assert full_identity(paths) == FULL + hashlib.sha256(digests).hexdigest()


def test_the_full_identity_of_one_file_is_its_sha256(tmp_path):
    data = os.urandom(5 * MIB + 3)
    seen = []
    path = write(tmp_path / "a.gguf", data)
    assert full_identity([path], lambda done: seen.append(done) or True) == FULL + hashlib.sha256(data).hexdigest()
    assert seen == [MIB, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB, 5 * MIB + 3]


def test_it_can_be_stopped(tmp_path):
    path = write(tmp_path / "a.gguf", bytes(5 * MIB))
    seen = []

    def go_on(done):
        seen.append(done)
        return done < 2 * MIB

    assert full_identity([path], go_on) is None
    assert seen == [MIB, 2 * MIB]


@pytest.mark.parametrize("identify", [provisional_identity, full_identity])
def test_only_regular_files_are_read(tmp_path, identify):
    os.mkfifo(tmp_path / "pipe")
    for path, code in (
        (tmp_path / "none.gguf", ErrorCode.FILE_MISSING),
        (tmp_path / "pipe", ErrorCode.NOT_A_MODEL),
        (tmp_path, ErrorCode.NOT_A_MODEL),
        (write(tmp_path / "empty.gguf", b""), ErrorCode.NOT_A_MODEL),
        (tmp_path / "a\0b", ErrorCode.FILE_UNREADABLE),
    ):
        with pytest.raises(HeaderError) as caught:
            identify([path])
        assert caught.value.code is code


def test_a_link_is_what_it_leads_to(tmp_path):
    path = write(tmp_path / "a.gguf", os.urandom(MIB))
    (tmp_path / "link.gguf").symlink_to(path)
    assert provisional_identity([tmp_path / "link.gguf"]) == provisional_identity([path])


def test_what_describes_a_model_is_no_part_of_its_identity(tmp_path):
    parts = tuple(tmp_path / name for name in ("config.json", "model.SAFETENSORS", "tokenizer.json"))
    assert weight_files(parts) == (parts[1],)
    assert weight_files(parts[:1]) == parts[:1]
