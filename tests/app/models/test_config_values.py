"""Values of a config.json under their several names."""

from __future__ import annotations

import pytest

from app.models.config_values import ConfigValues
from app.models.gguf_keys import BadKeyError


def test_the_first_name_that_is_there_counts():
    values = ConfigValues({"n_layer": 12, "hidden_size": None, "n_embd": 768})
    assert values.number("num_hidden_layers", "n_layer") == 12
    assert values.number("hidden_size", "n_embd") == 768
    assert values.number("absent", absent=3) == 3


def test_the_language_part_goes_before_the_whole():
    values = ConfigValues(
        {
            "model_type": "gemma3",
            "hidden_size": 1,
            "vocab_size": 9,
            "text_config": {"model_type": "gemma3_text", "hidden_size": 2},
        }
    )
    assert (values.kind, values.number("hidden_size"), values.number("vocab_size")) == ("gemma3_text", 2, 9)
    deep = ConfigValues({"thinker_config": {"text_config": {"hidden_size": 3}}})
    assert deep.number("hidden_size") == 3


@pytest.mark.parametrize("value", [-1, 2**60, 1.5, "8", True, {}, [1, "x"], [-2]])
def test_what_no_model_means_is_refused(value):
    with pytest.raises(BadKeyError, match="hidden_size is no whole number"):
        ConfigValues({"hidden_size": value}).number("hidden_size")


def test_of_a_list_the_largest_stands_for_all():
    assert ConfigValues({"heads": [3, None, 5]}).number("heads") == 5
    assert ConfigValues({"heads": [None]}).number("heads") == 0


def test_a_list_has_one_entry_for_each_layer():
    values = ConfigValues({"heads": [3, None, 5], "one": 3})
    assert values.per_layer("heads", count=3) == [3, 0, 5]
    assert values.per_layer("one", count=3) is None
    with pytest.raises(BadKeyError, match="one entry for each of the 2 layers"):
        values.per_layer("heads", count=2)


def test_words_flags_parts_and_sets():
    values = ConfigValues({"types": ["a", 1, "b"], "word": "w", "yes": True, "part": {"x": 1}, "at": [1, "y", 2]})
    assert (values.words("types"), values.words("word"), values.word("word"), values.word("types")) == (
        ["a", "b"],
        [],
        "w",
        "",
    )
    assert (values.is_true("yes"), values.is_true("word")) == (True, False)
    assert values.part("part").number("x") == 1
    assert values.part("word").number("x") == 0
    assert (values.numbers_in("at"), values.numbers_in("word")) == ({1, 2}, set())
