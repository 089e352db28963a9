"""Each setting is described, and its bounds hold."""

from __future__ import annotations

import dataclasses

import pytest

from app.errors import AppError
from app.settings_fields import Settings, about, checked, shown_settings
from backends.protocol import SamplingParams


def test_every_default_passes_its_own_check():
    for made in dataclasses.fields(Settings):
        assert checked(made.name, made.default) == made.default


@pytest.mark.parametrize("name", shown_settings())
def test_every_shown_setting_has_a_group_a_title_and_a_sentence(name):
    told = about(name)
    assert told.group is not None
    assert told.group()
    assert told.title()[0].isupper()
    assert told.sentence().endswith(".")


def test_sampling_defaults_are_those_of_the_protocol():
    settings, params = Settings(), SamplingParams()
    for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed", "max_tokens"):
        assert getattr(settings, name) == getattr(params, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 5.01),
        ("temperature", float("nan")),
        ("temperature", "hot"),
        ("temperature", None),
        ("threads", True),
        ("threads", 1.5),
        ("threads", -1),
        ("seed", 2**31),
        ("max_tokens", 0),
        ("theme", "pink"),
        ("kv_type", "q9"),
        ("panel_folded", 1),
        ("system_prompt", "\ud800"),
        ("system_prompt", "x" * 1_000_001),
        ("last_model", ["a"]),
    ],
)
def test_a_bad_value_is_refused_in_words(name, value):
    with pytest.raises(AppError) as caught:
        checked(name, value)
    assert caught.value.words.message.endswith(".")
    assert caught.value.words.hint == "The setting stays as it was."


def test_whole_numbers_are_taken_as_decimals_and_none_where_it_has_a_meaning():
    assert checked("temperature", 1) == 1.0
    assert checked("seed", None) is None
    assert checked("language", "xx") == "xx"


def test_an_unknown_setting_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        checked("no_such_setting", 1)
