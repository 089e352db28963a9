"""A key holds a whole number that a model can mean, or it says so."""

from __future__ import annotations

import pytest

from app.models.gguf_header import ArrayNote
from app.models.gguf_keys import BadKeyError, GgufKeys
from tests.helpers.fit_models import gguf_header


def keys(**values):
    return GgufKeys(gguf_header("llama", values))


def test_a_number_is_read_under_its_architecture():
    found = keys(block_count=32)
    assert (found.architecture, found.number("block_count"), found.number("other", absent=7)) == ("llama", 32, 7)


@pytest.mark.parametrize("value", [-1, 2**32, 2**70, 1.5, "32", True, (1, 2), ArrayNote("int32", 9_999)])
def test_what_no_model_means_is_refused(value):
    found = keys(block_count=value)
    with pytest.raises(BadKeyError, match="block_count is no whole number"):
        found.number("block_count")
    assert found.some("block_count") == 0


def test_one_number_stands_for_every_layer_and_a_list_for_each():
    found = keys(one=4, listed=(1, 0, 3))
    assert list(found.per_layer("one", 3)) == [4, 4, 4]
    assert list(found.per_layer("listed", 3)) == [1, 0, 3]
    assert list(found.per_layer("absent", 2, absent=-1)) == [-1, -1]
    assert (found.first("one"), found.first("listed"), found.first("absent")) == (4, 1, 0)
    assert (found.some_per_layer("one"), found.some_per_layer("listed"), found.some_per_layer("absent")) == (
        [4],
        [1, 0, 3],
        [],
    )


def test_a_list_of_another_length_is_refused():
    with pytest.raises(BadKeyError, match="heads lists 2 layers, and there are 3"):
        keys(heads=(1, 2)).per_layer("heads", 3)
    with pytest.raises(BadKeyError, match="no whole number"):
        keys(heads=(1, -2, 3)).per_layer("heads", 3)


def test_flags_are_yes_or_no_and_no_where_the_list_ends():
    found = keys(flags=(True, 0, 1), words=("a", "b"), one=5)
    assert found.flags("flags", 5) == [True, False, True, False, False]
    assert found.flags("flags", 2) == [True, False]
    assert found.flags("one", 2) is None
    assert found.flags("absent", 2) is None
    with pytest.raises(BadKeyError, match="words does not say yes or no"):
        found.flags("words", 2)


def test_an_empty_list_is_nothing():
    assert keys(heads=()).first("heads") == 0
