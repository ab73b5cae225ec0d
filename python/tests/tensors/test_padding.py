"""Head dimensions and strides that no kernel takes: errors, or with pad=True copies."""

import warnings

import attn
import numpy as np
import pytest
from attn.tensors import padding
from test_decode import HEADS, KV_HEADS, PAGES, check, make_batch, refuse
from test_decode import attend as attend_pages

pytestmark = pytest.mark.usefixtures("without_gpu")


@pytest.mark.parametrize(("dim", "dv"), [(46, None), (59, 63), (64, 100), (1, 8)])
def test_compiled(dim, dv):
    """Runs and simulations take arrays of the dimension that was stated."""
    rng = np.random.default_rng(dim)
    q, k = (rng.standard_normal((1, 2, 24, dim)).astype(np.float16) for _ in "qk")
    v = rng.standard_normal((1, 2, 24, dv or dim)).astype(np.float16)
    kernel = attn.compile(q=(1, 2, 24, dim), dtype="float16", dv=dv, causal=True, pad=True)
    result = kernel.simulate(q=q, k=k, v=v)
    assert result.passed, result.text
    scores = np.where(
        np.tri(24) > 0, q.astype(float) @ k.swapaxes(2, 3).astype(float) * dim**-0.5, -np.inf
    )
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v.astype(float)
    for o in (result["o"], kernel.run(q=q, k=k, v=v)["o"]):
        assert o.shape == v.shape
        np.testing.assert_allclose(o, want, atol=4e-3)
    if dv is None:
        refuse('array "q": expected 46 columns, of which pad makes 48, got 48', kernel.run,
               q=np.zeros((1, 2, 24, 48), np.float16), k=k, v=v)  # fmt: skip


def test_compiled_as_it_is():
    """Where nothing is missing the kernel is that without the argument."""
    for options in ({"q": (1, 2, 32, 64), "dtype": "float16"}, {"q": "1x2x32x64xf16", "dv": 32}):
        assert attn.compile(**options, pad=True) is attn.compile(**options)
    for options, message in (
        (
            {"problem": attn.compile(q="1x2x32x64xf16").mlir("problem")},
            "pad: expected a problem as q=",
        ),
        ({"q": "1x2x32x90xf16", "rope_dim": 20}, "pad: expected none beside rope_dim"),
        ({"q": "1x2x32x64xf16"}, "pad: expected True or False, got 3"),
    ):
        refuse(message, attn.compile, **options, pad=3 if "False" in message else True)


def make_pages(dim, dtype=np.float16):
    q, k, v, table, lengths = make_batch([70, 3])
    rng = np.random.default_rng(1)
    q = rng.standard_normal((2, HEADS, dim)).astype(dtype)
    k, v = (rng.standard_normal((PAGES, 16, KV_HEADS, dim)).astype(dtype) for _ in "kv")
    return q, k, v, table, lengths


@pytest.mark.parametrize("dim", [46, 100])
def test_pages(dim):
    batch = make_pages(dim)
    message = f"expected a head dimension that is a multiple of 8, got {dim}; pad to {-(-dim // 8) * 8} with zeros"
    refuse(f'tensor "k_cache": {message}', attn.decode, *batch)
    want = attend_pages(*batch)
    check(attn.decode(*batch, lse=True, pad=True), want)
    counts = np.int32([0, 1, 2])
    check(attn.prefill(*batch, counts, max_seqlen_q=1, lse=True, pad=True), want)
    state = (np.zeros(batch[0].shape, np.float16), np.full(batch[0].shape[:2], -np.inf, np.float32))
    check([attn.decode(*batch, init=state, pad=True)], want[:1])
    rows = np.ones((*batch[1].shape[:3], 1), np.float32)
    refuse(
        "pad: expected none beside k_scales",
        attn.decode,
        *batch,
        k_scales=rows,
        v_scales=rows,
        pad=True,
    )
    refuse("pad: expected True or False, got 2", attn.decode, *batch, pad=2)
    refuse(
        'tensor "v_cache": expected a tensor, got None',
        attn.decode,
        *batch[:2],
        None,
        *batch[3:],
        pad=True,
    )


def make_latent_pages(value_dim, rope):
    rng = np.random.default_rng(2)
    _, _, _, table, lengths = make_batch([70, 3])
    q = rng.standard_normal((2, 16, value_dim + rope)).astype(np.float16)
    pool = rng.standard_normal((PAGES, 16, value_dim + rope)).astype(np.float16)
    keys = pool[:, :, None]
    want = attend_pages(
        q * (0.125 * (value_dim + rope) ** 0.5), keys, keys[..., :value_dim], table, lengths
    )
    return (q, pool, table, lengths), want


@pytest.mark.parametrize(("value_dim", "rope"), [(60, 30), (64, 28), (50, 32)])
def test_latent_pages(value_dim, rope):
    """Columns of values and rotated ones are widened apart, in one tensor or two."""
    batch, want = make_latent_pages(value_dim, rope)
    options = {"value_dim": value_dim, "scale": 0.125, "lse": True}
    check(attn.mla_decode(*batch, **options, pad=True), want)
    q, pool, table, lengths = batch
    parts = {"k_rope": pool[..., value_dim:], "q_rope": q[..., value_dim:]}
    apart = (q[..., :value_dim], pool[..., :value_dim], table, lengths)
    check(attn.mla_decode(*apart, **options, **parts, pad=True), want)
    refuse(
        "pad: expected none beside k_scales",
        attn.mla_decode,
        *batch,
        **options,
        k_scales=q,
        pad=True,
    )
    refuse('tensor "kv_cache": expected a tensor, got None', attn.mla_decode, q, None, table, lengths,
           **options, pad=True)  # fmt: skip


def test_plans():
    """A plan is made for wide columns; each run has those that were stated."""
    dim = 46
    q, k, v, table, lengths = make_pages(dim)
    options = {
        "batch": 2,
        "page_size": 16,
        "max_pages": table.shape[1],
        "dtype": "float16",
        "lse": True,
    }
    plan = attn.DecodePlan(heads=HEADS, kv_heads=KV_HEADS, dim=dim, pad=True, **options)
    plan.plan(lengths, table)
    check(plan.run(q, k, v), attend_pages(q, k, v, table, lengths))
    (latent_q, pool, *pages), want = make_latent_pages(60, 30)
    latent = {"latent": True, "heads": 16, "dim": 90, "value_dim": 60, "scale": 0.125}
    plan = attn.DecodePlan(**latent, pad=True, **options)
    plan.plan(pages[1], pages[0])
    check(plan.run(latent_q, pool), want)
    for more, message in (
        ({"out_group": 2}, "pad: expected none beside out_group"),
        (
            {"scales": "rows", "kv_dtype": "float8_e4m3fn"},
            "pad: expected none beside scales of rows",
        ),
        ({"row_bytes": 256, "rope_apart": True}, "pad: expected none beside row_bytes"),
        ({"pad": 2}, "pad: expected True or False, got 2"),
    ):
        refuse(message, attn.DecodePlan, **{**latent, "pad": True, **options, **more})
    whole = attn.DecodePlan(heads=HEADS, kv_heads=KV_HEADS, dim=48, pad=True, **options)
    whole.plan(lengths, table)
    wide = make_pages(48)
    check(whole.run(*wide[:3]), attend_pages(*wide))


def test_copies_of_torch(monkeypatch):
    """A tensor that a kernel takes is not copied; of others a remark says which and why."""
    torch = pytest.importorskip("torch")
    q, k = torch.randn(1, 2, 24, 46).half(), torch.randn(1, 2, 24, 46).half()
    v = torch.randn(1, 2, 24, 64).half()
    with pytest.warns(
        attn.CopyRemark, match=r"copied q \(46 columns as 48\), k \(46 columns as 48\)$"
    ):
        fitted, scale, dv, wide = padding.pad_operands({"q": q, "k": k, "v": v}, "k", "v", None)
    assert fitted["v"] is v and (dv, wide) == (64, 64) and scale == 46**-0.5
    assert torch.equal(fitted["q"][..., :46], q) and not fitted["q"][..., 46:].any()
    q = torch.randn(1, 2, 24, 67).half()[..., :64]
    turned = torch.randn(1, 2, 64, 24).half().mT
    with pytest.warns(
        attn.CopyRemark, match=r"copied q \(strides \[3216, 1608, 67, 1\]\), k \(strides"
    ):
        fitted, scale, *_ = padding.pad_operands({"q": q, "k": turned, "v": turned}, "k", "v", None)
    assert fitted["q"].is_contiguous() and torch.equal(fitted["q"], q) and scale is None
    assert fitted["k"].is_contiguous() and fitted["v"] is turned
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dense = torch.randn(1, 24, 2, 64).half().transpose(1, 2)
        fitted, *_ = padding.pad_operands({"q": dense, "k": dense, "v": dense}, "k", "v", 0.5)
    assert all(fitted[name] is dense for name in "qkv")
    narrow = torch.zeros(1, 2, 24, 20).to(torch.float8_e4m3fn)
    with pytest.warns(attn.CopyRemark):
        fitted, *_ = padding.pad_operands({"q": narrow, "k": narrow, "v": narrow}, "k", "v", None)
    assert fitted["q"].shape[-1] == 32 and fitted["q"].dtype == narrow.dtype


def test_prepared():
    """What attn.prepare compiles is what attn.attention with the same argument launches."""
    torch = pytest.importorskip("torch")
    q = torch.empty(1, 2, 24, 46, dtype=torch.float16, device="meta")
    refuse(
        "expected a head dimension that is a multiple of 8, got 46; pad to 48",
        attn.prepare,
        q,
        q,
        q,
        chip="sm_80",
    )
    with pytest.warns(attn.CopyRemark):
        attn.prepare(q, q, q, chip="sm_80", pad=True)
