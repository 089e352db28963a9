"""The llama.cpp engine: one context, one sequence at a time, on the low-level API.

A token is born here: step() runs llama_decode over what is known but not computed, the sampler chain chooses in C, and
Sequence.append takes it. What is in the context stays there, so that the next request computes only what differs.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence as Many
from typing import Any, ClassVar

import llama_cpp as llama

from backends import protocol
from backends.engine import Engine, Report
from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.llama_cpp_engine import BUNDLED_LIBRARY, loading
from backends.llama_cpp_engine.batch import Batch
from backends.llama_cpp_engine.engine_log import EngineLog, memory_split
from backends.llama_cpp_engine.importance import collect_importance
from backends.llama_cpp_engine.library import engine_variant, load_variants
from backends.llama_cpp_engine.memory_probe import probe_memory
from backends.llama_cpp_engine.quantizing import quantize
from backends.llama_cpp_engine.sampler import Sampler, check_params
from backends.llama_cpp_engine.scoring import ScoringContext
from backends.llama_cpp_engine.sequence import Sequence, common_prefix_length
from backends.llama_cpp_engine.vocabulary import Vocabulary
from backends.llama_cpp_engine.warm_up import warm_up
from backends.scoring import scored_text

# What llama_decode returns.
_DECODED, _NO_ROOM, _ABORTED = 0, 1, 2
_SEQUENCE = 0  # llama.cpp's id of our one sequence

Said = tuple[str, tuple[int, ...]]  # text and the ids it completes


class LlamaCppEngine(Engine):
    """One GGUF model in llama.cpp.

    Attributes:
        _sequences: unfinished requests; the first one is served, the others wait.
        _cached: the token ids whose KV is in the context, in order.
        _abort_flag: a byte that llama_decode looks at between graph nodes; 1 ends it.
        _variant: the processor that the loaded library was built for; "" when it holds one build only.
        _samplers: the chain of the sequence being served.
        _scoring: what scores, with a context of its own; its memory is given back when the next request comes.
    """

    backend: ClassVar[str] = "llama_cpp"

    def __init__(self) -> None:
        self._log = EngineLog()
        self._abort_flag = ctypes.create_string_buffer(2)
        self._model: Any = None
        self._context: Any = None
        self._memory: Any = None
        self._vocabulary: Vocabulary | None = None
        self._batch: Batch | None = None
        self._sampler: Sampler | None = None
        self._scoring: ScoringContext | None = None
        self._sequences: list[Sequence] = []
        self._cached: list[int] = []
        self._context_tokens = 0
        self._window_tokens = 0
        self._kv_bytes_per_token = 0.0
        self._steps = 0
        self._variant = ""

    # ------------------------------------------------------------------------------------------ load

    def load(self, command: protocol.LoadModel, report: Report) -> protocol.ModelLoaded:
        """Load the model, create its context and run it once."""
        began_s = time.monotonic()
        self._start_library()
        try:
            self._model = loading.load_model(command, self._log, report)
            vocabulary = self._vocabulary = Vocabulary(self._model)
            if not vocabulary.size:
                raise EngineError(ErrorCode.NO_VOCABULARY, path=command.model_path)
            self._context = loading.create_context(self._model, command, self._log, self._abort_flag)
            self._memory = llama.llama_get_memory(self._context)
            self._context_tokens = llama.llama_n_ctx_seq(self._context)
            self._window_tokens = llama.llama_model_n_swa(self._model)
            self._batch = Batch(llama.llama_n_ubatch(self._context))
            with self._log.held():  # a batch that is cut off is an error to llama.cpp
                warm_up(self._context, self._batch, max(0, vocabulary.bos), self._abort_flag)
            self._forget()
        except EngineError as error:
            self._report_log(report)
            self.unload()
            if error.code is ErrorCode.OUT_OF_MEMORY:
                raise self._out_of_memory(error, command) from error
            raise
        self._report_log(report)
        self._scoring = ScoringContext(self._model, command.params, self._log, self._abort_flag)
        return self._describe(command, vocabulary, began_s)

    def probe_memory(self, command: protocol.ProbeMemory, report: Report) -> protocol.MemorySplit:
        """Ask llama.cpp's allocator; a model that is loaded stays as it is."""
        self._start_library()
        try:
            return probe_memory(command.model_path, command.params, self._log)
        finally:
            self._report_log(report)

    def collect_importance(self, command: protocol.CollectImportance, report: Report) -> None:
        """Run the model over a text in a context of its own; the chat's stays as it is."""
        collect_importance(self._model, self._loaded_vocabulary(), command, self._log, report)

    def quantize(self, command: protocol.Quantize, report: Report) -> protocol.Quantized:
        """Write a model file anew; a model that is loaded stays as it is."""
        self._start_library()
        return quantize(command, self._log, report)

    def unload(self) -> None:
        """Free the context and the model."""
        self.discard_requests()
        if self._scoring is not None:
            self._scoring.close()
        if self._batch is not None:
            self._batch.close()
        if self._context is not None:
            llama.llama_free(self._context)
        if self._model is not None:
            llama.llama_model_free(self._model)
        self._batch = self._context = self._memory = self._model = self._vocabulary = self._scoring = None
        self._cached = []

    def _start_library(self) -> None:
        self._variant = load_variants(BUNDLED_LIBRARY)
        self._log.install()
        llama.llama_backend_init()

    def _report_log(self, report: Report) -> None:
        for event in self._log.events():
            report(event)

    def _out_of_memory(self, error: EngineError, command: protocol.LoadModel) -> EngineError:
        """Return the error with all that the load needs, not only the buffer it stumbled over."""
        try:
            split = probe_memory(command.model_path, command.params, self._log)
        except EngineError:
            return error
        needed_bytes = split.weights_bytes + split.kv_reserved_bytes + split.compute_bytes + split.output_bytes
        return EngineError(error.code, needed_bytes=needed_bytes, free_bytes=loading.free_memory_bytes())

    def _describe(self, command: protocol.LoadModel, vocabulary: Vocabulary, began_s: float) -> protocol.ModelLoaded:
        model = self._model
        memory = memory_split(self._log.buffers(), llama.llama_model_size(model))
        self._kv_bytes_per_token = memory.kv_reserved_bytes / llama.llama_n_ctx(self._context)
        trained = llama.llama_model_n_ctx_train(model)
        notices = []
        if command.params.context_tokens > loading.context_tokens(command.params, trained):
            notices.append(NoticeCode.CONTEXT_CLAMPED)
        if self._context_tokens > trained > 0:
            notices.append(NoticeCode.CONTEXT_BEYOND_TRAINING)
        if command.params.gpu_layers and memory.device == "CPU":
            notices.append(NoticeCode.GPU_NOT_USED)
        template = llama.llama_model_chat_template(model, None)
        quantization = llama.llama_ftype_name(llama.llama_model_ftype(model)) or b""
        return protocol.ModelLoaded(
            backend=self.backend,
            model_path=command.model_path,
            context_tokens=self._context_tokens,
            train_context_tokens=trained,
            tokenizer_hash=vocabulary.fingerprint(),
            architecture=self._metadata("general.architecture"),
            quantization=quantization.decode(),
            parameters_count=llama.llama_model_n_params(model),
            vocabulary_tokens=vocabulary.size,
            chat_template=template.decode(errors="replace") if template else "",
            bos_text=vocabulary.bos_text,
            eos_text=vocabulary.eos_text,
            device=memory.device,
            engine_variant=engine_variant(self._variant, llama.llama_print_system_info().decode(errors="replace")),
            threads=llama.llama_n_threads(self._context),
            load_s=time.monotonic() - began_s,
            kv_bytes_per_token=self._kv_bytes_per_token,
            kv_type=command.params.kv_type,
            memory=memory,
            capabilities=loading.capabilities(model),
            notices=tuple(notices),
        )

    def _metadata(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(256)
        length = llama.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return buffer.value.decode(errors="replace") if length >= 0 else ""

    # -------------------------------------------------------------------------------------- requests

    @property
    def has_work(self) -> bool:
        """Whether a request is unfinished."""
        return bool(self._sequences)

    def add(self, request: protocol.Generate) -> None:
        """Accept a request; refuses what does not fit into the context."""
        check_params(request.params)
        if self._scoring is not None:
            self._scoring.close()
        token_ids = self._loaded_vocabulary().encode(request.prompt) + list(request.parent_token_ids)
        if not token_ids:
            raise EngineError(ErrorCode.EMPTY_PROMPT)
        if any(not 0 <= token < self._loaded_vocabulary().size for token in token_ids):
            raise EngineError(ErrorCode.BAD_PARAMS, detail="a token id is not in the vocabulary")
        if len(token_ids) >= self._context_tokens:
            raise EngineError(
                ErrorCode.PROMPT_TOO_LONG, prompt_tokens=len(token_ids), context_tokens=self._context_tokens
            )
        self._sequences.append(Sequence(request, token_ids))

    def abort(self, request_id: protocol.RequestId) -> Many[protocol.Event]:
        """End a request with what it has said so far."""
        self._abort_flag[0] = b"\0"
        for sequence in self._sequences:
            if sequence.request.request_id == request_id:
                return self._finish(sequence, protocol.StopReason.ABORTED)
        return ()

    def interrupt(self) -> None:
        """Raise the flag that llama_decode looks at."""
        self._abort_flag[0] = b"\1"

    def count_tokens(self, prompt: protocol.Prompt) -> int:
        """Count a prompt's tokens."""
        return len(self._loaded_vocabulary().encode(prompt))

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        """Return a prompt's token ids."""
        return tuple(self._loaded_vocabulary().encode(prompt))

    def score(self, command: protocol.Score) -> protocol.ScoreDone:
        """Score tokens in a context of its own; the chat's stays as it is."""
        vocabulary = self._loaded_vocabulary()
        assert self._scoring is not None
        prompt_ids = vocabulary.encode(command.prompt) if command.prompt is not None else ()
        return self._scoring.score(command, scored_text(command, prompt_ids, vocabulary.size, self._context_tokens))

    def token_bytes(self, token_ids: Many[int]) -> tuple[bytes, ...]:
        """Return what each token adds to a text."""
        return self._loaded_vocabulary().token_bytes(token_ids)

    def discard_requests(self) -> Many[protocol.RequestId]:
        """Forget every request, and the context's content, which a fault may have left half-written."""
        ids = [sequence.request.request_id for sequence in self._sequences]
        self._sequences.clear()
        self._close_sampler()
        if ids:
            self._forget()
        return ids

    # ------------------------------------------------------------------------------------------ step

    def step(self) -> Many[protocol.Event]:
        """Compute the next tokens of the first request; sample one when all that is known is computed."""
        sequence = self._sequences[0]
        began_s = time.monotonic()
        if not sequence.has_begun:
            self._begin(sequence)
        reading = sequence.is_reading
        count = self._decode_next(sequence)
        if not count:  # interrupted: the command that did it comes next
            return ()
        said: Said = ("", ())
        reason = None
        if sequence.computed == len(sequence.known):
            said, reason = self._sample(sequence)
        counts = (count, 0) if reading else (0, count)
        events: list[protocol.Event] = [self._step_done(sequence, began_s, said, counts)]
        return events + self._finish(sequence, reason) if reason else events

    def _begin(self, sequence: Sequence) -> None:
        """Keep what the context shares with the request, cut off the rest, and set the sampler up."""
        known = sequence.known
        shared = common_prefix_length(self._cached, known)
        # The last token is always computed again: its logits are what the first new token is drawn from.
        reused, note = min(shared, len(known) - 1), "" if shared == len(self._cached) else "differs"
        if not self._cached:
            note = "first"
        elif self._window_tokens and reused < len(self._cached):
            oldest = llama.llama_memory_seq_pos_min(self._memory, _SEQUENCE)
            if oldest > max(0, reused - self._window_tokens):
                reused, note = 0, "window"
        if reused and not llama.llama_memory_seq_rm(self._memory, _SEQUENCE, reused, -1):
            reused, note = 0, "cannot_roll_back"
        if not reused:
            self._forget()
        del self._cached[reused:]
        self._sampler = Sampler(sequence.request.params, self._loaded_vocabulary().size)
        self._sampler.remember(known)
        sequence.begin(reused, note)

    def _decode_next(self, sequence: Sequence) -> int:
        """Compute up to a batch of known tokens; returns how many, 0 when interrupted."""
        batch = self._loaded_batch()
        first = sequence.computed
        pending = len(sequence.known) - first
        if pending == 1:
            count = 1
            batch.fill_one(sequence.known[first], first)
        else:
            count = min(pending, batch.capacity)
            batch.fill(sequence.known[first : first + count], first, wants_logits=count == pending)
        code = llama.llama_decode(self._context, batch.handle)
        if code == _DECODED:
            sequence.computed += count
            self._cached += sequence.known[first : sequence.computed]
            return count
        if code == _ABORTED:
            self._cut(sequence, first)
            return 0
        self._forget()
        if code == _NO_ROOM:
            raise EngineError(ErrorCode.NO_KV_ROOM, context_tokens=self._context_tokens)
        raise EngineError(ErrorCode.DECODE_FAILED, detail=f"llama_decode returned {code}")

    def _cut(self, sequence: Sequence, position: int) -> None:
        """Remove what an interrupted step may have left from this position on; start over where that is impossible."""
        if not llama.llama_memory_seq_rm(self._memory, _SEQUENCE, position, -1):
            self._forget()
            sequence.computed = 0

    def _sample(self, sequence: Sequence) -> tuple[Said, protocol.StopReason | None]:
        """Draw the next token; returns the text and ids to release and why the request ends, if it does."""
        assert self._sampler is not None
        vocabulary = self._loaded_vocabulary()
        token = self._sampler.sample(self._context, -1)
        if vocabulary.ends_text(token) and not sequence.request.params.ignore_eos:
            return ("", ()), protocol.StopReason.END_OF_TEXT
        sequence.append(token)
        said = sequence.detokenizer.add(token, vocabulary.piece(token))
        if sequence.detokenizer.stopped:
            return said, protocol.StopReason.STOP_STRING
        if sequence.new_tokens == sequence.request.params.max_tokens:
            return said, protocol.StopReason.MAX_TOKENS
        if len(sequence.known) >= self._context_tokens:
            return said, protocol.StopReason.CONTEXT_FULL
        return said, None

    def _step_done(self, sequence: Sequence, began_s: float, said: Said, counts: tuple[int, int]) -> protocol.StepDone:
        self._steps += 1
        now_s = time.monotonic()
        stats = protocol.StepStats(
            step=self._steps,
            ended_s=now_s,
            duration_s=now_s - began_s,
            prefill_tokens=counts[0],
            decode_tokens=counts[1],
            running=1,
            waiting=len(self._sequences) - 1,
            kv_used_tokens=len(self._cached),
            kv_used_bytes=round(len(self._cached) * self._kv_bytes_per_token),
        )
        text, ids = said
        pieces = (protocol.Piece(sequence.request.request_id, text, ids),) if text or ids else ()
        return protocol.StepDone(stats, pieces)

    def _finish(self, sequence: Sequence, reason: protocol.StopReason) -> list[protocol.Event]:
        self._sequences.remove(sequence)
        figures = sequence.figures(self._sampler.seed if self._sampler and sequence.has_begun else 0)
        if sequence.has_begun:
            self._close_sampler()
        events: list[protocol.Event] = []
        held = sequence.detokenizer.finish()
        if any(held):
            events.append(self._step_done(sequence, time.monotonic(), held, (0, 0)))
        events.append(protocol.RequestFinished(sequence.request.request_id, reason, figures))
        return events

    # --------------------------------------------------------------------------------------- helpers

    def _forget(self) -> None:
        """Empty the context."""
        if self._memory is not None:
            llama.llama_memory_clear(self._memory, False)
        self._cached = []

    def _close_sampler(self) -> None:
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None

    def _loaded_vocabulary(self) -> Vocabulary:
        if self._vocabulary is None:
            raise EngineError(ErrorCode.NO_MODEL)
        return self._vocabulary

    def _loaded_batch(self) -> Batch:
        if self._batch is None:
            raise EngineError(ErrorCode.NO_MODEL)
        return self._batch
