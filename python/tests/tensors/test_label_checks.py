"""Numbers of documents that decrease: right results, or, with ATTN_DEBUG_CHECKS, errors."""

import attn
import numpy as np
import pytest
from attn.tensors import label_checks

ONE = np.int32([0, 0, 3, 3, 5, 1])
TWO = np.int64([[0, 0, 1, 1, 1, 2], [4, 4, 4, 2, 5, 5]])
BIASES = np.float32([0.5, 1.5])


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (lambda b, h, q, kv: ONE[q] == ONE[kv], r"got 1 after 5 at \[5\]"),
        (lambda b, h, q, kv: (kv <= q) & (TWO[b, kv] == TWO[b, q]), r"got 2 after 4 at \[1, 3\]"),
    ],
)
def test_numbers_that_decrease(monkeypatch, mask, message):
    mod = attn.mask_mod(mask)
    label_checks.check_labels(mod, 1)
    monkeypatch.setenv("ATTN_DEBUG_CHECKS", "1")
    with pytest.raises(
        attn.ArgumentError,
        match=r'tensor "capture1": expected numbers that do not decrease.*' + message,
    ):
        label_checks.check_labels(mod, 1)


def test_other_uses(monkeypatch):
    monkeypatch.setenv("ATTN_DEBUG_CHECKS", "1")
    for mask in (
        lambda b, h, q, kv: ONE[q] == ONE[b],
        lambda b, h, q, kv: ONE[kv] <= ONE[q],
        lambda b, h, q, kv: BIASES[b] < q - kv,
        lambda b, h, q, kv: ONE[q] == q,
    ):
        label_checks.check_labels(attn.mask_mod(mask), 0)
    label_checks.check_labels(attn.score_mod(lambda score, b, h, q, kv: score + ONE[q]), 0)
