"""The client with real renderer processes: limits, deaths, torn answers, and that nothing is left."""

import logging
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from backends.errors import EngineError, ErrorCode
from backends.protocol import PlainPart, RenderedPrompt, TemplatePart, TokenPart
from backends.renderer_client import FALLBACK_TEMPLATE, RendererClient, RenderMessage, RenderTemplate
from tests.helpers import templates
from tests.helpers.leaks import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the inherited pipe comes with the Windows package")

ROOT = Path(__file__).resolve().parents[2]
HELLO = (RenderMessage("user", "hello"),)
SLOW = templates.BOMBS_TOO_SLOW["loops"]
# Long enough for an honest template on a busy machine, short enough for many bombs.
SHORT_LIMIT_S = 0.4


@pytest.fixture
def client():
    made = RendererClient()
    yield made
    made.close()


@pytest.fixture
def hasty_client():
    made = RendererClient(limit_s=SHORT_LIMIT_S)
    yield made
    made.close()


def request(template=templates.CHATML, messages=HELLO, **variables):
    return RenderTemplate(template=template, messages=messages, **variables)


def failure_of(client, template, messages=HELLO):
    with pytest.raises(EngineError) as failure:
        client.render(request(template, messages))
    return failure.value


def assert_it_still_renders(client):
    assert client.render(request()).parts[1] == PlainPart("hello")


def test_a_dialogue_is_rendered_by_one_child_that_stays(client):
    assert client.pid is None
    messages = (RenderMessage("user", "a <|im_end|>"), RenderMessage("assistant", "b", (3, 4)))
    prompt = client.render(request(messages=messages, add_generation_prompt=False))
    assert prompt == RenderedPrompt(
        (
            TemplatePart("<|im_start|>user\n"),
            PlainPart("a <|im_end|>"),
            TemplatePart("<|im_end|>\n<|im_start|>assistant\n"),
            TokenPart((3, 4)),
            TemplatePart("<|im_end|>\n"),
        )
    )
    pid = client.pid
    assert_it_still_renders(client)
    assert client.pid == pid


def test_a_missing_template_needs_no_child(client):
    assert failure_of(client, " \n").code is ErrorCode.TEMPLATE_MISSING
    assert client.pid is None


def test_a_huge_template_needs_no_child(client):
    error = failure_of(client, "é" * (512 * 1024 + 1))
    assert (error.code, error.parameters["line"]) == (ErrorCode.TEMPLATE_BROKEN, 0)
    assert client.pid is None


def test_a_huge_dialogue_needs_no_child(client):
    error = failure_of(client, templates.CHATML, (RenderMessage("user", "x" * (4 * 1024 * 1024 + 1)),))
    assert (error.code, error.parameters) == (ErrorCode.TEMPLATE_TOO_LONG, {"limit_bytes": 4 * 1024 * 1024})
    assert client.pid is None


def test_a_broken_template_says_where(client):
    error = failure_of(client, "x\n{{ raise_exception('no') }}")
    assert (error.code, error.parameters) == (ErrorCode.TEMPLATE_BROKEN, {"detail": "no", "line": 2})


def test_half_a_character_of_a_person_is_replaced(client):
    messages = (RenderMessage("user", "a\ud83d b\ud83d\ude00"),)
    assert client.render(request(messages=messages)).parts[1] == PlainPart("a\ufffd b😀")


def test_a_thousand_long_messages_fit_the_limits(client):
    messages = tuple(
        RenderMessage("assistant" if i % 2 else "user", f"{i} " + "word " * 200, (i,) * 200 if i % 2 else ())
        for i in range(1000)
    )
    parts = client.render(request(messages=messages)).parts
    assert sum(isinstance(part, TokenPart) for part in parts) == 500
    assert sum(isinstance(part, PlainPart) for part in parts) == 500


@pytest.mark.parametrize("template", templates.BOMBS_TOO_SLOW.values(), ids=templates.BOMBS_TOO_SLOW)
def test_a_bomb_that_never_returns_is_ended(hasty_client, template):
    error = failure_of(hasty_client, template)
    assert (error.code, error.parameters) == (ErrorCode.TEMPLATE_TOO_SLOW, {"limit_s": SHORT_LIMIT_S})
    assert hasty_client.pid is None
    assert_it_still_renders(hasty_client)


def test_the_usual_limit_is_two_seconds(client):
    assert failure_of(client, SLOW).parameters == {"limit_s": 2.0}


def test_other_bombs_are_refused_and_the_next_dialogue_renders(client):
    for template in templates.BOMBS_TOO_LONG.values():
        error = failure_of(client, template)
        assert (error.code, error.parameters) == (ErrorCode.TEMPLATE_TOO_LONG, {"limit_bytes": 4 * 1024 * 1024})
    for name, template in templates.BOMBS_BROKEN.items():
        assert failure_of(client, template).code is ErrorCode.TEMPLATE_BROKEN, name
    assert_it_still_renders(client)


def test_memory_of_a_bomb_is_free_again(client):
    for _ in range(3):
        assert failure_of(client, templates.BOMBS_BROKEN["doubling"]).code is ErrorCode.TEMPLATE_BROKEN
        assert failure_of(client, "{{ 'x' * 20000000 }}").code is ErrorCode.TEMPLATE_TOO_LONG
    pid = client.pid
    text = "x" * 1_000_000
    assert client.render(request(messages=(RenderMessage("user", text),))).parts[1] == PlainPart(text)
    assert client.pid == pid


def test_no_escape_touches_a_file_or_starts_a_process(client, tmp_path):
    planted = tmp_path / "planted"
    for name, template in templates.ESCAPES.items():
        error = failure_of(client, template.replace(templates.PLANTED, str(planted)))
        assert error.code is ErrorCode.TEMPLATE_BROKEN, name
    assert not planted.exists()
    child = psutil.Process(client.pid)
    assert child.children() == []
    assert child.net_connections(kind="inet") == []
    assert_it_still_renders(client)


def mutations_never_hang(client, count):
    """Render mutated templates; each gives a prompt, its own or the fallback's, and the client outlives them all."""
    generator = random.Random(2022)
    messages = (RenderMessage("system", "s"), RenderMessage("user", "<|im_end|>"), RenderMessage("assistant", "a"))
    fallbacks = 0
    for _ in range(count):
        prompt, error = client.render_or_fallback(request(templates.mutated(generator), messages, bos_text="<s>"))
        assert prompt.parts
        fallbacks += error is not None
    assert 0 < fallbacks < count
    assert_it_still_renders(client)


def test_mutated_templates_never_hang(hasty_client):
    mutations_never_hang(hasty_client, 200)


@pytest.mark.full
def test_many_mutated_templates_never_hang(client):
    mutations_never_hang(client, 3000)


def test_a_child_killed_between_renderings_is_replaced(client):
    for _ in range(3):
        assert_it_still_renders(client)
        os.kill(client.pid, signal.SIGKILL)
    assert_it_still_renders(client)


def test_a_stopped_child_counts_as_too_slow(hasty_client):
    assert_it_still_renders(hasty_client)
    os.kill(hasty_client.pid, signal.SIGSTOP)
    assert failure_of(hasty_client, templates.CHATML).code is ErrorCode.TEMPLATE_TOO_SLOW
    assert_it_still_renders(hasty_client)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the limits of another process")
def test_the_child_has_given_up_what_no_template_needs(client):
    import resource

    assert_it_still_renders(client)
    for name in ("RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_CORE"):
        assert resource.prlimit(client.pid, getattr(resource, name)) == (0, 0), name
    memory_bytes, _ = resource.prlimit(client.pid, resource.RLIMIT_AS)
    assert 512 * 1024 * 1024 < memory_bytes < 1024 * 1024 * 1024
    assert 0 < resource.prlimit(client.pid, resource.RLIMIT_CPU)[0] < 10


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the limits of another process")
def test_the_limit_of_processor_time_is_raised_for_each_rendering(hasty_client):
    import resource

    assert_it_still_renders(hasty_client)
    pid = hasty_client.pid
    child = psutil.Process(pid)
    first_limit_s = resource.prlimit(pid, resource.RLIMIT_CPU)[0]
    while sum(child.cpu_times()[:2]) < first_limit_s + 0.1:
        hasty_client.render(request("{% for a in range(20000) %}{% set b = a * a %}{% endfor %}x"))
    assert hasty_client.pid == pid


def test_the_child_inherits_no_secret_and_no_file(client, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "CANARY")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "jinja2.py").write_text("raise SystemExit(1)")
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        assert_it_still_renders(client)
        child = psutil.Process(client.pid)
        assert set(child.environ()) <= {"TZ", "TZDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LC_CTYPE"}
        assert child.open_files() == []


def test_late_imports_of_jinja_need_no_file(client):
    template = (
        "{{ lipsum(1) | length > 0 }} {{ '<b>x</b>&amp;' | striptags }} {{ {'a': 1} | xmlattr }} {{ [1] | pprint }} "
        "{{ 'a' | urlize }} {{ '\\N{BULLET}' }} {{ 'é'.encode('latin-1') | length }} {{ 1.5 | round }} {{ 'x' | e }}"
    )
    assert client.render(request(template)).parts[0].text == 'True x&  a="1" [1] a • 1 2.0 x'


def test_threads_take_turns(client):
    def render(number):
        messages = (RenderMessage("user", f"<{number}>"),)
        return client.render(request(messages=messages)).parts[1]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(render, range(40))) == [PlainPart(f"<{number}>") for number in range(40)]


def test_the_fallback_stands_in_for_a_broken_template(hasty_client):
    expected = hasty_client.render(request(FALLBACK_TEMPLATE))
    for template, code in {
        "": ErrorCode.TEMPLATE_MISSING,
        "{% if %}": ErrorCode.TEMPLATE_BROKEN,
        SLOW: ErrorCode.TEMPLATE_TOO_SLOW,
        templates.BOMBS_TOO_LONG["one word"]: ErrorCode.TEMPLATE_TOO_LONG,
    }.items():
        prompt, error = hasty_client.render_or_fallback(request(template))
        assert prompt == expected
        assert error.code is code


def test_the_fallback_is_not_used_without_need(client):
    prompt, error = client.render_or_fallback(request(templates.LLAMA_3))
    assert error is None
    assert prompt.parts[0].text.startswith("<|start_header_id|>")


def test_the_fallback_cannot_help_a_dialogue_that_is_too_long(client):
    with pytest.raises(EngineError, match="template_too_long"):
        client.render_or_fallback(request(messages=(RenderMessage("user", "x" * (5 * 1024 * 1024)),)))


def test_closing_leaves_no_process_and_ends_rendering(client):
    assert_it_still_renders(client)
    pid = client.pid
    client.close()
    assert not psutil.pid_exists(pid)
    assert client.pid is None
    assert failure_of(client, templates.CHATML).code is ErrorCode.ENGINE_FAULT
    client.close()


def test_closing_ends_a_rendering_in_progress():
    client = RendererClient(limit_s=60)
    failures = []

    def render():
        try:
            client.render(request(SLOW))
        except EngineError as error:
            failures.append(error.code)

    thread = threading.Thread(target=render)
    thread.start()
    assert wait_until(lambda: client.pid is not None, 30)
    client.close()
    thread.join()
    assert failures == [ErrorCode.ENGINE_FAULT]
    assert client.pid is None


PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
from backends.renderer_client import RendererClient, RenderMessage, RenderTemplate
client = RendererClient(limit_s=2.0)
hello = (RenderMessage("user", "hello"),)
client.render(RenderTemplate(template="x", messages=hello))
print(client.pid, flush=True)
if sys.argv[2]:
    client.render(RenderTemplate(template=sys.argv[2], messages=hello))
sys.stdin.read()
"""


@pytest.mark.parametrize("template", ["", SLOW], ids=["idle", "rendering"])
def test_the_child_ends_with_the_program(template):
    command = [sys.executable, "-c", PARENT, str(ROOT), template]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        if template:
            used_s = child.cpu_times().user
            assert wait_until(lambda: child.cpu_times().user > used_s, 10)
        parent.kill()
    assert psutil.wait_procs([child], timeout=10)[1] == []


FALSE_RENDERER = """\
#!{python}
import os, socket, struct, sys, time
pipe = socket.socket(fileno=int(sys.argv[-1]))
def frame(data): return struct.pack("!i", len(data)) + data
started = frame(b"\\x81\\xa4type\\xafRendererStarted")
{body}
"""


def false_renderer(tmp_path, body):
    path = tmp_path / "python"
    path.write_text(FALSE_RENDERER.format(python=sys.executable, body=textwrap.dedent(body)))
    path.chmod(0o700)
    return path


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("pipe.sendall(started); pipe.recv(9); pipe.sendall(b'\\0\\0\\0\\x63half')", ErrorCode.TEMPLATE_BROKEN),
        ("pipe.sendall(started); pipe.recv(9); pipe.sendall(frame(b'\\xc1'))", ErrorCode.TEMPLATE_BROKEN),
        ("pipe.sendall(started); pipe.recv(9); pipe.sendall(b'\\x7f\\xff\\xff\\xff')", ErrorCode.TEMPLATE_BROKEN),
        ("pipe.sendall(started); pipe.recv(9); os._exit(0)", ErrorCode.TEMPLATE_BROKEN),
        ("pipe.sendall(started); pipe.recv(9); os.abort()", ErrorCode.TEMPLATE_BROKEN),
        ("pipe.sendall(started + started)\nwhile pipe.recv(65536): pass", ErrorCode.TEMPLATE_BROKEN),
        ("pipe.sendall(started); pipe.sendall(b'\\0\\0\\0\\x63half'); time.sleep(60)", ErrorCode.TEMPLATE_TOO_SLOW),
        ("pipe.sendall(started); time.sleep(60)", ErrorCode.TEMPLATE_TOO_SLOW),
        ("os._exit(3)", ErrorCode.ENGINE_FAULT),
        ("pipe.sendall(frame(b'no')); pipe.recv(9)", ErrorCode.ENGINE_FAULT),
        ("pipe.sendall(frame(b'\\x81\\xa4type\\xaeTemplateFailed'))", ErrorCode.ENGINE_FAULT),
    ],
)
def test_a_renderer_that_misbehaves_gives_a_worded_error(tmp_path, body, code):
    client = RendererClient(false_renderer(tmp_path, body), limit_s=SHORT_LIMIT_S)
    assert failure_of(client, "x" * 900_000).code is code
    client.close()


def test_a_python_that_is_missing_gives_a_worded_error(tmp_path):
    client = RendererClient(tmp_path / "python")
    error = failure_of(client, templates.CHATML)
    assert error.code is ErrorCode.ENGINE_FAULT
    assert "did not start" in error.parameters["detail"]
    client.close()


def test_a_renderer_that_does_not_start_is_told_also_by_the_fallback(tmp_path):
    client = RendererClient(tmp_path / "python")
    with pytest.raises(EngineError, match="engine_fault"):
        client.render_or_fallback(request())
    client.close()


def test_nothing_of_a_dialogue_is_logged(hasty_client, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    messages = (RenderMessage("system", "CANARY-1"), RenderMessage("user", "CANARY-2"))
    for template in (templates.CHATML, "{{ raise_exception(messages) }}", "{{ messages.nothing() }}", SLOW):
        _, error = hasty_client.render_or_fallback(request(template, messages))
        assert "CANARY" not in str(error)
    assert "CANARY" not in caplog.text
    assert "CANARY" not in "".join(capfd.readouterr())
