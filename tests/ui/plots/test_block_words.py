"""What a map says: counts, cells, and the text of a block, which is a stranger's."""

from __future__ import annotations

from app.telemetry.block_map import logical_view
from backends.protocol import BlockMap, BlockOwner, RequestId
from tests.helpers.block_maps import FREE, KEPT, SHARED, USED, large_map, view_of
from ui.plots import block_words


def test_the_counts_stand_in_one_line():
    view = view_of()
    assert block_words.summary(view) == (
        "2 shared · 2 used · 1 kept · 3 free · 16 tokens each · 19 places empty in last blocks"
    )


def test_where_nothing_is_in_use_nothing_is_wasted():
    assert block_words.size_words(view_of(BlockMap(16, bytes([KEPT, FREE])))) == ["16 tokens each"]


def test_a_logical_map_knows_no_sharing_and_calls_free_places_reserved():
    view = logical_view(100, 17, "llama.cpp", is_busy=True)
    assert block_words.summary(view) == (
        "2 used · 0 kept · 5 reserved · 16 tokens each · 15 places empty in last blocks"
    )
    assert block_words.hint(view, 1) == "logical map: llama.cpp shows no cells"
    assert block_words.hint(logical_view(100, 17, "", is_gone=True), 2) == (
        "the last that was seen · logical map: the engine shows no cells · a cell is 2 blocks"
    )


def test_a_full_pool_says_what_that_means():
    assert block_words.hint(view_of(), 1) == ""
    assert block_words.hint(view_of(BlockMap(16, bytes([USED, USED]))), 1) == "full: what comes next waits"
    assert block_words.hint(view_of(BlockMap(16, bytes([USED, KEPT]))), 1) == (
        "full: the next takes the place of what is kept"
    )


def test_each_state_of_a_block_is_worded():
    view = view_of()
    said = [block_words.cell_words(view, range(block, block + 1)) for block in (0, 1, 2, 4, 5)]
    assert said == [
        "block 0 · tokens 0 to 15 · used by 2 chats",
        "block 1 · tokens 16 to 31 · used by 2 chats",
        "block 2 · tokens 32 to 36 · used by 1 chat · 11 places empty",
        "block 4 · free",
        "block 5 · kept for a prompt that begins alike",
    ]
    assert block_words.short_words(view, range(1, 2)) == "block 1 · tokens 16 to 31 · shared"
    assert block_words.short_words(view, range(5, 6)) == "block 5 · kept"
    one = view_of(BlockMap(16, bytes([USED]), (BlockOwner(RequestId(1), (0,), 1),)))
    assert block_words.cell_words(one, range(1)) == "block 0 · token 0 · used by 1 chat · 15 places empty"


def test_a_cell_of_several_blocks_counts_them():
    assert block_words.cell_words(view_of(), range(2, 6)) == "blocks 2 to 5 · 2 used · 1 kept · 1 free"
    large = view_of(large_map(5000))
    assert block_words.short_words(large, range(4000, 4007)) == "blocks 4,000 to 4,006 · 7 free"


def test_the_text_of_a_block_stands_at_the_end():
    view = view_of()
    assert block_words.text_words(view, range(1, 2), "and then  the\nsea", 2) == (
        "block 1 · tokens 16 to 31 · used by 2 chats: “\u2068…and then the sea…\u2069”"
    )
    # What the engine counted is newer than the map; where nothing lies, nothing is quoted.
    assert "used by 3 chats" in block_words.text_words(view, range(1, 2), "x", 3)
    assert block_words.text_words(view, range(4, 5), "  \n", 0) == "block 4 · free"
    assert block_words.text_words(view, range(2, 4), "x", 1).startswith("blocks 2 to 3 · 2 used: “")


def test_a_strangers_text_is_shortened_and_made_harmless():
    shown = block_words.shortened("a\x1b[31m\u202eb" + "x" * 10_000)
    assert "\x1b" not in shown
    assert len(shown) < block_words.MAX_TEXT_CHARS + 10
    assert (shown[0], shown[-1]) == ("\u2068", "\u2069")
    assert block_words.shortened("") == ""


def test_only_a_block_that_holds_something_can_be_asked_for():
    view = view_of()
    assert block_words.block_with_text(view, range(4, 6)) == 5
    assert block_words.block_with_text(view, range(4, 5)) == -1
    assert block_words.block_with_text(view_of(is_gone=True), range(8)) == -1
    assert block_words.block_with_text(logical_view(100, 50, "llama.cpp"), range(1)) == -1


def test_the_names_of_states_follow_the_source():
    assert list(block_words.state_names(view_of())) == [SHARED, USED, KEPT, FREE]
    assert list(block_words.state_names(logical_view(100, 1, ""))) == [USED, KEPT, FREE]
    assert block_words.token_range(view_of(), 4) is None
