"""Lists of blocks of attn.attention: what is refused, and what kernels are compiled for."""

import attn
import numpy as np
import pytest

Q, K = np.zeros((1, 2, 200, 64), np.float16), np.zeros((1, 2, 256, 64), np.float16)
LISTS = {
    "block_counts": np.zeros((1, 2, 2, 2), np.int32),
    "block_indices": np.zeros((1, 2, 2, 4), np.int32),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"block_size": None},
            "expected all of block_counts, block_indices and block_size, or none",
        ),
        ({"block_counts": None}, "or none, got block_indices and block_size"),
        (
            {"block_size": (128, 96)},
            "block_size: expected blocks of keys that divide the 256 keys, got 96",
        ),
        ({"block_size": (128, 64, 1)}, "block_size: expected .queries, keys. of a block"),
        ({"block_size": (128, 0)}, "block_size: expected an integer from 1 "),
        (
            {"block_size": 64},
            r'tensor "block_counts": expected shape \[1, 2, 4, 2\] for blocks of 64 queries',
        ),
        (
            {"block_indices": np.zeros((1, 2, 2, 3), np.int32)},
            r'"block_indices": expected shape \[1, 2, 2, 4\]',
        ),
        (
            {"block_indices": np.zeros((1, 2, 2, 4), np.int64)},
            '"block_indices": expected elements of i32, got i64',
        ),
        (
            {"block_indices": np.zeros((1, 2, 2, 8), np.int32)[..., ::2]},
            "expected one without gaps",
        ),
        ({"causal": True}, "expected no mask with lists of blocks"),
    ],
)
def test_refusals(change, message):
    arguments = {**LISTS, "block_size": (128, 64), **change}
    with pytest.raises((attn.ArgumentError, attn.CompileError), match=message):
        attn.prepare(Q, K, K, chip="sm_80", **arguments)


def test_packed_sequences_have_none():
    rows, ends = np.zeros((200, 2, 64), np.float16), np.array([0, 200], np.int32)
    with pytest.raises(attn.ArgumentError, match="expected no lists of blocks with cu_seqlens"):
        attn.prepare(
            rows,
            rows,
            rows,
            chip="sm_80",
            cu_seqlens_q=ends,
            cu_seqlens_k=ends,
            block_size=64,
            **LISTS,
        )


def test_prepared(count_kernels):
    attn.prepare(Q, K, K, chip="sm_90a", block_size=(128, 64), **LISTS)
    assert count_kernels() == 1
