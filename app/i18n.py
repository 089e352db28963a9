"""The language of the program's words: gettext with catalogues in resources/translations.

English is the source language; a missing catalogue or a missing word falls back to it. Knows no Qt.
"""

from __future__ import annotations

import gettext
from pathlib import Path

_DOMAIN = "cutaway"
_FOLDER = Path(__file__).resolve().parent.parent / "resources" / "translations"


class _Catalogue:
    """The words in use; one object, so that a language chosen after import reaches every module.

    Attributes:
        language: what was chosen; "" for the system's language.
        _words: the gettext catalogue in use.
    """

    def __init__(self) -> None:
        self.language = ""
        self._words: gettext.NullTranslations = gettext.NullTranslations()

    def use(self, language: str) -> None:
        """Use this language's words (such as "zh_CN"); "" takes the system's language."""
        self.language = language
        languages = [language] if language else None
        self._words = gettext.translation(_DOMAIN, _FOLDER, languages=languages, fallback=True)

    def text(self, message: str) -> str:
        """Return the message in the language in use."""
        return self._words.gettext(message)

    def plural(self, singular: str, plural: str, count: int) -> str:
        """Return the form of the message that fits the count."""
        return self._words.ngettext(singular, plural, count)


_catalogue = _Catalogue()

_ = _catalogue.text
ngettext = _catalogue.plural
use_language = _catalogue.use


def current_language() -> str:
    """Return the chosen language; "" for the system's."""
    return _catalogue.language
