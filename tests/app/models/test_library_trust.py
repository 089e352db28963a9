"""Whether a file is still the one that the library came to know."""

from __future__ import annotations

import hashlib
import os

import pytest

from app.models import library_rows, library_trust
from app.models.identity import provisional_identity
from app.models.library_rows import Trust
from app.models.library_state import single_entry
from app.models.library_store import LibraryStore
from app.models.library_trust import Change
from app.models.library_words import LibraryError
from app.models.source_candidate import stamp_of
from tests.helpers.libraries import found_model

MIB = 2**20


@pytest.fixture
def store(tmp_path):
    opened = LibraryStore(tmp_path / "library.sqlite3")
    yield opened
    opened.close()


@pytest.fixture
def model(tmp_path, store):
    """A listed model of 3 MiB in two parts, and its entry."""
    parts = [tmp_path / f"part-{number}.gguf" for number in (1, 2)]
    for part in parts:
        part.write_bytes(os.urandom(3 * MIB // 2))
    found = found_model(
        path=str(parts[0]),
        parts=tuple(map(str, parts)),
        size_bytes=3 * MIB,
        stamp=stamp_of(parts),
        identity=provisional_identity(parts),
    )
    store.write(lambda connection: library_rows.put_found(connection, found, "/", 1))
    return single_entry(found, None, None)


def overwrite(path, offset, data=b"\x01\x02\x03"):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def trust(store, entry):
    return store.read(lambda connection: library_rows.read_trust(connection, entry.path), None)


def sha256(entry):
    digests = [hashlib.sha256(part.read_bytes()).digest() for part in entry.parts]
    return hashlib.sha256(b"".join(digests)).hexdigest()


def test_a_file_that_looks_the_same_is_not_read(store, model, monkeypatch):
    for name in ("provisional_identity", "full_identity"):
        monkeypatch.setattr(library_trust, name, None)
    assert library_trust.change_of(store, model) is Change.UNCHANGED
    assert library_trust.looks_changed(store, model) is False


def test_a_touched_file_is_the_same_and_not_looked_at_twice(store, model):
    os.utime(model.parts[1], ns=(5, 5))
    assert library_trust.looks_changed(store, model) is True
    assert library_trust.change_of(store, model) is Change.UNCHANGED
    assert library_trust.looks_changed(store, model) is False


def test_without_a_hash_head_and_tail_decide(store, model):
    overwrite(model.parts[0], 10)
    assert library_trust.change_of(store, model) is Change.CHANGED
    assert library_trust.change_of(store, model) is Change.CHANGED


def test_with_a_hash_a_flipped_bit_in_the_middle_is_seen(store, model):
    assert library_trust.hash_files(store, model, None, None) == sha256(model)
    assert trust(store, model) == Trust(stamp_of(model.parts), f"sha256:{sha256(model)}")
    os.utime(model.parts[1], ns=(5, 5))
    assert library_trust.change_of(store, model) is Change.UNCHANGED
    overwrite(model.parts[1], 5)
    assert library_trust.change_of(store, model) is Change.CHANGED


def test_what_the_person_accepts_is_trusted_from_then_on(store, model):
    overwrite(model.parts[0], 10)
    library_trust.accept(store, model)
    assert library_trust.change_of(store, model) is Change.UNCHANGED
    model.parts[0].unlink()
    with pytest.raises(LibraryError, match="could not be read"):
        library_trust.accept(store, model)


def test_a_missing_part_is_gone_and_nothing_is_known_of_strangers(store, model, tmp_path):
    stranger = single_entry(found_model(path=str(model.parts[1]), parts=()), None, None)
    assert library_trust.change_of(store, stranger) is Change.UNKNOWN
    model.parts[1].unlink()
    assert library_trust.change_of(store, model) is Change.GONE
    assert library_trust.looks_changed(store, model) is False


def test_a_file_that_became_something_else_is_never_opened(store, model):
    model.parts[0].unlink()
    os.mkfifo(model.parts[0])
    assert library_trust.change_of(store, model) is Change.UNKNOWN


def test_a_hash_that_contradicts_a_claim_makes_the_next_load_ask(store, model):
    claimed = "c" * 64
    store.write(
        lambda connection: library_rows.set_trust(
            connection, model.path, Trust(stamp_of(model.parts), f"sha256:{claimed}")
        )
    )
    assert library_trust.change_of(store, model) is Change.UNCHANGED
    library_trust.hash_files(store, model, None, None)
    assert library_trust.looks_changed(store, model) is True
    assert library_trust.change_of(store, model) is Change.CHANGED


def test_a_file_that_changes_while_it_is_read_gets_no_hash(store, model):
    def meddle(_done, _total):
        os.utime(model.parts[0], ns=(9, 9))

    with pytest.raises(LibraryError, match="changed while it was read"):
        library_trust.hash_files(store, model, meddle, None)
    assert trust(store, model).identity.startswith("provisional:")


def test_a_file_that_cannot_be_read_says_so(store, model):
    model.parts[0].write_bytes(b"")
    with pytest.raises(LibraryError, match=r"Model-1 could not be read\. The file is empty\."):
        library_trust.hash_files(store, model, None, None)
