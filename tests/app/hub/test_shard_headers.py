"""Some files and the index tell of all files, as far as the listed sizes agree."""

from __future__ import annotations

import pytest

from app.hub.shard_headers import check_index, files_to_read, fill_in
from app.models.byte_source import HeaderError
from app.models.safetensors_tensors import SafeTensor

MIB = 2**20


def layer(number, size_bytes=MIB):
    return SafeTensor(f"layers.{number}.q.weight", "BF16", (size_bytes // 2,), size_bytes)


def model(count):
    """Return the tensors of each file, and the file of each tensor."""
    files = {f"{number}": [layer(number)] for number in range(count)}
    files["0"].append(SafeTensor("embed.weight", "F32", (2,), 8))
    return files, {tensor.name: name for name, tensors in files.items() for tensor in tensors}


def sizes(files):
    return {name: sum(tensor.size_bytes + 200 for tensor in tensors) for name, tensors in files.items()}


def test_as_few_files_as_hold_every_kind():
    files, places = model(50)
    assert files_to_read(places, 40) == ["0"]
    places |= {f"extra{letter}.weight": "7" for letter in "ab"} | {"last.weight": "49"}
    assert files_to_read(places, 40) == ["7", "0", "49"]
    assert files_to_read(places, 1) == ["7"]
    assert len(files) == 50


def test_what_was_not_read_is_filled_in_and_agrees_with_the_sizes():
    files, places = model(50)
    filled = fill_in(places, {"0": files["0"]}, sizes(files))
    assert filled.is_exact
    assert sorted(one.name for one in filled.tensors) == sorted(places)
    assert set(filled.tensors) == {tensor for tensors in files.values() for tensor in tensors}


@pytest.mark.parametrize("other", [0, 3 * MIB, 10**12])
def test_a_size_that_does_not_agree_makes_it_an_estimate(other):
    files, places = model(50)
    assert not fill_in(places, {"0": files["0"]}, sizes(files) | {"9": other}).is_exact
    assert not fill_in(places, {"1": files["1"]}, sizes(files)).is_exact  # nothing is known of the embeddings


def test_the_most_usual_shape_counts():
    files, places = model(5)
    files["1"] = [layer(1, 2 * MIB)]
    read = {name: files[name] for name in ("0", "1", "2")}
    filled = fill_in(places, read, sizes(files))
    assert filled.is_exact
    assert next(one for one in filled.tensors if one.name == "layers.4.q.weight").size_bytes == MIB


def test_an_index_that_lies_is_refused():
    files, places = model(3)
    check_index(places, files)
    with pytest.raises(HeaderError, match="do not agree"):
        check_index(places, [*files, "more"])
    with pytest.raises(HeaderError, match="does not say what is in"):
        fill_in(places, {"1": [*files["1"], layer(99)]}, sizes(files))
