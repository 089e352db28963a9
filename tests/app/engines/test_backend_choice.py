"""Which backends a model can go to, and who decides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.engines import backend_choice
from app.engines.backend_choice import (
    backends_for,
    check_backend,
    chosen_backend,
    is_loadable,
    load_notices,
    own_choice,
    quantization_text,
    takes_words,
)
from app.models.entry import ModelDefaults, ModelEntry
from backends import protocol, registry
from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.registry import BACKENDS, FOLDER, GGUF, Backend

GGUF_MODEL = ModelEntry("Smol:Q4_1", "Smol", Path("/m/smol.gguf"), "Q4_1")
FOLDER_MODEL = ModelEntry("Smol:BF16", "Smol", Path("/m/smol"), "BF16", format="safetensors")


@pytest.fixture
def without_torch(monkeypatch):
    missing = replace(BACKENDS["torch"], distribution="no-such-distribution")
    monkeypatch.setitem(registry.BACKENDS, "torch", missing)
    return missing


@pytest.fixture
def with_torch(monkeypatch):
    monkeypatch.setitem(registry.BACKENDS, "torch", replace(BACKENDS["torch"], distribution=""))


def named(entry: ModelEntry, backend: str) -> ModelEntry:
    return replace(entry, defaults=ModelDefaults(backend=backend))


def test_the_registry_says_who_loads_what() -> None:
    assert [backend.name for backend in backends_for(GGUF_MODEL)] == ["llama_cpp", "torch"]
    assert [backend.name for backend in backends_for(FOLDER_MODEL)] == ["torch"]


@pytest.mark.usefixtures("with_torch")
def test_without_a_choice_the_first_backend_takes_a_model() -> None:
    assert chosen_backend(GGUF_MODEL) == "llama_cpp"
    assert chosen_backend(FOLDER_MODEL) == "torch"


def test_the_model_s_own_choice_goes_before_the_settings() -> None:
    assert chosen_backend(GGUF_MODEL, "torch") == "torch"
    assert chosen_backend(named(GGUF_MODEL, "llama_cpp"), "torch") == "llama_cpp"
    assert chosen_backend(named(GGUF_MODEL, "torch")) == "torch"


def test_a_choice_that_cannot_be_is_passed_over() -> None:
    assert chosen_backend(named(FOLDER_MODEL, "llama_cpp"), "llama_cpp") == "torch"
    assert chosen_backend(named(GGUF_MODEL, "of_a_newer_version")) == "llama_cpp"


@pytest.mark.usefixtures("with_torch")
def test_only_what_would_not_come_by_itself_is_kept() -> None:
    assert own_choice(GGUF_MODEL, "llama_cpp") is None
    assert own_choice(GGUF_MODEL, "torch") == "torch"
    assert own_choice(GGUF_MODEL, "torch", "torch") is None
    assert own_choice(GGUF_MODEL, "llama_cpp", "torch") == "llama_cpp"
    for setting in ("", "torch"):
        for wished in ("llama_cpp", "torch"):
            kept = own_choice(GGUF_MODEL, wished, setting)
            entry = replace(GGUF_MODEL, defaults=ModelDefaults(backend=kept))
            assert chosen_backend(entry, setting) == wished


@pytest.mark.usefixtures("without_torch")
def test_a_folder_cannot_be_loaded_without_torch_and_a_gguf_can() -> None:
    assert (is_loadable(GGUF_MODEL), is_loadable(FOLDER_MODEL)) == (True, False)
    assert not is_loadable(replace(GGUF_MODEL, fault="It is broken."))
    with pytest.raises(EngineError) as caught:
        check_backend("torch", "/m/smol", FOLDER)
    assert caught.value.code is ErrorCode.ENGINE_NOT_INSTALLED
    assert caught.value.parameters == {"backend": "torch", "packages": "torch transformers"}


def test_a_folder_is_nothing_for_llama_cpp() -> None:
    with pytest.raises(EngineError) as caught:
        check_backend("llama_cpp", "/m/smol", FOLDER)
    assert caught.value.code is ErrorCode.WRONG_KIND
    assert caught.value.parameters == {"path": "/m/smol", "backend": "llama.cpp", "takes": "GGUF files"}
    assert takes_words(BACKENDS["torch"]) == "GGUF files and folders of safetensors"
    check_backend("llama_cpp", "/m/smol.gguf", GGUF)


@pytest.mark.parametrize(
    ("own", "told", "shown"),
    [
        ("Q4_1", "Q4_1 as bf16", "Q4_1 as bf16"),
        ("Q4_K_M", "Q4_K - Medium", "Q4_K_M"),
        ("UD-Q4_K_XL", "Q4_K as bf16", "UD-Q4_K_XL as bf16"),
        ("", "Q8_0", "Q8_0"),
        ("Q4_1", "", "Q4_1"),
    ],
)
def test_a_quantization_is_named_as_it_is_stored_and_as_it_is_computed(own, told, shown) -> None:
    assert quantization_text(own, told) == shown


def loaded(**fields: object) -> protocol.ModelLoaded:
    return protocol.ModelLoaded(**{"backend": "torch", "model_path": "/m/x", "context_tokens": 8, **fields})


def test_the_plain_path_and_another_kv_type_are_told_with_the_engine_s_own_notices() -> None:
    came = loaded(
        attention_path="plain", path_note="the mask differs", kv_type="bf16", notices=(NoticeCode.CONTEXT_CLAMPED,)
    )
    told = dict(load_notices(protocol.LoadParams(kv_type="q8_0"), came))
    assert list(told) == [NoticeCode.CONTEXT_CLAMPED, NoticeCode.PLAIN_PATH, NoticeCode.KV_TYPE_NOT_USED]
    assert told[NoticeCode.PLAIN_PATH].message.endswith("with a cache of its own: the mask differs.")
    assert told[NoticeCode.KV_TYPE_NOT_USED].message == ("The KV cache was to be kept as q8_0; torch keeps it as bf16.")


def test_a_load_as_it_was_asked_for_is_no_news() -> None:
    assert load_notices(protocol.LoadParams(), loaded(attention_path="paged", kv_type="bf16")) == []
    assert load_notices(protocol.LoadParams(kv_type="q8_0"), loaded(backend="llama_cpp", kv_type="q8_0")) == []


def test_an_engine_that_says_a_notice_itself_says_it_once() -> None:
    came = loaded(attention_path="plain", notices=(NoticeCode.PLAIN_PATH,))
    assert len(load_notices(protocol.LoadParams(), came)) == 1


def test_every_format_of_the_library_has_a_backend() -> None:
    assert all(any(kind in backend.loads for backend in BACKENDS.values()) for kind in backend_choice._KINDS.values())
    assert Backend("x", "x", "x", "X").loads == frozenset()
