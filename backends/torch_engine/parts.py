"""What a loaded model consists of, and how the program is told of it. Made by loading.py, used by engine.py."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

import torch

from backends import protocol
from backends.processors import SpareThreads
from backends.torch_engine import device as devices
from backends.torch_engine import guard
from backends.torch_engine.block_pool import BLOCK_TOKENS
from backends.torch_engine.budget import step_tokens
from backends.torch_engine.fusion import FusionReport
from backends.torch_engine.grammar import GrammarCompiler, GrammarState
from backends.torch_engine.model_loader import LoadedModel
from backends.torch_engine.model_runner import ModelRunner
from backends.torch_engine.plain_path import PlainRunner
from backends.torch_engine.sampler import BatchSampler
from backends.torch_engine.scheduler import Scheduler
from backends.torch_engine.sequence import Sequence

KV_TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
_KV_NAMES = {dtype: name for name, dtype in KV_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a load found out.

    Attributes:
        context_tokens: the longest sequence.
        train_tokens: what the model was trained for; 0 when it does not say.
        compute_bytes: what a step took at its peak, measured.
        kv_bytes_per_token: of all layers; 0 on the plain path, where it is not ours.
        notices: codes of what a person must be told.
    """

    context_tokens: int
    train_tokens: int
    compute_bytes: int
    kv_bytes_per_token: int
    notices: tuple[str, ...]


class Parts:
    """A loaded model with everything that a step needs.

    Attributes:
        loaded: the model and its vocabulary.
        runner: runs steps over blocks, or over a cache of transformers' own for each sequence.
        scheduler: decides what a step computes.
        sampler: draws tokens.
        report: which path the model takes, and why.
        measured: what the load found out.
        reuses_kv: False computes everything again for every token.
        step_tokens: how many tokens a forward takes at most.
        spare_threads: how many threads a step may have; None on a GPU, and where a person gave a number.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        runner: ModelRunner | PlainRunner,
        scheduler: Scheduler,
        reports: tuple[guard.GuardReport, FusionReport],
        measured: Measured,
        params: protocol.LoadParams,
    ) -> None:
        self.loaded = loaded
        self.runner = runner
        self.scheduler = scheduler
        self.sampler = BatchSampler()
        self.report, self._fusion = reports
        self.measured = measured
        self.reuses_kv = params.reuse_kv
        self.step_tokens = step_tokens(params)
        self.vocabulary = loaded.vocabulary
        self.vocabulary_tokens = loaded.vocabulary.size
        self.device = loaded.device
        self.context_tokens = measured.context_tokens
        self.kv_bytes_per_token = measured.kv_bytes_per_token
        self.spare_threads: SpareThreads | None = None
        self._compiler: GrammarCompiler | None = None

    @property
    def is_paged(self) -> bool:
        """Whether the KV lies in blocks."""
        return self.report.path == guard.PAGED

    @property
    def blocks(self) -> int:
        """How many blocks the pool has."""
        return self.scheduler.pool.blocks

    def grammar(self, params: protocol.SamplingParams) -> GrammarState | None:
        """Return where a request stands in the grammar it asks for; None where it asks for none."""
        if not params.grammar and not params.json_schema:
            return None
        if self._compiler is None:
            vocabulary = self.vocabulary
            pieces = [vocabulary.piece(token) for token in range(vocabulary.size)]
            ends = [token for token in range(vocabulary.size) if vocabulary.ends_text(token)]
            self._compiler = GrammarCompiler(pieces, ends)
        return self._compiler.start(params)

    def end(self, sequence: Sequence, *, keep: bool = True) -> None:
        """Give back what a sequence holds; a pool that keeps blocks keeps these, unless they must not be."""
        if isinstance(self.runner, PlainRunner) and sequence.block_table:
            self.runner.forget(sequence.block_table[0])
        self.scheduler.remove(sequence, keep=keep)

    def clear(self) -> None:
        """Forget all sequences and all that is kept: nothing is known to be whole."""
        if isinstance(self.runner, PlainRunner):
            for sequence in self.scheduler.running:
                self.runner.forget(sequence.block_table[0])
        self.scheduler.clear()

    def close(self) -> None:
        """Take the model out of everybody's hands."""
        if isinstance(self.runner, ModelRunner):
            self.runner.detach()

    def describe(self, command: protocol.LoadModel, load_s: float) -> protocol.ModelLoaded:
        """Return what the program is told of the load."""
        loaded, vocabulary, measured = self.loaded, self.vocabulary, self.measured
        is_paged = self.is_paged
        kv_bytes = measured.kv_bytes_per_token * (self.blocks + 1) * BLOCK_TOKENS  # with the trash block
        memory = protocol.MemorySplit(
            weights_bytes=loaded.weight_bytes,
            kv_reserved_bytes=kv_bytes,
            compute_bytes=measured.compute_bytes,
            device=devices.device_name(loaded.device),
        )
        capabilities = protocol.Capabilities(
            can_roll_back=is_paged, can_share_prefix=is_paged, can_score=True, kv_types=(_KV_NAMES[loaded.dtype],)
        )
        return protocol.ModelLoaded(
            backend="torch",
            model_path=command.model_path,
            context_tokens=measured.context_tokens,
            train_context_tokens=measured.train_tokens,
            tokenizer_hash=vocabulary.fingerprint(),
            architecture=loaded.architecture,
            quantization=loaded.quantization,
            parameters_count=loaded.parameters,
            vocabulary_tokens=vocabulary.size,
            chat_template=loaded.chat_template,
            bos_text=vocabulary.bos_text,
            eos_text=vocabulary.eos_text,
            device=memory.device,
            engine_variant=f"torch {metadata.version('torch')} · transformers {metadata.version('transformers')}",
            threads=torch.get_num_threads(),
            load_s=load_s,
            kv_bytes_per_token=float(measured.kv_bytes_per_token),
            kv_type=_KV_NAMES[loaded.dtype],
            memory=memory,
            capabilities=capabilities,
            notices=measured.notices,
            attention_path=self.report.path,
            attention_kernel=self._kernel(),
            path_note=self.report.note,
            block_tokens=BLOCK_TOKENS if is_paged else 0,
            blocks=self.blocks if is_paged else 0,
        )

    def _kernel(self) -> str:
        """Return what computes: "sdpa over blocks in place, 30 of 30 layers fused"."""
        if not self.is_paged:
            return "transformers' own"
        way = "sdpa over blocks in place" if self.device.type == "cpu" else "sdpa over gathered blocks"
        fused = self._fusion.whole + self._fusion.by_parts
        return f"{way}, {fused} of {self._fusion.layers} layers fused"
