"""The judge of the packages can tell a difference. The packages themselves are tried by `make package-test`."""

from __future__ import annotations

import json
import subprocess

import pytest
import try_package


def test_files_left_behind_and_files_gone_are_named():
    try_package._same({"/a", "/b"}, {"/b", "/a"})
    with pytest.raises(try_package.StepError, match=r"left behind: \['/c'\]; gone: \['/b'\]"):
        try_package._same({"/a", "/b"}, {"/a", "/c"})


@pytest.mark.parametrize("path", ["/var/lib/dpkg/status", "/proc/1", "/home/ą b/x", "/etc/ld.so.cache", "/tmp"])
def test_what_changes_by_itself_is_not_compared(path):
    assert try_package._NOT_COMPARED.match(path)


@pytest.mark.parametrize(
    "path", ["/usr/lib/cutaway", "/usr/share/mime/mime.cache", "/etc/ld.so.conf", "/opt/x", "/procs"]
)
def test_everything_else_is_compared(path):
    assert not try_package._NOT_COMPARED.match(path)


def test_the_end_of_what_a_command_said_is_told_on_one_line():
    assert try_package._short("a\nb\n") == "a | b"
    assert len(try_package._short("x" * 1000)) == 301


def test_a_selftest_that_tells_no_variant_does_not_hold(tmp_path):
    rehearsal = try_package.Rehearsal.__new__(try_package.Rehearsal)

    def answer(reason: str, *, passed: bool = True) -> subprocess.CompletedProcess[str]:
        checks = [{"name": "model", "passed": passed, "reason": reason}]
        said = "a warning\n" + json.dumps({"checks": checks}, indent=2)
        return subprocess.CompletedProcess([], 0 if passed else 1, said, "")

    assert rehearsal._checks(answer("llama.cpp 1 · CPU variant zen4")) == "llama.cpp 1 · CPU variant zen4"
    with pytest.raises(try_package.StepError, match="no variant"):
        rehearsal._checks(answer("llama.cpp 1 · AVX2"))
    with pytest.raises(try_package.StepError, match=r"^model: it is gone; a warning$"):
        rehearsal._checks(answer("it is gone", passed=False))
    with pytest.raises(try_package.StepError, match="ended with 127: not found"):
        rehearsal._checks(subprocess.CompletedProcess([], 127, "not found", ""))


def test_without_packages_it_says_how_to_make_them(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(try_package.linux_package, "DIST", tmp_path)
    monkeypatch.setattr(try_package.signal, "signal", lambda *_: None)
    assert try_package.main([]) == 1
    assert "Make it first: make package-linux" in capsys.readouterr().err
