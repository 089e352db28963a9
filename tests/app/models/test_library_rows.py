"""The library's rows: models by their bytes, paths by their place, and what becomes of both."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.models import library_figures, library_rows
from app.models.library_packing import unpack
from app.models.library_rows import ModelRow, Trust
from app.models.library_schema import migrate
from tests.helpers.libraries import found_model

ROOT = "/models"
PATH = Path("/models/model-1.gguf")
OTHER = Path("/models/model-2.gguf")
SHA = "a" * 64


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("PRAGMA foreign_keys = ON")
        migrate(opened)
        yield opened


def put(connection, number=1, *, root=ROOT, scan=1, **fields):
    library_rows.put_found(connection, found_model(number, **fields), root, scan)


def model_at(connection, path=PATH):
    row = library_rows.read_path(connection, path)
    return library_rows.read_model(connection, row.model_id)


def paths(connection):
    return [(os.fsdecode(row.path), row.origin) for row in library_rows.read_paths(connection)]


# --------------------------------------------------------------------------------------------------------- paths


def test_what_is_put_is_read_back(connection):
    put(connection)
    (row,) = library_rows.read_paths(connection)
    assert unpack(row.record) == found_model()
    assert (row.path, row.origin, row.root, row.stamp, row.is_away) == (
        os.fsencode(PATH),
        "lm_studio",
        b"/models",
        "stamp-1",
        0,
    )
    assert library_rows.read_path(connection, OTHER) is None
    assert library_rows.read_stamps(connection) == {str(PATH): "stamp-1"}


def test_a_path_keeps_its_place_when_it_is_put_again(connection):
    put(connection, 1)
    put(connection, 2)
    put(connection, 1, name="Other")
    assert paths(connection) == [(str(PATH), "lm_studio"), (str(OTHER), "lm_studio")]
    assert unpack(library_rows.read_path(connection, PATH).record).name == "Other"


def test_what_was_imported_stays_imported(connection):
    put(connection, origin="imported", root="")
    put(connection, origin="lm_studio")
    library_rows.mark_seen(connection, [str(PATH)], "lm_studio", ROOT, 2)
    row = library_rows.read_path(connection, PATH)
    assert (row.origin, row.root) == ("imported", b"")


def test_a_record_that_makes_no_sense_is_read_again_by_the_next_scan(connection):
    put(connection)
    connection.execute("UPDATE paths SET record = x'00'")
    with pytest.raises(msgspec.DecodeError):
        unpack(library_rows.read_path(connection, PATH).record)
    assert library_rows.read_stamps(connection) == {}


def test_what_a_scan_did_not_see_in_a_whole_root_is_gone(connection):
    put(connection, 1)
    put(connection, 2)
    put(connection, 3, origin="imported")
    put(connection, 4, root="/other")
    library_rows.mark_seen(connection, [str(PATH)], "lm_studio", ROOT, 2)
    library_rows.drop_gone(connection, [ROOT], 2)
    assert [path for path, _origin in paths(connection)] == [str(PATH), "/models/model-3.gguf", "/models/model-4.gguf"]


def test_a_later_scan_of_another_process_is_not_undone(connection):
    put(connection, scan=7)
    put(connection, scan=6)
    library_rows.mark_seen(connection, [str(PATH)], "lm_studio", ROOT, 5)
    library_rows.drop_gone(connection, [ROOT], 7)
    assert len(paths(connection)) == 1


def test_a_path_that_turns_up_in_another_root_belongs_there(connection):
    put(connection, origin="added", root="/added")
    library_rows.mark_seen(connection, [str(PATH)], "folder", ROOT, 2)
    row = library_rows.read_path(connection, PATH)
    assert (row.origin, row.root) == ("folder", b"/models")


def test_a_root_that_is_away_keeps_its_paths_until_they_are_seen(connection):
    put(connection)
    library_rows.mark_away(connection, [ROOT])
    assert library_rows.read_path(connection, PATH).is_away == 1
    library_rows.mark_seen(connection, [str(PATH)], "lm_studio", ROOT, 2)
    assert library_rows.read_path(connection, PATH).is_away == 0


def test_what_lies_in_roots_of_no_more_interest_is_forgotten(connection):
    put(connection, 1)
    put(connection, 2, root="/other")
    put(connection, 3, root="/other", origin="imported")
    put(connection, 4, root="", origin="starter")
    library_rows.drop_foreign(connection, [ROOT])
    assert [path[-6] for path, _origin in paths(connection)] == ["1", "3", "4"]


def test_what_a_person_pointed_at_is_read_alone(connection):
    put(connection, 1)
    put(connection, 2, origin="imported")
    put(connection, 3, origin="starter")

    def read(paths):
        return [os.fsdecode(row.path)[-6] for row in library_rows.read_pointed_at(connection, paths)]

    assert read(None) == ["2", "3"]
    assert read([PATH, Path("/none"), OTHER]) == ["1", "2"]
    assert read([]) == []


def test_folders_come_in_the_order_they_were_added(connection):
    for number, folder in enumerate(("/b", "/a", "/b")):
        library_rows.put_folder(connection, Path(folder), float(number))
    assert library_rows.read_folders(connection) == [Path("/b"), Path("/a")]
    put(connection, 1, root="/b")
    assert library_rows.drop_folder(connection, Path("/b")) is True
    assert library_rows.drop_folder(connection, Path("/b")) is False
    assert (library_rows.read_folders(connection), paths(connection)) == ([Path("/a")], [])


# -------------------------------------------------------------------------------------------------------- models


def test_copies_are_one_model(connection):
    put(connection, 1)
    put(connection, 2, identity=found_model(1).identity)
    assert model_at(connection, PATH) == model_at(connection, OTHER)


def test_a_hash_keeps_what_was_said_and_takes_the_copies_along(connection):
    put(connection, 1)
    put(connection, 2, identity=found_model(1).identity)
    library_rows.set_words(connection, model_at(connection).model_id, note="mine", defaults='{"top_k": 1}')
    library_rows.set_hash(connection, PATH, SHA, found_model(1).identity)
    assert model_at(connection, PATH) == model_at(connection, OTHER)
    assert model_at(connection).identity == f"sha256:{SHA}"
    assert (model_at(connection).note, model_at(connection).defaults) == ("mine", '{"top_k": 1}')
    put(connection, 3, identity=found_model(1).identity)
    assert model_at(connection, Path("/models/model-3.gguf")) == model_at(connection)


def test_two_models_that_turn_out_to_be_one_keep_both_notes_and_all_figures(connection):
    put(connection, 1)
    put(connection, 2, identity=f"sha256:{SHA}")
    one, other = model_at(connection, PATH).model_id, model_at(connection, OTHER).model_id
    library_rows.set_words(connection, one, note="first", defaults='{"top_k": 1, "top_p": 0.5}')
    library_rows.set_words(connection, other, note="second", defaults='{"top_k": 2}')
    library_figures.put_load(connection, one, 0.0, "of the first")
    library_figures.put_load(connection, other, 0.0, "of the second")
    for model_id in (one, other):
        library_figures.put_probe(connection, model_id, "same params", str(model_id))
    library_figures.put_probe(connection, one, "own params", "1")
    library_rows.set_hash(connection, PATH, SHA, found_model(1).identity)
    (model,) = library_rows.read_models(connection).values()
    assert model == ModelRow(other, SHA, found_model(1).identity, "second\n\nfirst", '{"top_k": 2, "top_p": 0.5}')
    assert library_figures.read_loads(connection) == {other: ["of the second", "of the first"]}
    assert library_figures.read_probes(connection) == {other: {"same params": str(other), "own params": "1"}}


def test_files_that_differ_in_the_middle_are_told_apart_by_their_hash(connection):
    provisional = found_model(1).identity
    put(connection, 1)
    put(connection, 2, identity=provisional)
    library_rows.set_words(connection, model_at(connection).model_id, note="of which?")
    library_rows.set_hash(connection, PATH, SHA, provisional)
    library_rows.set_hash(connection, OTHER, "b" * 64, provisional)
    assert [model_at(connection, path).identity for path in (PATH, OTHER)] == [f"sha256:{SHA}", "sha256:" + "b" * 64]
    assert [model_at(connection, path).note for path in (PATH, OTHER)] == ["of which?"] * 2
    put(connection, 3, identity=provisional)  # one of the two, or a third: nobody can tell
    third = model_at(connection, Path("/models/model-3.gguf"))
    assert (third.identity, third.note) == (provisional, "")
    assert library_rows.find_model(connection, provisional) == third.model_id


def test_a_path_with_other_bytes_is_another_model_with_the_same_words(connection):
    put(connection, 1)
    before = model_at(connection)
    library_rows.set_words(connection, before.model_id, note="mine")
    put(connection, 1, identity=found_model(9).identity)
    after = model_at(connection)
    assert (after.model_id != before.model_id, after.note) == (True, "mine")
    library_rows.set_words(connection, after.model_id, note="new words")
    put(connection, 1)
    assert model_at(connection).note == "mine"
    put(connection, 1, identity=found_model(9).identity)
    assert model_at(connection).note == "new words"


def test_a_file_that_cannot_be_read_for_once_stays_the_model_it_was(connection):
    put(connection)
    before = model_at(connection)
    put(connection, identity="", stamp="", shape=None, fault="It cannot be read.")
    assert model_at(connection) == before


def test_models_that_lie_nowhere_are_kept_as_long_as_something_is_known_of_them(connection):
    for number in range(1, 5):
        put(connection, number)
    library_rows.set_words(connection, model_at(connection, PATH).model_id, note="mine")
    library_rows.set_words(connection, model_at(connection, OTHER).model_id, defaults='{"top_k": 1}')
    library_figures.put_load(connection, model_at(connection, Path("/models/model-3.gguf")).model_id, 0.0, "{}")
    for number in range(1, 5):
        library_rows.drop_path(connection, Path(f"/models/model-{number}.gguf"))
    library_rows.drop_empty_models(connection)
    assert len(library_rows.read_models(connection)) == 3


def test_a_hash_of_a_path_that_is_not_there_changes_nothing(connection):
    library_rows.set_hash(connection, PATH, SHA, "provisional:x")
    assert library_rows.read_models(connection) == {}


# --------------------------------------------------------------------------------------------------------- trust


def test_the_first_state_is_trusted_and_then_only_the_same_bytes(connection):
    put(connection)
    assert library_rows.read_trust(connection, PATH) == Trust("stamp-1", found_model(1).identity)
    put(connection, stamp="touched")
    assert library_rows.read_trust(connection, PATH) == Trust("touched", found_model(1).identity)
    put(connection, stamp="changed", identity=found_model(2).identity)
    assert library_rows.read_trust(connection, PATH) == Trust("touched", found_model(1).identity)
    assert library_rows.read_trust(connection, OTHER) is None


def test_a_hash_that_is_only_claimed_is_no_reason_to_trust_a_touched_file(connection):
    put(connection, identity=f"sha256:{SHA}")
    put(connection, identity=f"sha256:{SHA}", stamp="touched")
    assert library_rows.read_trust(connection, PATH) == Trust("stamp-1", f"sha256:{SHA}")


def test_a_broken_file_is_trusted_once_it_is_whole(connection):
    put(connection, identity="", stamp="half", shape=None, fault="It is cut short.")
    assert library_rows.read_trust(connection, PATH) == Trust("half", "")
    put(connection)
    assert library_rows.read_trust(connection, PATH) == Trust("stamp-1", found_model(1).identity)
