"""llama.cpp's log lines become a memory split and the reason of a failure."""

from __future__ import annotations

import contextlib

from backends.llama_cpp_engine.engine_log import BufferLine, EngineLog, memory_split, parse_buffers

MIB = 1024 * 1024
CPU_LINES = [
    "load_tensors:   CPU_Mapped model buffer size =    92.10 MiB",
    "llama_context:        CPU  output buffer size =     0.19 MiB",
    "llama_kv_cache:        CPU KV buffer size =   180.00 MiB",
    "sched_reserve:        CPU compute buffer size =    98.25 MiB",
    "llama_kv_cache: size =  180.00 MiB (  8192 cells,  30 layers)",
]
GPU_LINES = [
    "load_tensors:   CPU_Mapped model buffer size =    10.00 MiB",
    "load_tensors:        CUDA0 model buffer size =  4000.00 MiB",
    "llama_kv_cache:      CUDA0 KV buffer size =   512.00 MiB",
    "llama_memory_recurrent:  CUDA0 RS buffer size =     8.00 MiB",
    "sched_reserve:      CUDA0 compute buffer size =   300.00 MiB",
    "sched_reserve:  CUDA_Host compute buffer size =    20.00 MiB",
]


def test_buffers_are_read_from_the_lines_that_name_them() -> None:
    assert parse_buffers(CPU_LINES) == [
        BufferLine("CPU_Mapped", "model", round(92.10 * MIB)),
        BufferLine("CPU", "output", round(0.19 * MIB)),
        BufferLine("CPU", "KV", 180 * MIB),
        BufferLine("CPU", "compute", round(98.25 * MIB)),
    ]


def test_the_split_adds_buffers_by_owner() -> None:
    split = memory_split(parse_buffers(CPU_LINES), 96_576_768)
    assert split.weights_bytes == 96_576_768
    assert split.kv_reserved_bytes == 180 * MIB
    assert split.compute_bytes == round(98.25 * MIB)
    assert split.device == "CPU"


def test_the_device_is_where_most_of_the_weights_lie_and_not_what_was_asked() -> None:
    split = memory_split(parse_buffers(GPU_LINES), 0)
    assert split.device == "CUDA0"
    assert split.weights_bytes == 4010 * MIB
    assert split.kv_reserved_bytes == 520 * MIB
    assert split.compute_bytes == 320 * MIB


# As logged under no_alloc: a hybrid of attention with windows and of recurrent layers.
DUMMY_LINES = [
    "llama_context:        CPU  output buffer size =     1.00 MiB",
    "llama_kv_cache:        CPU KV buffer size =     0.00 MiB",
    "llama_kv_cache: size =   12.00 MiB (  4096 cells,   3 layers,  1/1 seqs), K (f16):    6.00 MiB,"
    " V (f16):    6.00 MiB",
    "llama_kv_cache:        CPU KV buffer size =     0.00 MiB",
    "llama_kv_cache: size =   15.00 MiB (  1024 cells,  15 layers,  1/1 seqs), K (f16):    7.50 MiB,"
    " V (f16):    7.50 MiB",
    "llama_memory_recurrent:        CPU RS buffer size =     0.00 MiB",
    "llama_memory_recurrent: size =    3.25 MiB (     1 cells,  24 layers,  1 seqs  0 rs_seq), R (f32):    0.25 MiB,"
    " S (f32):    3.00 MiB, P (f32):    0.00 MiB",
]


def test_a_cache_whose_buffers_are_dummies_has_its_whole_size() -> None:
    assert parse_buffers(DUMMY_LINES)[1:] == [
        BufferLine("CPU", "KV", 12 * MIB),
        BufferLine("CPU", "KV", 15 * MIB),
        BufferLine("CPU", "RS", round(3.25 * MIB)),
    ]
    assert memory_split(parse_buffers(DUMMY_LINES), 5).kv_reserved_bytes == round(30.25 * MIB)


def test_a_cache_with_buffers_is_not_counted_twice() -> None:
    lines = [line.replace("KV buffer size =     0.00", "KV buffer size =    12.00") for line in DUMMY_LINES[:3]]
    assert memory_split(parse_buffers(lines), 5).kv_reserved_bytes == 12 * MIB


def test_a_log_says_whether_memory_was_taken(capsys) -> None:
    log = EngineLog()
    log._on_line(2, b"print_info: no_alloc              = 0\n", None)
    assert not log.says_no_alloc()
    log._on_line(2, b"print_info: no_alloc              = 1\n", None)
    assert log.says_no_alloc()


def test_what_is_held_reaches_nobody_unless_it_ends_in_an_error(capsys) -> None:
    log = EngineLog()
    log._on_line(4, b"before\n", None)
    with log.held():
        log._on_line(4, b"a failure that was wanted\n", None)
    assert log.problems() == ["before"]
    with contextlib.suppress(ValueError), log.held():
        log._on_line(4, b"a failure\n", None)
        raise ValueError("broken")
    assert log.problems() == ["before", "a failure"]
    log._on_line(4, b"after\n", None)
    assert capsys.readouterr().err == "llama.cpp: before\nllama.cpp: after\n"


def test_without_a_line_the_device_is_the_cpu() -> None:
    assert memory_split([], 5).device == "CPU"


def test_warnings_are_problems_debug_lines_are_dropped_and_continued_lines_keep_their_level(capsys) -> None:
    log = EngineLog()
    for level, text in ((1, b"debug\n"), (2, b"info\n"), (4, b"error: bad\n"), (5, b"and more\n"), (2, b".")):
        log._on_line(level, text, None)
    assert log.problems() == ["error: bad", "and more"]
    assert capsys.readouterr().err == "llama.cpp: error: bad\nllama.cpp: and more\n"
    log.clear()
    assert log.problems() == []


def test_lines_that_are_no_text_are_kept_readable(capsys) -> None:
    log = EngineLog()
    log._on_line(4, b"bad \xff byte\n", None)
    assert log.problems() == ["bad \ufffd byte"]
    capsys.readouterr()


def test_lines_become_events_without_the_dump_of_the_metadata(capsys) -> None:
    log = EngineLog()
    for level, text in ((2, b"llama_model_loader: - kv 3: x str = y\n"), (2, b"n_ctx = 5\n"), (3, b"odd\n")):
        log._on_line(level, text, None)
    assert [(event.level, event.text) for event in log.events()] == [("info", "n_ctx = 5"), ("warning", "odd")]
    capsys.readouterr()
