"""What the compiler finds in functions that hide keys."""

import attn
import numpy as np
import pytest


def count_products(kernel):
    result = kernel.simulate()
    assert result.passed, result.text
    return result.report["run"]["counters"]["mma_flops"]


#: A mask's options, and functions that say the same: of FlexAttention's examples, of
#: transformers' masking_utils, and in words of their own.
BUILT_IN = [
    ({"causal": True}, lambda b, h, q, kv: q >= kv),
    ({"causal": True}, lambda b, h, q, kv: kv <= q),
    ({"window": (96, 0)}, lambda b, h, q, kv: (q >= kv) & (q - kv <= 96)),
    ({"window": (95, 0)}, lambda b, h, q, kv: (kv > q - 96) & (kv <= q)),
    ({"window": (40, 40)}, lambda b, h, q, kv: abs(q - kv) <= 40),
    ({"window": (-1, 70)}, lambda b, h, q, kv: ~(kv > q + 70)),
]


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("options, function", BUILT_IN)
def test_built_in_masks_are_found(chip, options, function):
    """The same kernel as that of the option."""
    shape = {"q": "1x1x384x64xf16", "chip": chip}
    option = attn.compile(**shape, **options)
    found = attn.compile(**shape, mask_mod=function)
    assert not found.launch["problem"].get("mask_mod")
    assert found.plan == option.plan
    assert found.ptx == option.ptx


def test_blocks_that_a_function_hides():
    """Chunks, prefixes and lengths multiply less than all keys, and what is not read as much."""
    lengths = np.int32([100, 384])
    plan = {"q": "2x1x384x64xf16", "chip": "sm_80", "schedule": "split_q"}
    every = count_products(attn.compile(**plan, mask_mod=lambda b, h, q, kv: kv % 3 != 5))
    for function in (
        lambda b, h, q, kv: q // 64 == kv // 64,
        lambda b, h, q, kv: (kv < 64) | (kv <= q),
        lambda b, h, q, kv: kv < lengths[b],
    ):
        kernel = attn.compile(**plan, mask_mod=function)
        captured = {name: lengths for name in kernel.captures}
        result = kernel.simulate(**captured)
        assert result.passed, result.text
        assert result.report["run"]["counters"]["mma_flops"] < every


@pytest.mark.parametrize(
    "chip, schedule", [("sm_80", "split_q"), ("sm_90a", "ws_wgmma"), ("sm_100a", "ws_tmem")]
)
def test_documents(chip, schedule):
    """Blocks of other documents are skipped where ids are in order, and only there."""
    sorted_ids = np.int64([[0] * 100 + [1] * 200 + [7] * 84, [-3] * 384])
    broken = sorted_ids.copy()
    broken[0, -1] = 0
    ids = sorted_ids.copy()
    kernel = attn.compile(
        q="2x1x384x64xf16",
        chip=chip,
        schedule=schedule,
        mask_mod=lambda b, h, q, kv: (ids[b, q] == ids[b, kv]) & (q >= kv),
    )
    # Blocks of the tiles' own beside documents are not followed (docs/Masks.md).
    if schedule != "ws_tmem":
        assert all(proof.verdict in ("proved", "bounded") for proof in kernel.proofs.values())
    assert any(
        "tensor[b, kv] == tensor[b, q]: gives key_range" in note for note in kernel.plan_notes
    )
    few = count_products(kernel)
    ids[:] = broken
    assert few < count_products(kernel)


def test_reading_masks_is_a_choice(monkeypatch):
    options = {"q": "1x1x64x64xf16", "mask_mod": lambda b, h, q, kv: q >= kv}
    read = attn.compile(**options)
    (note,) = read.plan_notes
    assert note == "mask_mod: kv <= q: left mask_mod, mask is now #attn.mask<kind = causal>"
    left = attn.compile(**options, read_masks=False)
    assert not left.plan_notes and left.ptx != read.ptx
    monkeypatch.setenv("ATTN_READ_MASKS", "0")
    assert attn.compile(**options).ptx == left.ptx
    assert attn.compile(**options, read_masks=True).ptx == read.ptx
    monkeypatch.setenv("ATTN_READ_MASKS", "no")
    with pytest.raises(attn.ArgumentError, match="ATTN_READ_MASKS: expected 0 or 1, got 'no'"):
        attn.compile(**options)


def test_documents_of_any_lengths():
    """The check of a kernel with many unknown numbers ends by its count of steps."""
    ids = np.zeros((1, 70), np.int32)
    kernel = attn.compile(
        q="1x2x70x64xf16", chip="sm_90a", dynamic=True,
        mask_mod=lambda b, h, q, kv: (ids[b, q] == ids[b, kv]) & (q >= kv),
    )  # fmt: skip
    assert any("gives key_range" in note for note in kernel.plan_notes)
    proof = kernel.proofs["attn_fwd"]
    assert proof.verdict == "proved" or "steps" in proof.reason
