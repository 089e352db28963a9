"""What an engine must offer to the worker's loop.

An engine is a loaded model that can step. The worker's main thread alone calls it, but for the two methods that say
otherwise. There is no prefill phase and no decode phase: a sequence has computed and known tokens, and every step
lets the first catch up with the second (vLLM v1's rule).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from backends import protocol
from backends.errors import EngineError, ErrorCode

Report = Callable[[protocol.Event], None]


class Engine(ABC):
    """A kind of engine, with at most one loaded model.

    Life cycle: construct (cheap), load, then add, step and abort as requests come, unload.

    Class attributes:
        backend: the registry's name of this kind of engine.
    """

    backend: ClassVar[str]

    @abstractmethod
    def load(self, command: protocol.LoadModel, report: Report) -> protocol.ModelLoaded:
        """Load the model; raises EngineError and leaves the engine empty when it cannot.

        Args:
            command: what to load and how.
            report: takes Progress and LogRecorded events on the way.
        """

    @abstractmethod
    def unload(self) -> None:
        """Give the model's memory back; harmless when nothing is loaded."""

    def probe_memory(self, command: protocol.ProbeMemory, report: Report) -> protocol.MemorySplit:
        """Say what loading would take, without loading and whether or not a model is loaded.

        Raises:
            EngineError: UNSUPPORTED_COMMAND where this kind of engine cannot tell; else why the load would fail.
        """
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command=type(command).__name__, backend=self.backend)

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether a request is unfinished."""

    @abstractmethod
    def add(self, request: protocol.Generate) -> None:
        """Accept a request; raises EngineError when it can never be done."""

    @abstractmethod
    def abort(self, request_id: protocol.RequestId) -> Sequence[protocol.Event]:
        """Drop a request and return its closing events; empty when it is not known (any more)."""

    @abstractmethod
    def step(self) -> Sequence[protocol.Event]:
        """Do one step for the waiting requests and return its StepDone, then what ended by it."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make the step in progress return soon. Called from any thread."""

    @abstractmethod
    def count_tokens(self, prompt: protocol.Prompt) -> int:
        """Count a prompt's tokens from the vocabulary alone. Called from any thread while a model is loaded."""

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        """Return a prompt's token ids; raises EngineError, UNSUPPORTED_COMMAND where there is no vocabulary."""
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command="Tokenize", backend=self.backend)

    def token_bytes(self, token_ids: Sequence[int]) -> tuple[bytes, ...]:
        """Return what each token adds to a text, of one that adds nothing its name; raises EngineError.

        UNSUPPORTED_COMMAND where there is no vocabulary, BAD_PARAMS for an id that is not in it.
        """
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command="Detokenize", backend=self.backend)

    def score(self, command: protocol.Score) -> protocol.ScoreDone:
        """Score known tokens, from an empty context; what requests had computed before may be lost.

        Raises:
            EngineError: UNSUPPORTED_COMMAND where this kind of engine cannot; BAD_PARAMS for rows that are not there;
                PROMPT_TOO_LONG; REFERENCE_UNREADABLE for a window that does not fit these tokens or cannot be read;
                WRITE_FAILED where the window cannot be written.
        """
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command=type(command).__name__, backend=self.backend)

    def collect_importance(self, command: protocol.CollectImportance, report: Report) -> None:
        """Write the importance matrix of a text and report Progress; raises EngineError."""
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command=type(command).__name__, backend=self.backend)

    def quantize(self, command: protocol.Quantize, report: Report) -> protocol.Quantized:
        """Write a model in another quantization, whether or not a model is loaded; raises EngineError."""
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command=type(command).__name__, backend=self.backend)

    def describe_block(self, command: protocol.DescribeBlock) -> protocol.BlockDescribed:
        """Say which tokens lie in a KV block.

        Raises:
            EngineError: UNSUPPORTED_COMMAND where the engine has no blocks; BAD_PARAMS where it has not this one.
        """
        raise EngineError(ErrorCode.UNSUPPORTED_COMMAND, command=type(command).__name__, backend=self.backend)

    def discard_requests(self) -> Sequence[protocol.RequestId]:
        """Forget every unfinished request after a fault and return their ids."""
        return ()
