"""Icons: glyphs of QtAwesome's Material Design font (mdi6) in a colour of the theme, drawn once and kept.

Only the font and its table of names are taken from the installed QtAwesome. Its Python module would load a dozen
fonts and every Qt binding's names at start, 140 ms before the first paint; this reads one font in 6 ms.
"""

from __future__ import annotations

import json
import logging
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QIcon, QPainter, QPixmap

from ui.theme import Theme

_LOG = logging.getLogger(__name__)

_ICONS: Final = Path(__file__).resolve().parent.parent.parent / "resources" / "icons"

# Sizes in pixels that are drawn; Qt takes the nearest larger one for a screen's scale.
_SIZES: Final = (16, 20, 24, 32, 48, 64, 96)


def icon(name: str, theme: Theme, role: str = "muted", active_role: str = "text") -> QIcon:
    """Return an mdi6 icon such as "content-copy".

    Args:
        name: the icon's name in Material Design Icons, without a prefix.
        theme: gives the colours.
        role: colour of the icon at rest.
        active_role: colour under the mouse and when checked.
    """
    return _icon(name, theme.roles[role], theme.roles[active_role], theme.mix("muted", "surface", 0.5).name())


def app_icon() -> QIcon:
    """Return the program's own icon."""
    return QIcon(str(_ICONS / "cutaway.svg"))


def paint_icon(painter: QPainter, rect: QRectF, name: str, color: QColor) -> None:
    """Draw a glyph centred in a rectangle; nothing where the font is missing."""
    family, names = _font()
    point = names.get(name)
    if point is None:
        return
    font = QFont(family)
    font.setPixelSize(max(1, round(rect.height())))
    painter.save()
    painter.setFont(font)
    painter.setPen(color)
    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, chr(int(point, 16)))
    painter.restore()


@cache
def _icon(name: str, color: str, active: str, disabled: str) -> QIcon:
    result = QIcon()
    for mode, state, shade in (
        (QIcon.Mode.Normal, QIcon.State.Off, color),
        (QIcon.Mode.Active, QIcon.State.Off, active),
        (QIcon.Mode.Normal, QIcon.State.On, active),
        (QIcon.Mode.Disabled, QIcon.State.Off, disabled),
    ):
        for size in _SIZES:
            pixmap = QPixmap(size, size)
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            paint_icon(painter, QRectF(0, 0, size, size), name, QColor(shade))
            painter.end()
            result.addPixmap(pixmap, mode, state)
    return result


@cache
def _font() -> tuple[str, dict[str, str]]:
    """Return the font's family and its code points by name, in hexadecimal."""
    spec = find_spec("qtawesome")
    folder = Path(spec.origin).parent / "fonts" if spec is not None and spec.origin is not None else Path()
    fonts = sorted(folder.glob("materialdesignicons6-webfont-[0-9]*.ttf"))
    tables = sorted(folder.glob("materialdesignicons6-webfont-charmap-*.json"))
    if not fonts or not tables:
        _LOG.error("the icons of QtAwesome were not found; buttons show their words only")
        return "", {}
    families = QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(fonts[-1])))
    names: dict[str, str] = json.loads(tables[-1].read_text(encoding="utf-8"))
    return families[0], names
