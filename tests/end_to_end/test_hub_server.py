"""The test hub speaks the hub's protocol: an unmodified huggingface_hub works with it; and its ranges are right.

What it does wrong on purpose is in test_hub_faults.py.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.helpers import shape_files
from tests.helpers.hub_files import HOSTILE_NAMES, Generated, Given, OnDisk, git_oid
from tests.helpers.hub_server import HubServer

MIB = 1 << 20
CARD = {"license": "apache-2.0", "base_model": "ann/base: 1", "tags": ["imatrix"], "quantized_by": "ann"}
CARD_FILE = (
    "---\nlicense: apache-2.0\nbase_model: 'ann/base: 1'\ntags:\n- imatrix\nquantized_by: ann\n---\n# Tiny-GGUF\n"
)

# Asks everything of the real library and prints what it said.
_ASK = """
import hashlib, json, os, sys
from pathlib import Path
from huggingface_hub import HfApi, errors, hf_hub_download, snapshot_download

def fault(ask, *arguments, **named):
    try:
        ask(*arguments, **named)
    except errors.HfHubHTTPError as error:
        return [type(error).__name__, error.response.status_code]
    except errors.LocalEntryNotFoundError as error:
        return [type(error.__cause__).__name__, 0]

api, said = HfApi(), {}
path = Path(hf_hub_download("ann/Tiny-GGUF", "tiny-Q4_K_M.gguf"))
said["file"] = [path.name, path.parent.name, path.resolve().name, hashlib.sha256(path.read_bytes()).hexdigest()]
small = Path(hf_hub_download("ann/Tiny-GGUF", "folder/config.json", revision="main"))
said["small"] = [small.read_text(), small.resolve().name]
snapshot = Path(snapshot_download("ann/Tiny-GGUF"))
said["snapshot"] = sorted(file.relative_to(snapshot).as_posix() for file in snapshot.rglob("*") if file.is_file())
said["renamed"] = Path(hf_hub_download("ann/Old-Name", "folder/config.json")).read_text()
said["models"] = [one.id for one in api.list_models()]
said["found"] = [
    [one.id, one.sha, one.gated, one.downloads, [s.rfilename for s in one.siblings], one.tags[:1]]
    for one in api.list_models(search="gguf", filter="gguf", sort="downloads", full=True, cardData=True)
]
said["by_author"] = [one.id for one in api.list_models(author="bob", sort="likes", limit=1)]
said["large"] = [one.id for one in api.list_models(num_parameters="min:6B,max:9B")]
said["ungated"] = [one.id for one in api.list_models(gated=False, apps="llama.cpp")]
info = api.model_info("ann/Tiny-GGUF", files_metadata=True)
said["info"] = [info.sha, info.card_data.license, info.card_data.base_model, info.gguf, info.last_modified.isoformat()]
said["siblings"] = [[s.rfilename, s.size, s.blob_id, s.lfs and s.lfs.sha256] for s in info.siblings]
said["expanded"] = api.model_info("ann/Tiny-GGUF", expand=["gguf", "downloads"]).downloads
said["tree"] = [[type(one).__name__, one.path] for one in api.list_repo_tree("ann/Tiny-GGUF")]
said["whole_tree"] = [
    [type(one).__name__, one.path, bool(one.last_commit)]
    for one in api.list_repo_tree("ann/Tiny-GGUF", recursive=True, expand=True)
]
said["below"] = [one.path for one in api.list_repo_tree("ann/Tiny-GGUF", "folder")]
said["many"] = len(list(api.list_repo_tree("bob/Many-GGUF", recursive=True)))
paths = api.get_paths_info("ann/Tiny-GGUF", ["tiny-Q4_K_M.gguf", "folder", "nothing"], expand=True)
said["paths"] = [[one.path, getattr(one, "size", None), getattr(one, "lfs", None)] for one in paths]
said["branches"] = [[one.name, one.target_commit] for one in api.list_repo_refs("ann/Tiny-GGUF").branches]
said["commits"] = [one.title for one in api.list_repo_commits("ann/Tiny-GGUF")]
said["no_repo"] = fault(api.model_info, "ann/nothing")
said["no_revision"] = fault(api.model_info, "ann/Tiny-GGUF", revision="nothing")
said["no_file"] = fault(hf_hub_download, "ann/Tiny-GGUF", "nothing.gguf")
said["private"] = fault(api.model_info, "bob/secret")
said["gated_info"] = api.model_info("bob/Gated-GGUF").gated
said["gated"] = fault(hf_hub_download, "bob/Gated-GGUF", "gated.gguf")
said["gated_stranger"] = fault(hf_hub_download, "bob/Gated-GGUF", "gated.gguf", token="hf_stranger")
said["wrong_token"] = fault(api.whoami, token="hf_wrong")
said["me"] = api.whoami(token="hf_reader")["name"]
gated = Path(hf_hub_download("bob/Gated-GGUF", "gated.gguf", token="hf_reader"))
said["gated_bytes"] = gated.stat().st_size
said["mine"] = api.model_info("bob/secret", token="hf_bob").private
print(json.dumps(said))
"""


@pytest.fixture
def hub():
    with HubServer() as server:
        yield server


def ask(url: str, headers: dict[str, str] | None = None, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """One request over a connection of its own; redirects are not followed."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
    try:
        connection.request(method, f"{place.path}?{place.query}" if place.query else place.path, headers=headers or {})
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def file_url(hub: HubServer, repo: str, path: str) -> str:
    """The address of a file's bytes at the CDN."""
    status, headers, _body = ask(f"{hub.endpoint}/{repo}/resolve/main/{quote(path)}")
    assert status == 302
    return headers["location"]


@pytest.mark.parametrize("does_redirect_small_files", [False, True])
def test_an_unmodified_huggingface_hub_works_with_it(hub, tmp_path, does_redirect_small_files):
    hub.routes.page_entries = 4
    hub.routes.does_redirect_small_files = does_redirect_small_files
    file = Generated(3 * MIB + 17, seed=5)
    facts = {"total": 8_030_261_248, "architecture": "llama"}
    tiny = hub.add_repo(
        *("ann/Tiny-GGUF", {"tiny-Q4_K_M.gguf": file, "folder/config.json": '{"a": 1}'}),
        **{"card": CARD, "downloads": 7, "likes": 90, "old_names": ["ann/Old-Name"], "gguf": facts},
    )
    many = {f"{number}/part.gguf": b"GGUF" + bytes([number]) for number in range(8)}
    hub.add_repo("bob/Many-GGUF", many, downloads=9, likes=3)
    hub.add_repo("bob/Gated-GGUF", {"gated.gguf": b"GGUF!"}, gated="manual", downloads=8)
    hub.add_repo("bob/secret", {"config.json": "{}"}, private=True)
    hub.add_repo("bob/Words", {"model.safetensors": b"x"})
    hub.add_token("hf_reader", "ann", ["bob/Gated-GGUF"])
    hub.add_token("hf_stranger", "eve")
    hub.add_token("hf_bob", "bob")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    environment |= {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1"}
    environment |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-W", "error", "-c", _ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)

    commit = tiny.branches["main"]
    assert said["file"] == ["tiny-Q4_K_M.gguf", commit, file.sha256, file.sha256]
    assert said["small"] == ['{"a": 1}', git_oid("blob", b'{"a": 1}')]
    assert said["snapshot"] == ["README.md", "folder/config.json", "tiny-Q4_K_M.gguf"]
    assert said["renamed"] == '{"a": 1}'
    assert said["models"] == ["ann/Tiny-GGUF", "bob/Words", "bob/Many-GGUF", "bob/Gated-GGUF"]
    assert [one[:4] for one in said["found"]] == [
        ["bob/Many-GGUF", hub.routes.repos["bob/Many-GGUF"].branches["main"], False, 9],
        ["bob/Gated-GGUF", hub.routes.repos["bob/Gated-GGUF"].branches["main"], "manual", 8],
        ["ann/Tiny-GGUF", commit, False, 7],
    ]
    assert said["found"][2][4:] == [["README.md", "folder/config.json", "tiny-Q4_K_M.gguf"], ["imatrix"]]
    assert said["by_author"] == ["bob/Many-GGUF"]
    assert said["large"] == ["ann/Tiny-GGUF"]
    assert said["ungated"] == ["ann/Tiny-GGUF", "bob/Many-GGUF"]
    assert said["info"] == [commit, "apache-2.0", "ann/base: 1", facts, "2025-03-01T09:30:00+00:00"]
    readme = CARD_FILE.encode()
    assert said["siblings"][0] == ["README.md", len(readme), git_oid("blob", readme), None]
    assert said["siblings"][2][1::2] == [file.size_bytes, file.sha256]
    assert said["expanded"] == 7
    assert said["tree"] == [["RepoFile", "README.md"], ["RepoFolder", "folder"], ["RepoFile", "tiny-Q4_K_M.gguf"]]
    assert said["whole_tree"][2] == ["RepoFile", "folder/config.json", True]
    assert said["below"] == ["folder/config.json"]
    assert said["many"] == 16
    lfs = {"size": file.size_bytes, "sha256": file.sha256, "pointer_size": 132}
    assert said["paths"] == [["tiny-Q4_K_M.gguf", file.size_bytes, lfs], ["folder", None, None]]
    assert said["branches"] == [["main", commit]]
    assert said["commits"] == ["initial commit"]
    assert said["no_repo"] == ["RepositoryNotFoundError", 401]
    assert said["no_revision"] == ["RevisionNotFoundError", 404]
    assert said["no_file"] == ["RemoteEntryNotFoundError", 404]
    assert said["private"] == ["RepositoryNotFoundError", 401]
    assert said["gated_info"] == "manual"
    assert said["gated"] == ["GatedRepoError", 401]
    assert said["gated_stranger"] == ["GatedRepoError", 403]
    assert said["wrong_token"] == ["HfHubHTTPError", 401]
    assert said["me"] == "ann"
    assert said["gated_bytes"] == 5
    assert said["mine"] is True
    assert hub.leaked_tokens() == []
    assert hub.repeated("ann/Tiny-GGUF/tiny-Q4_K_M.gguf") == []


def test_the_git_objects_are_the_ones_that_git_makes(tmp_path):
    # The same tree committed by git itself, with the same author and date.
    server = HubServer()
    with server:
        repo = server.add_repo("ann/x", {"b/c.txt": "c", "b.txt": "b", "a/d/e.txt": "e", "m.gguf": b"GGUF"})
    revision = repo.find("main")
    for path, file in revision.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(file.pointer if file.is_lfs else file.content.part(0, file.content.size_bytes))
    who = {"NAME": "ann", "EMAIL": "owner@example.invalid", "DATE": "1740821400 +0000"}
    environment = {f"GIT_{role}_{key}": value for key, value in who.items() for role in ("AUTHOR", "COMMITTER")}
    environment |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for line in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "initial commit"]):
        subprocess.run(["git", *line], cwd=tmp_path, env=environment, check=True)
    told = subprocess.run(
        ["git", "rev-parse", "HEAD^{tree}", "HEAD"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert told.stdout.decode().split() == [revision.trees[""], revision.commit]


def test_a_new_commit_moves_the_branch_and_the_old_one_stays(hub):
    repo = hub.add_repo("ann/x", {"a.txt": "one", "b.txt": "b"})
    first = repo.branches["main"]
    second = repo.commit({"a.txt": "two"}, removed=["b.txt"], title="Better")
    assert ask(f"{hub.endpoint}/ann/x/resolve/main/a.txt")[2] == b"two"
    assert ask(f"{hub.endpoint}/ann/x/resolve/{first}/a.txt")[2] == b"one"
    status, headers, _body = ask(f"{hub.endpoint}/ann/x/resolve/main/b.txt")
    assert (status, headers["x-error-code"], headers["x-repo-commit"]) == (404, "EntryNotFound", second)
    told = json.loads(ask(f"{hub.endpoint}/api/models/ann/x")[2])
    assert (told["sha"], told["lastModified"]) == (second, "2025-03-02T09:30:00.000Z")


def test_the_hub_names_the_bytes_and_the_cdn_has_a_name_of_its_own(hub):
    file = Generated(2 * MIB, seed=1)
    hub.add_repo("ann/x", {"m.gguf": file})
    status, headers, _body = ask(f"{hub.endpoint}/ann/x/resolve/main/m.gguf", method="HEAD")
    assert (status, headers["x-linked-etag"]) == (302, f'"{file.sha256}"')
    assert (headers["x-linked-size"], headers["accept-ranges"]) == (str(2 * MIB), "bytes")
    status, at_cdn, body = ask(headers["location"], method="HEAD")
    assert (status, at_cdn["content-length"], at_cdn["accept-ranges"], body) == (200, str(2 * MIB), "bytes", b"")
    assert file.sha256 not in at_cdn["etag"]
    status, _headers, pointer = ask(f"{hub.endpoint}/ann/x/raw/main/m.gguf")
    assert (status, f"oid sha256:{file.sha256}\n".encode() in pointer) == (200, True)


RANGES = [
    ("bytes=0-0", 206, "bytes 0-0/1000", (0, 1)),
    ("bytes=990-", 206, "bytes 990-999/1000", (990, 1000)),
    ("bytes=990-5000", 206, "bytes 990-999/1000", (990, 1000)),
    ("bytes=-10", 206, "bytes 990-999/1000", (990, 1000)),
    ("bytes=-5000", 206, "bytes 0-999/1000", (0, 1000)),
    ("bytes=1000-", 416, "bytes */1000", (0, 0)),
    ("bytes=5-1", 200, None, (0, 1000)),
    ("bytes=0-1,5-6", 200, None, (0, 1000)),
    ("lines=0-1", 200, None, (0, 1000)),
]


@pytest.mark.parametrize(("asked", "status", "told", "place"), RANGES)
def test_ranges_are_what_was_asked_for(hub, asked, status, told, place):
    file = Generated(1000, seed=3)
    hub.add_repo("ann/x", {"m.gguf": file})
    answer = ask(file_url(hub, "ann/x", "m.gguf"), {"Range": asked})
    assert (answer[0], answer[1].get("content-range"), answer[2]) == (status, told, file.part(*place))
    assert [one.sent for one in hub.seen("cdn")] == [place]


def test_conditions_are_looked_at(hub):
    hub.add_repo("ann/x", {"m.gguf": Generated(1000), "c.json": "{}"})
    url = file_url(hub, "ann/x", "m.gguf")
    etag = ask(url, method="HEAD")[1]["etag"]
    assert ask(url, {"Range": "bytes=10-", "If-Range": etag})[0] == 206
    assert ask(url, {"Range": "bytes=10-", "If-Range": '"other"'})[0] == 200
    assert ask(url, {"If-Match": '"other"'})[0] == 412
    assert ask(url, {"If-None-Match": f'"a", W/{etag}'})[0] == 304
    small = f"{hub.endpoint}/ann/x/resolve/main/c.json"
    etag = ask(small)[1]["etag"]
    assert ask(small, {"If-None-Match": etag})[::2] == (304, b"")


CONTENTS = {
    "given": lambda _folder: Given(b"GGUF" + bytes(range(256)) * 9000),
    "generated": lambda _folder: Generated(2 * MIB + 99, seed=2, head=b"GGUF" * 500_000),
    "on disk": lambda folder: OnDisk(folder / "disk"),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_every_content_gives_any_part_of_itself(hub, tmp_path, kind):
    (tmp_path / "disk").write_bytes(os.urandom(2 * MIB + 5))
    content = CONTENTS[kind](tmp_path)
    whole = content.part(0, content.size_bytes)
    assert (len(whole), content.sha256) == (content.size_bytes, hashlib.sha256(whole).hexdigest())
    hub.add_repo("ann/x", {"m.gguf": content})
    url = file_url(hub, "ann/x", "m.gguf")
    assert ask(url)[2] == whole
    for start, last in ((1, 2), (MIB - 3, MIB + 3), (2 * MIB - 1, content.size_bytes - 1)):
        assert ask(url, {"Range": f"bytes={start}-{last}"})[2] == whole[start : last + 1]


def test_no_mebibyte_of_a_generated_file_is_like_another():
    file = Generated(6 * MIB, seed=1)
    parts = {file.part(start, start + MIB) for start in range(0, 6 * MIB, MIB)}
    assert len(parts) == 6
    assert file.sha256 == Generated(6 * MIB, seed=1).sha256 != Generated(6 * MIB, seed=2).sha256


def test_the_header_of_a_model_of_70_billion_weights_is_served_from_a_hole(hub, tmp_path):
    path = shape_files.write_shape("llama-3.1-70b", tmp_path)
    hub.add_repo("ann/x", {"m.gguf": path})
    status, headers, body = ask(file_url(hub, "ann/x", "m.gguf"), {"Range": "bytes=0-99999"})
    assert (status, body[:4], len(body)) == (206, b"GGUF", 100_000)
    assert headers["content-range"] == f"bytes 0-99999/{path.stat().st_size}"


def test_what_was_sent_twice_is_known(hub):
    hub.add_repo("ann/x", {"m.gguf": Generated(1000)})
    url = file_url(hub, "ann/x", "m.gguf")
    for asked in ("bytes=0-499", "bytes=500-599", "bytes=450-549"):
        ask(url, {"Range": asked})
    assert hub.sent("ann/x/m.gguf") == [(0, 500), (500, 600), (450, 550)]
    assert hub.repeated("ann/x/m.gguf") == [(450, 500), (500, 550)]
    assert [one.range for one in hub.seen("cdn", "*.gguf", "GET")] == ["bytes=0-499", "bytes=500-599", "bytes=450-549"]


def test_a_token_at_a_foreign_host_is_noticed(hub):
    hub.add_repo("ann/x", {"m.gguf": b"GGUF"})
    hub.add_token("hf_a")
    secret = {"Authorization": "Bearer hf_a"}
    ask(f"{hub.endpoint}/ann/x/resolve/main/m.gguf", secret)
    assert hub.leaked_tokens() == []
    ask(file_url(hub, "ann/x", "m.gguf"), secret)
    assert [(one.area, one.token) for one in hub.leaked_tokens()] == [("cdn", "hf_a")]


def test_addresses_of_the_cdn_expire(hub):
    hub.add_repo("ann/x", {"m.gguf": b"GGUF"})
    url = file_url(hub, "ann/x", "m.gguf")
    assert ask(url)[0] == 200
    hub.expire_links()
    assert ask(url)[0] == 403
    assert ask(file_url(hub, "ann/x", "m.gguf"))[0] == 200


def test_files_of_any_name_can_be_had(hub):
    names = [name for name in HOSTILE_NAMES if name]
    hub.add_repo("ann/x", {name: f"{number}" for number, name in enumerate(names)})
    listed = json.loads(ask(f"{hub.endpoint}/api/models/ann/x/tree/main?recursive=true")[2])
    assert {one["path"] for one in listed if one["type"] == "file"} == set(names)
    for number, name in enumerate(names):
        status, headers, body = ask(f"{hub.endpoint}/ann/x/resolve/main/{quote(name, safe='')}")
        if status == 302:
            body = ask(headers["location"])[2]
        assert body == f"{number}".encode()


def test_many_connections_at_once_end_with_the_server():
    threads = threading.active_count()
    with HubServer() as hub:
        hub.add_repo("ann/x", {"m.gguf": Generated(50 * MIB)})
        url = urlsplit(file_url(hub, "ann/x", "m.gguf"))
        connections = [http.client.HTTPConnection(url.hostname, url.port) for _number in range(20)]
        for connection in connections:
            connection.request("GET", url.path)  # and nobody reads the answer
        idle = http.client.HTTPConnection(url.hostname, url.port)
        idle.connect()
    for connection in [*connections, idle]:
        connection.close()
    assert threading.active_count() == threads


def test_it_runs_as_a_process_of_its_own(tmp_path):
    (tmp_path / "disk.gguf").write_bytes(b"GGUF on disk")
    files = {"a.gguf": {"size": 5000, "seed": 4}, "b.gguf": {"path": str(tmp_path / "disk.gguf")}, "c.txt": "words"}
    config = {
        "repos": [{"name": "ann/x", "files": files, "gated": "auto"}],
        "tokens": [{"token": "hf_a", "repos": ["ann/x"]}],
        "faults": [{"kind": "http_500", "match": "resolve:*/c.txt", "times": 1}],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    script = Path(__file__).resolve().parent.parent / "helpers" / "hub_server.py"
    ports = tmp_path / "ports.json"
    command = [sys.executable, "-I", str(script), "--port-file", str(ports), "--config", str(tmp_path / "config.json")]
    with subprocess.Popen([*command, "--bytes-per-s", "1e9"], stdin=subprocess.PIPE) as child:
        while not ports.exists() and child.poll() is None:
            threading.Event().wait(0.01)
        endpoint = json.loads(ports.read_text())["endpoint"]
        secret = {"Authorization": "Bearer hf_a"}
        first, second = (ask(f"{endpoint}/ann/x/resolve/main/{name}.gguf", secret)[1]["location"] for name in "ab")
        assert ask(first)[2] == Generated(5000, seed=4).part(0, 5000)
        assert ask(second)[2] == b"GGUF on disk"
        assert [ask(f"{endpoint}/ann/x/resolve/main/c.txt", secret)[0] for _turn in range(2)] == [500, 200]
        requests = json.loads(ask(f"{endpoint}/-/requests")[2])
        assert [one["area"] for one in requests] == ["resolve", "resolve", "cdn", "cdn", "resolve", "resolve"]
        child.stdin.close()
        assert child.wait(10) == 0
