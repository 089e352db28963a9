"""Draws the program's icon in the sizes that desktops ask for, from resources/icons. Knows nothing else.

Run as a process of its own: `icons.py FOLDER`, with Qt's offscreen display.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SIZES_PX = (16, 24, 32, 48, 64, 128, 256, 512)
_SOURCE = Path(__file__).resolve().parent.parent / "resources" / "icons" / "cutaway.svg"


def draw(size_px: int) -> QImage:
    """Return the icon in a square of this size."""
    image = QImage(size_px, size_px, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(_SOURCE)).render(painter)
    painter.end()
    return image


def main(theme: Path) -> int:
    """Draw every size below a folder, as an icon theme has them; returns the exit code."""
    app = QGuiApplication(["icons", "-platform", "offscreen"])
    for size_px in SIZES_PX:
        folder = theme / f"{size_px}x{size_px}" / "apps"
        folder.mkdir(parents=True, exist_ok=True)
        if not draw(size_px).save(str(folder / "cutaway.png")):
            return 1
    scalable = theme / "scalable" / "apps"
    scalable.mkdir(parents=True, exist_ok=True)
    (scalable / "cutaway.svg").write_bytes(_SOURCE.read_bytes())
    app.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
