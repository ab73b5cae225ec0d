"""attn.flex_attention beside torch's FlexAttention, on the simulator."""

import attn
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn.doors import flex as door  # noqa: E402
from torch.nn.attention import flex_attention as host  # noqa: E402

QUERIES, KEYS = 200, 260
#: torch 2.8 has neither.
needs_aux = pytest.mark.skipif(not hasattr(host, "AuxRequest"), reason="torch has no AuxRequest")
needs_eager = pytest.mark.skipif(
    not hasattr(host, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"),
    reason="torch always compiles FlexAttention",
)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def window(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx <= 70)


def prefix(b, h, q_idx, kv_idx):
    return (kv_idx < 33) | (q_idx >= kv_idx)


def chunks(b, h, q_idx, kv_idx):
    return q_idx // 64 == kv_idx // 64


documents = torch.arange(KEYS) // 90


def same_document(b, h, q_idx, kv_idx):
    return documents[q_idx] == documents[kv_idx]


def alibi(score, b, h, q_idx, kv_idx):
    return score + (kv_idx - q_idx) * torch.exp2(-((h + 1) * 8.0 / 4))


bias = torch.randn(4, QUERIES)


def learned(score, b, h, q_idx, kv_idx):
    return torch.tanh(score / 5) * 5 + bias[h, q_idx]


CASES = {
    "plain": (None, None),
    "causal": (causal, None),
    "window": (window, None),
    "prefix": (prefix, None),
    "chunks": (chunks, None),
    "documents": (same_document, None),
    "joined": (host.and_masks(causal, same_document), None),
    "either": (host.or_masks(window, chunks), alibi),
    "alibi": (causal, alibi),
    "learned": (None, learned),
}


def make(batch=2, heads=4, kv_heads=4, dim=32, dtype=torch.float16):
    shapes = (
        (batch, heads, QUERIES, dim),
        (batch, kv_heads, KEYS, dim),
        (batch, kv_heads, KEYS, dim),
    )
    return [torch.randn(*shape).to(dtype) for shape in shapes]


def block(mask, batch=None, heads=None, size=128):
    return host.create_block_mask(
        mask, batch, heads, QUERIES, KEYS, device=documents.device, BLOCK_SIZE=size
    )


def compare(got, want):
    o, lse = got
    seen = want[1].isfinite()
    assert (o - want[0]).abs().max() < 5e-3
    assert torch.equal(lse.isfinite(), seen) and (lse - want[1])[seen].abs().max() < 5e-3


def compute(q, k, v, mask, score, scale=None):
    """torch's own function in float32, without compilation."""
    q, k, v = (each.float() for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    places = torch.meshgrid(
        *[torch.arange(each) for each in (*q.shape[:3], k.shape[2])], indexing="ij"
    )
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if score is not None:
        scores = score(scores, *places)
    if mask is not None:
        scores = scores.masked_fill(~mask(*places), -torch.inf)
    return torch.softmax(scores, -1).nan_to_num(0) @ v, torch.logsumexp(scores, -1)


@pytest.mark.parametrize("case", CASES)
def test_cases(case):
    mask, score = CASES[case]
    q, k, v = make()
    given = None if mask is None else block(mask)
    got = attn.flex_attention(q, k, v, score_mod=score, block_mask=given, return_lse=True)
    compare(got, compute(q, k, v, mask, score))


@needs_eager
def test_torchs_own_function(monkeypatch):
    """The same as torch's function gives, which is not compiled here."""
    monkeypatch.setattr(host, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    q, k, v = make(batch=1, heads=1, kv_heads=1)
    o = attn.flex_attention(q, k, v, alibi, block(window))
    want = host.flex_attention(*(each.float() for each in (q, k, v)), alibi, block(window))
    assert (o - want).abs().max() < 5e-3


def test_blocks_beyond_the_function():
    """A block mask that hides blocks which its function does not."""
    q, k, v = make(kv_heads=2)
    counts = torch.tensor([[[1, 2]]], dtype=torch.int32)
    indices = torch.tensor([[[[1, 0, 2], [2, 0, 1]]]], dtype=torch.int32)
    full = (
        torch.tensor([[[1, 0]]], dtype=torch.int32),
        torch.tensor([[[[0, 1, 2], [0, 1, 2]]]], dtype=torch.int32),
    )
    mask = host.BlockMask.from_kv_blocks(
        counts, indices, *full, BLOCK_SIZE=(128, 128), mask_mod=chunks, seq_lengths=(QUERIES, KEYS)
    )

    def expected(b, h, q_idx, kv_idx):
        row, column = q_idx // 128, kv_idx // 128
        partial = ((row == 0) & (column == 1)) | ((row == 1) & (column != 1))
        return ((row == 0) & (column == 0)) | (partial & chunks(b, h, q_idx, kv_idx))

    got = attn.flex_attention(q, k, v, block_mask=mask, enable_gqa=True, return_lse=True)
    compare(got, compute(q, k, v, expected, None))


def strided(b, h, q_idx, kv_idx):
    """Every second block of keys, and the query's own one up to the query."""
    own, other = q_idx // 64, kv_idx // 64
    return ((own == other) & (q_idx >= kv_idx)) | ((other % 2 == h % 2) & (other < own))


def test_lists_of_blocks(monkeypatch):
    """Blocks between hidden ones become lists: what these do not name is not read."""
    q, k, v = torch.randn(1, 4, 256, 32).half(), *torch.randn(2, 1, 2, 256, 32).half()
    want = compute(q, k, v, strided, alibi)
    mask = host.create_block_mask(strided, 1, 4, 256, 256, device=documents.device, BLOCK_SIZE=64)
    found = door.find_mask(mask)
    assert found.lists is not None
    first, _ = found.expand(2, 4), found.expand(3, 4)
    # They stay where they are, but for those that a graph is to write.
    assert found.expand(2, 4) is first
    with monkeypatch.context() as context:
        context.setattr(door, "_is_captured", lambda tensor: True)
        assert found.expand(5, 4) is not found.expand(5, 4)
    got = attn.flex_attention(q, k, v, alibi, mask, enable_gqa=True, return_lse=True)
    compare(got, want)
    # Without holes the compiler finds the blocks, and without whole blocks there are no lists.
    assert door.find_mask(block(window)).lists is None
    counts, indices = (
        torch.tensor([[[1, 1]]], dtype=torch.int32),
        torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32),
    )
    alone = host.BlockMask.from_kv_blocks(
        torch.zeros_like(counts),
        indices,
        counts,
        indices,
        BLOCK_SIZE=128,
        mask_mod=causal,
        seq_lengths=(256, 256),
    )
    # Key heads that one query head has: blocks that its list does not name are never 0 times NaN.
    k[0, 0, :128] = v[0, 0, :128] = torch.nan
    o = attn.flex_attention(q[:, :1, :128].repeat(1, 1, 2, 1), k[:, :1], v[:, :1], block_mask=alone)
    assert o[0, 0, :128].isfinite().all() and o[0, 0, 128:].isnan().all()


@needs_aux
def test_masks_of_heads_and_results():
    """A mask of each batch and head, a scale, an aux request, bfloat16 and a shared batch of keys."""

    def by_head(b, h, q_idx, kv_idx):
        return (q_idx + 30 * h + 10 * b >= kv_idx) & (kv_idx >= 0)

    q, k, v = make()
    got, aux = attn.flex_attention(
        q, k[:1], v[:1], None, block(by_head, 2, 4), 0.3, return_aux=host.AuxRequest(lse=True), kernel_options={"BLOCK_M": 64}
    )  # fmt: skip
    compare(
        (got, aux.lse),
        compute(q, k[:1].expand(2, -1, -1, -1), v[:1].expand(2, -1, -1, -1), by_head, None, 0.3),
    )
    q, k, v = make(1, 1, 1, 64, torch.bfloat16)
    assert attn.flex_attention(q, k, v).dtype == torch.bfloat16


@needs_aux
def test_refusals():
    q, k, v = make(kv_heads=2)
    mask = block(causal)
    without = block(causal)
    without.mask_mod = None
    for options, message in (
        ({}, "expected 4 heads as query, got 2; enable_gqa=True"),
        ({"block_mask": without, "enable_gqa": True}, "expected one with a mask_mod, .* got NoneType"),
        ({"enable_gqa": "yes"}, "enable_gqa: expected True or False, got 'yes'"),
        (
            {"block_mask": causal, "enable_gqa": True},
            "block_mask: expected a BlockMask, got function",
        ),
        (
            {"block_mask": block(causal, 3, 1), "enable_gqa": True},
            "block_mask: expected batch of 1 or 2, got 3",
        ),
        (
            {"kernel_options": {"warps": 3}, "enable_gqa": True},
            "no option of FlexAttention is called 'warps'",
        ),
        (
            {"return_aux": host.AuxRequest(max_scores=True), "enable_gqa": True},
            "expected lse alone",
        ),
    ):
        with pytest.raises(attn.ArgumentError, match=message):
            attn.flex_attention(q, k, v, **options)
    with pytest.raises(
        attn.ArgumentError,
        match="expected one for 100 queries and 260 keys, got one for 200 and 260",
    ):
        attn.flex_attention(q[:, :, :100], k, v, block_mask=mask, enable_gqa=True)
    with pytest.raises(attn.ArgumentError, match='tensor "query": expected a torch tensor of four'):
        attn.flex_attention(q[0], k, v)
    with pytest.raises(attn.ArgumentError, match="no backward pass"):
        attn.flex_attention(q.requires_grad_(), k, v, enable_gqa=True)
