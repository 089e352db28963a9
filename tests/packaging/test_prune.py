"""What is left out of an installed program is nothing that the program loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path, PurePosixPath

import bootstrap
import prune
import pytest

# Imports every module of the program, draws the window with its plots, and says which files that took.
_LOADER = """
import importlib, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
for layer in ("app", "backends", "ui"):
    for module in pkgutil.walk_packages([f"{sys.argv[1]}/{layer}"], f"{layer}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
assert importlib.import_module("ui.main").selftest_window(sys.argv[2]) == 0
files = {str(getattr(module, "__file__", "") or "") for module in list(sys.modules.values())}
with open("/proc/self/maps") as maps:
    files.update(line.split(maxsplit=5)[5].strip() for line in maps if line.count("/"))
print(json.dumps(sorted(files)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_that_the_program_loads_is_left_out(tmp_path):
    command = [sys.executable, "-c", _LOADER, str(bootstrap.ROOT), str(tmp_path / "window.png")]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    packages = Path(sysconfig.get_path("purelib"))
    inside = [Path(file).relative_to(packages) for file in json.loads(done.stdout) if file.startswith(str(packages))]
    loaded = [PurePosixPath(path) for path in inside if path.parts[:2] != ("llama_cpp", "lib")]
    assert len(loaded) > 300
    optional = ("PySide6/QtTest.", "PySide6/Qt/lib/libQt6Test.")  # pyqtgraph tries it for its own tests, and goes on
    assert [str(path) for path in loaded if prune.is_left_out(path) and not str(path).startswith(optional)] == []


@pytest.mark.parametrize(
    "path",
    [
        "PySide6/Qt/plugins/platforms/libqxcb.so",
        "PySide6/Qt/plugins/platforms/libqwayland.so",
        "PySide6/Qt/plugins/platforminputcontexts/libibusplatforminputcontextplugin.so",
        "PySide6/Qt/plugins/platforminputcontexts/libcomposeplatforminputcontextplugin.so",
        "PySide6/Qt/plugins/iconengines/libqsvgicon.so",
        "PySide6/Qt/plugins/xcbglintegrations/libqxcb-glx-integration.so",
        "PySide6/Qt/plugins/tls/libqopensslbackend.so",
        "PySide6/Qt/lib/libQt6XcbQpa.so.6",
        "PySide6/Qt/lib/libQt6OpenGLWidgets.so.6",
        "PySide6/Qt/lib/libicudata.so.73",
        "PySide6/Qt/translations/qtbase_pl.qm",
        "PySide6/QtOpenGLWidgets.abi3.so",
        "PySide6/QtNetwork.abi3.so",
        "PySide6/libpyside6.abi3.so.6.11",
        "qtawesome/fonts/materialdesignicons6-webfont-6.9.96.ttf",
        "numpy/testing/__init__.py",
        "numpy-2.4.6.dist-info/METADATA",
        "numpy-2.4.6.dist-info/licenses/LICENSE.txt",
    ],
)
def test_what_is_loaded_only_on_other_machines_is_kept(path):
    assert not prune.is_left_out(PurePosixPath(path))


@pytest.mark.parametrize(
    "path",
    [
        "PySide6/designer",
        "PySide6/Qt/lib/libQt6Quick.so.6",
        "PySide6/Qt/plugins/sqldrivers/libqsqlodbc.so",
        "PySide6/Qt/plugins/platforms/libqvnc.so",
        "PySide6/Qt/qml/QtQuick/qmldir",
        "PySide6/QtSql.abi3.so",
        "PySide6/libpyside6qml.abi3.so.6.11",
        "llama_cpp/lib/libggml.so",
        "numpy/_core/tests/test_umath.py",
        "qtawesome/fonts/phosphor-1.3.0.ttf",
        "bin/f2py",
    ],
)
def test_what_nobody_loads_is_left_out(path):
    assert prune.is_left_out(PurePosixPath(path))
