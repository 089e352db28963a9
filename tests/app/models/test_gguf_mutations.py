"""A thousand mutations of the real starter model against the pre-check, and the helper that makes them (C-05)."""

from __future__ import annotations

import contextlib
import filecmp
import random
from collections import Counter
from pathlib import Path

import pytest

from app.models.gguf_header import HeaderError, read_header
from tests.helpers import gguf_files
from tests.helpers.gguf_files import STRING, TinyGguf, array_entry, text, u32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for one file."""
    return tmp_path / "model.gguf"


def refused_by_kind(starter_model: Path, target: Path, seeds: range) -> Counter[str]:
    """Read header-only mutations of the starter model; anything but HeaderError ends the test."""
    header, file_bytes = gguf_files.header_of(starter_model), starter_model.stat().st_size
    refused: Counter[str] = Counter()
    for seed in seeds:
        changed = gguf_files.mutation(header, file_bytes, seed)
        gguf_files.write_header_only(header, file_bytes, target)
        gguf_files.apply_mutation(target, changed)
        try:
            read_header(target)
        except HeaderError:
            refused[changed.kind] += 1
    return refused


def test_most_of_a_thousand_mutated_models_are_refused(starter_model: Path, path: Path) -> None:
    refused = refused_by_kind(starter_model, path, range(1_000))
    assert refused.total() >= 850  # 906 when this was written; trust.md asks for 600
    assert all(refused[kind] == 125 for kind in ("truncated", "a moved tensor", "a huge count or dimension"))


@pytest.mark.full
def test_most_of_five_thousand_more_are_refused(starter_model: Path, path: Path) -> None:
    assert refused_by_kind(starter_model, path, range(1_000, 6_000)).total() >= 4_250


def test_random_bytes_behind_the_magic_are_refused(path: Path) -> None:
    # A false alarm needs two counts of 8 random bytes under 2^16: below 2^-90 for all files together.
    draw = random.Random(11)
    for _ in range(200):
        path.write_bytes(b"GGUF" + u32(3) + draw.randbytes(draw.randrange(1, 2_000)))
        with pytest.raises(HeaderError):
            read_header(path)


def test_a_tiny_file_with_any_byte_changed_never_breaks_the_reader(path: Path) -> None:
    whole = TinyGguf(metadata=(array_entry("a", STRING, 2, text("x") + text("y")),)).to_bytes()
    for place in range(len(whole) - 128):
        for new in (0, 0x7F, 0x80, 0xFF):
            path.write_bytes(whole[:place] + bytes([new]) + whole[place + 1 :])
            with contextlib.suppress(HeaderError):
                read_header(path)


def test_a_copy_takes_mutations_and_gives_each_back(starter_model: Path, path: Path) -> None:
    copy = gguf_files.ModelCopy(starter_model, path)
    for seed, kind in enumerate(gguf_files.KINDS):
        assert copy.mutate(seed).startswith(kind)
        assert not filecmp.cmp(path, starter_model, shallow=False)
    copy.restore()
    assert filecmp.cmp(path, starter_model, shallow=False)


def test_a_header_mutated_in_memory_is_the_one_of_the_copy(starter_model: Path, path: Path) -> None:
    header = gguf_files.header_of(starter_model)
    gguf_files.mutate_model(starter_model, path, seed=9)
    with path.open("rb") as file:
        assert file.read(len(header)) == gguf_files.mutated_header(header, 9)
