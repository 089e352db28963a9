"""Numbers as people read them, to the character."""

from __future__ import annotations

import math

import pytest

from app import units

N = units.NBSP


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, f"0{N}bytes"),
        (1, f"1{N}byte"),
        (999, f"999{N}bytes"),
        (1000, f"0.977{N}KiB"),
        (1024, f"1.00{N}KiB"),
        (98_881_536, f"94.3{N}MiB"),
        (180 * 2**20, f"180{N}MiB"),
        (1023 * 2**20, f"0.999{N}GiB"),
        (999.4 * 2**20, f"999{N}MiB"),
        (4.58 * 2**30, f"4.58{N}GiB"),
        (2.5 * 2**40, f"2.50{N}TiB"),
        (5000 * 2**40, f"5,000{N}TiB"),
        (-1.5 * 2**20, f"\u22121.50{N}MiB"),
    ],
)
def test_bytes_have_three_digits_and_a_binary_unit(count, text):
    assert units.bytes_text(count) == text


@pytest.mark.parametrize(
    ("used", "total", "text"),
    [
        (9.2 * 2**20, 180 * 2**20, f"9.20{N}of{N}180{N}MiB"),
        (0, 180 * 2**20, f"0{N}of{N}180{N}MiB"),
        (12 * 2**20, 8 * 2**30, f"12.0{N}MiB{N}of{N}8.00{N}GiB"),
        (None, 180, "unknown"),
        (1, math.nan, "unknown"),
    ],
)
def test_a_part_shares_the_unit_of_the_whole_where_it_can(used, total, text):
    assert units.bytes_of_text(used, total) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (151.2, f"151{N}tokens/s"),
        (15.12, f"15.1{N}tokens/s"),
        (1.512, f"1.51{N}tokens/s"),
        (0.5, f"0.500{N}tokens/s"),
        (1512, f"1,510{N}tokens/s"),
        (999.9, f"1,000{N}tokens/s"),
        (0, f"0{N}tokens/s"),
    ],
)
def test_speeds_have_three_digits(rate, text):
    assert units.rate_text(rate) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, f"0{N}s"),
        (0.0912, f"91.2{N}ms"),
        (0.9996, f"1.00{N}s"),
        (12.34, f"12.3{N}s"),
        (59.9, f"59.9{N}s"),
        (59.97, f"1{N}min{N}00{N}s"),
        (125, f"2{N}min{N}05{N}s"),
        (3599.6, f"1{N}h{N}00{N}min"),
        (3900, f"1{N}h{N}05{N}min"),
    ],
)
def test_seconds_grow_into_minutes_and_hours(seconds, text):
    assert units.seconds_text(seconds) == text


def test_counts_have_thousands_separators():
    assert units.count_text(8192) == "8,192"
    assert units.count_text(412) == "412"
    assert units.count_text(0) == "0"


def test_percentages_say_their_sign_only_when_asked():
    assert units.percent_text(0.84) == f"84.0{N}%"
    assert units.percent_text(0.031, signed=True) == f"+3.1{N}%"
    assert units.percent_text(-0.02, signed=True) == f"\u22122.0{N}%"
    assert units.percent_text(-0.0001, signed=True) == f"0.0{N}%"


def test_what_is_not_known_is_said_in_words():
    for function in (
        units.bytes_text,
        units.rate_text,
        units.seconds_text,
        units.count_text,
        units.percent_text,
        units.number_text,
    ):
        assert function(None) == "unknown"
        assert function(math.nan) == "unknown"
        assert function(math.inf) == "unknown"


def test_no_number_can_be_broken_from_its_unit():
    for text in (units.bytes_text(5e6), units.rate_text(3), units.seconds_text(125), units.percent_text(0.5)):
        assert " " not in text


def test_large_numbers_are_short():
    assert [units.count_short(count) for count in (8_030_000_000, 134_515_008, 1500, 12, 0)] == [
        f"8.03{units.NBSP}B",
        f"135{units.NBSP}M",
        f"1.50{units.NBSP}k",
        "12.0",
        "",
    ]
    assert units.count_short(999_885_952) == f"1.00{units.NBSP}B"
