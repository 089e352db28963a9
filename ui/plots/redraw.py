"""The one timer that redraws every plot: nothing is drawn per event, however fast readings come.

Knows no plot: whoever registers says whether it moved and whether it can be seen.
"""

from __future__ import annotations

import os
from typing import Final, Protocol

from PySide6.QtCore import QObject, QTimer

# Redraws a second: on few cores the engine needs them more than the plots do.
FEW_CORES: Final = 4
SLOW_HZ: Final = 5
FAST_HZ: Final = 10


class Redrawable(Protocol):
    """Something the timer redraws."""

    def has_moved(self) -> bool:
        """Say whether there is something new to draw."""

    def is_due(self) -> bool:
        """Say whether what is new is enough to be seen; what is not due now stays for a later turn."""

    def is_shown(self) -> bool:
        """Say whether a person can see it."""

    def redraw(self) -> None:
        """Draw the newest state."""


def redraws_per_s(cores: int) -> int:
    """Return how often plots are redrawn on a machine with this many usable cores."""
    return SLOW_HZ if cores <= FEW_CORES else FAST_HZ


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class RedrawTimer(QObject):
    """Redraws what moved and is visible, at one rate; stands still when there is nothing to do.

    `wake()` is all that an event does: it is called as often as events come, from the GUI thread.

    Attributes:
        redraws: how many single redraws there were.
        _members: what is redrawn, in the order of registration.
    """

    def __init__(self, parent: QObject | None = None, cores: int | None = None) -> None:
        super().__init__(parent)
        self.redraws = 0
        self._members: list[Redrawable] = []
        self._timer = QTimer(self)
        self._timer.setInterval(1000 // redraws_per_s(usable_cores() if cores is None else cores))
        self._timer.timeout.connect(self._on_timeout)

    @property
    def interval_ms(self) -> int:
        """The shortest time between two redraws of one plot, in milliseconds."""
        return self._timer.interval()

    @property
    def is_active(self) -> bool:
        """Whether a redraw is planned."""
        return self._timer.isActive()

    def add(self, member: Redrawable) -> None:
        """Redraw this one too."""
        self._members.append(member)
        self.wake()

    def remove(self, member: Redrawable) -> None:
        """Redraw this one no more."""
        if member in self._members:
            self._members.remove(member)

    def wake(self) -> None:
        """Note that something may have moved; the redraw comes with the timer, never now."""
        if not self._timer.isActive():
            self._timer.start()

    def stop(self) -> None:
        """Stand still until the next wake."""
        self._timer.stop()

    def _on_timeout(self) -> None:
        moved = [member for member in self._members if member.is_shown() and member.has_moved()]
        due = [member for member in moved if member.is_due()]
        for member in due:
            member.redraw()
        self.redraws += len(due)
        if not moved:
            self._timer.stop()
