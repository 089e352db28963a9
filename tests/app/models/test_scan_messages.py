"""The scan's messages: whole, torn, and with names that are no text."""

from __future__ import annotations

import io
import os

import msgspec
import pytest

from app.models.entry import FoundModel
from app.models.scan_messages import (
    ModelsSeen,
    ScanFinished,
    ScanLimits,
    ScanMessageError,
    ScanRequest,
    ScanRoot,
    from_disk,
    known_on_disk,
    read_request,
    read_told,
    to_disk,
    write_message,
)
from app.models.shape import LayerShape, ModelShape

ODD = os.fsdecode(b"/m/\xff\xfe \n \xe2\x80\xae.gguf")


def test_a_model_comes_through_as_it_was_whatever_its_name_is() -> None:
    shape = ModelShape(architecture="llama", layers=(LayerShape(kv_heads=2), LayerShape(state_elements=5)))
    model = FoundModel(path=ODD, parts=(ODD, "/b"), projector_path=ODD, name="é", shape=shape, fault="…")
    pipe = io.BytesIO()
    write_message(pipe, ModelsSeen(root=3, models=(to_disk(model),), unchanged=(os.fsencode(ODD),), looked_count=2))
    pipe.seek(0)

    told = read_told(pipe)
    assert isinstance(told, ModelsSeen)
    assert from_disk(told.models[0]) == model
    assert [os.fsdecode(path) for path in told.unchanged] == [ODD]
    assert read_told(pipe) is None


def test_a_request_comes_through_as_it_was() -> None:
    root = ScanRoot(folder=os.fsencode(ODD), origin="added", layout="folder", must_exist=True)
    request = ScanRequest(
        roots=(root,), known=known_on_disk({ODD: "1", "/b": "2"}), limits=ScanLimits(file_s=1.5), language="de"
    )
    pipe = io.BytesIO()
    write_message(pipe, request)
    pipe.seek(0)
    assert read_request(pipe) == request


def test_a_path_that_no_system_can_have_is_not_asked_for() -> None:
    assert known_on_disk({"/a\ud800": "1", "/b": "2"}) == {b"/b": "2"}


@pytest.mark.parametrize(
    "data",
    [
        b"\x05",
        b"\x05\0\0\0abc",
        b"\xff\xff\xff\xff",
        b"\x03\0\0\0abc",
        b"\x01\0\0\0\xc0",
        b"\x05\0\0\0" + b"\x91" * 5,
    ],
)
def test_what_is_torn_or_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ScanMessageError):
        read_told(io.BytesIO(data))
    with pytest.raises(ScanMessageError):
        read_request(io.BytesIO(data))


def test_no_request_at_all_is_refused() -> None:
    with pytest.raises(ScanMessageError):
        read_request(io.BytesIO())


def test_a_message_of_the_wrong_shape_is_refused() -> None:
    pipe = io.BytesIO()
    good = ScanFinished(found_count=1, unchanged_count=0, skipped_count=0, complete_roots=(), problems=())
    data = msgspec.msgpack.encode(msgspec.to_builtins(good) | {"found_count": "one"})
    pipe.write(len(data).to_bytes(4, "little") + data)
    pipe.seek(0)
    with pytest.raises(ScanMessageError):
        read_told(pipe)
