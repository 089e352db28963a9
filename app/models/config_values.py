"""The values of a config.json under the several names that transformers gives them.

Of a model that sees or hears, the language part is what counts. Knows no architecture and no tensor.
Reference: PretrainedConfig.attribute_map of https://github.com/huggingface/transformers.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.models.gguf_keys import BadKeyError

_LANGUAGE_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
_MAX_NUMBER = 2**53


class ConfigValues:
    """Reads whole numbers, lists and words.

    Attributes:
        kind: the language part's kind of model, such as "gemma3_text".
        _outer: the whole config, asked where the language part is silent.
        _inner: the language part; the whole config where there is no such part.
    """

    def __init__(self, config: Mapping[str, object]) -> None:
        self._outer = config
        self._inner = _language_part(config)
        self.kind = self.word("model_type")

    def number(self, *names: str, absent: int = 0) -> int:
        """Return the first of these that is there; `absent` when none is.

        Raises:
            BadKeyError: it is no whole number.
        """
        found = self._find(names)
        if found is None:
            return absent
        name, value = found
        if isinstance(value, list) and value:  # one for each layer: the largest stands for all
            return max((_checked(name, one) for one in value if one is not None), default=0)
        return _checked(name, value)

    def per_layer(self, *names: str, count: int) -> list[int] | None:
        """Return a list of numbers, one for each layer; None where there is no such list.

        Raises:
            BadKeyError: it is of another length, or holds something else.
        """
        found = self._find(names)
        if found is None or not isinstance(found[1], list):
            return None
        name, values = found
        if not isinstance(values, list) or len(values) != count:
            raise BadKeyError(f"{name} does not have one entry for each of the {count:,} layers.")
        return [0 if one is None else _checked(name, one) for one in values]

    def words(self, *names: str) -> list[str]:
        """Return a list of words; none where there is no such list."""
        found = self._find(names)
        if found is None or not isinstance(found[1], list):
            return []
        return [one for one in found[1] if isinstance(one, str)]

    def word(self, *names: str) -> str:
        """Return a word; "" where there is none."""
        found = self._find(names)
        return found[1] if found is not None and isinstance(found[1], str) else ""

    def is_true(self, name: str) -> bool:
        """Say whether this is said to be so."""
        found = self._find((name,))
        return found is not None and found[1] is True

    def part(self, name: str) -> ConfigValues:
        """Return the values of a part of the config; an empty one where there is none."""
        found = self._find((name,))
        return ConfigValues(found[1] if found is not None and isinstance(found[1], Mapping) else {})

    def numbers_in(self, name: str) -> set[int]:
        """Return the whole numbers of a list; none where there is no such list."""
        found = self._find((name,))
        if found is None or not isinstance(found[1], list):
            return set()
        return {one for one in found[1] if isinstance(one, int)}

    def _find(self, names: tuple[str, ...]) -> tuple[str, object] | None:
        for where in (self._inner, self._outer):
            for name in names:
                if where.get(name) is not None:
                    return name, where[name]
        return None


def _language_part(config: Mapping[str, object]) -> Mapping[str, object]:
    for _level in range(len(_LANGUAGE_PARTS)):
        part = next((config[name] for name in _LANGUAGE_PARTS if isinstance(config.get(name), Mapping)), None)
        if not isinstance(part, Mapping):
            break
        config = part
    return config


def _checked(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_NUMBER:
        raise BadKeyError(f"{name} is no whole number that a model can mean.")
    return value
