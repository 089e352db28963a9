"""The library as it is shown: order, names, copies, faults."""

from __future__ import annotations

from pathlib import Path

from app.models.entry import FoundModel, ModelDefaults, ModelEntry
from app.models.library_view import EMPTY, ORIGINS, Listed, build_view, make_entry, missing, plain_key
from tests.helpers.libraries import found_model


def listed(number=1, *, origin="lm_studio", identity=None, away="", **fields):
    found = found_model(number, origin=origin, **fields)
    return Listed(found, origin, found.identity if identity is None else identity, away=away)


def keys(view):
    return [entry.key for entry in view.entries]


def test_an_entry_says_all_that_was_found():
    found = found_model(
        bits_per_weight=4.8,
        fallback_tensors=3,
        has_importance_matrix=True,
        has_chat_template=True,
        projector_path="/p.gguf",
        projector_bytes=9,
        parameters_count=5,
        context_tokens=6,
        parts=("/models/a.gguf", "/models/b.gguf"),
    )
    defaults = ModelDefaults(top_k=3)
    place = Listed(found, "jan", "sha256:1", "note", defaults)
    assert make_entry(place, "key") == ModelEntry(
        key="key",
        name="Model-1",
        path=Path("/models/model-1.gguf"),
        quantization="Q4_K_M",
        architecture="llama",
        size_bytes=found.size_bytes,
        parameters_count=5,
        context_tokens=6,
        origin="jan",
        format="gguf",
        owner="acme",
        parts=(Path("/models/a.gguf"), Path("/models/b.gguf")),
        bits_per_weight=4.8,
        fallback_tensors=3,
        has_importance_matrix=True,
        has_chat_template=True,
        projector_path=Path("/p.gguf"),
        projector_bytes=9,
        identity="sha256:1",
        shape=found.shape,
        note="note",
        defaults=defaults,
    )


def test_keys_name_owner_name_and_quantization_as_far_as_they_are_known():
    assert plain_key(found_model()) == "acme/Model-1:Q4_K_M"
    assert plain_key(found_model(owner="")) == "Model-1:Q4_K_M"
    assert plain_key(FoundModel(path="/x", name="broken")) == "broken"


def test_what_is_ours_or_was_chosen_comes_first():
    view = build_view([listed(number, origin=origin) for number, origin in enumerate(reversed(ORIGINS))])
    assert [entry.origin for entry in view.entries] == list(ORIGINS)
    assert ORIGINS[:3] == ("starter", "imported", "folder")


def test_of_equals_the_earlier_one_comes_first():
    assert keys(build_view([listed(2), listed(1)])) == ["acme/Model-2:Q4_K_M", "acme/Model-1:Q4_K_M"]


def test_keys_are_unique_without_regard_to_case_and_never_those_of_another():
    names = ["Same", "same", "SAME", "Same:Q4_K_M#2", "Same"]
    view = build_view([listed(number, name=name, owner="") for number, name in enumerate(names)])
    assert keys(view) == ["Same:Q4_K_M", "same:Q4_K_M#2", "SAME:Q4_K_M#3", "Same:Q4_K_M#2:Q4_K_M", "Same:Q4_K_M#4"]
    taken = [listed(1, name="A", owner="", quantization="B#2"), listed(2, name="A", owner="", quantization="B")]
    taken.append(listed(3, name="A", owner="", quantization="B"))
    assert keys(build_view(taken)) == ["A:B#2", "A:B", "A:B#3"]


def test_ten_thousand_models_of_one_name_are_ten_thousand_keys():
    view = build_view(listed(number, name="Same") for number in range(10_000))
    assert len({key.casefold() for key in keys(view)}) == 10_000
    assert keys(view)[-1] == "acme/Same:Q4_K_M#10000"


def test_a_model_in_several_places_is_one_entry_at_the_preferred_one():
    places = [
        listed(1, origin="ollama", path="/ollama", identity="sha256:1"),
        listed(2, origin="jan", path="/other", identity="sha256:2"),
        listed(1, origin="folder", path="/ours", identity="sha256:1"),
    ]
    view = build_view(places)
    assert [str(entry.path) for entry in view.entries] == ["/ours", "/other"]
    assert [(entry.key, str(entry.path)) for entry in view.copies["sha256:1"]] == [
        ("acme/Model-1:Q4_K_M", "/ours"),
        ("acme/Model-1:Q4_K_M#2", "/ollama"),
    ]
    assert set(view.by_path) == {"/ours", "/other", "/ollama"}
    assert view.by_key["acme/model-1:q4_k_m#2"].path == Path("/ollama")
    assert len(list(view.all_places())) == 3


def test_a_sound_place_is_shown_before_a_broken_or_absent_one():
    places = [
        listed(1, origin="imported", path="/gone", identity="sha256:1", fault="It is gone."),
        listed(1, origin="added", path="/away", identity="sha256:1", away="/drive"),
        listed(1, origin="gpt4all", path="/sound", identity="sha256:1"),
    ]
    (entry,) = build_view(places).entries
    assert (str(entry.path), entry.fault) == ("/sound", "")


def test_a_copy_never_takes_the_plain_name_of_another_model():
    places = [
        listed(1, name="A", identity="sha256:1", path="/1"),
        listed(1, name="B", identity="sha256:1", path="/2"),
        listed(2, name="B", identity="sha256:2", path="/3"),
    ]
    view = build_view(places)
    assert keys(view) == ["acme/A:Q4_K_M", "acme/B:Q4_K_M"]
    assert view.copies["sha256:1"][1].key == "acme/B:Q4_K_M#2"


def test_models_that_were_never_read_are_never_copies():
    view = build_view([listed(number, identity="", fault="broken", path=f"/{number}") for number in range(3)])
    assert (len(view.entries), view.copies) == (3, {})


def test_an_absent_drive_is_said_in_words():
    (entry,) = build_view([listed(away="/media/dri\nve")]).entries
    assert entry.fault == "The folder /media/dri ve is not there now. Its drive may not be connected."


def test_other_words_show_everywhere_and_nowhere_else():
    places = [listed(1, path="/1"), listed(1, path="/2"), listed(3, path="/3")]
    view = build_view(places)
    changed = view.with_words(view.entries[0], "note", ModelDefaults(top_k=1))
    assert [entry.note for entry in changed.entries] == ["note", ""]
    assert [entry.note for entry in changed.copies[view.entries[0].identity]] == ["note", "note"]
    assert [entry.note for entry in view.entries] == ["", ""]
    unread = build_view([listed(number, identity="", path=f"/{number}") for number in range(2)])
    assert [entry.note for entry in unread.with_words(unread.entries[1], "x", ModelDefaults()).entries] == ["", "x"]


def test_a_model_whose_file_vanished_is_still_known_by_its_name():
    gone = missing(found_model())
    assert (plain_key(gone), gone.size_bytes, gone.shape, gone.stamp) == ("acme/Model-1:Q4_K_M", 0, None, "")
    assert gone.fault == "The file is not there: it was moved, renamed or deleted."


def test_nothing_is_empty():
    assert build_view([]) == EMPTY
