"""Our downloader against curl on a line of 100 MB/s: time, the processor's time, how calm the process stays, Stop.

The server is a process of its own and paces what it sends. Both sides write to the same disk and take turns; curl
neither hashes nor flushes. Calm is the gap of a thread in the downloading process that wants to run every 16 ms: a
stand-in for a window's frames. Stop is asked for while a server is silent, before its answer and in the middle of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from app.downloads.cache_layout import CacheLayout
from app.downloads.tools import Progress, StoppedError, TransferTools
from app.downloads.transfer import FileTransfer
from app.downloads.types import FileRef
from app.http_clients import HttpChoices, HttpClients
from tests.benchmarks.measure import ROOT, Bench, Figures, percentile, tell
from tests.helpers.downloads import clients_of, file_of
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

MB = 1_000_000
LINE_BYTES_PER_S = 100 * MB
_SIZE, _QUICK_SIZE = 1_000 * MB, 50 * MB
_ROUNDS = 5
_TICK_S = 0.016
REPO, NAME = "ann/x-GGUF", "m.gguf"


def measure(bench: Bench) -> Figures:
    """Return times and ratios of both sides; none where there is no curl."""
    if shutil.which("curl") is None:
        return {}
    return bench.child("download", bench.pick(_SIZE, _QUICK_SIZE))


class _Ticks:
    """A thread that notes how late it is each time.

    Attributes:
        gaps_ms: from tick to tick.
    """

    def __init__(self) -> None:
        self.gaps_ms: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick)

    def __enter__(self) -> _Ticks:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _tick(self) -> None:
        before_s = time.perf_counter()
        while not self._ended.is_set():
            time.sleep(_TICK_S)
            now_s = time.perf_counter()
            self.gaps_ms.append((now_s - before_s) * 1000)
            before_s = now_s


@contextlib.contextmanager
def serve(home: Path, file: Path, sha256: str) -> Iterator[str]:
    """Serve the file in a process of its own; yields the hub's address."""
    config, port = home / "config.json", home / "port.json"
    files = {NAME: {"path": str(file), "sha256": sha256}, "small.json": "{}"}
    config.write_text(json.dumps({"repos": [{"name": REPO, "files": files}]}), encoding="utf-8")
    command = [sys.executable, str(ROOT / "tests" / "helpers" / "hub_server.py"), "--port-file", str(port)]
    command += ["--config", str(config), "--bytes-per-s", str(LINE_BYTES_PER_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server:
        while not port.exists():
            time.sleep(0.02)
        yield json.loads(port.read_text(encoding="utf-8"))["endpoint"]
        assert server.stdin is not None
        server.stdin.close()


def write_source(path: Path, size_bytes: int, head: bytes = b"GGUF") -> str:
    """Write a file of whole megabytes that begins as a GGUF does and return its SHA-256."""
    data = os.urandom(MB)
    digest = hashlib.sha256()
    with path.open("wb") as output:
        for number in range(size_bytes // MB):
            piece = data if number else head + data[len(head) :]
            output.write(piece)
            digest.update(piece)
    return digest.hexdigest()


def _cpu_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _curl(url: str, home: Path) -> tuple[float, float]:
    """Fetch with curl; returns seconds and the processor's seconds."""
    target = home / "curl.out"
    before_s, cpu_s = time.perf_counter(), _cpu_s(resource.RUSAGE_CHILDREN)
    subprocess.run(["curl", "--silent", "--fail", "--location", "--output", str(target), url], check=True)
    found = time.perf_counter() - before_s, _cpu_s(resource.RUSAGE_CHILDREN) - cpu_s
    target.unlink()
    return found


def _ignore(_progress: Progress) -> None:
    pass


def _ours(file: FileRef, home: Path) -> tuple[float, float]:
    """Fetch with our downloader, hash and flushes included; returns seconds and the processor's seconds."""
    cache = home / "hub"
    clients = HttpClients(lambda: HttpChoices(endpoint=file.endpoint))
    before_s, cpu_s = time.perf_counter(), _cpu_s(resource.RUSAGE_SELF)
    with contextlib.closing(clients.make_client(keeps_connections=False)) as client:
        FileTransfer(file, CacheLayout(cache), TransferTools(clients, client), _ignore).run(threading.Event())
    found = time.perf_counter() - before_s, _cpu_s(resource.RUSAGE_SELF) - cpu_s
    shutil.rmtree(cache)
    return found


def _stops_ms(home: Path, rounds: int) -> list[float]:
    """Return how long each stop took while a server was silent."""
    found = []
    with HubServer() as hub:
        hub.add_repo(REPO, {NAME: Generated(4 * MB, seed=1)})
        file = file_of(hub, REPO, NAME)
        for number in range(2 * rounds):
            hub.clear_faults()
            hub.fault(("stall_before_headers", "stall_in_body")[number % 2], "cdn")
            clients, stop = clients_of(hub), threading.Event()
            with contextlib.closing(clients.make_client(keeps_connections=False)) as client:
                stopped_s: list[float] = []

                def stop_now(stop: threading.Event = stop, stopped_s: list[float] = stopped_s) -> None:
                    stopped_s.append(time.perf_counter())
                    stop.set()

                timer = threading.Timer(0.5, stop_now)
                timer.start()
                transfer = FileTransfer(file, CacheLayout(home / "stops"), TransferTools(clients, client), _ignore)
                with contextlib.suppress(StoppedError):
                    transfer.run(stop)
                found.append((time.perf_counter() - stopped_s[0]) * 1000)
                timer.join()
    return found


def _child(size_bytes: int) -> None:
    home = Path(os.environ["CUTAWAY_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    source = home / "source.gguf"
    sha256 = write_source(source, size_bytes)
    ours: list[tuple[float, float]] = []
    curls: list[tuple[float, float]] = []
    gaps_ms: list[float] = []
    with serve(home, source, sha256) as endpoint:
        file = _with_commit(FileRef(endpoint, REPO, "", NAME, size_bytes, sha256, sha256))
        small = FileRef(endpoint, REPO, file.revision, "small.json", 2, "", "9e26dfeeb6e641a33dae4961196235bdb965b21b")
        _ours(small, home)  # everything is imported once in a program's life
        with _Ticks() as calm:
            time.sleep(2.0)
        for _round in range(_ROUNDS):  # in turn, since the machine may be busier at one time than at another
            curls.append(_curl(f"{endpoint}/{REPO}/resolve/main/{NAME}", home))
            with _Ticks() as busy:
                ours.append(_ours(file, home))
            gaps_ms += busy.gaps_ms
    gigabytes = size_bytes / 1e9
    our_s, curl_s = statistics.median(one[0] for one in ours), statistics.median(one[0] for one in curls)
    tell(
        {
            "download.to_curl": curl_s / our_s,
            "download.mb_per_s": size_bytes / MB / our_s,
            "download.curl_mb_per_s": size_bytes / MB / curl_s,
            "download.cpu_s_per_gb": statistics.median(one[1] for one in ours) / gigabytes,
            "download.curl_cpu_s_per_gb": statistics.median(one[1] for one in curls) / gigabytes,
            "download.gap_p99_ms": percentile(gaps_ms, 99),
            "download.gap_worst_ms": max(gaps_ms),
            "download.calm_gap_worst_ms": max(calm.gaps_ms),
            "download.stop_worst_ms": max(_stops_ms(home, 10)),
        }
    )


def _with_commit(file: FileRef) -> FileRef:
    """Return the file at the commit that the server gave it."""
    answer = subprocess.run(
        ["curl", "--silent", "--fail", f"{file.endpoint}/api/models/{file.repo}"],
        capture_output=True,
        check=True,
    )
    commit = json.loads(answer.stdout)["sha"]
    return FileRef(file.endpoint, file.repo, commit, file.path, file.size_bytes, file.sha256, file.etag)


if __name__ == "__main__":
    _child(int(sys.argv[1]))
