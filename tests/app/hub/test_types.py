"""The values that a hub's answers become."""

from __future__ import annotations

import datetime

import msgspec

from app.downloads.types import FileRef
from app.errors import Words
from app.hub.types import Publisher, RepoDetail, RepoSummary, SearchPage
from app.models.shape import LayerShape, ModelShape
from tests.helpers.hub_asking import row


def test_a_row_is_found_by_its_key_or_by_its_quantization_in_any_spelling():
    rows = (row("Q4_K_M"), row("UD-Q4_K_XL"), row("Q8_0", key="small-Q8_0"), row("Q8_0", key="large-Q8_0"))
    detail = RepoDetail(summary=RepoSummary(repo="a/b", name="b", owner="a"), revision="c", rows=rows)
    assert detail.row("Q4_K_M") is rows[0]
    assert detail.row("q4-k-m") is rows[0]
    assert detail.row("ud_q4_k_xl") is rows[1]
    assert detail.row("large-Q8_0") is rows[3]
    assert detail.row("Q8_0") is None  # two rows are meant
    assert detail.row("Q6_K") is None


def test_the_moment_of_a_repo_is_a_moment_or_nothing():
    summary = RepoSummary(repo="a/b", name="b", owner="a", updated="2025-03-01T09:30:00+00:00")
    assert summary.updated_at == datetime.datetime(2025, 3, 1, 9, 30, tzinfo=datetime.UTC)
    assert RepoSummary(repo="a/b", name="b", owner="a").updated_at is None


def test_everything_survives_being_kept():
    file = FileRef("https://huggingface.co", "a/b", "c" * 40, "m.gguf", 5, "d" * 64, "d" * 64)
    shape = ModelShape(architecture="llama", layers=(LayerShape(8, 128, 128),))
    detail = RepoDetail(
        summary=RepoSummary(repo="a/b", name="b", owner="a", gated="manual", tags=("x",)),
        revision="c" * 40,
        rows=(row("Q4_K_M", files=(file,), shape=shape, state="read", imatrix=True),),
        projectors=(file,),
        card_links=(("words", "https://e.example"),),
        fault=Words("a", "b"),
    )
    page = SearchPage(items=(detail.summary,), next_cursor="x")
    publisher = Publisher(repo="a/b", owner="a", quantizations=("Q2_K",))
    for value in (detail, page, publisher):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=type(value)) == value
