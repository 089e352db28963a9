"""The log is bounded, one record a line, and keeps what people write to itself."""

from __future__ import annotations

import logging
import logging.handlers
import subprocess
import sys

import pytest

from app import log as module
from app.log import LineFormatter, neutral, new_worker_log, start_log, tail, trim_worker_log
from tests.conftest import ROOT


@pytest.fixture
def program_log(tmp_path):
    # The root logger is everybody's: it is given back as it was.
    root = logging.getLogger()
    level, own = root.level, {name: logging.getLogger(name).level for name in ("app", "backends", "ui")}
    log = start_log(tmp_path)
    yield log
    log.close()
    root.setLevel(level)
    for name, own_level in own.items():
        logging.getLogger(name).setLevel(own_level)


def formatted(text, *args, error=None):
    info = (type(error), error, error.__traceback__) if error is not None else None
    return LineFormatter().format(logging.LogRecord("app.x", logging.WARNING, "f.py", 1, text, args, info))


@pytest.mark.parametrize(
    "hostile", ["a\nERROR app: forged", "\x1b[2J\x1b]0;title\x07", "\r\x00\x85\u2028\u202e", "\ud800"]
)
def test_hostile_text_stays_one_harmless_line(hostile):
    line = formatted("model %s", hostile)
    assert "\n" not in line
    assert line.isprintable()
    line.encode("utf-8")


def test_ordinary_letters_of_every_script_stay_as_they_are():
    assert neutral("Kraków 日本 🙂 é") == "Kraków 日本 🙂 é"
    assert neutral("a\nb\x1bc") == "a\\nb\\x1bc"


def test_an_exceptions_text_is_left_out_and_its_way_is_kept():
    def inner():
        raise ValueError("CANARY-1")

    try:
        try:
            inner()
        except ValueError as error:
            raise RuntimeError("CANARY-2") from error
    except RuntimeError as error:
        text = formatted("failed", error=error)
    assert "CANARY" not in text
    assert "ValueError" in text
    assert "RuntimeError" in text
    assert "test_log.py" in text
    assert " in inner" in text


def test_an_error_of_the_system_keeps_the_systems_words():
    assert "FileNotFoundError 2 No such file /x\\ny" in formatted("x", error=OSError(2, "No such file", "/x\ny"))


def test_a_very_long_record_is_cut():
    assert len(formatted("%s", "x" * 1_000_000)) < 5_000


def test_records_of_ours_are_written_and_chatter_of_libraries_is_not(program_log, tmp_path, allow_log):
    logging.getLogger("app.chat").info("ours %d", 1)
    logging.getLogger("some.library").info("CANARY")
    logging.getLogger("some.library").warning("careful")
    text = (tmp_path / "cutaway.log").read_text()
    assert "INFO app.chat: ours 1" in text
    assert "careful" in text
    assert "CANARY" not in text


def test_the_log_never_grows_beyond_its_files(program_log, tmp_path, monkeypatch):
    (handler,) = (h for h in logging.getLogger().handlers if isinstance(h, logging.handlers.RotatingFileHandler))
    handler.maxBytes = 1000
    for count in range(200):
        logging.getLogger("app").info("line %d", count)
    files = sorted(path.name for path in tmp_path.glob("cutaway.log*"))
    assert files == ["cutaway.log", "cutaway.log.1", "cutaway.log.2", "cutaway.log.3", "cutaway.log.4"]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in files)


def test_a_full_disk_costs_records_and_nothing_else(program_log, monkeypatch, capfd, allow_log):
    (handler,) = (h for h in logging.getLogger().handlers if isinstance(h, logging.handlers.RotatingFileHandler))

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(handler, "shouldRollover", full)
    logging.getLogger("app").warning("CANARY")
    assert capfd.readouterr().err == ""


def test_a_folder_that_cannot_be_written_does_not_stop_the_program(tmp_path):
    (tmp_path / "file").write_text("in the way")
    level = logging.getLogger().level
    start_log(tmp_path / "file").close()
    logging.getLogger().setLevel(level)


def test_a_crash_of_the_program_leaves_its_stack_in_a_file(tmp_path):
    code = (
        "import sys, os; sys.path.insert(0, sys.argv[2]); from pathlib import Path; from app.log import start_log;"
        "log = start_log(Path(sys.argv[1])); os.abort()"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path), str(ROOT)], capture_output=True, check=False)
    assert done.returncode == -6
    assert "Fatal Python error: Aborted" in (tmp_path / "cutaway-crash.log").read_text()


def test_a_crash_file_that_has_grown_begins_anew(tmp_path):
    path = tmp_path / "x-crash.log"
    path.write_text("x" * 300_000)
    module._open_crash_file(path).close()
    assert path.stat().st_size == 0


def test_worker_logs_are_numbered_private_and_the_oldest_are_removed(tmp_path):
    paths = [new_worker_log(tmp_path) for _ in range(10)]
    assert [path.name for path in paths[:2]] == ["engine-000001.log", "engine-000002.log"]
    assert sorted(tmp_path.iterdir()) == paths[2:]
    assert paths[-1].stat().st_mode & 0o777 == 0o600


def test_a_number_that_another_start_took_is_skipped(tmp_path, monkeypatch):
    (tmp_path / "engine-000001.log").touch()
    monkeypatch.setattr(module, "_worker_logs", lambda _: [])
    assert new_worker_log(tmp_path).name == "engine-000002.log"


def test_a_worker_log_is_trimmed_to_its_end_while_the_worker_appends(tmp_path):
    path = new_worker_log(tmp_path)
    with path.open("ab") as worker:
        worker.write(b"old line\n" * 300_000)
        worker.flush()
        trim_worker_log(path)
        worker.write(b"new line\n")
    assert path.stat().st_size < 300_000
    assert tail(path, 2) == ("old line", "new line")
    assert path.read_bytes().startswith(b"old line\n")
    size = path.stat().st_size
    trim_worker_log(path)
    assert path.stat().st_size == size


def test_tail_returns_the_last_lines_neutral_whatever_they_hold(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(b"one\ntwo\x1b[31m\r\n\xff\n")
    assert tail(path, 2) == ("two\\x1b[31m", "\ufffd")
    assert tail(path, 99) == ("one", "two\\x1b[31m", "\ufffd")
    assert tail(path, 0) == ()
    assert tail(tmp_path / "none.log", 5) == ()
    assert tail(tmp_path, 5) == ()


def test_tail_of_a_huge_file_reads_only_its_end(tmp_path):
    path = tmp_path / "x.log"
    with path.open("wb") as file:
        file.seek(3 * 1024**3)
        file.write(b"\nlast\n")
    assert path.stat().st_size > 3 * 1024**3
    assert tail(path, 1) == ("last",)
