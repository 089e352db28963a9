"""How strongly each input of each matrix of the loaded model is used by a text: its importance matrix.

llama.cpp calls back for every node of a running graph (`cb_eval`). For each multiplication by a matrix of a layer the
squares of what comes in are summed by column. It runs in a context of its own beside the chat's, with an output for
every token: the last layer would otherwise be computed for the last token only, and hardly be seen.
Reference: tools/imatrix/imatrix.cpp of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import llama_cpp as llama
import numpy as np
import numpy.typing as npt

from backends import protocol
from backends.engine import Report
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import loading
from backends.llama_cpp_engine.engine_log import EngineLog
from backends.llama_cpp_engine.ggml_calls import GgmlTensor, checked_tensor, ggml_calls
from backends.llama_cpp_engine.importance_file import Sums, write_importance
from backends.llama_cpp_engine.vocabulary import Vocabulary
from backends.processors import physical_cores

_F32: Final = 0
_DECODED: Final = 0
_MUL_MAT, _MUL_MAT_ID = b"MUL_MAT", b"MUL_MAT_ID"
_LAYER: Final = b"blk."
# Every token of a piece has a row of logits, twice: a piece is cut so that these stay below this.
_LOGITS_BYTES: Final = 64 * 2**20
_LEAST_TOKENS: Final = 32

_Squares = npt.NDArray[np.float64]


class ImportanceCollector:
    """Sums squares while a graph runs.

    Attributes:
        sums: by matrix, of what was seen so far.
        fault: why collecting was given up; None as long as it was not.
        callback: what a context is given as cb_eval.
        _last_input: address of the input that was summed last; matrices that share one stand side by side.
        _last_squares: float64 [columns], its sums.
    """

    def __init__(self) -> None:
        self.sums: dict[str, Sums] = {}
        self.fault: EngineError | None = None
        self._calls: Mapping[str, Any] = ggml_calls()
        self._is_checked = False
        self._last_input = 0
        self._last_squares: _Squares = np.zeros(0)
        self.callback = llama.ggml_backend_sched_eval_callback(self._on_node)

    def begin(self) -> None:
        """Forget what is known of the last graph: its tensors' addresses will be used again."""
        self._last_input = 0

    def _on_node(self, address: int, is_question: bool, _user_data: object) -> bool:
        """Say whether this node's data are wanted, or take them; False ends the graph then."""
        try:
            return self._wants(address) if is_question else self._take(address)
        except EngineError as error:  # it could not pass through llama.cpp's code
            self.fault = error
            return False

    def _wants(self, address: int) -> bool:
        kind = self._calls["ggml_op_desc"](address)
        if kind not in (_MUL_MAT, _MUL_MAT_ID):
            return False
        if not self._is_checked:
            checked_tensor(self._calls, address)
            self._is_checked = True
        node = GgmlTensor.from_address(address)
        matrix = GgmlTensor.from_address(node.src[0])
        given = GgmlTensor.from_address(node.src[1])
        return _plain_name(matrix.name).startswith(_LAYER) and given.type == _F32

    def _take(self, address: int) -> bool:
        node = GgmlTensor.from_address(address)
        matrix = GgmlTensor.from_address(node.src[0])
        name = _plain_name(matrix.name).decode(errors="replace")
        if self._calls["ggml_op_desc"](address) == _MUL_MAT_ID:
            self._take_experts(name, node, matrix)
        elif matrix.ne[2] * matrix.ne[3] > 1:
            self._take_several(name, node, matrix)
        else:
            self._take_one(name, node)
        return True

    def _take_one(self, name: str, node: GgmlTensor) -> None:
        given = self._data(node.src[1])  # [1, 1, T, columns], or more of the first two
        rows = given.shape[0] * given.shape[1] * given.shape[2]
        if node.src[1] != self._last_input:
            self._last_squares = np.einsum("abtc,abtc->c", given, given).astype(np.float64)
            self._last_input = int(node.src[1])
        sums = self._sums_for(name, matrices=1, counts=1, columns=given.shape[3])
        sums.squares[0] += self._last_squares
        sums.counts[0] += rows

    def _take_several(self, name: str, node: GgmlTensor, matrix: GgmlTensor) -> None:
        """Take the inputs of a stack of matrices, one after the other; all are used equally often."""
        given = self._data(node.src[1])  # [B, A, T, columns]
        inner, outer = int(matrix.ne[2]), int(matrix.ne[3])
        sums = self._sums_for(name, matrices=inner * outer, counts=1, columns=given.shape[3])
        squares = np.einsum("abtc,abtc->abc", given, given)
        for first in range(given.shape[0]):
            for second in range(given.shape[1]):
                sums.squares[(first % outer) * inner + second % inner] += squares[first, second]
        sums.counts[0] += given.shape[0] * given.shape[1] * given.shape[2] / (inner * outer)

    def _take_experts(self, name: str, node: GgmlTensor, matrix: GgmlTensor) -> None:
        """Take the inputs of experts: each sees only the tokens that were sent to it."""
        given = self._data(node.src[1])[0]  # [T, 1 or used, columns]
        chosen = self._data(node.src[2], np.int32)[0, 0]  # [T, used]
        sums = self._sums_for(name, int(matrix.ne[2]), int(matrix.ne[2]), given.shape[2])
        squares = np.square(given, dtype=np.float32)
        for place in range(chosen.shape[1]):
            rows = squares[:, place % given.shape[1]]
            for expert in np.unique(chosen[:, place]):
                is_sent = chosen[:, place] == expert
                sums.squares[expert] += rows[is_sent].sum(axis=0)
                sums.counts[expert] += is_sent.sum()

    def _sums_for(self, name: str, matrices: int, counts: int, columns: int) -> Sums:
        sums = self.sums.get(name)
        if sums is None:
            sums = self.sums[name] = Sums(np.zeros((matrices, columns)), np.zeros(counts))
        return sums

    def _data(self, address: int, kind: type[np.float32] | type[np.int32] = np.float32) -> npt.NDArray[Any]:
        """Return a tensor's values, its dimensions last to first; valid until the graph goes on."""
        tensor = GgmlTensor.from_address(address)
        size_bytes = self._calls["ggml_nbytes"](address)
        if self._calls["ggml_backend_buffer_is_host"](tensor.buffer):
            raw = (ctypes.c_char * size_bytes).from_address(tensor.data)
        else:
            raw = (ctypes.c_char * size_bytes)()
            self._calls["ggml_backend_tensor_get"](address, raw, 0, size_bytes)
        return np.ndarray(
            shape=tuple(reversed(tensor.ne[:])), dtype=kind, buffer=raw, strides=tuple(reversed(tensor.nb[:]))
        )


def collect_importance(
    model: Any, vocabulary: Vocabulary, command: protocol.CollectImportance, log: EngineLog, report: Report
) -> None:
    """Run a loaded model over a text, window by window, and write its importance matrix.

    Every window begins with the beginning-of-sequence token where the model wants one, as llama.cpp's tool has it.

    Args:
        model: the handle.
        vocabulary: of it.
        command: what is wanted; tokens behind the last whole window are left out, unless there is none.
        log: llama.cpp's.
        report: takes Progress events of the phase "importance", in windows.

    Raises:
        EngineError: EMPTY_PROMPT, BAD_PARAMS, WRITE_FAILED, DECODE_FAILED, OUT_OF_MEMORY or CONTEXT_FAILED.
    """
    if not command.token_ids:
        raise EngineError(ErrorCode.EMPTY_PROMPT)
    if any(not 0 <= token < vocabulary.size for token in command.token_ids):
        raise EngineError(ErrorCode.BAD_PARAMS, detail="a token id is not in the vocabulary")
    windows = cut_windows(command.token_ids, command.window_tokens, vocabulary.bos if vocabulary.adds_bos else -1)
    collector = ImportanceCollector()
    piece_tokens = max(_LEAST_TOKENS, min(command.window_tokens, _LOGITS_BYTES // (4 * vocabulary.size)))
    context = _create_context(model, collector, log, (command.window_tokens, piece_tokens))
    batch = llama.llama_batch_init(piece_tokens, 0, 1)
    try:
        for number, window in enumerate(windows):
            _report(command, report, number, len(windows))
            _run_window(context, batch, window, piece_tokens, collector)
    finally:
        llama.llama_batch_free(batch)
        llama.llama_free(context)
    if any(not np.isfinite(sums.squares).all() for sums in collector.sums.values()) or not collector.sums:
        raise EngineError(ErrorCode.DECODE_FAILED, detail="what the layers computed is not finite")
    write_importance(
        Path(command.target_path),
        collector.sums,
        windows=len(windows),
        window_tokens=command.window_tokens,
        source=command.text_name,
    )
    _report(command, report, len(windows), len(windows))


def cut_windows(token_ids: Sequence[int], window_tokens: int, bos: int) -> list[list[int]]:
    """Return a text as whole windows, or the one that it does not fill.

    Args:
        token_ids: of the text.
        window_tokens: how long a window is.
        bos: takes the place of each window's first token; -1 for none.
    """
    if window_tokens < 1:
        raise EngineError(ErrorCode.BAD_PARAMS, detail="a window has at least one token")
    last = max(1, len(token_ids) - window_tokens + 1)
    windows = [list(token_ids[first : first + window_tokens]) for first in range(0, last, window_tokens)]
    if bos >= 0:
        for window in windows:
            window[0] = bos
    return windows


def _create_context(model: Any, collector: ImportanceCollector, log: EngineLog, tokens: tuple[int, int]) -> Any:
    """Create a context for windows of tokens[0], read in pieces of tokens[1]; raises EngineError."""
    params = llama.llama_context_default_params()
    params.n_ctx = tokens[0]
    params.n_batch = params.n_ubatch = params.n_outputs_max = tokens[1]
    params.n_seq_max = 1
    params.n_threads = params.n_threads_batch = physical_cores()
    params.swa_full = False
    params.no_perf = True
    params.cb_eval = collector.callback
    log.clear()
    context = llama.llama_init_from_model(model, params)
    if not context:
        raise loading.context_error(tokens[0], log.problems())
    return context


def _run_window(
    context: Any, batch: Any, window: Sequence[int], piece_tokens: int, collector: ImportanceCollector
) -> None:
    llama.llama_memory_clear(llama.llama_get_memory(context), True)
    for first in range(0, len(window), piece_tokens):
        piece = window[first : first + piece_tokens]
        for row, token in enumerate(piece):
            batch.token[row], batch.pos[row], batch.logits[row] = token, first + row, True
            batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
        batch.n_tokens = len(piece)
        collector.begin()
        code = llama.llama_decode(context, batch)
        llama.llama_synchronize(context)
        if collector.fault is not None:
            raise collector.fault
        if code != _DECODED:
            raise EngineError(ErrorCode.DECODE_FAILED, detail=f"llama_decode returned {code}")


def _report(command: protocol.CollectImportance, report: Report, done: int, total: int) -> None:
    report(protocol.Progress(request_id=command.request_id, phase="importance", done=done, total=total))


def _plain_name(name: bytes) -> bytes:
    """Return a tensor's name without the device that the scheduler writes before it: `CUDA0#blk.0.ffn_up.weight#0`."""
    before, mark, rest = name.partition(b"#")
    return rest.partition(b"#")[0] if mark else before
