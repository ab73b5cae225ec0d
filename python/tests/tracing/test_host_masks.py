"""Masks in the words of hosts: transformers' masking_utils and FlexAttention's examples."""

import attn
import numpy as np
import pytest
from attn.tracing import mod_regions

BATCH, LENGTH = 2, 96


def move(value, device):
    """numpy's own arrays, which stand in the place of torch's, have no device."""
    return value.to(device) if hasattr(value, "to") else value


def both(*masks):
    """As transformers joins masks: from a number's new_ones, on its device."""

    def mask(b, h, q_idx, kv_idx):
        result = q_idx.new_ones((), dtype=np.bool_)
        for each in masks:
            result = result & move(each(b, h, q_idx, kv_idx), result.device)
        return result

    return mask


def either(*masks):
    def mask(b, h, q_idx, kv_idx):
        result = q_idx.new_zeros((), dtype=np.bool_)
        for each in masks:
            result = result | move(each(b, h, q_idx, kv_idx), result.device)
        return result

    return mask


def causal(b, h, q_idx, kv_idx):
    return kv_idx <= q_idx


def all_keys(b, h, q_idx, kv_idx):
    return q_idx >= 0


def no_op(b, h, q_idx, kv_idx):
    return b.new_ones(size=(), dtype="bool", device=b.device)


def window(b, h, q_idx, kv_idx):
    return kv_idx > q_idx - 20


def near(b, h, q_idx, kv_idx):
    return abs(q_idx - kv_idx) <= 20


PADDING = np.int64([3, 0])
SEEN = np.arange(LENGTH)[None] < np.array([[70], [LENGTH]])
IDS = np.int64([[0] * 30 + [1] * 40 + [2] * 26, [4] * 50 + [5] * 46])
BLOCKS = np.int64([[-1] * 20 + [0] * 30 + [-1] * 46, [0] * 30 + [-1] * 66])


def chunk(b, h, q_idx, kv_idx):
    return (kv_idx - PADDING[b]) // 32 == (q_idx - PADDING[b]) // 32


def padding(b, h, q_idx, kv_idx):
    return SEEN[b, kv_idx]


def documents(b, h, q_idx, kv_idx):
    return IDS[b, q_idx] == IDS[b, kv_idx]


def blocks(b, h, q_idx, kv_idx):
    q_group, kv_group = BLOCKS[b, q_idx], BLOCKS[b, kv_idx]
    return (q_group == kv_group) & (q_group >= 0)


def later(mask, queries, keys):
    def shifted(b, h, q_idx, kv_idx):
        return mask(b, h, q_idx + queries, kv_idx + keys)

    return shifted


def where(b, h, q_idx, kv_idx):
    kept = np.where(
        SEEN.to(q_idx.device)[b, kv_idx],
        causal(b, h, q_idx, kv_idx),
        np.zeros_like(kv_idx, dtype=np.bool_),
    )
    return kept.to("cuda:0", dtype=np.bool_, non_blocking=True)


def kept_pairs(mask):
    """What a mask keeps, by Python's own numbers in the place of traced ones."""

    class Number(np.ndarray):
        device = "cpu"

        def new_ones(self, size, dtype, device=None):
            return np.ones(size, dtype).view(Number)

        def new_zeros(self, size, dtype, device=None):
            return np.zeros(size, dtype).view(Number)

        def to(self, *args, **kwargs):
            return self

    indices = np.ogrid[:BATCH, :1, :LENGTH, :LENGTH]
    return np.broadcast_to(
        mask(*[each.view(Number) for each in indices]), (BATCH, 1, LENGTH, LENGTH)
    )


#: By transformers' names of its kinds, then FlexAttention's; with what attn-read-masks says of
#: each condition.
MASKS = {
    "causal": (causal, ["mask"]),
    "bidirectional": (all_keys, ["mask"]),
    "sliding_window": (both(window, causal), ["mask", "mask"]),
    "bidirectional_window": (both(near, all_keys), ["mask", "mask"]),
    "chunked": (both(chunk, causal), ["mask", "key-range"]),
    "padding": (both(causal, padding), ["mask", "kept"]),
    "packed": (both(causal, documents), ["mask", "key-range"]),
    "packed_window": (both(window, causal, documents), ["mask", "mask", "key-range"]),
    "blocks": (either(causal, blocks), ["key-range"]),
    "prefix": (either(causal, later(causal, 30, 0)), ["key-range"]),
    "later": (later(both(window, causal), 20, 20), ["mask", "mask"]),
    "all_of_none": (both(), ["mask"]),
    "no_op": (no_op, ["mask"]),
}


def attend(q, k, v, kept):
    """Attention of what a mask keeps; rows without a key are 0."""
    scores = np.where(kept, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]), -np.inf)
    weights = np.exp(scores - np.maximum(scores.max(3, keepdims=True), -1e30))
    return weights / np.maximum(weights.sum(3, keepdims=True), 1e-30) @ v


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_hosts(name):
    mask, moved = MASKS[name]
    kernel = attn.compile(q=f"{BATCH}x1x{LENGTH}x64xf16", mask_mod=mask)
    draw = np.random.default_rng(0)
    q, k, v = [draw.normal(size=(BATCH, 1, LENGTH, 64)).astype(np.float16) for _ in range(3)]
    result = kernel.simulate(q=q, k=k, v=v)
    assert result.passed, result.text
    expected = attend(*[each.astype(np.float64) for each in (q, k, v)], kept_pairs(mask))
    np.testing.assert_allclose(result["o"], expected, atol=4e-3)
    said = [each.message for each in kernel.remarks if "Category:attn.read-masks" in each.message]
    assert sorted(each.split("] ")[1].split(" | ")[0] for each in said) == sorted(moved)


def test_what_numbers_do_not_take():
    def trace(function):
        return mod_regions.trace("mask_mod", function).text

    assert "arith.constant 3 : i32" in trace(lambda b, h, q, kv: kv.new_full((), 3) == q.to(kv))
    assert "arith.select" in trace(where)
    assert trace(lambda b, h, q, kv: q.long().type_as(kv) == kv) == trace(
        lambda b, h, q, kv: q.long().int() == kv
    )
    assert trace(
        lambda b, h, q, kv: np.full_like(q, 2, dtype="int64") == kv.to(dtype=q.long().dtype)
    )
    for function, message in (
        (
            lambda b, h, q, kv: q.new_ones((2,)),
            r"new_ones\(\): expected the shape \(\) of a number, got \(2,\)",
        ),
        (
            lambda b, h, q, kv: q.new_zeros((), device=3.5),
            r"new_zeros\(\): expected a device, got float",
        ),
        (
            lambda b, h, q, kv: q.to("float16"),
            r"to\(\): expected float32, int32, int64 or bool, got float16",
        ),
        (
            lambda b, h, q, kv: q.to(memory_format=1),
            r"to\(\): there is no argument 'memory_format'",
        ),
        (
            lambda b, h, q, kv: SEEN.to("int32")[b, q] == 0,
            r"to\(\): a captured tensor keeps its type",
        ),
    ):
        with pytest.raises(attn.TraceError, match=message):
            trace(function)


def test_masking_utils():
    """All kinds of the installed transformers."""
    utils = pytest.importorskip("transformers.masking_utils")
    torch = pytest.importorskip("torch")
    left, seen, ids = torch.tensor(PADDING), torch.tensor(SEEN), torch.tensor(IDS)
    masks = [
        utils.causal_mask_function,
        utils.bidirectional_mask_function,
        utils.sliding_window_overlay(20),
        utils.chunked_overlay(32, left),
        utils.sliding_window_causal_mask_function(20),
        utils.sliding_window_bidirectional_overlay(20),
        utils.sliding_window_bidirectional_mask_function(20),
        utils.chunked_causal_mask_function(32, left),
        utils.padding_mask_function(seen),
        utils.packed_sequence_mask_function(ids),
        utils.add_offsets_to_mask_function(utils.causal_mask_function, 3, 0),
        utils.and_masks(utils.causal_mask_function, utils.packed_sequence_mask_function(ids)),
        utils.or_masks(utils.causal_mask_function, utils.padding_mask_function(seen)),
    ]
    if hasattr(utils, "blockwise_overlay"):
        masks.append(utils.blockwise_overlay(torch.tensor(BLOCKS)))
    for mask in masks:
        assert mod_regions.trace("mask_mod", mask).text
