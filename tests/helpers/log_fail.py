"""Noise fails: a log record of level WARNING or above that a test did not expect is a failure.

Knows nothing of pytest's fixtures; tests/conftest.py puts one LogWatch around each test.
"""

from __future__ import annotations

import logging
import re


class LogWatch(logging.Handler):
    """Collects the loud records of one test and tells the unexpected ones.

    Calling it with patterns allows the records they match; a test that takes the fixture `allow_log` and never
    calls it allows every record.

    Attributes:
        lines: every loud record as `level logger: message`, in order.
        _patterns: what the test expects.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._patterns: list[re.Pattern[str]] = []

    def __call__(self, *patterns: str) -> None:
        """Expect records that contain a match of one of these regular expressions."""
        self._patterns += [re.compile(pattern) for pattern in patterns]

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record; called by logging, from any thread."""
        self.lines.append(f"{record.levelname} {record.name}: {record.getMessage()}")

    def unexpected(self, *, is_allowed: bool) -> list[str]:
        """Return the records that fail the test; is_allowed says whether it took the fixture `allow_log`."""
        if is_allowed and not self._patterns:
            return []
        return [line for line in self.lines if not any(pattern.search(line) for pattern in self._patterns)]
