"""What llama.cpp's lines say while it quantizes, as it really writes them."""

from __future__ import annotations

from backends.llama_cpp_engine.quantize_log import QuantizeLog, type_numbers

INFO, WARN, ERROR = 2, 3, 4


def test_a_dry_run_is_read_line_by_line() -> None:
    done: list[int] = []
    log = QuantizeLog(done.append)
    log.read(INFO, "[   1/   2] output_norm.weight                   - [  576,     1,     1,     1], type =    f32, ")
    log.read(INFO, "size =    0.002 MiB\n")
    log.read(INFO, "[   2/   2] blk.0.attn_k.weight                  - [  576,   192,     1,     1], type =   q4_1, ")
    log.read(INFO, "size =     0.07 MiB ->     0.21 MiB (f16)\n")
    log.read(WARN, "llama_model_quantize_impl: WARNING: 1 of 2 tensor(s) required fallback quantization\n")
    assert done == [0, 1]
    assert [(line.name, line.dims[:2], line.elements) for line in log.tensors] == [
        ("output_norm.weight", (576, 1), 576),
        ("blk.0.attn_k.weight", (576, 192), 110_592),
    ]
    assert [line.is_converted for line in log.tensors] == [False, True]
    assert (log.tensors[1].type_name, log.tensors[1].new_type_name) == ("q4_1", "f16")
    assert (log.fallback_tensors, log.needs_importance, log.reason) == (1, False, "")


def test_want_of_an_importance_matrix_and_the_reason_of_a_failure_are_read(capsys) -> None:
    log = QuantizeLog(lambda _done: None)
    log.read(WARN, "WARNING: dry run completed successfully, but actually completing … will require an imatrix!\n")
    log.read(ERROR, "llama_model_quantize: failed to quantize: basic_ios::clear: iostream error\n")
    assert (log.needs_importance, log.reason) == (True, "basic_ios::clear: iostream error")
    assert len(log.problems) == 2
    assert "iostream error" in capsys.readouterr().err


def test_types_are_found_by_the_names_in_the_lines() -> None:
    assert type_numbers([b"f32", None, b"q4_0"].__getitem__, 3) == {"f32": 0, "q4_0": 2}
