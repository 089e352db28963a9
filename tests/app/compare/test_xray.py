"""An answer is read by two models, token by token; what stands in the way is a sentence."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chat.messages import Message, MessageState, Role
from app.compare.xray import StoppedError, XrayRun, answer_texts, xray_params
from app.compare.xray_types import Xray, XrayModel, XrayProgress, XrayQuestion
from app.errors import AppError
from backends.echo_engine import EchoScript, Fault
from backends.protocol import LoadParams
from backends.renderer_client import RendererClient
from tests.helpers.engine_client import write_script
from tests.helpers.xray_worker import OTHER_VOCABULARY, scoring_command

WRITTEN = "the sky is blue"
OTHER = "the sea is blur"  # differs at 5, 6 and 14
ASKED = (Message(1, 1, None, Role.USER, "Why?"),)


def answer(text: str = WRITTEN, **fields: object) -> Message:
    made = {"token_ids": tuple(text.encode()), "tokenizer_hash": "bytes", "model": "/own.json", **fields}
    return Message(2, 1, 1, Role.ASSISTANT, text, **made)  # type: ignore[arg-type]


@pytest.fixture
def renderer() -> Iterator[RendererClient]:
    made = RendererClient()
    yield made
    made.close()


class Bench:
    """Runs X-rays with scripts."""

    def __init__(self, folder: Path, renderer: RendererClient) -> None:
        self.folder, self.renderer = folder, renderer
        self.command = scoring_command(folder)
        self.steps: list[XrayProgress] = []

    def model(self, label: str, text: str = WRITTEN, **script: object) -> XrayModel:
        path = write_script(self.folder / f"{label}.json", EchoScript(text, **script))
        return XrayModel(label, str(path), "echo")

    def run_of(self, other: XrayModel, own: XrayModel | None = None, read: Message | None = None) -> XrayRun:
        question = XrayQuestion(ASKED, read or answer(), "Be brief.", other, own)
        return XrayRun(question, lambda: self.folder / "worker.log", self.renderer, self.command)

    def xray(self, other: XrayModel, own: XrayModel | None = None, read: Message | None = None) -> Xray:
        return self.run_of(other, own, read).run(self.steps.append)


@pytest.fixture
def bench(tmp_path: Path, renderer: RendererClient) -> Bench:
    return Bench(tmp_path, renderer)


def test_both_models_read_the_answer_and_differ_where_they_would_have_chosen_differently(bench: Bench):
    found = bench.xray(bench.model("Q4_0", OTHER), bench.model("F16"))

    assert "".join(token.text for token in found.tokens) == WRITTEN
    assert [number for number, token in enumerate(found.tokens) if not token.is_same] == [5, 6, 14]
    assert (found.same, found.drawn) == (12, 0)
    assert found.sentence == "Q4_0 would have chosen 12 of 15 tokens the same."
    different = found.tokens[14]
    assert [chance.text for chance in different.other.top[:2]] == ["r", "e"]
    assert different.own.top[0].text == "e"
    # logits 7, 5, 3, 2, 1 and 251 zeros
    total = math.exp(7) + math.exp(5) + math.exp(3) + math.exp(2) + math.exp(1) + 251
    assert different.other.top[0].probability == pytest.approx(math.exp(7) / total, rel=1e-5)
    assert different.other.probability == pytest.approx(math.exp(5) / total, rel=1e-5)
    assert different.other.logprob == pytest.approx(5 - math.log(total), rel=1e-5)
    assert len(different.other.top) == 5


def test_what_was_drawn_by_chance_is_told_from_what_the_quantization_changed(bench: Bench):
    """The writer itself found "sea" likelier at two places: the other quantization changed only the last."""
    found = bench.xray(bench.model("Q4_0", OTHER), bench.model("F16", "the sea is blue"))

    assert (found.same, found.drawn) == (12, 2)
    assert [token.is_different for token in found.tokens].count(True) == 1
    assert found.chance_sentence == (
        "Of the others, 2 were drawn by chance: F16, which wrote them, found others likelier too."
    )


def test_both_read_the_same_prompt_rendered_by_the_writers_template(bench: Bench):
    own = bench.model("F16", chat_template="{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}")

    found = bench.xray(bench.model("Q4_0", OTHER), own)

    assert found.prompt_tokens == len("[system]Be brief.[user]Why?")


def test_a_dialogue_that_has_changed_since_is_said(bench: Bench):
    length = len("Be brief.\nWhy?\n")

    same, other = (bench.xray(bench.model("Q4_0"), read=answer(stats={"prompt_tokens": n})) for n in (length, 99))

    assert same.notes == ()
    assert other.notes[0].startswith(f"The answer was written after 99 tokens, and they are {length} now")


def test_the_other_model_reads_alone_where_the_writer_is_not_at_hand(bench: Bench):
    found = bench.xray(bench.model("Q4_0", OTHER))

    assert found.own_label == ""
    assert all(token.own is None for token in found.tokens)
    assert found.same == 12
    assert not found.notes


def test_a_writer_that_cannot_be_loaded_is_said_and_left_out(bench: Bench):
    found = bench.xray(bench.model("Q4_0", OTHER), XrayModel("F16", str(bench.folder / "gone.json"), "echo"))

    assert found.own_label == ""
    assert found.notes[0].startswith("F16, which wrote the answer, could not be asked: ")
    assert found.same == 12


def test_progress_names_what_is_done(bench: Bench):
    bench.xray(bench.model("Q4_0", OTHER), bench.model("F16"))

    words = list(dict.fromkeys(step.words for step in bench.steps))
    assert words == ["Loading F16", "Reading the answer with F16", "Loading Q4_0", "Reading the answer with Q4_0"]


def test_another_vocabulary_is_a_sentence(bench: Bench):
    with pytest.raises(AppError) as failed:
        bench.xray(bench.model("Q4_0", chat_template=OTHER_VOCABULARY))

    assert failed.value.words.message.startswith("Q4_0 cuts text into other tokens than the model that wrote")


@pytest.mark.parametrize("fields", [{"token_ids": ()}, {"tokenizer_hash": ""}])
def test_an_answer_without_its_exact_tokens_is_refused_before_anything_starts(bench: Bench, fields: dict[str, object]):
    with pytest.raises(AppError, match="exact tokens of this answer were not kept"):
        bench.xray(bench.model("Q4_0"), read=answer(**fields))
    assert not bench.steps


def test_an_answer_too_long_for_the_context_is_a_sentence(bench: Bench):
    with pytest.raises(AppError, match="tokens"):
        bench.xray(bench.model("Q4_0", context_tokens=20), read=answer("a" * 40))


def test_a_worker_that_dies_is_a_sentence(bench: Bench, allow_log: object):
    with pytest.raises(AppError) as failed:
        bench.xray(bench.model("Q4_0", fault=Fault("prefill", "kill")))

    assert "engine" in failed.value.words.message


def test_stop_ends_a_load_and_a_reading_under_way(bench: Bench):
    for script in ({"load_s": 60.0}, {"prefill_s": 60.0}):
        run = bench.run_of(bench.model("Q4_0", **script))
        has_begun = threading.Event()

        def on_progress(step: XrayProgress, begun: threading.Event = has_begun) -> None:
            begun.set()

        ended: list[type[BaseException]] = []

        def work(run: XrayRun = run, note: object = on_progress, ended: list[type[BaseException]] = ended) -> None:
            try:
                run.run(note)
            except StoppedError as error:
                ended.append(type(error))

        thread = threading.Thread(target=work)
        thread.start()
        assert has_begun.wait(30)
        run.stop()
        thread.join(60)
        assert ended == [StoppedError]


def test_half_characters_belong_to_the_token_that_completes_them():
    pieces = [b"a", "é".encode()[:1], "é".encode()[1:] + b"b"]

    assert answer_texts(pieces) == ["a", "", "éb"]


def test_a_model_is_loaded_with_room_for_what_is_read_and_exact_kv():
    wanted = LoadParams(context_tokens=8192, kv_type="q8_0", threads=3)
    counted = answer(stats={"prompt_tokens": 300})

    params = xray_params(wanted, "llama_cpp", ASKED, counted)

    assert (params.context_tokens, params.kv_type, params.threads) == (512, "f16", 3)
    assert xray_params(wanted, "echo", ASKED, counted).kv_type == "q8_0", "an engine without a choice"
    unknown = xray_params(wanted, "llama_cpp", (Message(1, 1, None, Role.USER, "x" * 2000),), answer())
    assert unknown.context_tokens == 1536, "a token is at least two bytes of a guess"


def test_a_stopped_answer_can_be_read_too(bench: Bench):
    assert bench.xray(bench.model("Q4_0"), read=answer(state=MessageState.STOPPED)).same == 15
