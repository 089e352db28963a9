"""The llama.cpp engine against itself: reuse changes no answer, Stop stops, every failure has a code."""

from __future__ import annotations

import dataclasses
import re
import time

import pytest

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.library import engine_variant

GREEDY = protocol.SamplingParams(temperature=0, max_tokens=24)


def load(path, **params: object) -> tuple[LlamaCppEngine, protocol.ModelLoaded]:
    engine = LlamaCppEngine()
    command = protocol.LoadModel(str(path), protocol.LoadParams(**params))
    return engine, engine.load(command, lambda _event: None)


@pytest.fixture(scope="module")
def starter(starter_model):
    engine, loaded = load(starter_model, context_tokens=1024)
    yield engine, loaded
    engine.unload()


@dataclasses.dataclass
class Answer:
    text: str
    token_ids: tuple[int, ...]
    reason: protocol.StopReason
    figures: protocol.RequestFigures
    steps: list[protocol.StepStats]


def answer(engine: LlamaCppEngine, prompt: protocol.Prompt | str, params=GREEDY, parent=()) -> Answer:
    if isinstance(prompt, str):
        prompt = protocol.Text(prompt)
    engine.add(
        protocol.Generate(request_id=protocol.RequestId(1), prompt=prompt, params=params, parent_token_ids=parent)
    )
    text, ids, steps, finished = "", (), [], None
    while engine.has_work:
        for event in engine.step():
            if isinstance(event, protocol.StepDone):
                text += "".join(piece.text for piece in event.pieces)
                ids += tuple(i for piece in event.pieces for i in piece.token_ids)
                steps.append(event.stats)
            else:
                finished = event
    return Answer(text, ids, finished.stop_reason, finished.figures, steps)


def fresh(engine: LlamaCppEngine, *arguments, **fields) -> Answer:
    engine._forget()
    return answer(engine, *arguments, **fields)


def chat(*turns: str, ids: tuple[int, ...] = ()) -> protocol.RenderedPrompt:
    """User, assistant, user … in ChatML; the assistant's turn as ids where given."""
    parts: list[object] = []
    for number, turn in enumerate(turns):
        role = "assistant" if number % 2 else "user"
        body = protocol.TokenPart(ids) if number % 2 and ids else protocol.PlainPart(turn)
        parts += [protocol.TemplatePart(f"<|im_start|>{role}\n"), body, protocol.TemplatePart("<|im_end|>\n")]
    return protocol.RenderedPrompt((*parts, protocol.TemplatePart("<|im_start|>assistant\n")))


def test_a_loaded_model_describes_itself(starter) -> None:
    _engine, loaded = starter
    assert (loaded.architecture, loaded.quantization, loaded.device) == ("llama", "Q4_1", "CPU")
    assert (loaded.context_tokens, loaded.train_context_tokens, loaded.vocabulary_tokens) == (1024, 8192, 49152)
    assert loaded.parameters_count == 134_515_008
    assert "<|im_start|>" in loaded.chat_template
    # 30 layers x 3 KV heads x 64 x 2 (K and V) x 2 bytes
    assert loaded.kv_bytes_per_token == 30 * 3 * 64 * 2 * 2
    assert loaded.memory.kv_reserved_bytes == 1024 * 23040
    assert loaded.memory.weights_bytes >= 96_576_768
    assert loaded.memory.compute_bytes > 0
    assert loaded.capabilities.can_probe_memory


def test_the_model_answers_sensibly(starter) -> None:
    said = fresh(starter[0], chat("What is the capital of France?"))
    assert "Paris" in said.text


def test_the_stored_text_is_the_decoded_ids(starter) -> None:
    engine, _ = starter
    said = fresh(engine, chat("Write one line with an emoji and Chinese."))
    vocabulary = engine._vocabulary
    assert b"".join(vocabulary.piece(token) for token in said.token_ids).decode(errors="replace") == said.text


def test_a_second_turn_reads_only_what_is_new_and_answers_the_same(starter) -> None:
    engine, _ = starter
    first = fresh(engine, chat("Name a colour."), protocol.SamplingParams(temperature=0, max_tokens=8))
    prompt = chat("Name a colour.", first.text, "Another one.", ids=first.token_ids)
    second = answer(engine, prompt)
    # What the context held: the first prompt and all but the last of the answer's tokens.
    assert second.figures.reused_tokens == first.figures.prompt_tokens + first.figures.new_tokens - 1
    assert second.figures.reuse_note == ""
    assert (
        sum(step.prefill_tokens for step in second.steps) == second.figures.prompt_tokens - second.figures.reused_tokens
    )
    assert fresh(engine, prompt).token_ids == second.token_ids


def test_an_edited_prompt_reuses_the_common_beginning_and_answers_as_if_read_whole(starter) -> None:
    engine, _ = starter
    fresh(engine, chat("The quick brown fox jumps over the lazy dog. Say yes."))
    edited = chat("The quick brown fox jumps over the lazy cat. Say no.")
    reused = answer(engine, edited)
    assert reused.figures.reused_tokens > 8
    assert reused.figures.reuse_note == "differs"
    assert fresh(engine, edited).token_ids == reused.token_ids


def test_the_same_prompt_again_computes_its_last_token_again(starter) -> None:
    engine, _ = starter
    first = fresh(engine, chat("Count to three."))
    again = answer(engine, chat("Count to three."))
    assert again.figures.reused_tokens == again.figures.prompt_tokens - 1
    assert again.token_ids == first.token_ids


def test_an_answer_is_continued_from_its_ids(starter) -> None:
    engine, _ = starter
    whole = fresh(engine, chat("Tell a story."), protocol.SamplingParams(temperature=0, max_tokens=20))
    head = whole.token_ids[:10]
    rest = answer(engine, chat("Tell a story."), protocol.SamplingParams(temperature=0, max_tokens=10), parent=head)
    assert head + rest.token_ids == whole.token_ids


def test_a_seed_repeats_an_answer_and_another_seed_does_not(starter) -> None:
    engine, _ = starter
    params = protocol.SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0, seed=7, max_tokens=16)
    first = fresh(engine, chat("Say something odd."), params)
    assert fresh(engine, chat("Say something odd."), params).token_ids == first.token_ids
    assert first.figures.seed == 7
    other = dataclasses.replace(first, token_ids=())
    for seed in range(8, 12):
        import msgspec

        other = fresh(engine, chat("Say something odd."), msgspec.structs.replace(params, seed=seed))
        if other.token_ids != first.token_ids:
            break
    assert other.token_ids != first.token_ids  # 16 draws at temperature 1.5: equal by chance with odds under 1e-6


def test_without_a_seed_one_is_drawn_and_reported(starter) -> None:
    engine, _ = starter
    params = protocol.SamplingParams(temperature=1.2, max_tokens=12)
    first = fresh(engine, chat("Say something odd."), params)
    repeated = protocol.SamplingParams(temperature=1.2, max_tokens=12, seed=first.figures.seed)
    assert fresh(engine, chat("Say something odd."), repeated).token_ids == first.token_ids


def test_a_repeat_penalty_makes_an_answer_repeat_less(starter) -> None:
    engine, _ = starter
    prompt = chat("Repeat after me: la la la la la la la la la la la la.")
    plain = fresh(engine, prompt, protocol.SamplingParams(temperature=0, max_tokens=40))
    penalized = fresh(engine, prompt, protocol.SamplingParams(temperature=0, max_tokens=40, repeat_penalty=1.8))
    assert len(set(plain.token_ids)) < len(set(penalized.token_ids))


def test_a_stop_string_ends_the_answer_before_it(starter) -> None:
    engine, _ = starter
    whole = fresh(engine, chat("What is the capital of France?"))
    stop = whole.text[8:12]
    cut = fresh(engine, chat("What is the capital of France?"), protocol.SamplingParams(temperature=0, stop=(stop,)))
    assert cut.reason is protocol.StopReason.STOP_STRING
    assert cut.text == whole.text[: whole.text.index(stop)]


def test_the_context_s_end_ends_the_answer(starter_model) -> None:
    engine, loaded = load(starter_model, context_tokens=256)
    said = answer(engine, chat("Count from one to a thousand."), protocol.SamplingParams(temperature=0.9, seed=1))
    if said.reason is not protocol.StopReason.CONTEXT_FULL:  # the model ended by itself: fill the context by hand
        said = answer(
            engine, protocol.TokenIds(tuple(range(100, 350))), protocol.SamplingParams(temperature=1.5, seed=2)
        )
    assert said.reason is protocol.StopReason.CONTEXT_FULL
    assert said.figures.prompt_tokens + said.figures.new_tokens == loaded.context_tokens
    with pytest.raises(EngineError) as caught:
        engine.add(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.TokenIds((5,) * 256)))
    assert caught.value.code is ErrorCode.PROMPT_TOO_LONG
    assert caught.value.parameters == {"prompt_tokens": 256, "context_tokens": 256}
    engine.unload()


def test_used_kv_is_what_the_context_holds(starter) -> None:
    import llama_cpp

    engine, loaded = starter
    said = fresh(engine, chat("Hello."))
    held = llama_cpp.llama_memory_seq_pos_max(engine._memory, 0) + 1
    assert said.steps[-1].kv_used_tokens == held == said.figures.prompt_tokens + len(said.steps) - 1
    assert said.steps[-1].kv_used_bytes == held * loaded.kv_bytes_per_token


def test_an_interrupted_reading_leaves_nothing_behind_and_the_next_answer_is_right(starter) -> None:
    engine, _ = starter
    expected = fresh(engine, chat("What is the capital of France?")).token_ids
    engine._forget()
    engine.add(protocol.Generate(request_id=protocol.RequestId(9), prompt=protocol.TokenIds(tuple(range(100, 900)))))
    engine.interrupt()
    assert engine.step() == ()
    (finished,) = engine.abort(protocol.RequestId(9))
    assert finished.stop_reason is protocol.StopReason.ABORTED
    assert not engine.has_work
    assert answer(engine, chat("What is the capital of France?")).token_ids == expected


def test_an_interrupt_meant_for_another_request_only_delays_this_one(starter) -> None:
    engine, _ = starter
    expected = fresh(engine, chat("Hello there.")).token_ids
    engine._forget()
    engine.add(protocol.Generate(request_id=protocol.RequestId(1), prompt=chat("Hello there."), params=GREEDY))
    engine.add(protocol.Generate(request_id=protocol.RequestId(2), prompt=chat("Other."), params=GREEDY))
    engine.interrupt()
    assert engine.step() == ()
    engine.abort(protocol.RequestId(2))
    ids: tuple[int, ...] = ()
    while engine.has_work:
        for event in engine.step():
            if isinstance(event, protocol.StepDone):
                ids += tuple(i for piece in event.pieces for i in piece.token_ids)
    assert ids == expected


def test_an_interrupt_in_the_middle_of_a_step_returns_soon(starter) -> None:
    import threading

    engine, _ = starter
    engine._forget()
    engine.add(protocol.Generate(request_id=protocol.RequestId(3), prompt=protocol.TokenIds(tuple(range(100, 1000)))))
    interrupted_s = []

    def interrupt() -> None:
        time.sleep(0.1)
        interrupted_s.append(time.monotonic())
        engine.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    while engine.step():
        pass
    returned_s = time.monotonic()
    thread.join()
    engine.abort(protocol.RequestId(3))
    assert returned_s - interrupted_s[0] < 1.0  # a whole piece takes about a second; RESULTS.md has the distribution


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 0.0}, "top-p"),
        ({"min_p": 1.0}, "min-p"),
        ({"top_k": -5}, "top-k"),
        ({"repeat_penalty": 0.0}, "penalty"),
        ({"max_tokens": 0}, "new tokens"),
        ({"seed": -1}, "seed"),
    ],
)
def test_sampling_params_that_make_no_sense_are_refused(starter, params, word) -> None:
    with pytest.raises(EngineError) as caught:
        answer(starter[0], "hello", protocol.SamplingParams(**params))
    assert caught.value.code is ErrorCode.BAD_PARAMS
    assert word in caught.value.parameters["detail"]


def test_ids_outside_the_vocabulary_are_refused(starter) -> None:
    for token in (-1, 49152):
        with pytest.raises(EngineError) as caught:
            answer(starter[0], protocol.TokenIds((1, token)))
        assert caught.value.code is ErrorCode.BAD_PARAMS


def test_an_empty_prompt_is_refused(starter) -> None:
    with pytest.raises(EngineError) as caught:
        answer(starter[0], "")
    assert caught.value.code is ErrorCode.EMPTY_PROMPT


def test_files_that_are_no_models_are_refused_in_a_code(tmp_path) -> None:
    cases = {
        "missing.gguf": ErrorCode.FILE_MISSING,
        "text.gguf": ErrorCode.NOT_A_MODEL,
        "cut.gguf": ErrorCode.LOAD_FAILED,
    }
    (tmp_path / "text.gguf").write_text("hello, I am no model")
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\3\0\0\0" + b"\0" * 16)
    for name, code in cases.items():
        with pytest.raises(EngineError) as caught:
            load(tmp_path / name)
        assert caught.value.code is code


def test_a_longer_context_than_the_model_s_own_is_clamped_and_said(starter_model) -> None:
    engine, loaded = load(starter_model, context_tokens=1_000_000)
    assert loaded.context_tokens == 8192
    assert loaded.notices == ("context_clamped",)
    engine.unload()


def test_a_longer_context_than_the_model_s_own_is_given_to_who_insists(starter_model) -> None:
    engine, loaded = load(starter_model, context_tokens=9_000, kv_type="q4_0", allow_long_context=True)
    assert loaded.context_tokens == 9_216  # llama.cpp rounds up to 256
    assert loaded.notices == ("context_beyond_training",)
    engine.unload()


def test_streams_share_out_the_context_and_one_of_them_is_used(starter_model) -> None:
    engine, loaded = load(starter_model, context_tokens=1024, kv_mode="streams", max_sequences=2)
    assert loaded.context_tokens == 512
    assert loaded.kv_bytes_per_token == 23040
    assert answer(engine, chat("What is the capital of France?")).figures.new_tokens > 0
    engine.unload()


def test_asking_for_a_gpu_that_is_not_there_is_said(starter_model) -> None:
    engine, loaded = load(starter_model, context_tokens=256, gpu_layers=99)
    assert loaded.device == "CPU"
    assert "gpu_not_used" in loaded.notices
    engine.unload()


@pytest.mark.parametrize(("kv_type", "share"), [("q8_0", 8.5 / 16), ("q4_0", 4.5 / 16)])
def test_smaller_kv_types_take_their_share_of_memory_and_still_answer(starter_model, kv_type, share) -> None:
    engine, loaded = load(starter_model, context_tokens=1024, kv_type=kv_type)
    assert loaded.memory.kv_reserved_bytes == pytest.approx(1024 * 23040 * share, abs=16 * 1024)
    assert answer(engine, chat("What is the capital of France?")).figures.new_tokens > 0
    engine.unload()


def test_an_unknown_kv_type_is_refused(starter_model) -> None:
    with pytest.raises(EngineError) as caught:
        load(starter_model, kv_type="f4")
    assert caught.value.code is ErrorCode.BAD_PARAMS


def test_ten_loads_and_unloads_give_the_memory_back(starter_model) -> None:
    from backends.memory_meter import read_process_memory

    sizes = []
    for _ in range(10):
        engine, _ = load(starter_model, context_tokens=512)
        engine.unload()
        memory = read_process_memory()
        sizes.append(memory.anonymous_bytes + memory.swap_bytes)
    assert sizes[-1] - sizes[1] < 16 * 1024 * 1024


def test_the_variant_names_the_widest_instruction_set() -> None:
    assert engine_variant("", "CPU : SSE3 = 1 | AVX2 = 1 | AVX512 = 1 | ").endswith(" · AVX512")
    assert engine_variant("", "CPU : SSSE3 = 1 | ").endswith(" · SSSE3")
    assert re.fullmatch(r"llama\.cpp [0-9.]+", engine_variant("", ""))


def test_a_library_that_was_chosen_for_this_processor_is_named_instead() -> None:
    assert engine_variant("zen4", "CPU : AVX2 = 1 | ").endswith(" · CPU variant zen4")


def test_the_end_of_the_text_is_passed_over_where_that_is_asked_for(starter) -> None:
    engine, _loaded = starter
    prompt = protocol.Text("<|im_start|>user\nSay OK.<|im_end|>\n<|im_start|>assistant\nOK.", parse_special=True)
    params = protocol.SamplingParams(temperature=0, max_tokens=20)
    assert fresh(engine, prompt, params).reason is protocol.StopReason.END_OF_TEXT
    found = fresh(engine, prompt, protocol.SamplingParams(temperature=0, max_tokens=20, ignore_eos=True))
    assert (found.reason, len(found.token_ids)) == (protocol.StopReason.MAX_TOKENS, 20)
