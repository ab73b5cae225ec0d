"""out_mod as a Python function, and results of few bits, simulated: with float64, and bit for bit
with quantising the f32 results of the same plan."""

import attn
import numpy as np
import pytest
from attn.errors import ArgumentError, TraceError
from conftest import make_rng
from test_mods import attend

GATE = np.random.default_rng(7).standard_normal((2, 64)).astype(np.float32)
SIZES = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6])
#: All numbers of f8E4M3FN that are not below zero, by their bytes; the last one is NaN.
E4M3 = np.float32(
    [m * 2.0**-9 if e == 0 else (8 + m) * 2.0 ** (e - 10) for e in range(16) for m in range(8)]
)[:127]


def gated(result, b, h, q_idx, column):
    return result * GATE[h, column] + 0.25 * q_idx


def reference(result):
    heads, rows = result.shape[1:3]
    return result * GATE[:heads, None] + 0.25 * np.arange(rows)[:, None]


def draw(shape, keys):
    generator = make_rng()
    q = generator.standard_normal(shape).astype(np.float16)
    k, v = generator.standard_normal((2, shape[0], shape[1], keys, shape[3])).astype(np.float16)
    return {"q": q, "k": k, "v": v}


def round_to(numbers, x):
    """The indices of the nearest of `numbers`, of two as near of the even one; beyond the last one
    that one."""
    x = np.fmin(x, numbers[-1])
    upper = np.searchsorted(numbers, x).clip(1, len(numbers) - 1)
    below, above = x - numbers[upper - 1], numbers[upper] - x
    is_lower = (below < above) | ((below == above) & (upper % 2 == 1))
    return np.where(is_lower, upper - 1, upper)


def to_e4m3(x):
    byte = round_to(E4M3, abs(x)) | np.where(np.signbit(x), 128, 0)
    return np.where(np.isnan(x), 127, byte).astype(np.uint8)


@np.errstate(invalid="ignore", divide="ignore")
def quantise(wide, kind, out_scale):
    one = np.float32(1)
    if kind == "static":
        return to_e4m3(wide * np.float32(out_scale)), None
    group = OUTPUTS[kind]["out_group"]
    parts = wide.reshape(*wide.shape[:-1], -1, group)
    most = np.fmax.reduce(abs(parts), -1, keepdims=True)
    if kind == "groups":
        scale = np.where(most > 0, most * (one / np.float32(448)), one)
        return to_e4m3(parts * (one / scale)).reshape(wide.shape), scale[..., 0]
    if kind == "powers":
        bits = (most * (one / np.float32(448))).view(np.uint32)
        byte = np.where(most > 0, ((bits + 0x7FFFFF) >> 23).clip(1, 253), 127).astype(np.uint32)
        inverse = ((254 - byte) << 23).astype(np.uint32).view(np.float32)
        return to_e4m3(parts * inverse).reshape(wide.shape), byte[..., 0]
    factor = np.float32(out_scale)
    if kind == "beyond":
        parts, most, factor = parts * factor, most * factor, one
    byte = round_to(E4M3, most * (factor * (one / np.float32(6))))
    scale = E4M3[byte]
    inverse = np.where(scale > 0, one / np.where(scale > 0, scale, one), np.float32(0))
    scaled = parts * (inverse * factor)
    code = round_to(SIZES, abs(scaled)) | np.where(np.signbit(scaled), 8, 0)
    code = np.where(np.isnan(scaled), 7, code).reshape(wide.shape)
    return (code[..., 0::2] | code[..., 1::2] << 4).astype(np.uint8), byte[..., 0].astype(np.uint8)


@pytest.mark.parametrize("flags", [{}, {"causal": True, "mask_mod": lambda b, h, i, j: j % 5 != 1}])
def test_changes_results(flags):
    arrays = draw((1, 2, 40, 64), 40)
    kernel = attn.compile(q="1x2x40x64xf16", out_mod=gated, **flags)
    result = kernel.simulate(**arrays)
    assert result.passed, result.text
    mask = (lambda b, h, i, j: (j <= i) & (j % 5 != 1)) if flags else None
    wanted = reference(attend(*arrays.values(), mask_mod=mask))
    np.testing.assert_allclose(result["o"], wanted, rtol=2e-3, atol=4e-3)
    assert kernel.launch["problem"]["out_mod"]


#: What the results of a kind are made by.
OUTPUTS = {
    "static": {"out_type": "f8E4M3FN", "out_scale": 5.0},
    "groups": {"out_type": "f8E4M3FN", "out_group": 64},
    "nvfp4": {"out_type": "f4E2M1FN", "out_group": 16, "out_scale": 5.0},
    "powers": {"out_type": "f8E4M3FN", "out_group": 32, "out_scale_type": "float8_e8m0fnu"},
    # Results are multiplied by this factor, others join the scales.
    "beyond": {"out_type": "f4E2M1FN", "out_group": 16, "out_scale": 3e19},
}


#: Kinds whose kernels also look for the largest result.
WITH_AMAX = ("static", "nvfp4", "beyond")


def enlarge(result, b, h, q_idx, column):
    """Rows that a tile has beyond those of the problem would be the largest."""
    return attn.mods.where(q_idx > 32, 1e6, result * 3)


def shrink(result, b, h, q_idx, column):
    return attn.mods.where(q_idx > 32, 1e6, result * 1e-19)


def check_amax(results, whole):
    """It is the largest f32 result, whatever becomes of that; NaN is larger than all others."""
    most = abs(whole["o"]).max()
    np.testing.assert_array_equal([results["amax"], whole["amax"]], [[most]] * 2)


def check_bits(chip, kind, arrays, **settings):
    """Simulates the kernel and that of f32 results with its plan. Returns the results of both."""
    # CTAs that change one number are simulated side by side, which takes long.
    has_amax = kind in WITH_AMAX and (chip, kind) != ("sm_100a", "nvfp4")
    problem = {
        "q": f"1x2x33x{arrays['q'].shape[3]}xf16", "kv_len": 40, "causal": True, "chip": chip, "split_keys": False,
        "out_mod": shrink if kind == "beyond" else enlarge, "amax": has_amax,
    }  # fmt: skip
    narrow = attn.compile(**problem, **OUTPUTS[kind])
    text = attn.compile(**problem, out_type="f32").mlir("problem")
    text = text.replace("{mask =", f"{{plan = {narrow.plan}, mask =", 1)
    wide = attn.compile(text, chip=chip)
    assert wide.plan == narrow.plan
    results, whole = narrow.simulate(**arrays, **settings), wide.simulate(**arrays, **settings)
    assert results.passed and whole.passed, results.text + whole.text
    o, scales = quantise(whole["o"], kind, OUTPUTS[kind].get("out_scale", 1))
    np.testing.assert_array_equal(results["o"].view(np.uint8), o)
    if scales is not None:
        np.testing.assert_array_equal(results["o_scales"], scales)
    if has_amax:
        check_amax(results, whole)
    if kind in ("nvfp4", "powers"):
        check_tiles(attn.compile(**problem, **OUTPUTS[kind], out_scale_tiles=True), narrow, arrays, o, scales)
    return results, whole


def check_tiles(kernel, narrow, arrays, o, scales):
    """The kernel has the plan of `narrow`, and its scales are those in another order: tokens are
    rows and columns those of all heads."""
    assert kernel.plan == narrow.plan
    results = kernel.simulate(**arrays, verify=False)
    assert results.passed, results.text
    np.testing.assert_array_equal(results["o"].view(np.uint8), o)
    matrix = scales.swapaxes(1, 2).reshape(scales.shape[0] * scales.shape[2], -1).astype(np.uint8)
    is_there = attn.tile_scales(np.ones_like(matrix)) == 1
    assert results["o_scales"].shape == is_there.shape
    np.testing.assert_array_equal(results["o_scales"][is_there], attn.tile_scales(matrix)[is_there])


@pytest.mark.parametrize(
    "chip,dim,kind",
    [
        *(
            (*place, kind)
            for place in [("sm_80", 64), ("sm_90a", 128), ("sm_100a", 64)]
            for kind in ("static", "groups", "nvfp4", "powers")
        ),
        ("sm_90a", 128, "beyond"),
    ],
)
def test_bits_of_quantised_f32_results(chip, dim, kind):
    """Rows of 4 bits are exchanged between lanes where they have 128 columns."""
    arrays = draw((1, 2, 33, dim), 40)
    # A row that sees nothing but zeros, one with tiny results, and one with large ones.
    arrays["v"][0, 0, 0] = 0
    arrays["v"][0, 1, 0] *= 1e-4
    arrays["v"][0, 1, 1] *= 20
    results, whole = check_bits(chip, kind, arrays)
    if kind == "nvfp4":
        back = attn.unpack_nvfp4(results["o"], results["o_scales"], 5.0)
        most = abs(whole["o"]).reshape(1, 2, 33, dim // 16, 16).max(-1).repeat(16, -1)
        assert (abs(back - whole["o"]) <= 0.18 * most + 2e-3).all()
        assert not results["o"][0, 0, 0].any() and not results["o_scales"][0, 0, 0].any()


def draw_ties(factor):
    """Results that are nearly in the middle of two numbers of their group's scale, (batch, heads,
    queries, columns): so that each rounding of a product counts."""
    generator = make_rng()
    scale = np.float64(6) ** -1 * generator.uniform(1, 2, (2, 4, 1))
    unit = E4M3[round_to(E4M3, np.float32(scale * factor))] / factor
    middles = generator.choice([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], (2, 4, 16)) * unit
    ties = middles.astype(np.float32).view(np.int32) + generator.integers(-2, 3, middles.shape)
    ties = ties.astype(np.int32).view(np.float32)
    ties[..., 0] = (6 * scale)[..., 0]
    return ties.reshape(1, 2, 1, 64)


def check_ties(ties, factor, o, scales, chip, **flags):
    """Simulates a kernel whose results are `ties`, one by one."""
    table = ties[0, :, 0].copy()
    kernel = attn.compile(
        q="1x2x1x64xf16", kv_len=40, chip=chip, out_mod=lambda r, b, h, i, c: table[h, c] + 0 * r,
        **OUTPUTS["nvfp4"] | {"out_scale": factor}, **flags,
    )  # fmt: skip
    results = kernel.simulate(**draw((1, 2, 1, 64), 40), verify=False)
    np.testing.assert_array_equal(results["o"].view(np.uint8), o)
    np.testing.assert_array_equal(results["o_scales"], scales)


@pytest.mark.parametrize(
    "chip,flags", [("sm_80", {}), ("sm_90a", {}), ("sm_90a", {"kv_splits": 2}), ("sm_100a", {})]
)
def test_roundings_of_a_factor(chip, flags):
    """Where products with the factor come first some are rounded otherwise."""
    ties, o, scales, first = None, None, None, None
    while np.array_equal(o, first):
        ties = draw_ties(5.0)
        (o, scales), (first, _) = (quantise(ties, kind, 5.0) for kind in ("nvfp4", "beyond"))
    check_ties(ties, 5.0, o, scales, chip, **flags)


@pytest.mark.parametrize("chip", ["sm_80", "sm_100a"])
def test_power_of_two(chip):
    """Its products are exact, so that their order changes no bit."""
    factor = 2.0 ** make_rng().integers(-4, 9)
    ties = draw_ties(factor)
    o, scales = quantise(ties, "beyond", factor)
    for each, same in zip(quantise(ties, "nvfp4", factor), (o, scales), strict=True):
        np.testing.assert_array_equal(each, same)
    check_ties(ties, factor, o, scales, chip)


def test_largest_of_columns_that_there_are():
    """A tile has more of them."""
    past = attn.out_mod(lambda r, b, h, i, c: attn.mods.where(c > 39, 1e6, r))
    result = attn.compile(q="1x1x33x40xf16", amax=True, out_mod=past, schedule="tiled_d").simulate()
    assert result.passed and result["amax"][0] < 100, result.text


@pytest.mark.parametrize(
    "chip,kind",
    [
        *(("sm_80", kind) for kind in ("static", "groups", "nvfp4", "powers", "beyond")),
        *(("sm_90a", "static"), ("sm_90a", "groups"), ("sm_100a", "nvfp4"), ("sm_100a", "powers")),
    ],
)
def test_infinite_and_nan_results(chip, kind):
    arrays = draw((1, 2, 33, 64), 40)
    # Rows from 30, and 31, on see them.
    arrays["v"][0, 0, 30, 3] = np.inf
    arrays["v"][0, 1, 31, 20] = np.nan
    results, whole = check_bits(chip, kind, arrays, verify=False)
    assert np.isinf(whole["o"][0, 0, 30:, 3]).all() and np.isnan(whole["o"][0, 1, 31:, 20]).all()
    o, scales = results["o"].view(np.uint8), results.outputs.get("o_scales")
    if kind == "static":
        assert (o[0, 0, 30:, 3] == 126).all() and (o[0, 1, 31:, 20] == 127).all()
    elif kind == "groups":
        assert np.isinf(scales[0, 0, 30:, 0]).all() and (o[0, 0, 30:, 3] == 127).all()
        assert np.isfinite(scales[0, 1]).all() and (o[0, 1, 31:, 20] == 127).all()
    elif kind == "powers":
        assert (scales[0, 0, 30:, 0] == 253).all() and (o[0, 0, 30:, 3] == 126).all()
        assert (scales[0, 1] < 253).all() and (o[0, 1, 31:, 20] == 127).all()
    else:
        assert (scales[0, 0, 30:, 0] == 126).all() and (o[0, 0, 30:, 1] >> 4 == 7).all()
        assert (scales[0, 1] < 126).all() and (o[0, 1, 31:, 10] & 15 == 7).all()


@pytest.mark.parametrize(
    "kind,last",
    [
        *(("groups", 0), ("groups", np.nan), ("powers", 0), ("powers", np.inf), ("powers", np.nan)),
        *(("nvfp4", 0), ("nvfp4", np.inf), ("nvfp4", np.nan)),
    ],
)
def test_bits_of_merged_results(kind, last):
    arrays = draw((1, 2, 33, 64), 300)
    # Groups of zeros, of numbers that are too small for a scale, and with one that is none.
    arrays["v"][0, 0, :, :16] = 0
    arrays["v"][0, 0, :, 16:32] *= 1e-5
    arrays["v"][0, 1, 299, 3] += last
    problem = {"q": "1x2x33x64xf16", "kv_len": 300, "kv_splits": 3, "chip": "sm_90a"}
    problem["amax"] = kind in WITH_AMAX
    narrow = attn.compile(**problem, **OUTPUTS[kind])
    wide = attn.compile(**problem, out_type="f32")
    assert wide.plan == narrow.plan
    results, whole = narrow.simulate(**arrays, verify=False), wide.simulate(**arrays, verify=False)
    assert results.passed and whole.passed, results.text + whole.text
    o, scales = quantise(whole["o"], kind, OUTPUTS[kind].get("out_scale", 1))
    np.testing.assert_array_equal(results["o"].view(np.uint8), o)
    np.testing.assert_array_equal(results["o_scales"], scales)
    if problem["amax"]:
        check_amax(results, whole)
    if kind != "groups":
        tiled = attn.compile(**problem, **OUTPUTS[kind], out_scale_tiles=True)
        check_tiles(tiled, narrow, arrays, o, scales)


def test_refusals():
    with pytest.raises(TraceError, match=r"expected out_mod\(result, b, h, q_idx, column\), got"):
        attn.compile(q="1x2x32x64xf16", out_mod=lambda result, b, h: result)
    with pytest.raises(TraceError, match="out_mod: expected a number as result, got i1"):
        attn.out_mod(lambda r, b, h, i, c: r > 0)
    with pytest.raises(ArgumentError, match="a dimension of columns, got float32"):
        attn.unpack_nvfp4(np.zeros((2, 8), np.float32), np.zeros((2, 1), np.uint8))
    with pytest.raises(ArgumentError, match=r"expected shape \[2, 1\], one for each 16 columns"):
        attn.unpack_nvfp4(np.zeros((2, 8), np.uint8), np.zeros((2, 2), np.uint8))
