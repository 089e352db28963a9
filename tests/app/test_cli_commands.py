"""What the commands do, apart from printing."""

from __future__ import annotations

import io
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from app import cli_commands
from app.cli_commands import (
    chat_params,
    check_chat,
    check_load_flags,
    load_params,
    load_request,
    read_prompt,
    wanted_params,
    write_answer,
)
from app.cli_parser import UsageError, parse
from app.context import build_context
from app.errors import AppError
from app.models.entry import ModelDefaults, ModelEntry
from app.models.library import LibraryError
from backends import registry
from backends.errors import EngineError, ErrorCode
from backends.protocol import LoadParams
from backends.registry import BACKENDS
from tests.helpers import gguf_files
from tests.helpers.safetensors_files import write_model


class Stream:
    """Standard input: a pipe with these bytes, or a terminal."""

    def __init__(self, data: bytes | None) -> None:
        self.buffer = io.BytesIO(data or b"")
        self._is_terminal = data is None

    def isatty(self) -> bool:
        return self._is_terminal


def prompt_of(*arguments: str, stdin: bytes | None = None) -> str | None:
    return read_prompt(parse(["chat", *arguments]), Stream(stdin))


def test_a_prompt_is_taken_as_it_is_and_standard_input_is_left_alone():
    assert prompt_of("--prompt", " a\n", stdin=b"unread") == " a\n"
    assert prompt_of("--prompt", "caf\udce9") == "caf\ufffd"


def test_a_pipe_is_the_prompt_without_its_last_line_break():
    assert prompt_of(stdin=b"\n a\r\nb\r\n\n") == "\n a\r\nb"
    assert prompt_of("--json", stdin=b"x") == "x"


def test_a_terminal_is_a_dialogue():
    assert prompt_of() is None


def test_a_closed_standard_input_asks_nothing():
    with pytest.raises(UsageError, match="There is nothing to answer"):
        read_prompt(parse(["chat"]), None)


@pytest.mark.parametrize("flag", [["--json"], ["--out", "f"]])
def test_a_dialogue_has_neither_json_nor_a_file(flag):
    with pytest.raises(UsageError, match=f"{flag[0]} is for one answer"):
        prompt_of(*flag)


def test_an_endless_pipe_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(cli_commands, "MAX_PROMPT_BYTES", 8)
    assert prompt_of(stdin=b"12345678") == "12345678"
    with pytest.raises(UsageError, match="longer than"):
        prompt_of(stdin=b"123456789")


def test_an_answer_is_written_into_a_file_of_its_own(tmp_path: Path):
    path = tmp_path / "answer"
    write_answer(path, "é\n\ud800", is_forced=False)
    assert path.read_bytes() == b"\xc3\xa9\n?"
    with pytest.raises(FileExistsError):
        write_answer(path, "other", is_forced=False)
    write_answer(path, "other", is_forced=True)
    assert path.read_bytes() == b"other"


def test_a_place_that_cannot_be_written_is_told_before_anything_is_opened(tmp_path: Path):
    with pytest.raises(UsageError, match="that is a folder"):
        check_chat(parse(["chat", "--out", str(tmp_path), "--force"]))
    with pytest.raises(UsageError, match="its folder is not there"):
        check_chat(parse(["chat", "--out", str(tmp_path / "no" / "file")]))
    check_chat(parse(["chat", "--out", str(tmp_path / "file")]))


def test_only_given_sampling_params_are_the_chats_own():
    assert chat_params(parse(["chat"])) == {}
    assert chat_params(parse(["chat", "--temperature", "0", "--seed", "0"])) == {"temperature": 0.0, "seed": 0}


@pytest.fixture
def context(own_home: Path):
    made = build_context()
    yield made
    made.close()


def test_flags_stand_over_the_settings_and_change_none_of_them(context, starter_model):
    context.settings.change(context_tokens=1024, threads=3)
    before = context.settings.get()
    flags = parse(["chat", "--model", "smollm2", "--threads", "1", "--gpu-layers", "4", "--kv-type", "q8_0"])
    request, entry = load_request(context, flags)
    assert (request.path, request.backend) == (str(starter_model), "llama_cpp")
    assert request.params == LoadParams(context_tokens=1024, threads=1, gpu_layers=4, kv_type="q8_0")
    assert entry.key.endswith("SmolLM2-135M-Instruct:Q4_1")
    assert context.settings.get() == before


def test_without_a_name_the_model_used_last_is_taken(context, tmp_path, starter_model):
    path = gguf_files.named_model("Tiny").write(tmp_path / "tiny.gguf")
    entry = context.library.import_path(path)
    assert load_request(context, parse(["chat"]))[0].path == str(starter_model)
    context.settings.change(last_model=entry.key)
    assert load_request(context, parse(["chat"]))[0].path == str(path)


def test_a_model_with_a_fault_is_refused_in_words(context, tmp_path):
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(AppError, match="broken: "):
        load_request(context, parse(["chat", "--model", str(path)]))
    with pytest.raises(LibraryError, match="No model is called “nope”"):
        load_request(context, parse(["chat", "--model", "nope"]))


def test_no_model_at_all_is_told_in_words(context, monkeypatch):
    monkeypatch.setattr(context, "preferred_model", lambda: None)
    with pytest.raises(AppError) as caught:
        load_request(context, parse(["chat"]))
    assert "models import" in caught.value.words.hint


def test_a_script_of_the_echo_engine_has_an_absolute_path(context):
    request, entry = load_request(context, parse(["chat", "--backend", "echo", "--model", "script.json"]))
    assert (request.path, entry) == (str(Path.cwd() / "script.json"), None)
    assert load_request(context, parse(["chat", "--backend", "echo"]))[0].path == ""


def test_flags_stand_over_a_model_s_defaults_and_these_over_the_settings(context):
    entry = ModelEntry("T:Q", "T", None, "Q", defaults=ModelDefaults(context_tokens=512, kv_type="q4_0"))
    flags = parse(["fit", "T", "--context", "2048"])
    assert load_params(context, flags, entry, "llama_cpp") == LoadParams(context_tokens=2048, kv_type="q4_0")
    assert wanted_params(context, flags, entry).kv_type == "q4_0"


def test_a_kv_type_of_the_settings_that_a_backend_has_not_is_its_exact_one_and_a_flag_is_refused(context):
    context.settings.change(kv_type="q8_0")
    assert load_params(context, parse(["chat"]), None, "torch").kv_type == "f16"
    assert load_params(context, parse(["chat"]), None, "llama_cpp").kv_type == "q8_0"
    with pytest.raises(UsageError) as caught:
        load_params(context, parse(["chat", "--kv-type", "q8_0"]), None, "torch")
    assert caught.value.words.message == "The torch engine cannot keep the KV cache as q8_0."
    assert "f16, bf16, f32" in caught.value.words.hint


@pytest.mark.parametrize(
    ("backend", "given", "message"),
    [
        ("torch", ["--gpu-layers", "3"], "puts a model on one device as a whole"),
        ("torch", ["--device", "tpu"], "The torch engine has no device tpu"),
        ("llama_cpp", ["--device", "cuda:0"], "The llama.cpp engine has no device cuda:0"),
        ("torch", ["--device", "cuda:1"], ""),
        ("torch", ["--gpu-layers", "0"], ""),
        ("llama_cpp", ["--device", "CPU", "--gpu-layers", "3"], ""),
    ],
)
def test_what_a_backend_has_not_is_refused_with_what_it_has(backend, given, message):
    flags = parse(["chat", *given])
    if not message:
        check_load_flags(flags, BACKENDS[backend])
        return
    with pytest.raises(UsageError) as caught:
        check_load_flags(flags, BACKENDS[backend])
    assert message in caught.value.words.message
    assert caught.value.words.hint


def test_a_folder_goes_to_torch_by_itself_and_to_no_other(context, tmp_path, monkeypatch):
    monkeypatch.setitem(registry.BACKENDS, "torch", replace(BACKENDS["torch"], distribution=""))
    folder = write_model(tmp_path / "model")
    request, entry = load_request(context, parse(["chat", "--model", str(folder)]))
    assert (request.backend, request.path, entry.format) == ("torch", str(folder), "safetensors")
    with pytest.raises(EngineError) as caught:
        load_request(context, parse(["chat", "--model", str(folder), "--backend", "llama_cpp"]))
    assert caught.value.code is ErrorCode.WRONG_KIND


def test_torch_that_is_not_installed_is_said_before_anything_starts(context, starter_model, monkeypatch):
    monkeypatch.setitem(registry.BACKENDS, "torch", replace(BACKENDS["torch"], distribution="no-such-distribution"))
    with pytest.raises(EngineError) as caught:
        load_request(context, parse(["chat", "--backend", "torch"]))
    assert caught.value.code is ErrorCode.ENGINE_NOT_INSTALLED


def test_ctrl_c_is_taken_again_after_it_was_ignored():
    before = signal.getsignal(signal.SIGINT)
    with cli_commands.interrupts_ignored():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before
