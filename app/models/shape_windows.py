"""Which layers of a GGUF model see a window only, and how wide it is.

Reference: load_swa_pattern() and set_swa_pattern() of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.models.architectures import ALL_WINDOWED, WINDOWS, WindowRule
from app.models.gguf_keys import GgufKeys

_WINDOW, _PATTERN = "attention.sliding_window", "attention.sliding_window_pattern"


def window_of_layers(keys: GgufKeys, count: int, keeps_state: Sequence[bool]) -> list[int]:
    """Return each layer's window in tokens; 0 for the whole context.

    Args:
        keys: the header's numbers.
        count: how many layers there are, those that are not run among them.
        keeps_state: of each layer whether it is recurrent.

    Raises:
        BadKeyError: a number makes no sense.
    """
    if keys.architecture in ALL_WINDOWED:
        window = keys.number(_WINDOW)
        return [0 if state else window for state in keeps_state]
    rule = WINDOWS.get(keys.architecture)
    if rule is None:
        return [0] * count
    trunk = count - keys.number("nextn_predict_layers")
    window = _window_tokens(keys, rule, trunk)
    is_full = _full_layers(keys, rule, count)
    return [window if index < trunk and not full else 0 for index, full in enumerate(is_full)]


def _window_tokens(keys: GgufKeys, rule: WindowRule, trunk: int) -> int:
    if rule.needs_layers not in (0, trunk):
        return 0
    said = keys.number(_WINDOW, absent=rule.default_tokens)
    return rule.fixed_tokens or said if said else 0


def _full_layers(keys: GgufKeys, rule: WindowRule, count: int) -> list[bool]:
    """Say of each layer whether it sees everything."""
    listed = keys.flags(_PATTERN, count)
    if listed is not None:
        return [not is_windowed for is_windowed in listed]
    if not rule.every:  # such a file must list its layers; llama.cpp refuses one that does not
        return [True] * count
    every = keys.number(_PATTERN, absent=rule.every)
    if not every:
        return [False] * count
    place = 0 if rule.is_first_full else every - 1
    return [index % every == place for index in range(count)]
