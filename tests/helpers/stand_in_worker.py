"""A worker that misbehaves once, for drills: the file that `stand_in` writes is started in the real worker's place.

The first start does what it was told to do; every later one is the real worker, so that a restart can be drilled.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# What the first start does, and where.
MISBEHAVIOURS = (
    "exits while loading",
    "exits while writing",
    "sends garbage",
    "sends a torn message and ends",
    "sends a message over the limit",
    "sends an unknown message",
    "speaks another protocol",
)

_SCRIPT = """\
import sys
sys.path.insert(0, {root!r})
from tests.helpers import stand_in_worker
stand_in_worker.run({misbehaviour!r}, {marker!r})
"""
_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def stand_in(folder: Path, misbehaviour: str) -> Path:
    """Write the script and return its path, which ends like the real worker's."""
    assert misbehaviour in MISBEHAVIOURS
    script = folder / "backends" / "worker.py"
    script.parent.mkdir()
    marker = str(folder / "was_started")
    script.write_text(_SCRIPT.format(root=str(ROOT), misbehaviour=misbehaviour, marker=marker), encoding="utf-8")
    return script


def run(misbehaviour: str, marker: str) -> None:
    """Be the worker: a bad one at first, the real one afterwards."""
    from backends import worker

    if Path(marker).exists():
        code = worker.main(sys.argv[1:])
        sys.stdout.flush()
        os._exit(code)
    Path(marker).touch()
    _misbehave(misbehaviour, int(sys.argv[sys.argv.index("--fd") + 1]))


def _misbehave(misbehaviour: str, descriptor: int) -> None:
    from multiprocessing.connection import Connection

    from backends import protocol, wire

    pipe = wire.command_pipe(Connection(descriptor))
    version = 99 if misbehaviour == "speaks another protocol" else protocol.PROTOCOL_VERSION
    pipe.send(protocol.Hello(version, "stand-in", os.getpid(), "llama_cpp"))
    while True:
        command = pipe.receive()
        if isinstance(command, protocol.LoadModel):
            if misbehaviour == "exits while loading":
                os._exit(0)
            pipe.send(_loaded(command))
        if isinstance(command, protocol.Generate):
            piece = protocol.Piece(command.request_id, "Half a sent", (1,))
            pipe.send(protocol.StepDone(protocol.StepStats(step=1, ended_s=time.monotonic(), duration_s=0.1), (piece,)))
            if misbehaviour == "exits while writing":
                os._exit(0)
            os.write(descriptor, _bytes_of(misbehaviour))
            if misbehaviour == "sends a torn message and ends":
                os._exit(0)


def _loaded(command):
    from backends import protocol

    return protocol.ModelLoaded(
        backend="llama_cpp", model_path=command.model_path, context_tokens=2_048, chat_template=_TEMPLATE
    )


def _bytes_of(misbehaviour: str) -> bytes:
    """Return what is written to the pipe: a frame's length in front of bytes that are no event."""
    if misbehaviour == "sends a message over the limit":
        return struct.pack("!i", 2**31 - 1)
    if misbehaviour == "sends a torn message and ends":
        return struct.pack("!i", 1_000) + b"\x82\xa4type\xa8StepDone"
    body = b"\x81\xa4type\xabNobodyKnows" if misbehaviour == "sends an unknown message" else bytes(range(64))
    return struct.pack("!i", len(body)) + body
