"""Outputs with scales of `attn.decode`, `attn.mla_decode` and `attn.prefill`, on the simulator."""

import attn
import numpy as np
import pytest
from test_decode import (
    DIM,
    HEADS,
    VALUES,
    attend,
    attend_latent,
    check,
    make_batch,
    make_latent,
    make_plan,
    refuse,
)
from test_decode_narrow import from_e4m3
from test_prefill import attend_packed, pack

pytestmark = pytest.mark.usefixtures("without_gpu")


def check_groups(o, scales, want, group):
    """Numbers of e4m3 in units of scales."""
    assert scales.dtype == np.float32 and scales.shape == (*want.shape[:-1], want.shape[-1] // group)
    np.testing.assert_allclose(from_e4m3(o) * scales.repeat(group, -1), want, rtol=0.07, atol=4e-3)


def check_pairs(o, scales, want, factor=1.0):
    """Numbers of f4E2M1FN, two in a byte."""
    assert o.dtype == np.uint8 and o.shape == (*want.shape[:-1], want.shape[-1] // 2)
    most = np.abs(want.reshape(*want.shape[:-1], -1, 16)).max(-1).repeat(16, -1)
    assert (abs(attn.unpack_nvfp4(o, scales, factor) - want) <= 0.18 * most + 2e-3).all()


def test_decode():
    batch = make_batch([100, 0, 17])
    want, log = attend(*batch)
    o, lse, scales = attn.decode(*batch, out_group=DIM // 2, lse=True)
    check_groups(o, scales, want, DIM // 2)
    check([lse], [log])
    o, scales = attn.decode(*batch, out_type="f4E2M1FN", out_group=16, out_scale=3.0, kv_splits=3)
    check_pairs(o, scales, want, 3.0)


def test_several_queries():
    batch = make_batch([100, 33], queries=3)
    want = attend(*batch)[0]
    check_pairs(*attn.decode(*batch, out_type="f4E2M1FN", out_group=16), want)


def test_latent():
    q, pool, table, lengths = make_latent([100, 0, 17])
    want = attend_latent(q, pool, table, lengths, 0.125)[0]
    options = {"value_dim": VALUES, "scale": 0.125}
    check_groups(*attn.mla_decode(q, pool, table, lengths, out_group=32, **options), want, 32)


def test_prefill():
    """Rows behind the last sequence are NaN, those of scales too."""
    q, counts = pack([33, 0, 17], spare=3)
    batch = make_batch([100, 0, 17])[1:]
    want = attend_packed(q, counts, *batch)[0]
    o, scales = attn.prefill(q, *batch, counts, max_seqlen_q=33, out_group=DIM)
    check_groups(o[:50], scales[:50], want, DIM)
    assert o.shape == q.shape and (o[50:] == 0xFF).all() and np.isnan(scales[50:]).all()
    o, scales = attn.prefill(q, *batch, counts, max_seqlen_q=33, out_type="f4E2M1FN", out_group=16)
    check_pairs(o[:50], scales[:50], want)


PAIRS = {"out_type": "f4E2M1FN", "out_group": 16}
POWERS = {"out_group": 32, "out_scale_type": "float8_e8m0fnu"}


def check_tiles(results, wanted, rows=None):
    """Results whose scales are a matrix of tokens by heads' groups in tiles, beside those whose
    scales have a row each; only the first `rows` tokens have some."""
    (o, tiles), (same, scales) = results, wanted
    np.testing.assert_array_equal(o, same)
    tokens = scales.swapaxes(1, 2) if scales.ndim == 4 else scales
    matrix = tokens.reshape(-1, scales.shape[-1] * scales.shape[1]).view(np.uint8)
    there = np.zeros_like(matrix)
    there[:rows] = 1
    is_there = attn.tile_scales(there) == 1
    assert tiles.shape == is_there.shape
    np.testing.assert_array_equal(tiles.view(np.uint8)[is_there], attn.tile_scales(matrix)[is_there])


@pytest.mark.parametrize("kind", [PAIRS, POWERS])
def test_tiles(kind):
    """Of queries of their own, of merged runs, and of packed queries; latent rows are merged."""
    batch = make_batch([100, 0, 17])
    want = attend(*batch)[0]
    for options in (kind, kind | {"kv_splits": 3}):
        linear = attn.decode(*batch, **options)
        check_tiles(attn.decode(*batch, **options, out_scale_tiles=True), linear)
    if kind is POWERS:
        o, scales = linear
        units = np.exp2(scales.astype(np.float32) - 127).repeat(32, -1)
        np.testing.assert_allclose(from_e4m3(o) * units, want, rtol=0.07, atol=4e-3)
        return
    o, tiles = attn.decode(*batch, **kind, out_scale_tiles=True)
    whole = attn.unpack_nvfp4(o.reshape(3, -1), tiles, layout="128x4")
    np.testing.assert_array_equal(whole.reshape(want.shape), attn.unpack_nvfp4(*attn.decode(*batch, **kind)))
    batch = make_batch([100, 33], queries=3)
    check_tiles(attn.decode(*batch, **kind, out_scale_tiles=True), attn.decode(*batch, **kind))
    latent = (*make_latent([100, 0, 17]),)
    options = kind | {"value_dim": VALUES, "scale": 0.125}
    linear = attn.mla_decode(*latent, **options)
    check_tiles(attn.mla_decode(*latent, **options, out_scale_tiles=True), linear)
    q, counts = pack([33, 0, 17], spare=3)
    packed = (q, *make_batch([100, 0, 17])[1:], counts)
    options = kind | {"max_seqlen_q": 33}
    linear = attn.prefill(*packed, **options)
    check_tiles(attn.prefill(*packed, **options, out_scale_tiles=True), linear, rows=50)


def test_plan():
    """Scales in tiles, and the largest result, which joins that of the call before."""
    batch = make_batch([100, 0, 17])
    plan = make_plan(out_type="float8_e4m3fn", **POWERS, out_scale_tiles=True, amax=True)
    plan.plan(batch[4], batch[3])
    amax = np.zeros(1, np.float32)
    check_tiles(plan.run(*batch[:3], amax=amax), attn.decode(*batch, **POWERS))
    np.testing.assert_allclose(amax, abs(attend(*batch)[0]).max(), rtol=2e-3)
    amax[0] = 1000
    plan.run(*batch[:3], amax=amax)
    assert amax[0] == 1000
    refuse('tensor "amax": expected a tensor, as the plan was made', plan.run, *batch[:3])
    refuse('tensor "amax": expected shape [1], got [2]', plan.run, *batch[:3], amax=np.zeros(2, np.float32))


def find_largest(call, *arguments, **options):
    """The largest result that a call finds, and that of its f32 results; what was there before
    joins it."""
    amax = np.zeros(1, np.float32)
    exact = call(*arguments, **options, out_type="float32")
    call(*arguments, **options, amax=amax)
    found = amax[0]
    amax[0] = 1000
    call(*arguments, **options, amax=amax)
    assert amax[0] == 1000
    return found, abs(exact)


def test_usual_type_of_a_plan():
    """As calls have it: e4m3 where there is a factor or a scale."""
    form = {"batch": 2, "heads": 2, "kv_heads": 1, "dim": 32, "page_size": 16, "max_pages": 2}
    for given in ({"out_scale": 2.0}, {"out_group": 16}):
        plan = attn.DecodePlan(**form, dtype="float16", **given)
        assert plan._problem.out_type == "f8E4M3FN"


def test_amax():
    """Of merged results where keys are cut into runs."""
    for options in ({}, {"kv_splits": 3}):
        found, exact = find_largest(attn.decode, *make_batch([100, 0, 17]), **options)
        assert found == exact.max()
    found, exact = find_largest(
        attn.mla_decode, *make_latent([100, 0, 17]), value_dim=VALUES, scale=0.125
    )
    assert found == exact.max()
    q, counts = pack([33, 0, 17], spare=3)
    arguments = (q, *make_batch([100, 0, 17])[1:], counts)
    found, exact = find_largest(attn.prefill, *arguments, max_seqlen_q=33)
    assert found == exact[:50].max()


def test_amax_beside_scales():
    batch = make_batch([100, 0, 17])
    want = attend(*batch)[0]
    amax = np.zeros(1, np.float32)
    o, scales = attn.decode(*batch, out_type="f4E2M1FN", out_group=16, out_scale=3.0, amax=amax)
    check_pairs(o, scales, want, 3.0)
    np.testing.assert_allclose(amax, abs(want).max(), rtol=2e-3)


def test_no_queries():
    batch = make_batch([17])
    empty = (batch[0][:0], *batch[1:3], batch[3][:0], batch[4][:0])
    o, scales = attn.decode(*empty, out_type="f4E2M1FN", out_group=16)
    assert o.shape == (0, HEADS, DIM // 2) and scales.shape == (0, HEADS, DIM // 16)


def test_refusals():
    batch = make_batch([17])
    refuse("elements of f32", attn.decode, *batch, amax=np.zeros(1, np.float16))
    refuse("shape", attn.decode, *batch, amax=np.zeros(2, np.float32))
    refuse("pad: expected none beside amax", attn.decode, *batch, amax=np.zeros(1, np.float32), pad=True)
    refuse("out_group: expected a divisor of 64 columns, got 40", attn.decode, *batch, out_group=40)
    refuse("out_group: expected none with an output of f32", attn.decode, *batch,
           out_type="float32", out_group=16)  # fmt: skip
    refuse("out_group: expected 16 with an output of f4E2M1FN, got 32", attn.decode, *batch,
           out_type="f4E2M1FN", out_group=32)  # fmt: skip
    refuse("out_scale_tiles: expected out_group beside it", attn.decode, *batch, out_scale_tiles=True)
    refuse("out_scale_tiles: expected out_scale_type=f8E8M0FNU beside it, got f32", attn.decode,
           *batch, out_group=16, out_scale_tiles=True)  # fmt: skip
    refuse("out_group: expected 16 with an output of f4E2M1FN, got none", attn.decode, *batch,
           out_type="f4E2M1FN")  # fmt: skip
    refuse("out_scale: expected none beside scales of the output", attn.decode, *batch,
           out_scale=2.0, out_group=16)  # fmt: skip
    refuse("pad: expected none beside out_group", attn.decode, *batch, pad=True, out_group=16)
    refuse('tensor "out": expected a tensor to write to, as the other output', attn.decode, *batch,
           out_scales=np.zeros((1, HEADS, 4), np.float32))  # fmt: skip
    q, counts = pack([3])
    refuse("run_keys: expected none beside scales of the output in attn.prefill", attn.prefill, q,
           *batch[1:], counts, max_seqlen_q=3, run_keys=64, out_group=DIM)  # fmt: skip
    refuse("out_type: expected none beside out, whose own it is", attn.decode, *batch,
           out=batch[0], out_type="float32")  # fmt: skip
    refuse("out_group: expected out_scales beside out, got none", attn.decode, *batch,
           out=batch[0], out_group=16)  # fmt: skip


def test_tensors_of_torch():
    """Those of the host go through the operators, also into the caller's."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    batch = make_batch([100, 17])
    want = attend(*batch)[0]
    tensors = [torch.from_numpy(each) for each in batch]
    o, scales = attn.decode(*tensors, out_type="f4E2M1FN", out_group=16)
    assert o.dtype == torch.uint8 and scales.dtype == torch.float8_e4m3fn
    check_pairs(o.numpy(), scales.view(torch.uint8).numpy(), want)
    out, units = torch.empty_like(o), torch.empty_like(scales)
    got = attn.decode(*tensors, out=out, out_scales=units)
    assert got[0] is out and got[1] is units
    assert torch.equal(out, o) and torch.equal(units.view(torch.uint8), scales.view(torch.uint8))
    linear = [each.view(torch.uint8).numpy() for each in (o, scales)]
    o, tiles = attn.decode(*tensors, **PAIRS, out_scale_tiles=True)
    check_tiles([each.view(torch.uint8).numpy() for each in (o, tiles)], linear)
    out, units = torch.empty_like(o), torch.empty_like(tiles)
    attn.decode(*tensors, out=out, out_scales=units, out_group=16)
    check_tiles([each.view(torch.uint8).numpy() for each in (out, units)], linear)
    o, lse, scales = attn.decode(*tensors, out_group=DIM, lse=True)
    assert o.dtype == torch.float8_e4m3fn
    check_groups(o.view(torch.uint8).numpy(), scales.numpy(), want, DIM)
    with pytest.raises(attn.ArgumentTypeError, match='"out_scales": expected a torch tensor as q'):
        attn.decode(*tensors, out=out, out_scales=batch[0])


@pytest.mark.parametrize("name", ["float32", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_torch(name):
    """Outputs of other elements than q's, which the simulator rounds to."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dtype = getattr(torch, name)
    batch = make_batch([100, 17])
    tensors = [torch.from_numpy(each) for each in batch]
    options = {"out_scale": 4.0} if dtype.itemsize == 1 else {}
    o = attn.decode(*tensors, **options, out_type=dtype)
    want = attn.decode(*batch, **options, out_type=name)
    assert o.dtype == dtype
    np.testing.assert_array_equal(o.view(torch.uint8).numpy(), want.view(np.uint8))
    out = torch.empty_like(o)
    assert attn.decode(*tensors, **options, out=out) is out
    assert torch.equal(out.view(torch.uint8), o.view(torch.uint8))


def test_refusals_of_torch():
    """Outputs in host memory are those that a launch on a GPU takes."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    batch = make_batch([17])
    tensors = [torch.from_numpy(each) for each in batch]
    q = tensors[0]
    narrow, scales = torch.empty(q.shape, dtype=torch.float8_e4m3fn), torch.empty(1, HEADS, 1)
    refuse('tensor "out": expected f16, bf16, f32', attn.decode, *tensors,
           out=q.int(), out_scales=scales)  # fmt: skip
    refuse('tensor "out": expected shape', attn.decode, *tensors, out=q[:, :-1].clone())
    refuse('tensor "out_scales": expected elements of f32', attn.decode, *tensors,
           out=narrow, out_scales=scales.half())  # fmt: skip
    refuse('tensor "out_scales": expected the shape of o but for its columns', attn.decode,
           *tensors, out=narrow, out_scales=scales[:, :-1])  # fmt: skip
    refuse('tensor "out_scales": expected a number of columns that divides', attn.decode,
           *tensors, out=narrow, out_scales=torch.empty(1, HEADS, 5))  # fmt: skip
    refuse('tensor "lse": expected elements of f32', attn.decode, *tensors, out=torch.empty_like(q),
           lse=torch.empty(1, HEADS).half())  # fmt: skip
