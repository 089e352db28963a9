"""The icon in every size that a desktop asks for."""

from __future__ import annotations

import struct
import subprocess
import sys

import bootstrap
import icons


def test_every_size_is_drawn_and_the_drawing_itself_is_added(tmp_path):
    script = bootstrap.ROOT / "packaging" / "icons.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    for size_px in icons.SIZES_PX:
        content = (tmp_path / f"{size_px}x{size_px}" / "apps" / "cutaway.png").read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", content[16:24]) == (size_px, size_px)
    assert (tmp_path / "scalable" / "apps" / "cutaway.svg").read_bytes().startswith(b"<svg")
    assert (min(icons.SIZES_PX), max(icons.SIZES_PX)) == (16, 512)


def test_the_middle_of_the_icon_is_the_engine_s_copper(qapp):
    colour = icons.draw(64).pixelColor(26, 36)
    assert colour.red() > 200 > colour.blue()
