"""How smooth the window stays while it downloads at 100 MB/s, its progress in sight; against the same window at rest.

The real window with a model loaded, the hub's tab open on the repo that is downloaded, the bar in its table, in the
detail and at the foot. A download and an equal time of rest take turns (A B B A), so that what the machine does besides
falls on both alike. The server is a process of its own and paces what it sends.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.download import LINE_BYTES_PER_S, MB, REPO, serve, write_source
from tests.benchmarks.measure import Bench, Figures, percentile, spread, tell

_SIZE, _QUICK_SIZE = 800 * MB, 50 * MB
_PAIRS, _QUICK_PAIRS = 4, 1
_SETTLE_S = 3.0  # the screen measures the machine's bandwidth when it is first shown


def measure(bench: Bench) -> Figures:
    """Return the gaps in milliseconds while downloading and at rest, their ratio, and the download's speed."""
    size_bytes, pairs = bench.pick(_SIZE, _QUICK_SIZE), bench.pick(_PAIRS, _QUICK_PAIRS)
    return bench.child("download_window", size_bytes, pairs)


def _child(size_bytes: int, pairs: int) -> None:
    from app.downloads.types import DownloadState
    from tests.benchmarks import window
    from tests.helpers.hub_asking import small_gguf
    from ui.panels.hub_panel import HUB

    home = Path(os.environ["CUTAWAY_HOME"])
    cache = home / "hub"
    home.mkdir(parents=True, exist_ok=True)
    source = home / "source.gguf"
    sha256 = write_source(source, size_bytes, small_gguf())
    gaps_ms: dict[str, list[float]] = {"busy": [], "rest": []}
    speeds: list[float] = []
    told: list[float] = []

    def scenario(stage: window.Stage) -> Iterator[window.Wait]:
        timer = window.GapTimer(stage.program)
        yield stage.is_ready
        stage.window.show_screen("models")
        panel = stage.window.models.panel
        hub, page = panel.hub, panel.hub.view.page
        panel.show_tab(HUB)
        hub.results.search_for(REPO)
        yield lambda: page.isVisible() and page.repo is not None and page.detail.button.isVisible()
        yield _SETTLE_S
        seconds = size_bytes / LINE_BYTES_PER_S
        for number in range(2 * pairs):
            if number % 4 in (1, 2):
                timer.start()
                yield seconds
                gaps_ms["rest"] += timer.take()
                continue
            key = page.table.chosen_key
            begun_s = time.perf_counter()
            timer.start()
            page.detail.button.click()
            yield lambda key=key: _is_over(page, key, DownloadState)  # type: ignore[misc]
            gaps_ms["busy"] += timer.take()
            speeds.append(size_bytes / MB / (time.perf_counter() - begun_s))
            yield lambda key=key: page.table.quantizations.is_here(key)  # type: ignore[misc]  # the library has it
            queue = stage.context.network.downloads
            for one in queue.downloads():
                told.append(float(one.done_bytes))
                queue.remove(one.download_id)
                stage.window._hub.downloads._take_off(one, lambda: None)
            shutil.rmtree(cache / f"models--{REPO.replace('/', '--')}")
            for entry in stage.context.library.entries():
                if entry.path.is_relative_to(cache):
                    stage.context.library.remove(entry.key)
            stage.window._hub.refresh()
            yield lambda key=key: page.table.quantizations.action_of_key(key).kind == "download"  # type: ignore[misc]

    with serve(home, source, sha256) as endpoint:
        os.environ |= {"HF_ENDPOINT": endpoint, "HF_HUB_CACHE": str(cache)}
        window.run(scenario)
    assert told == [float(size_bytes)] * len(told)
    found = {
        f"download_window.{state}_{name}_ms": value
        for state in gaps_ms
        for name, value in spread(gaps_ms[state]).items()
    }
    found["download_window.p99_to_rest"] = percentile(gaps_ms["busy"], 99) / percentile(gaps_ms["rest"], 99)
    found["download_window.mb_per_s"] = sorted(speeds)[len(speeds) // 2]
    tell(found)


def _is_over(page: object, key: str, states: object) -> bool:
    download = page.table.quantizations.download(key)  # type: ignore[attr-defined]
    return download is not None and download.state is states.DONE  # type: ignore[attr-defined]


if __name__ == "__main__":
    _child(int(sys.argv[1]), int(sys.argv[2]))
