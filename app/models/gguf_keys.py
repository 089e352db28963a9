"""The metadata of a GGUF header that belong to its architecture, as whole numbers or not at all.

llama.cpp reads them as 32-bit numbers and refuses others. Knows no meaning of any key.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.models.gguf_header import GgufHeader

_MAX_NUMBER = 2**32 - 1


class BadKeyError(Exception):
    """A key holds what no model can mean; the text is a sentence for a person, in English."""


class GgufKeys:
    """Reads "llama.block_count" as `number("block_count")`.

    Attributes:
        architecture: such as "llama"; "" where the header does not say.
        _header: whose metadata they are.
    """

    def __init__(self, header: GgufHeader) -> None:
        self.architecture = header.architecture
        self._header = header

    def number(self, key: str, absent: int = 0) -> int:
        """Return a whole number; `absent` where there is none.

        Raises:
            BadKeyError: there is something else.
        """
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        return absent if value is None else self._checked(key, value)

    def per_layer(self, key: str, count: int, absent: int = 0) -> Sequence[int]:
        """Return a number for each of so many layers, from a list or from one number for all.

        Raises:
            BadKeyError: there is something else, or a list of another length.
        """
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        if value is None:
            return [absent] * count
        if not isinstance(value, tuple):
            return [self._checked(key, value)] * count
        if len(value) != count:
            raise BadKeyError(f"{key} lists {len(value):,} layers, and there are {count:,}.")
        return [self._checked(key, one) for one in value]

    def first(self, key: str) -> int:
        """Return the number of the first layer; 0 where there is none.

        Raises:
            BadKeyError: there is something else.
        """
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, tuple):
            value = value[0] if value else None
        return 0 if value is None else self._checked(key, value)

    def flags(self, key: str, count: int) -> list[bool] | None:
        """Return yes or no for each of so many layers, no where a list ends early; None where there is no list.

        Raises:
            BadKeyError: a list holds something else.
        """
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        if not isinstance(value, tuple):
            return None
        if not all(isinstance(one, int) for one in value):  # bool is one
            raise BadKeyError(f"{key} does not say yes or no.")
        return [index < len(value) and bool(value[index]) for index in range(count)]

    def some(self, key: str) -> int:
        """Return a whole number, and 0 for everything else."""
        try:
            return self.number(key)
        except BadKeyError:
            return 0

    def some_per_layer(self, key: str) -> list[int]:
        """Return the numbers of a list, or the one number; none where there is anything else."""
        value = self._header.metadata.get(f"{self.architecture}.{key}")
        try:
            return [self._checked(key, one) for one in (value if isinstance(value, tuple) else (value,))]
        except BadKeyError:
            return []

    def _checked(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_NUMBER:
            raise BadKeyError(f"{key} is no whole number that a model can mean.")
        return value
