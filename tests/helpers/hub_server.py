"""A hub for tests: speaks the protocol of the Hugging Face hub on this machine, honestly or with one of many faults.

In a test:

    with HubServer() as hub:
        hub.add_repo("owner/model-GGUF", {"model-Q4_K_M.gguf": Generated(200_000_000, seed=1)}, downloads=12)
        hub.fault("reset_in_body", "GET cdn:*.gguf", times=1, value=50_000_000)
        ...  # HF_ENDPOINT or HttpClients' endpoint: hub.endpoint
        assert hub.repeated("owner/model-GGUF/model-Q4_K_M.gguf") == []

In a process of its own, for measurements; see the function main:

    python tests/helpers/hub_server.py --port-file PATH [--config PATH]

An unmodified huggingface_hub works with it: tests/end_to_end/test_hub_server.py. Shares no code with app/.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.helpers import hub_faults, hub_repos  # noqa: E402 - found only once the tree is on sys.path
from tests.helpers.hub_answers import CDN, ELSEWHERE, HUB, PLAIN, Answer, Request, honour  # noqa: E402
from tests.helpers.hub_faults import Fault, FaultBook, Pace  # noqa: E402
from tests.helpers.hub_files import Content, Generated, OnDisk  # noqa: E402
from tests.helpers.hub_repos import Repo  # noqa: E402
from tests.helpers.hub_routes import Person, Routes  # noqa: E402
from tests.helpers.hub_wire import Ports  # noqa: E402

Files = Mapping[str, Content | bytes | str | Path]
_OWN_PATH = "/-/requests"


class HubServer:
    """A hub and its CDN on two free ports of this machine, and a third host that should never see a token.

    Attributes:
        routes: the repos and who may read them; page_entries and does_redirect_small_files may be changed.
        requests: every request so far, oldest first.

    Args:
        certificate: a file with a certificate and its key; then everything but the area "plain" speaks TLS.
        bytes_per_s: what the CDN's line carries; None for as much as goes.
    """

    def __init__(self, certificate: Path | None = None, bytes_per_s: float | None = None) -> None:
        self.routes = Routes()
        self.requests: list[Request] = []
        self._faults = FaultBook()
        self._lock = threading.Lock()
        areas = {HUB: certificate, CDN: certificate, ELSEWHERE: certificate, PLAIN: None}
        self._ports = Ports(areas, self._respond)
        self.routes.origins.update(self._ports.origins)
        if bytes_per_s is not None:
            self.fault("throttle", "cdn", value=bytes_per_s)

    def __enter__(self) -> HubServer:
        self._ports.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ports.close()
        if self._ports.faults:
            raise self._ports.faults[0]

    @property
    def endpoint(self) -> str:
        """The hub's address, for HF_ENDPOINT."""
        return self.routes.origins[HUB]

    def origin(self, area: str) -> str:
        """Return the address of a port: "hub", "cdn", "elsewhere" or "plain"."""
        return self.routes.origins[area]

    def add_repo(
        self,
        name: str,
        files: Files,
        *,
        gated: str | bool = "",
        private: bool = False,
        card: hub_repos.Card | None = None,
        card_text: str = "",
        **facts: Any,
    ) -> Repo:
        """Add a model repo with one commit; its `commit()` makes further ones.

        Args:
            name: owner/name.
            files: by their path: bytes, text, the path of a file, or a Content.
            gated: "auto" or "manual" (or True) where a licence must be accepted first.
            private: whether only its owner sees it.
            card: the front matter of README.md, such as {"license": "apache-2.0", "base_model": "owner/base"}.
            card_text: the Markdown of README.md.
            facts: other fields of Repo (downloads, likes, tags, created, old_names, pipeline_tag); what is none of
                them is said by the API as it is given: gguf={"total": 8_030_261_248, "architecture": "llama"}.
        """
        fields = {key: facts.pop(key) for key in list(facts) if key in Repo.__dataclass_fields__}
        gate = "auto" if gated is True else gated or ""
        repo = Repo(name, gate, private, dict(card or {}), extra=facts, **fields)
        with_card = {**files}
        if (card or card_text) and "README.md" not in files:
            with_card["README.md"] = hub_repos.readme(repo.card, card_text or f"# {name.rpartition('/')[2]}\n")
        repo.commit(with_card, title="initial commit")
        self.routes.repos[name] = repo
        return repo

    def add_token(self, token: str, name: str = "ann", repos: Collection[str] = ()) -> None:
        """Let a token be known: it belongs to this account, which may read these gated and private repos too."""
        self.routes.people[token] = Person(name, set(repos))

    def fault(
        self, kind: str, match: str = "*", *, times: int | None = None, after: int = 0, value: float | None = None
    ) -> Fault:
        """Let matching requests meet a fault from now on; of several that match, the first one added.

        Args:
            kind: a key of hub_faults.FAULTS.
            match: "[METHOD ]AREA[:PATTERN]", such as "GET cdn:*.gguf", "api:/api/models", "resolve:owner/*", "*". A
                pattern is compared with Request.target.
            times: how many requests meet it; None for all.
            after: how many matching requests pass before.
            value: of the kind; see FAULTS.
        """
        return self._faults.add(kind, match, times, after, value)

    def clear_faults(self) -> None:
        """Be honest from now on, and as quick as can be."""
        self._faults.clear()

    def expire_links(self) -> None:
        """Let the CDN refuse every address it was reached by so far (403), as after an hour."""
        self.routes.expire_links()

    def seen(self, area: str = "*", target: str = "*", method: str = "*") -> list[Request]:
        """Return the requests of an area, for a target (a pattern) and by a method; "*" for any."""
        return [
            request
            for request in list(self.requests)
            if area in ("*", request.area) and method in ("*", request.method) and fnmatchcase(request.target, target)
        ]

    def wait_idle(self, limit_s: float = 10) -> bool:
        """Wait until nothing is being sent any more, such as after a client's death; returns whether that came true."""
        deadline_s = time.monotonic() + limit_s
        while not all(one.is_done for one in list(self.requests)):
            if time.monotonic() > deadline_s or self._ports.ending.wait(0.005):
                return False
        return True

    def sent(self, target: str) -> list[tuple[int, int]]:
        """Return the ranges of a file that were sent, as [from, up to), in the order of the requests.

        What the server handed to its system is sent, though the client may have died before it took it.
        """
        return [one.sent for one in self.seen(target=target) if one.carries_file and one.sent_bytes]

    def repeated(self, target: str) -> list[tuple[int, int]]:
        """Return the ranges of a file that were sent again after they had been sent."""
        again: list[tuple[int, int]] = []
        before: list[tuple[int, int]] = []
        for start, end in self.sent(target):
            again += [(max(start, a), min(end, b)) for a, b in before if max(start, a) < min(end, b)]
            before.append((start, end))
        return again

    def leaked_tokens(self) -> list[Request]:
        """Return the requests that carried a token or a cookie to a host that must not see it."""
        others = [one for one in list(self.requests) if one.area not in ("api", "resolve")]
        return [one for one in others if "authorization" in one.headers or "cookie" in one.headers]

    def _respond(
        self, area: str, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[Request, Answer, Pace | None]:
        if path == _OWN_PATH:
            told = Answer(value=[asdict(one) | {"body": ""} for one in list(self.requests)])
            told.settle()
            return Request(-1, area, method, path, path, headers), told, None
        with self._lock:
            place, target = self.routes.place(area, path)
            request = Request(len(self.requests), place, method, path, target, headers, body)
            self.requests.append(request)
        fault, pace = self._faults.take(request)
        answer = hub_faults.instead(fault, request, self.routes.origins) if fault else None
        if answer is None:
            answer = self.routes.answer(request)
            if fault is not None:
                hub_faults.spoil_source(fault, answer)
            honour(answer, request)
            answer.settle()
            if fault is not None:
                hub_faults.spoil_answer(fault, answer)
        answer.settle()
        answer.headers.setdefault("X-Request-Id", f"Root=1-{request.number:08x}")
        return request, answer, pace


def configure(hub: HubServer, config: Mapping[str, Any]) -> None:
    """Fill a hub as a file in JSON says.

    Its keys: "repos", each with the arguments of add_repo, where a file is text, {"path": of a file, "sha256": claimed
    hash or absent} or {"size": bytes, "seed": number, "head": its first characters}; "tokens", each with the arguments
    of add_token; "faults", each with the arguments of fault.
    """
    for one in config.get("repos", ()):
        files = {path: _configured_file(given) for path, given in one["files"].items()}
        hub.add_repo(**{**one, "files": files})
    for one in config.get("tokens", ()):
        hub.add_token(**one)
    for one in config.get("faults", ()):
        hub.fault(**one)


def _configured_file(given: str | Mapping[str, Any]) -> Content | str:
    if isinstance(given, str):
        return given
    if "path" in given:
        return OnDisk(Path(given["path"]), given.get("sha256", ""))
    return Generated(given["size"], given.get("seed", 0), given.get("head", "GGUF").encode())


def main(arguments: Sequence[str]) -> int:
    """Serve until standard input ends; write the addresses as JSON into the port file once they answer.

    GET /-/requests at any of them lists the requests so far.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--bytes-per-s", type=float)
    given = parser.parse_args(arguments)
    with HubServer(bytes_per_s=given.bytes_per_s) as hub:
        if given.config is not None:
            configure(hub, json.loads(given.config.read_text(encoding="utf-8")))
        unfinished = given.port_file.with_suffix(".new")
        unfinished.write_text(json.dumps({"endpoint": hub.endpoint} | hub.routes.origins), encoding="utf-8")
        unfinished.replace(given.port_file)
        sys.stdin.buffer.read()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
