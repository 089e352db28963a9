"""The texts that are scored: what comes with the program is whole, and what a person brings is refused in words."""

from __future__ import annotations

import collections
import hashlib
import json
import os
import stat

import msgspec
import pytest

from app.bench.engine_run import EngineRun
from app.chat.messages import Role
from app.chat.store import open_store
from app.compare import texts
from app.compare.plan import WINDOW_TOKENS, TextSpec
from app.compare.texts import (
    TextError,
    beginning_of,
    bundled_choices,
    bundled_prompts,
    bundled_texts,
    calibration_text,
    chats_spec,
    keep_chats,
    own_chats,
    own_text,
    read_text,
    text_hash,
)
from app.compare.windows import available, bos_of, cut
from app.engines.supervisor import LoadRequest
from app.paths import resources_folder
from backends import protocol
from tests.helpers.chat_stores import dialogue

FOLDER = resources_folder() / "evaluation"
LONG = "The river rises in the hills and reaches the sea after a long way.\n" * 20
LEAST_WINDOWS = 4  # of each text, whatever the vocabulary


@pytest.fixture
def store(tmp_path):
    made = open_store(tmp_path / "chats.sqlite3").store
    yield made
    made.close()


# ------------------------------------------------------------------------------------------- what is bundled


def test_every_file_is_what_the_manifest_says():
    manifest = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    files = [*manifest["texts"], manifest["calibration"], manifest["prompts"], manifest["choices"]]
    for file in files:
        content = (FOLDER / file["file"]).read_bytes().replace(b"\r\n", b"\n")
        assert hashlib.sha256(content).hexdigest() == file["sha256"], file["file"]
        assert file["licence"]
        assert file["origin"]
    present = {path.name for path in FOLDER.iterdir()}
    assert present == {file["file"] for file in files} | {"manifest.json", "LICENCES.txt"}


def test_every_file_has_its_licence_beside_it():
    licences = (FOLDER / "LICENCES.txt").read_text(encoding="utf-8")
    assert "Open Shakespeare / Open Knowledge Foundation" in licences
    assert "http://creativecommons.org/licenses/by/2.5/" in licences
    for path in FOLDER.iterdir():
        assert path.name in licences or path.name == "LICENCES.txt"


def test_bundled_texts_are_read_by_name_and_say_where_they_are_from():
    found = bundled_texts()
    assert [text.text_id for text in found] == ["encyclopaedia", "chat", "code", "multilingual"]
    for text in (*found, calibration_text()):
        assert text_hash(read_text(text)) == text.sha256
        assert text.title
        assert text.licence
    assert "Open Knowledge Foundation" in found[0].licence


def test_no_passage_that_is_scored_is_in_the_text_for_calibration():
    scored = read_text(bundled_texts()[0])
    for paragraph in read_text(calibration_text()).split("\n\n"):
        assert paragraph not in scored


def test_texts_hold_no_marks_of_their_scan():
    for text in (bundled_texts()[0], calibration_text()):
        content = read_text(text)
        assert not [mark for mark in ("###", "p.77", "[^", "[[", "Gutenberg", "- speare", "||") if mark in content]
        assert content.replace("\n", "").isprintable()
        assert "  " not in content


def test_a_damaged_installation_is_a_sentence(monkeypatch, tmp_path):
    for path in FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "chat.txt").write_text("something else", encoding="utf-8")
    (tmp_path / "code.txt").unlink()
    monkeypatch.setattr(texts, "_folder", lambda: tmp_path)
    by_id = {text.text_id: text for text in bundled_texts()}
    for text_id in ("chat", "code"):
        with pytest.raises(TextError, match=rf"missing or damaged: .*{text_id}\.txt") as raised:
            read_text(by_id[text_id])
        assert "Install" in raised.value.words.hint
    with pytest.raises(TextError, match="has no text “poems”"):
        read_text(TextSpec(text_id="poems"))


@pytest.mark.parametrize("model", ["starter_model", pytest.param("gemma_model", marks=pytest.mark.full)])
def test_every_text_gives_its_windows_with_a_real_vocabulary(request, tmp_path, model):
    run = EngineRun(lambda: tmp_path / "worker.log")
    try:
        params = protocol.LoadParams(context_tokens=WINDOW_TOKENS)
        loaded = run.load(LoadRequest(str(request.getfixturevalue(model)), "llama_cpp", params), lambda _fraction: None)
        ids = {}
        for number, text in enumerate((*bundled_texts(), calibration_text()), start=1):
            asked = protocol.Tokenize(protocol.RequestId(number), protocol.Text(read_text(text)))
            ids[text.text_id] = run.ask(asked, protocol.Tokenized).token_ids
        empty = run.ask(protocol.Tokenize(protocol.RequestId(99), protocol.Text("")), protocol.Tokenized).token_ids
    finally:
        run.close()
    for text_id, found in ids.items():
        assert available(found) >= LEAST_WINDOWS, text_id
        windows = cut(found, LEAST_WINDOWS, bos_of(empty, found))
        assert max(max(window) for window in windows) < loaded.vocabulary_tokens
    assert available(ids["encyclopaedia"]) >= 16


# ------------------------------------------------------------------------------------- prompts and questions


def test_prompts_are_short_and_all_different():
    found = bundled_prompts()
    assert len(found) == 8
    assert len({prompt.prompt_id for prompt in found}) == len({prompt.text for prompt in found}) == 8
    assert all(20 < len(prompt.text) < 400 for prompt in found)


def test_questions_have_four_answers_and_one_that_is_right():
    found = bundled_choices()
    assert len(found) == 60
    assert len({choice.choice_id for choice in found}) == len({choice.question for choice in found}) == 60
    for choice in found:
        assert len(set(choice.answers)) == 4
        assert 0 <= choice.right < 4
        assert choice.question.endswith("?\nAnswer:")
        assert all(answer.startswith(" ") and answer == answer.rstrip() for answer in choice.answers)


@pytest.mark.parametrize("count", [50, 60])
def test_right_answers_are_spread_evenly_over_the_places(count):
    places = collections.Counter(choice.right for choice in bundled_choices()[:count])
    assert set(places) == {0, 1, 2, 3}
    assert max(places.values()) - min(places.values()) <= 1


def test_the_length_of_an_answer_does_not_give_it_away():
    """By chance the right answer is the longest one in 15 of 60 questions; 30 or more has odds below 1 in 10,000."""
    longest = [choice for choice in bundled_choices() if _is_longest(choice)]
    assert len(longest) < 30


def _is_longest(choice) -> bool:
    lengths = [len(answer) for answer in choice.answers]
    return lengths[choice.right] == max(lengths) and lengths.count(max(lengths)) == 1


# ----------------------------------------------------------------------------------------- a person's own file


def test_an_own_file_is_taken_as_it_is(tmp_path):
    path = tmp_path / "My notes.txt"
    path.write_bytes(("\r\n".join([LONG, "Grüße, 你好"])).encode())
    spec = own_text(path)
    assert (spec.text_id, spec.title, spec.path) == ("own", "My notes.txt", str(path))
    assert read_text(spec) == path.read_bytes().decode()
    assert text_hash(read_text(spec)) == spec.sha256


def test_a_mark_of_byte_order_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "marked.txt"
    path.write_bytes(b"\xef\xbb\xbf" + LONG.encode())
    assert read_text(own_text(path)) == LONG


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "too short to score: it holds 0\u00a0bytes"),
        (b"A few words.", "too short to score: it holds 12\u00a0bytes"),
        (b" \n" * 1000, "too short to score: it holds 0\u00a0bytes"),
        (b"text " * 200 + b"\0" + b"text " * 200, "no text in UTF-8: what stands at byte 1,001"),
        (b"caf\xe9 " * 200, "no text in UTF-8: what stands at byte 4"),
        (LONG.encode("utf-16"), "it is a UTF-16 file"),
        (b"%PDF-1.7 " * 200, "it is a PDF file"),
        (b"GGUF\x03\0\0\0" * 200, "it is a GGUF file"),
    ],
    ids=["empty", "short", "blank", "binary", "latin-1", "utf-16", "pdf", "gguf"],
)
def test_a_file_that_is_no_text_is_refused_in_words(tmp_path, content, words):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(TextError, match=words) as raised:
        own_text(path)
    assert "notes.txt" in raised.value.words.message
    assert raised.value.words.hint


def test_a_file_that_is_too_large_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(texts, "MAX_TEXT_BYTES", 1024)
    path = tmp_path / "large.txt"
    path.write_text(LONG, encoding="utf-8")
    with pytest.raises(TextError, match="too large: at most 1\\.00\u00a0KiB"):
        own_text(path)


def test_a_file_that_is_gone_or_a_folder_is_refused_in_words(tmp_path):
    with pytest.raises(TextError, match=r"“gone\.txt” is not there any more"):
        own_text(tmp_path / "gone.txt")
    with pytest.raises(TextError, match="is a folder"):
        own_text(tmp_path)


def test_a_file_that_the_system_refuses_is_a_sentence(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "secret.txt"
    path.write_text(LONG, encoding="utf-8")
    monkeypatch.setattr(type(path), "open", refuse)
    with pytest.raises(TextError, match=r"“secret\.txt” cannot be read or written: Permission denied"):
        own_text(path)


def test_a_text_that_has_changed_since_the_plan_is_another_comparison(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(LONG, encoding="utf-8")
    spec = own_text(path)
    path.write_text(LONG + "One more line.", encoding="utf-8")
    with pytest.raises(TextError, match=r"“notes\.txt” has changed"):
        read_text(spec)
    assert read_text(msgspec.structs.replace(spec, sha256="")) == LONG + "One more line."


def test_only_the_beginning_of_a_long_text_is_needed():
    text = LONG * 1000
    beginning = beginning_of(text, 2)
    assert text.startswith(beginning)
    assert 3 * WINDOW_TOKENS < len(beginning) < len(text)
    assert beginning_of(LONG, 2) == LONG


# -------------------------------------------------------------------------------------------------- own chats


def test_own_chats_come_newest_first_and_no_further_than_needed(store):
    for name in ("oldest", "older", "newest"):
        dialogue(store, f"Tell me about the {name} thing.", f"{name}: " + "word " * 1500)
    text = own_chats(store, 1)
    assert text.startswith("User: Tell me about the newest thing.\n\nAssistant: newest: word")
    assert "the older thing" in text
    assert "oldest" not in text  # 512 tokens are in the two before


def test_own_chats_show_the_branch_that_is_shown_and_leave_out_what_is_empty(store):
    chat, (asked, _first) = dialogue(store, "Why? " + "word " * 200, "Because.")
    store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, "It depends.")
    store.add_chat("empty")
    text = own_chats(store, 1)
    assert text.endswith("Assistant: It depends.")
    assert "Because" not in text


def test_too_few_chats_are_a_sentence(store):
    with pytest.raises(TextError, match="too little in your chats to score: 0\u00a0bytes"):
        own_chats(store, 1)
    dialogue(store, "Hello", "Hello!")
    with pytest.raises(TextError, match="too little in your chats"):
        own_chats(store, 1)


def test_own_chats_are_kept_in_the_comparison_s_folder_only(store, tmp_path):
    dialogue(store, "Why?", "Because. " * 200)
    folder = tmp_path / "comparisons" / "one"
    text = own_chats(store, 1)
    spec = chats_spec(text, folder)
    assert (spec.text_id, spec.licence) == ("own-chats", "")
    assert not folder.exists()
    folder.mkdir(parents=True)
    keep_chats(spec, text)
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / "texts" / "own-chats.txt"]
    assert read_text(spec) == text
    if os.name == "posix":
        assert stat.S_IMODE((folder / "texts" / "own-chats.txt").stat().st_mode) == 0o600


def test_own_chats_that_cannot_be_written_are_a_sentence(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(TextError, match="cannot be read or written"):
        keep_chats(chats_spec(LONG, tmp_path / "file"), LONG)
