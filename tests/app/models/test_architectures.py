"""The tables of architectures agree with each other."""

from __future__ import annotations

from app.models import architectures as known


def test_a_layer_keeps_its_state_in_one_way():
    groups = [
        known.RECURRENT,
        known.RECURRENT_WITHOUT_HEADS,
        known.RECURRENT_WITHOUT_FEED_FORWARD,
        known.RECURRENT_BESIDE_ATTENTION,
        frozenset(known.FULL_ATTENTION_EVERY),
        known.WITHOUT_CACHE,
        frozenset(known.UNKNOWN_CACHES),
    ]
    names = [name for group in groups for name in group]
    assert len(names) == len(set(names))


def test_a_rule_says_how_often_or_leaves_it_to_the_file():
    for rule in known.WINDOWS.values():
        assert rule.every == 0 or rule.every >= 2
        assert rule.every or not rule.default_tokens


def test_what_is_unknown_has_a_sentence():
    assert all(reason.endswith(".") for reason in known.UNKNOWN_CACHES.values())


def test_the_indexer_s_lists_belong_to_indexers():
    assert known.INDEXER_LISTED < known.INDEXED
