"""The parts fit together, remember what they should, and end without a trace."""

from __future__ import annotations

import threading

import psutil

from app.context import build_context
from app.engines.supervisor import LoadRequest
from app.units import bytes_text
from backends import protocol
from backends.client import EngineDied
from tests.helpers.engine_client import EventLog
from tests.helpers.gguf_files import named_model


def test_a_fresh_home_gives_a_working_context_and_no_notice(starter_model) -> None:
    context = build_context()
    assert context.notices == []
    assert context.preferred_model().origin == "starter"
    assert context.store.chats() == []
    context.close()


def test_the_model_used_last_is_preferred(tmp_path, starter_model) -> None:
    context = build_context()
    other = named_model("Other").write(tmp_path / "other.gguf")
    entry = context.library.import_path(other)
    context.settings.change(last_model=entry.key)
    assert context.preferred_model().path == other
    context.close()


def test_settings_become_params(tmp_path) -> None:
    context = build_context()
    context.settings.change(temperature=0.1, top_k=7, seed=3, max_tokens=9, context_tokens=2048, kv_type="q8_0")
    assert context.sampling_params() == protocol.SamplingParams(temperature=0.1, top_k=7, seed=3, max_tokens=9)
    assert context.load_params() == protocol.LoadParams(context_tokens=2048, kv_type="q8_0")
    context.close()


def test_a_backend_that_was_chosen_for_a_model_is_remembered_with_it(tmp_path) -> None:
    context = build_context()
    entry = context.library.import_path(named_model("Other").write(tmp_path / "other.gguf"))
    assert context.backend_of(entry) == "llama_cpp"
    context.choose_backend(entry, "torch")
    known = context.library.find(entry.key)
    assert (context.backend_of(known), known.defaults.backend) == ("torch", "torch")
    context.choose_backend(entry, "llama_cpp")
    assert context.library.find(entry.key).defaults.backend is None
    context.settings.change(backend="torch")
    assert context.backend_of(context.library.find(entry.key)) == "torch"
    context.close()


def test_a_backend_gets_only_a_kv_type_that_it_has(tmp_path) -> None:
    context = build_context()
    context.settings.change(kv_type="q4_0")
    entry = context.library.import_path(named_model("Other").write(tmp_path / "other.gguf"))
    assert context.load_params(entry, "torch").kv_type == "f16"
    assert context.load_params(entry).kv_type == context.wanted_params(entry).kv_type == "q4_0"
    context.close()


def test_telemetry_is_fed_and_watchers_hear_everything() -> None:
    context, log = build_context(), EventLog()
    context.watch_engine(log.add)
    context.engine.load(LoadRequest("", "echo"))
    log.wait(protocol.ModelLoaded)
    log.wait(protocol.MemoryRead, count=3)
    assert context.telemetry.version > 0
    assert context.telemetry.loaded is not None
    context.engine.kill()
    log.wait(EngineDied)
    context.close()


def test_closing_ends_every_thread_and_process() -> None:
    before = set(threading.enumerate())
    context, log = build_context(), EventLog()
    context.watch_engine(log.add)
    context.engine.load(LoadRequest("", "echo"))
    log.wait(protocol.ModelLoaded)
    context.close()
    assert psutil.Process().children() == []
    assert {thread for thread in threading.enumerate() if thread.is_alive()} <= before


def test_a_session_is_made_once_a_chat() -> None:
    context = build_context()
    chat = context.store.add_chat()
    session = context.session(chat, lambda _event: None)
    assert context.session(chat, lambda _event: None) is session
    context.end_session(chat.chat_id)
    assert context.session(chat, lambda _event: None) is not session
    context.close()


def test_a_model_s_need_is_said_beside_what_is_free(starter_model) -> None:
    context, log = build_context(), EventLog()
    context.watch_engine(log.add)
    assert context.memory_hint() == ""
    context.settings.change(context_tokens=1024)
    context.load_model(context.preferred_model())
    log.wait(protocol.ModelLoaded)
    fit = context.advisor.fit(context.preferred_model())
    assert fit.estimate.weights_bytes + fit.estimate.kv_bytes == 96_576_768 + 1024 * 23_040
    assert context.memory_hint().startswith(f"It needs about {bytes_text(fit.estimate.needed_bytes)}; ")
    context.close()
