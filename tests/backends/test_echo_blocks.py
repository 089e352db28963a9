"""The blocks that the echo engine claims: neighbours, growth, a full pool, and what lies in each."""

from __future__ import annotations

from backends.echo_blocks import FREE, KEPT, SHARED, USED, EchoBlocks, EchoSequence
from backends.protocol import BlockDescribed, DescribeBlock, RequestId

NEIGHBOURS = (EchoSequence(40, 2, "abcd"), EchoSequence(33, 2, "abcd"))
ANSWER = RequestId(3)


def ask(blocks: EchoBlocks, block: int) -> BlockDescribed:
    return blocks.describe(DescribeBlock(RequestId(-1), block))


def test_neighbours_share_their_beginning() -> None:
    found = EchoBlocks(8, 16, NEIGHBOURS, kept_blocks=1).block_map(ANSWER, 0)
    assert list(found.states) == [SHARED, SHARED, USED, USED, KEPT, FREE, FREE, FREE]
    assert [(owner.blocks, owner.tokens) for owner in found.owners] == [((0, 1, 2), 40), ((0, 1, 3), 33)]


def test_an_answer_takes_free_blocks_and_leaves_them_kept() -> None:
    blocks = EchoBlocks(8, 16, (), kept_blocks=0)
    blocks.grow(b"x" * 16)
    blocks.grow(b"x" * 17)
    found = blocks.block_map(ANSWER, 17)
    assert list(found.states) == [USED, USED, *[FREE] * 6]
    assert [(owner.request_id, owner.blocks, owner.tokens) for owner in found.owners] == [(ANSWER, (0, 1), 17)]
    blocks.end_answer()
    found = blocks.block_map(ANSWER, 0)
    assert list(found.states) == [KEPT, KEPT, *[FREE] * 6]
    assert found.owners == ()


def test_kept_blocks_give_way_when_none_is_free_and_a_full_pool_stays_full() -> None:
    blocks = EchoBlocks(3, 16, (EchoSequence(16),), kept_blocks=1)
    blocks.grow(b"x" * 32)
    assert list(blocks.states) == [USED, USED, USED]
    blocks.grow(b"x" * 64)
    assert list(blocks.states) == [USED, USED, USED]


def test_a_block_says_its_text_and_its_users() -> None:
    blocks = EchoBlocks(8, 16, NEIGHBOURS, kept_blocks=1)
    blocks.grow(("x" * 16 + "grüße").encode())
    first, last = ask(blocks, 0), ask(blocks, 3)
    assert (first.text, first.users, first.request_id, first.block) == ("abcdabcdabcdabcd", 2, -1, 0)
    assert (last.text, last.users, last.token_ids) == ("a", 1, (97,))
    assert ask(blocks, 4).text.startswith("an earlier")
    assert ask(blocks, 6).text == "grüße"
    for nowhere in (7, 99, -1):
        assert (ask(blocks, nowhere).text, ask(blocks, nowhere).users) == ("", 0)
