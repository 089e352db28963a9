"""Where an answer leaves the reference's, by tokens where they are known and by letters where not."""

from __future__ import annotations

import msgspec

from app.compare.results import Answer, AnswerToken
from tests.helpers.compare_values import answer
from ui.models.compare_answer_text import agreement_words, divergence_start, marked_answer


def test_the_first_different_token_is_marked():
    marked = marked_answer(answer("Q4_K_M"), answer("F16"))
    assert marked.before == "The tide turned at four, and the keeper climbed the "
    assert marked.marked == "steps"
    assert marked.after == " to wind the light."
    assert marked.tooltip.splitlines()[0] == "Likely at the marked token:"
    assert "62.0" in marked.tooltip


def test_the_reference_and_an_equal_answer_have_no_mark():
    assert marked_answer(answer("F16"), None).marked == ""
    assert marked_answer(answer("Q8_0"), answer("F16")).marked == ""


def test_without_tokens_the_letters_are_compared():
    reference = Answer(prompt_id="one", text="The tide turned.", token_ids=(1, 2, 3))
    other = Answer(prompt_id="one", text="The time came.", token_ids=(1, 4), first_divergence=1)
    assert divergence_start(other, reference) == len("The ti")


def test_an_answer_that_ends_early_says_so():
    tokens = (AnswerToken(token_id=1, text="Yes"), AnswerToken(token_id=2, text=", it is."))
    reference = Answer(prompt_id="one", text="Yes, it is.", token_ids=(1, 2), forced=tokens)
    short = Answer(prompt_id="one", text="Yes", token_ids=(1,), first_divergence=1)
    marked = marked_answer(short, reference)
    assert (marked.before, marked.marked, marked.after) == ("Yes", "(ends here)", "")


def test_control_characters_become_visible():
    found = Answer(prompt_id="one", text="a\x1b[31mb", token_ids=(1,))
    assert marked_answer(found, None).before == "a\u241b[31mb"


def test_agreement_is_told_in_words():
    reference = answer("F16")
    assert agreement_words(answer("Q8_0"), reference) == "the same answer"
    assert agreement_words(answer("Q4_K_M"), reference) == "differs at token 12 · 11 of 13 the same"
    first = msgspec.structs.replace(answer("Q4_K_M"), agreed=0)
    assert agreement_words(first, reference) == "differs at token 12"
    assert agreement_words(answer("Q8_0"), None) == ""
