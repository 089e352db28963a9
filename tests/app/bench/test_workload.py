"""Requests of a measurement: exactly as long as asked for, the same for every engine, never the same twice."""

from __future__ import annotations

from app.bench.workload import Workload, requests_of


def prompts(work: Workload, round_number: int = 1, vocabulary: int = 49_152) -> list[tuple[int, ...]]:
    return [request.prompt.token_ids for request in requests_of(work, vocabulary, round_number, first_id=5)]


def test_prompts_and_answers_have_exactly_the_length_asked_for() -> None:
    work = Workload(prompt_tokens=100, new_tokens=7, requests=3)
    made = requests_of(work, 49_152, 1, first_id=5)
    assert [len(request.prompt.token_ids) for request in made] == [100] * 3
    assert [request.request_id for request in made] == [5, 6, 7]
    for request in made:
        assert (request.params.max_tokens, request.params.ignore_eos, request.params.temperature) == (7, True, 0.0)
    assert work.longest_tokens == 107


def test_the_same_numbers_give_the_same_prompts() -> None:
    work = Workload(50, 5, 4)
    assert prompts(work) == prompts(work)


def test_no_prompt_begins_like_another_so_that_nothing_can_be_reused() -> None:
    work = Workload(20, 5, 4)
    first = [ids[0] for number in range(6) for ids in prompts(work, number)]
    assert len(set(first)) == len(first)


def test_what_is_shared_is_shared_within_a_round_only() -> None:
    work = Workload(40, 5, 3, shared_tokens=30)
    one, other = prompts(work, 1), prompts(work, 2)
    assert len({ids[:30] for ids in one}) == 1
    assert len({ids[30] for ids in one}) == 3
    assert one[0][0] != other[0][0]
    assert all(len(ids) == 40 for ids in one)


def test_ids_are_words_of_even_a_tiny_vocabulary() -> None:
    for vocabulary in (1, 2, 256, 200_000):
        ids = {token for prompt in prompts(Workload(64, 1, 2), 3, vocabulary) for token in prompt}
        assert min(ids) >= 0
        assert max(ids) < vocabulary


def test_uneven_answers_take_a_quarter_to_all_of_the_longest() -> None:
    work = Workload(1, 32, 8, is_uneven=True)
    assert [work.answer_tokens(number) for number in range(8)] == [32, 8, 24, 16] * 2
    assert Workload(1, 1, 4, is_uneven=True).answer_tokens(1) == 1
