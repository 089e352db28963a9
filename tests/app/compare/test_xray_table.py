"""The table of an X-ray holds what the view shows."""

from __future__ import annotations

from app.compare.xray_table import choice_words, xray_table
from app.compare.xray_types import Xray, XrayToken
from app.telemetry.export import csv_text
from app.units import NBSP
from tests.helpers.xray_values import NOTHING, reading, token

TOKENS = (token("a", "a", "a"), token("b", "c", "b"), token("d", "e", "f"), XrayToken(9, "\t", NOTHING, NOTHING))


def test_each_token_is_a_row_with_words_for_people_and_numbers_for_files():
    table = xray_table(Xray("Q4_0", "F16", TOKENS))

    cells = {column.key: [column.cell_text(row) for row in range(4)] for column in table.columns}
    assert cells["text"] == ["a", "b", "d", "⇥"]
    assert cells["chosen"] == ["the same", "another", "drawn by chance", "no figures"]
    assert cells["other_probability"] == [f"50.0{NBSP}%"] * 3 + [""]
    assert cells["own_likeliest"] == ["a", "b", "f", ""]
    assert cells["other_logprob_nats"][0] == "−0.693 nats"
    lines = csv_text(table).splitlines()
    assert lines[0].startswith("token,text,chosen,other_probability,other_likeliest,other_likeliest_probability,own_")
    assert lines[2].startswith("2,b,another,0.500000,c,0.500000,0.500000,b,")
    assert lines[2].endswith(",-0.693147,-0.693147")


def test_without_the_writer_its_columns_are_left_out():
    table = xray_table(Xray("Q4_0", "", (XrayToken(97, "a", reading(97)),)))

    assert [column.key for column in table.columns][-1] == "other_logprob_nats"


def test_choices_in_words():
    assert [choice_words(one) for one in TOKENS] == ["the same", "another", "drawn by chance", "no figures"]
