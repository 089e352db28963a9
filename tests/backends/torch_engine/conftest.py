"""What tests of the torch engine share."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny models on one thread, and transformers silent until a load.

    On a busy machine the threads of a pool wait for each other longer than they work.
    """
    logging.getLogger("transformers").propagate = False  # a load sends its log our way; here other tests come after it
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
