"""Imports flow down, Qt stays in the window, engines stay in their folders; and each rule can fail."""

from __future__ import annotations

import pytest

from tests.architecture import layer_rules as rules
from tests.architecture.source import LAYERS, SourceFile, python_files
from tests.architecture.tree_rules import lines

RULES = [
    rules.qt_outside_ui,
    rules.engine_library_outside_its_folder,
    rules.upward_import,
    rules.heavy_face,
    rules.import_cycle,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_program_keeps_the_rule(rule):
    offences = rule(python_files(*LAYERS))
    assert offences == [], lines(offences)


# Each case: the rule, the files that break it (path -> text), how many offences it must find.
BROKEN = [
    (rules.qt_outside_ui, {"app/a.py": "from PySide6.QtCore import QObject"}, 1),
    (rules.qt_outside_ui, {"backends/a.py": "def f():\n    import pyqtgraph as pg"}, 1),
    (rules.engine_library_outside_its_folder, {"ui/a.py": "import torch.nn"}, 1),
    (rules.engine_library_outside_its_folder, {"backends/worker.py": "importlib.import_module('llama_cpp')"}, 1),
    (rules.engine_library_outside_its_folder, {"backends/llama_cpp_engine/a.py": "from transformers import x"}, 1),
    (rules.upward_import, {"app/a.py": "from ui import bridge"}, 1),
    (rules.upward_import, {"app/__main__.py": "import_module('ui.bridge')"}, 1),
    (rules.upward_import, {"app/cli.py": "importlib.import_module('ui.main')"}, 1),
    (rules.upward_import, {"backends/a.py": "if TYPE_CHECKING:\n    from app.settings import Settings"}, 1),
    (rules.upward_import, {"backends/b/c.py": "from ...ui import theme"}, 1),
    (rules.upward_import, {"app/a.py": "from backends import worker, memory_meter"}, 2),
    (rules.upward_import, {"app/a.py": "from backends.llama_cpp_engine.engine import LlamaCppEngine"}, 1),
    (rules.upward_import, {"app/a.py": "import backends"}, 1),
    (rules.upward_import, {"ui/a.py": "from backends.echo_engine import EchoEngine"}, 1),
    (rules.upward_import, {"ui/a.py": "from tests.helpers import leaks"}, 1),
    (rules.heavy_face, {"backends/client.py": "import psutil"}, 1),
    (rules.heavy_face, {"backends/registry.py": "from backends import tools", "backends/tools.py": "import jinja2"}, 1),
    (rules.import_cycle, {"app/a.py": "from app import b", "app/b.py": "from app.a import f"}, 1),
    (rules.import_cycle, {"app/a.py": "def f():\n    import b.b", "b/b.py": "import b.c", "b/c.py": "import app.a"}, 1),
]


@pytest.mark.parametrize(("rule", "files", "count"), BROKEN)
def test_a_broken_rule_is_found(rule, files, count):
    assert len(rule([SourceFile(path, text) for path, text in files.items()])) == count


KEPT = [
    (rules.qt_outside_ui, {"ui/a.py": "from PySide6 import QtCore", "app/a.py": "PySide6 = 'PySide6'"}),
    (rules.engine_library_outside_its_folder, {"backends/llama_cpp_engine/a.py": "import llama_cpp"}),
    (rules.upward_import, {"app/__main__.py": "importlib.import_module('ui.main').main()"}),
    (rules.upward_import, {"app/a.py": "from backends import client, protocol, registry, wire"}),
    (rules.upward_import, {"app/a.py": "from backends.protocol import StepDone\nimport numpy\nfrom . import b"}),
    (rules.upward_import, {"ui/a.py": "from app.i18n import _\nfrom backends.client import EngineDied"}),
    (rules.upward_import, {"backends/worker.py": "from backends.memory_meter import MemoryMeter\nimport psutil"}),
    (rules.heavy_face, {"backends/client.py": "import msgspec, numpy, socket", "backends/worker.py": "import psutil"}),
    (rules.import_cycle, {"app/a.py": "from app import b, c", "app/b.py": "import app.c", "app/c.py": "import os"}),
]


@pytest.mark.parametrize(("rule", "files"), KEPT)
def test_a_kept_rule_is_left_alone(rule, files):
    assert rule([SourceFile(path, text) for path, text in files.items()]) == []
