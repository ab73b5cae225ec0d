"""Outputs of `attn.attention` of 8 and 4 bits, with scales of their columns, and its largest result,
on the simulator."""

import attn
import numpy as np
import pytest
from attn.errors import ArgumentError

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("without_gpu")


def make(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(torch.float16)


def attend(q, k, v, **options):
    """Results in float64."""
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1).double() for each in (k, v))
    weights = (q.double() @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (weights @ v).numpy()


OPERANDS = make(2, 2, 20, 64), make(2, 1, 40, 64, seed=1), make(2, 1, 40, 64, seed=2)
WANT = attend(*OPERANDS)


def check_pairs(o, scales, want, factor=1.0, layout="linear"):
    most = np.abs(want.reshape(*want.shape[:-1], -1, 16)).max(-1).repeat(16, -1)
    assert (abs(np.asarray(attn.unpack_nvfp4(o, scales, factor, layout)) - want) <= 0.18 * most + 2e-3).all()


def check_bytes(o, scales, want):
    np.testing.assert_allclose(np.asarray(attn.unpack_fp8(o, scales)), want, rtol=0.07, atol=4e-3)


def test_factor():
    """The bits of what the same call gives in f32."""
    exact = attn.attention(*OPERANDS, out_type="float32")
    np.testing.assert_allclose(exact, WANT, atol=2e-3)
    o = attn.attention(*OPERANDS, out_scale=16.0)
    assert o.dtype == torch.float8_e4m3fn
    assert torch.equal(o.float(), (16 * exact).to(torch.float8_e4m3fn).float())


def test_groups():
    check_bytes(*attn.attention(*OPERANDS, out_group=32), WANT)
    o, lse, scales = attn.attention(*OPERANDS, out_type=torch.float8_e5m2, out_group=64, lse=True)
    assert o.dtype == torch.float8_e5m2 and lse.shape == (2, 2, 20) and scales.shape == (2, 2, 20, 1)
    check_pairs(*attn.attention(*OPERANDS, out_type="f4E2M1FN", out_group=16, out_scale=3.0), WANT, 3.0)


@pytest.mark.skipif(not hasattr(torch, "float8_e8m0fnu"), reason="torch 2.7 has the type")
def test_tiles():
    o, scales = attn.attention(*OPERANDS, out_group=32, out_scale_type="float8_e8m0fnu")
    assert scales.dtype == torch.float8_e8m0fnu
    check_bytes(o, scales, WANT)
    o, scales = attn.attention(*OPERANDS, out_type="f4E2M1FN", out_group=16, out_scale_tiles=True)
    assert scales.shape == (128, 8)
    tokens = WANT.swapaxes(1, 2).reshape(40, -1)
    check_pairs(o.transpose(1, 2).reshape(40, -1), scales, tokens, layout="128x4")


def test_given_and_strided():
    q, k, v = (each.transpose(1, 2).contiguous().transpose(1, 2) for each in OPERANDS)
    o, scales = attn.attention(q, k, v, out_type="f4E2M1FN", out_group=16)
    assert o.stride(1) < o.stride(2) and scales.stride(1) < scales.stride(2)
    check_pairs(o, scales, WANT)
    out = torch.empty(2, 2, 40, 64, dtype=torch.float8_e4m3fn)[:, :, ::2]
    out_scales = torch.empty(2, 2, 20, 4)[..., :2]
    results = attn.attention(q, k, v, out=out, out_scales=out_scales)
    assert results[0] is out and results[1] is out_scales
    check_bytes(out.contiguous(), out_scales.contiguous(), WANT)


def test_packed():
    q, k, v = make(22, 2, 64), make(40, 1, 64, seed=1), make(40, 1, 64, seed=2)
    counts = [torch.tensor(each, dtype=torch.int32) for each in ([0, 7, 20], [0, 30, 40])]
    o, scales = attn.attention(
        q, k, v, cu_seqlens_q=counts[0], cu_seqlens_k=counts[1], out_group=16, out_type="f8E4M3FN"
    )
    for begin, end, first, last in ((0, 7, 0, 30), (7, 20, 30, 40)):
        part = (q[begin:end], k[first:last], v[first:last])
        want = attend(*(each.transpose(0, 1)[None] for each in part))[0].swapaxes(0, 1)
        check_bytes(o[begin:end].contiguous(), scales[begin:end].contiguous(), want)
    assert o[20:].float().isnan().all() and scales[20:].isnan().all()


def attend_packed(q, counts, **options):
    k, v = make(40, 1, 64, seed=1), make(40, 1, 64, seed=2)
    return attn.attention(q, k, v, cu_seqlens_q=counts, cu_seqlens_k=2 * counts, **options)


def read_pages(call, q, counts, **options):
    pools = make(6, 16, 1, 64, seed=3), make(6, 16, 1, 64, seed=4)
    table = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    return call(q, *pools, table, counts[1:] + 20, **options)


#: Calls, rows of q that some sequence has, and where results have these.
CALLS = {
    "attention": (attend_packed, np.s_[:20], np.s_[:, :20]),
    "prefill": (lambda q, counts, **options: read_pages(attn.prefill, q, counts, cu_seqlens_q=counts,
                max_seqlen_q=13, **options), np.s_[:20], np.s_[:20]),
    "decode": (lambda q, counts, **options: read_pages(attn.decode, q[:2], counts, **options),
               np.s_[:2], np.s_[:2]),
}  # fmt: skip


@pytest.mark.parametrize(
    "options", [{}, {"out_group": 16}, {"out_type": "f4E2M1FN", "out_group": 16, "out_scale_tiles": True}]
)
@pytest.mark.parametrize("door", CALLS)
def test_what_is_not_written(door, options):
    """Rows that no sequence has, and padding of scales in tiles, stay as they were in the caller's
    tensors."""
    call, rows, rows_of_lse = CALLS[door]
    operands = make(22, 2, 64), torch.tensor([0, 7, 20], dtype=torch.int32)
    made = call(*operands, lse=True, **options)
    out, lse, *scales = (each.view(torch.uint8).clone().fill_(0x3C).view(each.dtype) for each in made)
    given = call(*operands, out=out, lse=lse, **({"out_scales": scales[0]} if scales else {}))
    written = [np.zeros(each.shape, np.uint8) for each in made]
    written[0][rows] = written[1][rows_of_lse] = 1
    if len(made) == 3 and "out_scale_tiles" in options:
        written[2] = attn.tile_scales(np.ones((len(made[0][rows]), 8), np.uint8))
    elif len(made) == 3:
        written[2][rows] = 1
    for each, wanted, is_there in zip(given, made, written, strict=True):
        bits, wanted = (one.view(torch.uint8).reshape(*one.shape, -1) for one in (each, wanted))
        there = torch.from_numpy(is_there).bool()
        assert torch.equal(bits[there], wanted[there]) and (bits[~there] == 0x3C).all()


@pytest.mark.parametrize("options", [{}, {"out_scale": 24.0}, {"out_type": "f4E2M1FN", "out_group": 16}])
def test_amax(options):
    """The bits of the largest result in f32, and what was there before."""
    exact = attn.attention(*OPERANDS, out_type="float32")
    amax = torch.zeros(1)
    attn.attention(*OPERANDS, amax=amax, **options)
    assert amax.item() == exact.abs().max().item()
    amax.fill_(100)
    attn.attention(*OPERANDS, amax=amax, **options)
    assert amax.item() == 100


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_amax_of_no_numbers(value):
    q, k, v = (each.clone() for each in OPERANDS)
    v[0, 0, 3, 5] = value
    amax = torch.zeros(1)
    attn.attention(q, k, v, amax=amax)
    np.testing.assert_equal(amax.item(), value)


REFUSED = {
    "out_group: expected none with an output of f16": {"out_group": 16, "out_type": "float16"},
    "out_scale: expected one with an output of f8E4M3FN": {"out_type": "float8_e4m3fn"},
    "out_group: expected a divisor of 64 columns, got 7": {"out_group": 7},
    "out_group: expected 16 with an output of f4E2M1FN, got none": {"out_type": "f4E2M1FN"},
    "out_scale_tiles: expected out_group beside it": {"out_scale_tiles": True},
    "out_scale_type: expected out_group beside it": {"out_scale_type": "float32"},
    "out_scale_tiles: expected out_scale_type=f8E8M0FNU": {"out_group": 32, "out_scale_tiles": True},
    "out_scale_type: expected f32 or f8E8M0FNU, got f16": {"out_group": 32, "out_scale_type": "f16"},
    "out_type: expected none beside out": {"out": torch.empty(0), "out_type": "float16"},
    "out_group: expected out_scales beside out": {"out": torch.empty(0), "out_group": 16},
    'tensor "out": expected a tensor': {"out_scales": torch.empty(0)},
    'tensor "amax": expected elements of f32': {"amax": torch.zeros(1, dtype=torch.float16)},
    'tensor "amax": expected shape': {"amax": torch.zeros(2)},
    "pad: expected none beside outputs": {"pad": True, "amax": torch.zeros(1)},
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text):
    with pytest.raises(ArgumentError, match=text.replace("(", r"\(")):
        attn.attention(*OPERANDS, **REFUSED[text])


def test_given_outputs_that_do_not_fit():
    def call(text, dtype, scales, **options):
        columns = 32 if dtype == torch.uint8 else 64
        out = torch.empty(2, 2, 20, columns, dtype=dtype)
        with pytest.raises(ArgumentError, match=text):
            attn.attention(*OPERANDS, out=out, out_scales=scales, **options)

    call("out_group: expected 16 with", torch.uint8, None)
    call("out_scales: expected none with an output of f16", torch.float16, torch.empty(2, 2, 20, 4))
    call("out_scale: expected none beside scales", torch.float8_e5m2, torch.empty(2, 2, 20, 4),
         out_scale=2.0)  # fmt: skip
    call("expected elements of f8E4M3FN, got f32", torch.uint8, torch.empty(2, 2, 20, 4))
    call("the shape of o but for its columns", torch.float8_e5m2, torch.empty(2, 2, 21, 4))
    call("a number of columns that divides 64, got 5", torch.float8_e5m2, torch.empty(2, 2, 20, 5))
    call("expected 16, as out_scales have, got 32", torch.float8_e5m2, torch.empty(2, 2, 20, 4),
         out_group=32)  # fmt: skip
    call("expected 16 with an output of f4E2M1FN, got 32", torch.uint8,
         torch.empty(2, 2, 20, 2, dtype=torch.float8_e4m3fn))  # fmt: skip
    tiles = torch.empty(128, 8, dtype=torch.float8_e4m3fn)
    call("out_scales\": expected shape", torch.uint8, tiles[:, :4].contiguous())
    call("out_scale: expected none with an output of f16", torch.float16, None, out_scale=2.0)
