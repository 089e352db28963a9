"""From the header of a GGUF file to the numbers that decide memory and speed.

Follows llama.cpp: the keys that every architecture shares, then what `architectures` says of this one. Never raises:
a header that makes no sense gives a shape that says so. Knows no memory and no machine.
Reference: load_hparams() in llama-model.cpp, llama-hparams.cpp, and llama-kv-cache*.cpp of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.models.architectures import (
    FULL_ATTENTION_EVERY,
    GLM_5_2_CONTEXT_TOKENS,
    INDEXED,
    INDEXER_LISTED,
    KV_FROM_START,
    KV_SHARED_AT_END,
    RECURRENT,
    RECURRENT_BESIDE_ATTENTION,
    RECURRENT_WITHOUT_FEED_FORWARD,
    RECURRENT_WITHOUT_HEADS,
    UNKNOWN_CACHES,
    WITHOUT_CACHE,
)
from app.models.gguf_header import GgufHeader
from app.models.gguf_keys import BadKeyError, GgufKeys
from app.models.shape import LayerShape, ModelShape
from app.models.shape_weights import Weights, weights_of_gguf
from app.models.shape_windows import window_of_layers

MAX_LAYERS = 512  # LLAMA_MAX_LAYERS
MAX_STATE_ELEMENTS = 2**48
_DEFAULT_TOKEN_SHIFTS = 2  # of RWKV
_KDA_CONVOLUTION = 3  # elements that a KDA layer looks back where the file does not say


def shape_of_gguf(header: GgufHeader) -> ModelShape:
    """Return the model's shape; `unknown` says why where its memory cannot be told."""
    keys = GgufKeys(header)
    weights = weights_of_gguf(header, MAX_LAYERS)
    reason = UNKNOWN_CACHES.get(keys.architecture, "")
    layers: tuple[LayerShape, ...] = ()
    if not reason:
        try:
            layers = _layers(keys, weights)
        except BadKeyError as error:
            reason = str(error)
    return _with_weights(keys, weights, layers, reason)


def _with_weights(keys: GgufKeys, weights: Weights, layers: tuple[LayerShape, ...], reason: str) -> ModelShape:
    """Return the shape with what the tensors tell; numbers that are no numbers are left out."""
    head_counts = keys.some_per_layer("attention.head_count")
    return ModelShape(
        architecture=keys.architecture,
        context_tokens=keys.some("context_length"),
        embedding_length=keys.some("embedding_length"),
        feed_forward_length=weights.feed_forward_length or max(keys.some_per_layer("feed_forward_length"), default=0),
        head_count=max(head_counts, default=0),
        vocabulary_tokens=weights.vocabulary_tokens or keys.some("vocab_size"),
        parameters_count=weights.parameters_count,
        weights_bytes=weights.total_bytes,
        input_bytes=weights.input_bytes,
        output_bytes=weights.output_bytes,
        other_bytes=weights.other_bytes + sum(weights.layer_bytes[len(layers) :]),
        copied_bytes=weights.copied_bytes,
        read_bytes=weights.output_read_bytes + sum(weights.layer_read_bytes[: len(layers) or None]),
        is_mla=any(keys.some(f"attention.key_length_mla{ending}") for ending in ("", "_swa")),
        layers=layers,
        unknown=reason,
    )


# ----------------------------------------------------------------------------------------------------- layers


def _layers(keys: GgufKeys, weights: Weights) -> tuple[LayerShape, ...]:
    """Return every layer that keeps something or holds weights.

    Raises:
        BadKeyError: a number is missing or makes no sense.
    """
    count = keys.number("block_count")
    if not 1 <= count <= MAX_LAYERS:
        raise BadKeyError(f"The number of layers is not between 1 and {MAX_LAYERS}.")
    if not keys.number("embedding_length"):
        raise BadKeyError("The header does not say how wide the model is.")
    trunk = count - keys.number("nextn_predict_layers")  # the last ones draft ahead and are not run
    if trunk < 1:
        raise BadKeyError("The header leaves the model no layer.")
    kv_heads = _kv_heads(keys, count)
    keeps_state = _keeps_state(keys, kv_heads, trunk)
    keeps_kv = _keeps_kv(keys, kv_heads, keeps_state, trunk)
    windows = window_of_layers(keys, count, keeps_state)
    state = _state_elements(keys) if any(keeps_state) else 0
    if state > MAX_STATE_ELEMENTS:
        raise BadKeyError("The header's numbers give each layer a state larger than any machine.")
    made = []
    for index in range(count if keys.architecture in RECURRENT_WITHOUT_FEED_FORWARD else trunk):
        heads, key_length, value_length = kv_heads[index], *_head_lengths(keys, bool(windows[index]))
        indexer = _indexer_elements(keys, index)
        if indexer and keeps_kv[index]:
            heads, key_length, value_length = _beside_indexer(keys, heads, key_length, value_length, indexer)
        made.append(
            LayerShape(
                kv_heads=heads if keeps_kv[index] else 0,
                key_length=key_length,
                value_length=value_length,
                window_tokens=windows[index] if keeps_kv[index] else 0,
                state_elements=state if keeps_state[index] else 0,
                weights_bytes=weights.layer_bytes[index],
                read_bytes=weights.layer_read_bytes[index],
            )
        )
    return tuple(_repeated(keys, made))


def _kv_heads(keys: GgufKeys, count: int) -> Sequence[int]:
    """Return the KV heads of each layer; without a word there are as many as query heads."""
    heads = keys.per_layer("attention.head_count", count, absent=0)
    kv_heads = keys.per_layer("attention.head_count_kv", count, absent=-1)
    return [own if own >= 0 else shared for own, shared in zip(kv_heads, heads, strict=True)]


def _keeps_state(keys: GgufKeys, kv_heads: Sequence[int], trunk: int) -> list[bool]:
    """Say of each layer whether it keeps a recurrent state."""
    name, count = keys.architecture, len(kv_heads)
    in_trunk = [index < trunk for index in range(count)]
    if name in RECURRENT or name in RECURRENT_BESIDE_ATTENTION:
        return in_trunk
    if name in RECURRENT_WITHOUT_HEADS:
        return [inside and not heads for inside, heads in zip(in_trunk, kv_heads, strict=True)]
    if name in RECURRENT_WITHOUT_FEED_FORWARD:
        widths = keys.per_layer("feed_forward_length", count, absent=0)
        return [i and not h and not w for i, h, w in zip(in_trunk, kv_heads, widths, strict=True)]
    if name in FULL_ATTENTION_EVERY:
        listed = keys.flags("attention.recurrent_layers", count)
        if listed is not None:
            return [inside and flag for inside, flag in zip(in_trunk, listed, strict=True)]
        every = keys.number("full_attention_interval", absent=FULL_ATTENTION_EVERY[name]) or 1
        return [inside and (index + 1) % every != 0 for index, inside in enumerate(in_trunk)]
    return [False] * count


def _keeps_kv(keys: GgufKeys, kv_heads: Sequence[int], keeps_state: Sequence[bool], trunk: int) -> list[bool]:
    """Say of each layer whether it has K and V of its own."""
    name, count = keys.architecture, len(kv_heads)
    if name in WITHOUT_CACHE or name in RECURRENT:
        return [False] * count
    if name in RECURRENT_BESIDE_ATTENTION:
        return [True] * count
    own = [not state for state in keeps_state]
    if name in RECURRENT_WITHOUT_FEED_FORWARD:
        widths = keys.per_layer("feed_forward_length", count, absent=0)
        return [inside and not width for inside, width in zip(own, widths, strict=True)]
    first_shared = count
    if name in KV_FROM_START:
        first_shared = KV_FROM_START[name]
    elif name in KV_SHARED_AT_END:
        first_shared = count - keys.number("attention.shared_kv_layers")
    return [inside and index < min(first_shared, trunk) for index, inside in enumerate(own)]


def _head_lengths(keys: GgufKeys, is_windowed: bool) -> tuple[int, int]:
    """Return the elements of K and of V a head; with latent attention (MLA) V is part of K and takes nothing."""
    heads = keys.first("attention.head_count")
    width = keys.number("embedding_length") // heads if heads else 0
    key_length = keys.number("attention.key_length", absent=width)
    value_length = keys.number("attention.value_length", absent=width)
    if is_windowed:
        key_length = keys.number("attention.key_length_swa", absent=key_length)
        value_length = keys.number("attention.value_length_swa", absent=value_length)
    is_mla = keys.number("attention.key_length_mla") and keys.number("attention.value_length_mla")
    return key_length, 0 if is_mla else value_length


def _state_elements(keys: GgufKeys) -> int:
    """Return the elements of one layer's recurrent state: what its convolution looks back on, and the state itself.

    llama_hparams::n_embd_r() and n_embd_s().
    """
    width, heads = keys.number("embedding_length"), keys.first("attention.head_count")
    convolution = keys.number("ssm.conv_kernel")
    if head_size := keys.number("wkv.head_size"):  # RWKV
        return width * (keys.number("token_shift_count", absent=_DEFAULT_TOKEN_SHIFTS) + head_size)
    if cached := keys.number("shortconv.l_cache"):  # LFM2
        return width * (cached - 1)
    if head := keys.number("kda.head_dim"):  # Kimi delta attention
        looked_back = convolution - 1 if convolution else _KDA_CONVOLUTION
        return 3 * looked_back * heads * head + head * head * heads
    if keys.architecture == "minimax-01":  # lightning attention
        head = _head_lengths(keys, is_windowed=False)[0]
        return head * head * heads
    inner, state = keys.number("ssm.inner_size"), keys.number("ssm.state_size")  # Mamba, gated delta net
    groups = keys.number("ssm.group_count")
    return max(0, convolution - 1) * (inner + 2 * groups * state) + state * inner


def _indexer_elements(keys: GgufKeys, index: int) -> int:
    """Return the elements of the key that sparse attention's indexer caches in this layer."""
    name = keys.architecture
    if name not in INDEXED or not keys.number("attention.indexer.top_k"):
        return 0
    length = keys.number("attention.indexer.key_length")
    if name == "minimax-m3":
        return length if index >= keys.number("leading_dense_block_count") else 0
    if name == "glm5-next" and keys.number("attention.indexer.kpool"):
        length *= 3  # key, gate and pooled value
    if name not in INDEXER_LISTED:
        return length
    trunk = keys.number("block_count") - keys.number("nextn_predict_layers")
    listed = keys.flags("attention.indexer.types", trunk)
    if listed is None and name == "glm-dsa" and keys.number("context_length") >= GLM_5_2_CONTEXT_TOKENS:
        return length if index < 2 or (index - 2) % 4 == 0 else 0
    if listed is None:
        return 0 if name in ("dots3note", "hy_v4") else length
    return length if index < len(listed) and listed[index] else 0


def _beside_indexer(
    keys: GgufKeys, heads: int, key_length: int, value_length: int, indexer: int
) -> tuple[int, int, int]:
    """Return heads and lengths of a layer whose cache holds an indexer's key too, as one wide head where need be."""
    if value_length == 0:  # MLA caches no V, neither its own nor the indexer's
        return heads, key_length + indexer, 0
    value = value_length if keys.architecture == "minimax-m3" else 0  # its indexer's cache has a V, which is not used
    return 1, heads * key_length + indexer, heads * value_length + value


def _repeated(keys: GgufKeys, made: list[LayerShape]) -> list[LayerShape]:
    """Return the layers as often as the model runs them; each time they keep K and V anew, and hold no new weights."""
    if keys.architecture == "graniteswitch":  # a layer more, which chooses the adapter
        key_length, value_length = _head_lengths(keys, is_windowed=False)
        return [*made, LayerShape(kv_heads=1, key_length=key_length, value_length=value_length)]
    loops = keys.number("num_loops", absent=1) if keys.architecture == "nanbeige" else 1
    if loops < 1 or loops * len(made) > MAX_LAYERS:
        raise BadKeyError(f"The number of layers is not between 1 and {MAX_LAYERS}.")
    again = [
        LayerShape(layer.kv_heads, layer.key_length, layer.value_length, read_bytes=layer.read_bytes) for layer in made
    ]
    return made + again * (loops - 1)
