"""What the program is told of a load, and what a model keeps and gives back."""

from __future__ import annotations

import gc
import weakref

import pytest

from backends import protocol
from backends.errors import EngineError, ErrorCode
from tests.backends.torch_engine.test_loading import folder_of, load


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    engine, loaded = load(folder_of("llama", tmp_path_factory.mktemp("tiny")))
    yield engine, loaded
    engine.unload()


def test_what_it_can_do_is_said(tiny):
    _engine, loaded = tiny
    assert loaded.capabilities == protocol.Capabilities(
        can_roll_back=True, can_share_prefix=True, can_score=True, kv_types=("f32",)
    )
    assert "torch 2." in loaded.engine_variant
    assert "transformers 5." in loaded.engine_variant
    assert loaded.vocabulary_tokens == 49_152


def test_a_grammar_is_compiled_when_it_is_asked_for(tiny):
    engine, _loaded = tiny
    parts = engine._parts
    assert parts.grammar(protocol.SamplingParams()) is None
    assert parts._compiler is None
    assert parts.grammar(protocol.SamplingParams(grammar='root ::= "yes" | "no"')) is not None
    with pytest.raises(EngineError) as caught:
        parts.grammar(protocol.SamplingParams(grammar="root ::= ("))
    assert caught.value.code is ErrorCode.BAD_PARAMS


def test_an_unloaded_model_is_gone(tmp_path):
    engine, _loaded = load(folder_of("llama", tmp_path))
    module = weakref.ref(engine._parts.loaded.module)
    engine.unload()
    gc.collect()
    assert module() is None
    with pytest.raises(EngineError) as caught:
        engine.count_tokens(protocol.Text("a"))
    assert caught.value.code is ErrorCode.NO_MODEL
