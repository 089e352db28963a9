"""The watch over noise and leaks can fail: each seeded fault turns its own test red, and only that one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SEEDS = """
import logging, os, subprocess, sys, threading, warnings
import pytest

kept = []

def test_clean(allow_log):
    logging.getLogger("a.b").info("quiet")
    thread = threading.Thread(target=int)
    thread.start()
    subprocess.run([sys.executable, "-c", "pass"], check=True)

def test_home_is_a_folder_of_its_own():
    assert os.path.isdir(os.environ["CUTAWAY_HOME"])
    assert not os.listdir(os.environ["CUTAWAY_HOME"])

def test_expected_log(allow_log):
    allow_log("engine (died|ended)")
    logging.getLogger("a.b").warning("the engine died")

def test_any_log(allow_log):
    logging.getLogger("a.b").error("anything")

def test_closed_window(qtbot):
    from PySide6.QtWidgets import QWidget
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()

def test_stopped_timer(qapp):
    from PySide6.QtCore import QTimer
    kept.append(QTimer())
    kept[-1].start(1000)
    kept[-1].stop()

def test_bad_warning():
    warnings.warn("stray", DeprecationWarning)

def test_bad_log():
    logging.getLogger("a.b").warning("stray log")

def test_bad_other_log(allow_log):
    allow_log("engine died")
    logging.getLogger("a.b").warning("another log")

def test_bad_thread():
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, name="stray-thread", daemon=True).start()

def test_bad_process():
    kept.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))

def test_bad_unwaited_process():
    kept.append(subprocess.Popen([sys.executable, "-c", "pass"]))

def test_bad_timer(qapp):
    from PySide6.QtCore import QTimer
    kept.append(QTimer())
    kept[-1].start(1000)

def test_bad_window(qapp):
    from PySide6.QtWidgets import QWidget
    kept.append(QWidget())
    kept[-1].setObjectName("stray-window")

def test_bad_qt_message(qapp):
    from PySide6.QtCore import qWarning
    qWarning("stray Qt message")
"""

WORDS = {
    "test_bad_warning": "DeprecationWarning: stray",
    "test_bad_log": "WARNING a.b: stray log",
    "test_bad_other_log": "WARNING a.b: another log",
    "test_bad_thread": "thread 'stray-thread', started at test_seeds.py:",
    "test_bad_process": "time.sleep(60), started at test_seeds.py:",
    "test_bad_unwaited_process": "(ended, never waited for): ",
    "test_bad_timer": "running timer, started at test_seeds.py:",
    "test_bad_window": "window QWidget 'stray-window'",
    "test_bad_qt_message": "stray Qt message",
}


def test_each_seeded_fault_fails_its_own_test_with_its_name(tmp_path):
    (tmp_path / "test_seeds.py").write_text(SEEDS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml"), "-rA"]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path / "test_seeds.py")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    red = set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", result.stdout, re.MULTILINE))
    assert red == set(WORDS), result.stdout
    silent = [name for name, words in WORDS.items() if words not in result.stdout]
    assert silent == [], result.stdout
