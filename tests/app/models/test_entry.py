"""What a scan finds crosses a pipe and comes back the same; an entry's defaults ask for nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.models.entry import FoundModel, ModelDefaults, ModelEntry
from app.models.shape import LayerShape, ModelShape

SHAPE = ModelShape(architecture="llama", layers=(LayerShape(kv_heads=8, key_length=128, value_length=128),))


def test_what_was_found_survives_the_pipe():
    found = FoundModel(path="/m/a.gguf", parts=("/m/a.gguf",), name="A", bits_per_weight=4.5, shape=SHAPE)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=FoundModel) == found
    assert msgspec.json.decode(msgspec.json.encode(found), type=FoundModel) == found


def test_a_record_of_an_older_program_is_read_and_one_of_a_newer_too():
    assert msgspec.json.decode(b'{"path": "/m/a.gguf"}', type=FoundModel) == FoundModel(path="/m/a.gguf")
    newer = msgspec.json.decode(b'{"path": "/m/a.gguf", "colour": "red"}', type=FoundModel)
    assert newer == FoundModel(path="/m/a.gguf")


def test_an_entry_wants_nothing_of_its_own_until_a_person_says_so():
    entry = ModelEntry("A:Q", "A", Path("/m/a.gguf"))
    assert entry.defaults == ModelDefaults()
    assert set(msgspec.structs.asdict(entry.defaults).values()) == {None}
    assert (entry.fault, entry.note, entry.identity) == ("", "", "")
