"""The headers of a repo's rows, read four at a time, so that the table can say what fits before anything is downloaded.

The most useful rows come first. As soon as one is read, all others of the same model get its shape, scaled to their
size: their fit is nearly right at once, and exact when their own header has come. What is read in all is bounded, since
each header brings its vocabulary along again. Knows no table on a screen and no fit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import msgspec

from app.hub.cache import AnswerCache
from app.hub.file_names import model_file
from app.hub.row_headers import CancelledError, RowFacts, RowReader, with_facts, with_fault
from app.hub.types import QuantizationRow
from app.models.byte_source import HeaderError
from app.models.http_faults import RemoteError
from app.models.quantization import meaning
from app.models.shape_scale import scaled_shape

OnRow = Callable[[QuantizationRow], None]

AT_ONCE = 4
BUDGET_BYTES = 128 * 2**20
# What most people want, Q4_K_M; rows are read in the order of their distance from it.
_WANTED_BITS = 4.9
_POLL_S = 0.25


class HeaderTable:
    """Reads the headers of rows; used once, on one thread. `on_row` is called on that thread too.

    Args:
        reader: reads one row.
        cache: what was read before; a commit's files never change.
        on_row: told of every row that changes.
        budget_bytes: what may be read in all before the rest keeps its estimates.
    """

    def __init__(self, reader: RowReader, cache: AnswerCache, on_row: OnRow, budget_bytes: int = BUDGET_BYTES) -> None:
        self._reader = reader
        self._cache = cache
        self._on_row = on_row
        self._budget_bytes = budget_bytes
        self._spent_bytes = 0
        self._largest_bytes = 0
        self._rows: dict[str, QuantizationRow] = {}

    def read(
        self, rows: Sequence[QuantizationRow], cancel: threading.Event, keys: Collection[str] | None = None
    ) -> tuple[QuantizationRow, ...]:
        """Return the rows with what their headers say; those that were not read when it was cancelled stay unread.

        Args:
            rows: of one repo.
            cancel: ends it between two pieces; what is under way may take as long as the server is silent.
            keys: the rows that are wanted whatever they cost; None for all that the budget allows.
        """
        self._rows = {row.key: row for row in rows}
        wanted = [row for row in rows if _is_open(row) and (keys is None or row.key in keys)]
        todo = [row for row in sorted(wanted, key=_order) if not self._recall(row)]
        self._estimate()
        if todo and not cancel.is_set():
            self._read_all(todo, cancel, is_bounded=keys is None)
        return tuple(self._rows[row.key] for row in rows)

    def _read_all(self, todo: list[QuantizationRow], cancel: threading.Event, *, is_bounded: bool) -> None:
        running: dict[Future[RowFacts], QuantizationRow] = {}
        with ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="header") as executor:
            while todo or running:
                while todo and len(running) < AT_ONCE and not cancel.is_set():
                    if is_bounded and not self._has_budget(len(running)):
                        todo.clear()
                        break
                    row = todo.pop(0)
                    self._tell(msgspec.structs.replace(self._rows[row.key], state="reading"))
                    running[executor.submit(self._reader.read, row)] = row
                if cancel.is_set():
                    todo.clear()
                done, _not_done = wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(running.pop(future), future)

    def _take(self, row: QuantizationRow, future: Future[RowFacts]) -> None:
        current = self._rows[row.key]
        try:
            facts = future.result()
        except CancelledError:
            self._tell(msgspec.structs.replace(current, state="unread"))
            return
        except (RemoteError, HeaderError) as error:
            self._tell(with_fault(current, error))
            return
        self._spent_bytes += facts.read_bytes
        self._largest_bytes = max(self._largest_bytes, facts.read_bytes)
        if facts.is_shape_exact:
            self._cache.put(_question(row), facts)
        self._tell(with_facts(current, facts))
        self._estimate()

    def _has_budget(self, running: int) -> bool:
        return self._spent_bytes + (running + 1) * self._largest_bytes <= self._budget_bytes

    def _recall(self, row: QuantizationRow) -> bool:
        """Take a row's facts from an earlier time; returns whether they were there."""
        kept = self._cache.get(_question(row), RowFacts)
        if kept is None:
            return False
        self._tell(with_facts(row, kept.value))
        return True

    def _estimate(self) -> None:
        """Give every row without a shape the one of a row of the same model that has its own."""
        known = [row for row in self._rows.values() if row.is_shape_exact and row.shape and not row.shape.unknown]
        for row in list(self._rows.values()):
            if row.shape is not None or row.is_broken:
                continue
            like = next((one for one in known if _model_of(one) == _model_of(row)), None)
            if like is not None and like.shape is not None:
                shape = scaled_shape(like.shape, row.size_bytes)
                self._tell(msgspec.structs.replace(row, shape=shape))

    def _tell(self, row: QuantizationRow) -> None:
        self._rows[row.key] = row
        self._on_row(row)


def _is_open(row: QuantizationRow) -> bool:
    """Whether a row's header is still to be read; one that failed by the network's fault is tried again."""
    return not row.is_broken and row.state != "read"


def _order(row: QuantizationRow) -> tuple[float, int]:
    bits = meaning(row.quantization).nominal_bits if row.quantization else 0.0
    return abs(bits - _WANTED_BITS), row.size_bytes


def _model_of(row: QuantizationRow) -> tuple[str, str]:
    return row.format, model_file(row.files[0].path).model.casefold()


def _question(row: QuantizationRow) -> list[str]:
    """Return what a row's facts are kept under: its bytes where their hash is known, else their place."""
    files = [file.sha256 or f"{file.endpoint} {file.repo} {file.revision} {file.path}" for file in row.files]
    return ["header", row.format, str(row.size_bytes), *files]
