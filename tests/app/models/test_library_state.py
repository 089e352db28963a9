"""The library in memory: what is stored, what was seen besides, and what each is called."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import msgspec
import pytest

from app.models import library_rows
from app.models.entry import ModelDefaults
from app.models.library_rows import ModelRow
from app.models.library_schema import migrate
from app.models.library_state import Stored, build_state, defaults_of, read_stored, single_entry, with_words
from tests.helpers.libraries import found_model

SHA = "a" * 64


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        migrate(opened)
        yield opened


def state_of(connection, starters=(), newcomers=()):
    return build_state(read_stored(connection), 7, lambda _known: list(starters), list(newcomers))


def put(connection, number, **fields):
    library_rows.put_found(connection, found_model(number, **fields), "/models", 1)


def test_nothing_stored_is_an_empty_state():
    state = build_state(Stored(), 3, lambda known: [] if known == {} else None, [])
    assert (state.token, state.view.entries, state.model_ids, state.folders) == (3, (), {}, [])


def test_starters_come_first_then_what_is_stored_then_what_is_new(connection):
    put(connection, 1)
    put(connection, 2, origin="imported")
    starter = found_model(3, origin="starter")
    newcomer = found_model(4, origin="folder")
    state = state_of(connection, [starter], [newcomer, found_model(1, origin="folder")])
    assert [(entry.name, entry.origin) for entry in state.view.entries] == [
        ("Model-3", "starter"),
        ("Model-2", "imported"),
        ("Model-4", "folder"),
        ("Model-1", "lm_studio"),
    ]


def test_starters_are_asked_for_with_what_is_known(connection):
    put(connection, 1, origin="starter")
    seen = []
    build_state(read_stored(connection), 0, lambda known: seen.append(dict(known)) or [], [])
    assert seen == [{"/models/model-1.gguf": found_model(1, origin="starter")}]


def test_a_starter_of_earlier_that_is_none_any_more_is_not_shown(connection):
    put(connection, 1, origin="starter")
    assert state_of(connection).view.entries == ()


def test_a_starter_keeps_what_was_said_of_it(connection):
    put(connection, 1, origin="imported")
    library_rows.set_words(connection, 1, note="mine", defaults='{"top_k": 3}')
    (entry,) = state_of(connection, [found_model(1, origin="starter")]).view.entries
    assert (entry.origin, entry.note, entry.defaults) == ("starter", "mine", ModelDefaults(top_k=3))


def test_what_is_not_stored_is_known_by_its_bytes(connection):
    put(connection, 1)
    library_rows.set_words(connection, 1, note="mine")
    state = state_of(connection, [], [found_model(9, origin="folder", identity=found_model(1).identity)])
    assert len(state.view.entries) == 1
    assert len(state.view.copies) == 1
    library_rows.set_hash(connection, library_rows.Path("/models/model-1.gguf"), SHA, found_model(1).identity)
    state = state_of(connection, [], [found_model(9, origin="folder", identity=found_model(1).identity)])
    (entry,) = state.view.entries
    assert (entry.identity, entry.note, state.model_id(entry)) == (f"sha256:{SHA}", "mine", 1)
    assert state.model_ids[found_model(1).identity] == 1


def test_a_provisional_identity_that_two_read_models_share_means_neither(connection):
    provisional = found_model(1).identity
    for number, sha in ((1, SHA), (2, "b" * 64)):
        put(connection, number, identity=provisional)
        library_rows.set_hash(connection, library_rows.Path(f"/models/model-{number}.gguf"), sha, provisional)
    assert provisional not in state_of(connection).model_ids


def test_what_was_never_read_has_no_identity_but_may_have_a_note(connection):
    put(connection, 1, identity="", fault="broken")
    library_rows.set_model(
        connection, library_rows.Path("/models/model-1.gguf"), library_rows.model_for(connection, "path:x")
    )
    library_rows.set_words(connection, 1, note="mine")
    state = state_of(connection)
    (entry,) = state.view.entries
    assert (entry.identity, entry.note, state.model_id(entry)) == ("", "mine", None)


def test_a_record_that_makes_no_sense_is_a_fault_and_hides_nothing_else(connection):
    put(connection, 1)
    put(connection, 2)
    connection.execute("UPDATE paths SET record = x'ff' WHERE path_id = 1")
    assert [(entry.key, bool(entry.fault)) for entry in state_of(connection).view.entries] == [
        ("model-1", True),
        ("acme/Model-2:Q4_K_M", False),
    ]


def test_a_root_that_is_away_is_named(connection):
    put(connection, 1)
    library_rows.mark_away(connection, ["/models"])
    assert state_of(connection).view.entries[0].fault.startswith("The folder /models is not there now.")


def test_defaults_that_make_no_sense_are_none():
    for stored in ("", "[]", '{"top_k": "many"}', "{"):
        assert defaults_of(ModelRow(1, None, "p", "", stored)) == ModelDefaults()
    told = ModelDefaults(kv_type="q8_0")
    assert defaults_of(ModelRow(1, None, "p", "", msgspec.json.encode(told).decode())) == told


def test_a_single_entry_needs_no_other():
    entry = single_entry(found_model(), None, ModelRow(5, SHA, found_model().identity, "mine", "{}"))
    assert (entry.key, entry.identity, entry.note) == ("acme/Model-1:Q4_K_M", f"sha256:{SHA}", "mine")


def test_other_words_change_the_view_alone(connection):
    put(connection, 1)
    state = state_of(connection)
    changed = with_words(state, state.view.entries[0], "x", ModelDefaults())
    assert (changed.view.entries[0].note, changed.token, state.view.entries[0].note) == ("x", 7, "")
