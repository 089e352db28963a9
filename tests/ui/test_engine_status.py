"""What the engine does, in words: the chip, the live line, and a notice for everything that went wrong."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from app.engines.supervisor import LoadRequest, ResponseChanged, StateChanged
from app.errors import Words
from app.models.library import ModelEntry
from app.units import NBSP
from backends import protocol
from backends.client import EngineDied
from backends.errors import ErrorCode, NoticeCode
from backends.protocol import LifeCycle, RequestId
from tests.helpers.notices import button_of, shown_notices
from ui.bridge import Bridge
from ui.engine_status import EngineStatus
from ui.notifications import NoticeBar
from ui.tasks import SynchronousTasks
from ui.theme import load_theme

ENTRY = ModelEntry("SmolLM2:Q4_1", "SmolLM2", Path("/models/smol.gguf"), "Q4_1")
LOADED = protocol.ModelLoaded(backend="llama_cpp", model_path="/models/smol.gguf", context_tokens=8192, device="CPU")


class Engine:
    """Stands in for the supervisor and counts what is asked of it."""

    def __init__(self) -> None:
        self.state = LifeCycle.DEAD
        self.loaded: protocol.ModelLoaded | None = None
        self.request: LoadRequest | None = None
        self.asked: list[str] = []

    def kill(self) -> None:
        self.asked.append("kill")

    def restart(self) -> None:
        self.asked.append("restart")


class Gate:
    """Asks this question before a load, until it was agreed to."""

    def __init__(self) -> None:
        self.words: Words | None = None
        self.is_slow = False

    def takes_time(self, _entry: ModelEntry, _params: protocol.LoadParams, _backend: str) -> bool:
        return self.is_slow

    def question(self, _entry: ModelEntry, _params: protocol.LoadParams, _backend: str) -> Words | None:
        return self.words

    def agree(self, _entry: ModelEntry, _params: protocol.LoadParams, _backend: str) -> None:
        self.words = None


class Told:
    """An engine status on a bridge of its own."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.bridge = Bridge()
        self.notices = NoticeBar(load_theme("dark"))
        self.gate = Gate()
        self.kept: list[str] = []
        self.wanted = protocol.LoadParams()
        context = SimpleNamespace(
            engine=self.engine,
            gate=self.gate,
            load_params=lambda _entry, _backend: protocol.LoadParams(),
            wanted_params=lambda _entry: self.wanted,
            backend_of=lambda _entry: "llama_cpp",
            choose_backend=lambda _entry, backend: self.kept.append(backend),
            load_model=self.load_model,
            memory_hint=lambda: "It needs 1 MiB.",
        )
        self.status = EngineStatus(context, self.bridge, self.notices, SynchronousTasks())

    def load_model(self, entry: ModelEntry, backend: str) -> None:
        self.engine.request = LoadRequest(str(entry.path), backend)

    def event(self, event: object, state: LifeCycle | None = None) -> None:
        if state is not None:
            self.engine.state = state
        if isinstance(event, protocol.ModelLoaded):
            self.engine.loaded = event
        self.bridge.engine_event.emit(event)

    def moved_to(self, state: LifeCycle) -> None:
        self.event(StateChanged(state), state)


@pytest.fixture
def told(qtbot):
    made = Told()
    qtbot.addWidget(made.notices)
    return made


def test_without_a_model_nothing_may_be_sent_and_the_chip_says_why(told):
    assert (told.status.chip_text, told.status.line, told.status.is_ready) == ("No model", "", False)


def test_the_chip_names_model_quantization_backend_and_the_device_really_used(told):
    told.status.load(ENTRY)
    assert told.status.chip_text == "SmolLM2 · Q4_1 · llama.cpp"
    assert told.status.is_ready
    told.event(LOADED)
    assert told.status.chip_text == "SmolLM2 · Q4_1 · llama.cpp · CPU"


def test_the_line_follows_the_life_cycle(told):
    told.status.load(ENTRY)
    told.moved_to(LifeCycle.STARTING)
    assert told.status.line == "Starting the engine"
    told.moved_to(LifeCycle.LOADING)
    told.event(protocol.Progress(phase="load", done=0.42, total=1.0))
    assert told.status.line == f"Loading the model, 42{NBSP}%"
    told.event(LOADED)
    told.moved_to(LifeCycle.READY)
    assert told.status.line == ""
    told.moved_to(LifeCycle.STOPPING)
    assert told.status.line == "Ending the engine"
    told.moved_to(LifeCycle.DEAD)
    assert told.status.line == "The engine is not running; sending starts it again"


def test_every_event_says_that_the_words_may_have_changed(told, qtbot):
    with qtbot.waitSignal(told.status.changed):
        told.moved_to(LifeCycle.STARTING)
    with qtbot.waitSignal(told.status.changed):
        told.status.load(ENTRY)


def test_a_death_is_told_with_its_cause_and_one_click_restarts(told):
    told.status.load(ENTRY)
    told.event(LOADED)
    told.event(EngineDied(None, 9, (), "exited"), LifeCycle.DEAD)
    assert shown_notices(told.notices) == [
        "Error: The system ended the engine, probably out of memory. It needs 1 MiB. "
        "Try a smaller quantization or a shorter context."
    ]
    button_of(told.notices, "Restart").click()
    assert told.engine.asked == ["restart"]
    told.moved_to(LifeCycle.STARTING)
    assert shown_notices(told.notices) == []


def test_a_death_while_loading_says_so(told):
    told.status.load(ENTRY)
    told.event(EngineDied(None, 11, (), "exited"), LifeCycle.DEAD)
    (notice,) = shown_notices(told.notices)
    assert "It was loading the model." in notice


def test_a_load_that_failed_is_told_once_and_may_be_tried_again(told):
    told.status.load(ENTRY)
    told.moved_to(LifeCycle.LOADING)
    told.event(protocol.EngineFailed(code=ErrorCode.FILE_MISSING, parameters={"path": "/models/smol.gguf"}))
    told.event(EngineDied(0, None, (), "exited"), LifeCycle.DEAD)
    (notice,) = shown_notices(told.notices)
    assert notice.startswith("Error: The model file “smol.gguf” is not there any more.")
    button_of(told.notices, "Try again").click()
    assert told.engine.asked == ["restart"]


def test_what_went_wrong_with_one_answer_is_the_chats_affair(told):
    told.event(protocol.EngineFailed(code=ErrorCode.EMPTY_PROMPT, request_id=RequestId(7)))
    assert shown_notices(told.notices) == []


def test_an_engine_replaced_by_another_model_is_no_news(told):
    told.status.load(ENTRY)
    told.event(LOADED)
    told.event(EngineDied(None, None, (), "replaced"))
    assert shown_notices(told.notices) == []


def test_silence_offers_to_stop_the_engine_and_goes_when_it_answers_again(told):
    told.event(ResponseChanged(is_responding=False, silence_s=3.2))
    (notice,) = shown_notices(told.notices)
    assert notice.startswith(f"Warning: The engine has not answered for 3.20{NBSP}s.")
    button_of(told.notices, "Stop the engine").click()
    assert told.engine.asked == ["kill"]
    told.event(ResponseChanged(is_responding=True, silence_s=0.0))
    assert shown_notices(told.notices) == []


def test_a_death_ends_the_notice_of_silence(told):
    told.event(LOADED)
    told.event(ResponseChanged(is_responding=False, silence_s=3.2))
    told.event(EngineDied(None, 9, (), "killed"), LifeCycle.DEAD)
    (notice,) = shown_notices(told.notices)
    assert notice.startswith("Error: The engine did not answer any more, so Cutaway ended it.")


def test_a_fallback_stays_on_screen_in_words(told):
    told.event(
        protocol.ModelLoaded(backend="echo", model_path="m", context_tokens=8, notices=(NoticeCode.GPU_NOT_USED,))
    )
    (notice,) = shown_notices(told.notices)
    assert notice.startswith("Warning: The GPU was asked for, but the model runs on the CPU.")
    told.moved_to(LifeCycle.READY)
    assert shown_notices(told.notices) == [notice]


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_doubtful_load_is_asked_for_once_and_then_done(told, is_slow):
    told.gate.words, told.gate.is_slow = Words("This model needs 9 GiB.", "Choose a smaller one."), is_slow
    told.status.load(ENTRY)
    assert told.status.entry is None
    assert told.engine.request is None
    assert shown_notices(told.notices) == ["Warning: This model needs 9 GiB. Choose a smaller one."]
    button_of(told.notices, "Load anyway").click()
    assert told.status.entry is ENTRY
    assert told.engine.request.path == "/models/smol.gguf"
    assert shown_notices(told.notices) == []


def test_a_question_about_one_model_goes_when_another_is_chosen(told):
    told.gate.words = Words("This model needs 9 GiB.")
    told.status.load(ENTRY)
    told.gate.words = None
    told.status.load(ENTRY)
    assert shown_notices(told.notices) == []
    assert told.status.entry is ENTRY


# ------------------------------------------------------------------------------------------------ other backends


def test_a_switch_loads_the_model_by_the_other_backend_and_keeps_the_choice(told):
    told.status.load(ENTRY)
    told.event(LOADED)
    told.status.switch("torch")
    assert told.kept == ["torch"]
    assert told.engine.request.backend == "torch"
    told.engine.loaded = None
    assert told.status.chip_text == "SmolLM2 · Q4_1 · torch"
    told.event(msgspec.structs.replace(LOADED, backend="torch", quantization="Q4_1 as bf16"))
    assert told.status.chip_text == "SmolLM2 · Q4_1 as bf16 · torch · CPU"


def test_the_same_backend_or_no_model_is_nothing_to_switch(told):
    told.status.switch("torch")
    told.status.load(ENTRY)
    told.status.switch("llama_cpp")
    assert told.kept == []


def test_a_switch_that_fails_offers_the_way_back(told):
    told.status.load(ENTRY)
    told.event(LOADED)
    told.status.switch("torch")
    told.moved_to(LifeCycle.STARTING)
    told.event(protocol.EngineFailed(code=ErrorCode.ENGINE_NOT_INSTALLED, parameters={"backend": "torch"}))
    (notice,) = shown_notices(told.notices)
    assert notice.startswith("Error: The torch engine is not installed.")
    button_of(told.notices, "Back to llama.cpp").click()
    assert told.engine.request.backend == "llama_cpp"
    assert told.kept == ["torch", "llama_cpp"]


def test_once_the_other_backend_has_loaded_there_is_no_way_back_to_offer(told):
    told.status.load(ENTRY)
    told.status.switch("torch")
    told.event(msgspec.structs.replace(LOADED, backend="torch"))
    told.event(EngineDied(None, 9, (), "exited"), LifeCycle.DEAD)
    assert button_of(told.notices, "Restart")


def test_a_question_before_a_switch_is_answered_for_that_backend(told):
    told.status.load(ENTRY)
    told.gate.words = Words("This model needs 9 GiB.")
    told.status.switch("torch")
    assert told.status.backend == "llama_cpp"
    button_of(told.notices, "Load anyway").click()
    assert (told.status.backend, told.engine.request.backend) == ("torch", "torch")


def test_the_plain_path_is_said_with_its_reason_and_goes_with_the_load(told):
    told.status.load(ENTRY)
    plain = {"backend": "torch", "attention_path": "plain", "path_note": "1 of 4 logits differ"}
    told.event(msgspec.structs.replace(LOADED, **plain))
    (notice,) = shown_notices(told.notices)
    assert notice.startswith("Warning: This model runs without KV blocks, each chat with a cache of its own: 1 of 4")
    told.moved_to(LifeCycle.STARTING)
    assert shown_notices(told.notices) == []


def test_another_kv_type_than_the_one_wished_for_is_said(told):
    told.wanted = protocol.LoadParams(kv_type="q8_0")
    told.status.load(ENTRY)
    told.event(msgspec.structs.replace(LOADED, backend="torch", kv_type="bf16"))
    (notice,) = shown_notices(told.notices)
    assert notice.startswith("Warning: The KV cache was to be kept as q8_0; torch keeps it as bf16.")
