"""What every run is given: windows, prompts and questions as token ids, and who may be compared at all."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from app.compare.material import check_same_model, longest_tokens, make_material
from app.compare.plan import ChoiceSpec, PromptSpec, TextSpec
from app.compare.run_files import Material
from app.errors import AppError
from backends import protocol
from tests.helpers.scoring_worker import TEXT, FakeModel, make_plan, make_services

LOADED = protocol.ModelLoaded(
    backend="echo",
    model_path="x",
    context_tokens=4096,
    tokenizer_hash="h",
    architecture="llama",
    parameters_count=100,
    vocabulary_tokens=256,
)
MATERIAL = Material(tokenizer_hash="h", vocabulary_tokens=256, architecture="llama", parameters_count=100)


class Bytes:
    """A worker that tokenizes bytes; BOS is 1 where it wants one; "ab" is one token, 300."""

    def __init__(self, *, has_bos: bool = False, template: str = "") -> None:
        self.loaded = msgspec.structs.replace(LOADED, chat_template=template)
        self._bos = (1,) if has_bos else ()

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        if isinstance(prompt, protocol.RenderedPrompt):
            return (9, 9)
        assert isinstance(prompt, protocol.Text)
        ids: list[int] = []
        for character in prompt.text:
            if character == "b" and ids[-1:] == [ord("a")]:
                ids[-1] = 300
            else:
                ids.append(ord(character))
        return (*self._bos, *ids)


def plan_with(tmp_path, **changes):
    plan = make_plan(tmp_path, q4=FakeModel())
    return msgspec.structs.replace(plan, workload=msgspec.structs.replace(plan.workload, **changes))


def test_windows_follow_one_another_and_begin_with_bos_where_the_vocabulary_wants_one(tmp_path) -> None:
    plan = plan_with(tmp_path)
    plain = make_material(Bytes(), plan, make_services(tmp_path))
    assert [(one.text_id, one.number, len(one.token_ids)) for one in plain.windows] == [
        ("numbers", 0, 512),
        ("numbers", 1, 512),
        ("more", 0, 512),
    ]
    assert bytes(plain.windows[1].token_ids).decode() == TEXT[512:1024]
    marked = make_material(Bytes(has_bos=True), plan, make_services(tmp_path))
    assert [one.token_ids[0] for one in marked.windows] == [1, 1, 1]
    assert bytes(marked.windows[1].token_ids[1:]).decode() == TEXT[512:1023]


def test_the_hash_is_of_the_ids(tmp_path) -> None:
    services, plan = make_services(tmp_path), plan_with(tmp_path)
    first = make_material(Bytes(), plan, services)
    assert first.sha256 == make_material(Bytes(), plan, services).sha256
    assert first.sha256 != make_material(Bytes(has_bos=True), plan, services).sha256


def test_a_short_text_gives_the_windows_it_has_and_that_is_noted(tmp_path) -> None:
    count = len(TEXT) // 512
    plan = plan_with(tmp_path, texts=(TextSpec(text_id="numbers", title="Numbers", windows=count + 5),))
    made = make_material(Bytes(), plan, make_services(tmp_path))
    assert len(made.windows) == count
    assert any("“Numbers” is short" in note for note in made.notes)


def test_a_text_too_short_for_a_single_window_is_a_sentence(tmp_path) -> None:
    services = dataclasses.replace(make_services(tmp_path), read_text=lambda _spec: "short")
    with pytest.raises(AppError, match="too short: a window takes 512 tokens"):
        make_material(Bytes(), plan_with(tmp_path), services)


def test_a_prompt_goes_through_the_template_and_without_one_stays_as_it_is(tmp_path) -> None:
    class Renderer:
        def render_or_fallback(self, _request):
            return protocol.RenderedPrompt((protocol.PlainPart("x"),)), None

    plan = plan_with(tmp_path, prompts=(PromptSpec(prompt_id="p", text="Hi"),))
    assert make_material(Bytes(), plan, make_services(tmp_path)).prompts[0].token_ids == (72, 105)
    services = make_services(tmp_path, Renderer())
    assert make_material(Bytes(template="{{ x }}"), plan, services).prompts[0].token_ids == (9, 9)


def test_an_answer_s_tokens_are_those_of_the_joined_text(tmp_path) -> None:
    # "xa" + "b" is [x, ab]: the question's last token is not the one that stands there with the answer
    choice = ChoiceSpec(choice_id="c", question="xa", answers=("b", "c"), right=0)
    made = make_material(Bytes(), plan_with(tmp_path, choices=(choice,)), make_services(tmp_path)).choices[0]
    assert (made.question_ids, made.answers) == ((120,), ((300,), (97, 99)))
    assert made.answer_bytes == (1, 1)


def test_the_longest_piece_of_work_decides_the_context(tmp_path) -> None:
    plan = plan_with(tmp_path)
    made = make_material(Bytes(), plan, make_services(tmp_path))
    assert longest_tokens(made, plan) == 512
    longer = msgspec.structs.replace(plan.workload.speed, prompt_tokens=600, new_tokens=10)
    work = msgspec.structs.replace(plan.workload, speed=longer)
    assert longest_tokens(made, msgspec.structs.replace(plan, workload=work)) == 611


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokenizer_hash": "other"}, "another vocabulary"),
        ({"architecture": "qwen"}, "another model"),
        ({"parameters_count": 300}, "another model"),
        ({"context_tokens": 256}, "context is too short: 256 tokens, and the work needs 512"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(changes, words) -> None:
    with pytest.raises(AppError, match=words):
        check_same_model(MATERIAL, msgspec.structs.replace(LOADED, **changes), 512)


@pytest.mark.parametrize("changes", [{}, {"parameters_count": 0}, {"parameters_count": 125}])
def test_the_same_model_passes_also_with_its_embedding_stored_twice(changes) -> None:
    check_same_model(MATERIAL, msgspec.structs.replace(LOADED, **changes), 512)
