"""Files opened in the window that are no model, or a second start's: one line each, never a hang (C-13)."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys

import pytest

from tests.helpers.program import ROOT, DrivenProgram, maps_of, stretched, wait_for

pytestmark = pytest.mark.drill

SECOND_START_S = 10.0


def make_fifo(path):
    os.mkfifo(path)


def make_folder(path):
    path.mkdir()


def make_endless(path):
    path.symlink_to("/dev/zero")


def make_empty(path):
    path.touch()


def make_unreadable(path):
    path.write_bytes(b"GGUF" + bytes(100))
    path.chmod(0)


def make_pickle(path):
    path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))


def make_missing(path):
    pass


def make_loop(path):
    path.symlink_to(path)


MAKERS = {
    "fifo.gguf": make_fifo,
    "folder.gguf": make_folder,
    "endless.gguf": make_endless,
    "empty.gguf": make_empty,
    "unreadable.gguf": make_unreadable,
    "pickle.gguf": make_pickle,
    "model.pkl": make_pickle,
    "pytorch_model.bin": make_pickle,
    "missing.gguf": make_missing,
    "loop.gguf": make_loop,
    "Übergröße 模型.gguf": make_empty,
}


def test_a_file_that_is_no_model_is_refused_in_one_line(own_home, tmp_path):
    as_an_owner = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")  # or root could read the unreadable
    prefix = as_an_owner if os.geteuid() == 0 and shutil.which("setpriv") else ()
    if os.geteuid() == 0 and not prefix:
        MAKERS.pop("unreadable.gguf")
    with DrivenProgram(own_home, prefix=prefix) as program:
        program.wait_ready()
        worker = program.worker()
        for name, make in MAKERS.items():
            make(tmp_path / name)
            program.ask("load", str(tmp_path / name), limit_s=5.0)
            told = program.wait_notice(name)["notices"]
            assert "\n" not in next(notice for notice in told if name in notice), name
        assert (program.state()["life_cycle"], program.worker().pid) == ("ready", worker.pid)
        assert program.quit() == 0


def test_a_second_start_hands_its_file_to_the_first_and_ends(own_home, starter_model, tmp_path):
    other = tmp_path / "another.gguf"
    shutil.copyfile(starter_model, other)
    with DrivenProgram(own_home) as program:
        first_chip = program.wait_ready()["chip"]
        first_pid = program.worker().pid
        second = subprocess.run(
            [sys.executable, "-m", "app", str(other)],
            cwd=ROOT,
            env={**os.environ, "CUTAWAY_HOME": str(own_home), "TMPDIR": str(program.temporary)},
            capture_output=True,
            timeout=stretched(SECOND_START_S),
            check=False,
        )
        assert (second.returncode, second.stderr) == (0, b"")
        wait_for(
            lambda: [w for w in program.workers() if w.pid != first_pid and str(other) in maps_of(w)],
            "the first window loads the file",
        )
        state = program.wait_ready()
        assert state["notices"] == []
        assert state["chip"] != first_chip  # the file calls itself something else than our starter model
        assert program.quit() == 0
