"""The words for entries: short numbers, facts, the line under a name, where a file is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.models.fit_types import Verdict
from app.models.shape import LayerShape, ModelShape
from app.units import NBSP
from tests.helpers.model_entries import DIGEST, entry, fit, ladder, ladder_fits
from ui.models.model_choice import by_name
from ui.models.model_words import (
    context_choices,
    digest_text,
    entry_meaning,
    facts_text,
    keeper_text,
    name_mark,
    origin_text,
    quantization_text,
    second_line,
)


def test_the_facts_are_those_of_every_quantization():
    (model,) = by_name(ladder(owner="meta"))
    assert facts_text(model) == f"8.03{NBSP}B parameters · 32 layers · 8 KV heads · 128k context · llama · meta"


def test_heads_that_differ_by_layer_are_told_as_a_range_and_unknown_facts_are_left_out():
    mixed = ModelShape(architecture="x", layers=(LayerShape(kv_heads=1), LayerShape(kv_heads=4), LayerShape()))
    (model,) = by_name([entry("A", "Q4_0", 4.5, shape=mixed, parameters_count=0, context_tokens=0, architecture="")])
    assert facts_text(model) == "3 layers · 1 to 4 KV heads"


def test_the_line_under_a_name_tells_the_quantization_to_take_and_its_room():
    entries = ladder()
    (model,) = by_name(entries)
    assert second_line(model, ladder_fits(entries), "") == f"8.03{NBSP}B · Q8_0, room for 31k tokens"
    assert second_line(model, {}, "") == f"8.03{NBSP}B · Q2_K"


def test_of_a_loaded_model_the_line_tells_what_is_loaded():
    entries = ladder()
    (model,) = by_name(entries)
    assert second_line(model, ladder_fits(entries), entries[2].key).endswith("Q4_K_M, room for 58k tokens")
    assert name_mark(model, entries[2].key) == "loaded"
    assert name_mark(model, "") == ""
    assert name_mark(by_name([entry("S", "Q4_1", 5.0, origin="starter")])[0], "") == "starter model"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda found: fit(found, None), "Q4_0, not known whether it fits"),
        (lambda found: fit(found, 0), "Q4_0, too large"),
        (lambda found: fit(found, 0, verdict=Verdict.PARTIAL), "Q4_0, fits in part"),
    ],
)
def test_what_does_not_simply_fit_is_said_in_words(made, words):
    found = entry("A", "Q4_0", 4.5)
    assert second_line(by_name([found])[0], {found.key: made(found)}, "").endswith(words)


def test_a_model_that_cannot_be_used_says_why():
    (model,) = by_name([entry("A", "", fault="Part 2 of 3\nis not there.")])
    assert second_line(model, {}, "") == "cannot be used: Part 2 of 3 is not there."


def test_every_origin_has_words_and_other_programs_keep_their_files():
    origins = ("starter", "imported", "folder", "huggingface", "lm_studio", "ollama", "jan", "gpt4all", "added")
    entries = [entry("A", "Q4_0", 4.5, origin=origin) for origin in origins]
    assert len({origin_text(found) for found in entries}) == len(origins)
    kept = ["", "", "", "Hugging Face", "LM Studio", "Ollama", "Jan", "GPT4All", ""]
    assert [keeper_text(found) for found in entries] == kept


def test_a_quantization_that_is_not_known_has_a_dash_and_no_meaning():
    found = entry("A", "")
    assert quantization_text(found) == "–"
    assert entry_meaning(found) is None
    assert entry_meaning(replace(found, quantization="Q4_K_M")).group == "balanced"


def test_only_a_real_digest_is_shown():
    assert digest_text(DIGEST) == "9f86d081884c"
    assert digest_text("provisional:123") == ""
    assert digest_text("") == ""


def test_contexts_are_offered_up_to_what_the_model_was_trained_for():
    assert context_choices(8192) == {
        **{"0": "Automatic", "512": "512", "2048": "2,048", "4096": "4,096", "8192": "8,192"}
    }
    assert list(context_choices(3000, 1234)) == ["0", "512", "1234", "2048", "3000"]
    assert "1048576" in context_choices(0)
