"""Results of 8 bits with scales, as numbers."""

import attn
import numpy as np
import pytest
from conftest import make_rng


def number(code, mantissa_bits, bias):
    """What the bits of a float say, by the definition."""
    sign, rest = -1 if code & 128 else 1, code & 127
    exponent, mantissa = rest >> mantissa_bits, rest & (1 << mantissa_bits) - 1
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


@pytest.mark.parametrize("dtype,form,last", [("float8_e4m3fn", (3, 7), 127), ("float8_e5m2", (2, 15), 124)])
def test_all_codes(dtype, form, last):
    codes = np.arange(256, dtype=np.uint8).reshape(2, 128)
    scales = make_rng().uniform(0.5, 2, (2, 4)).astype(np.float32)
    got = attn.unpack_fp8(codes, scales, dtype)
    wanted = np.float32([number(code, *form) for code in range(256)]).reshape(2, 128) * scales.repeat(32, -1)
    is_number = (codes & 127) < last
    np.testing.assert_array_equal(got[is_number], wanted[is_number])
    assert not np.isfinite(got[~is_number]).any()


def test_powers_of_two():
    codes = make_rng().integers(0, 127, (3, 8), np.uint8)
    exponents = make_rng().integers(100, 150, (3, 2), np.uint8)
    units = np.ldexp(np.float32(1), exponents.astype(np.int32) - 127)
    np.testing.assert_array_equal(attn.unpack_fp8(codes, exponents), attn.unpack_fp8(codes, units))


def test_results_of_kernels():
    """A kernel's own results, beside those that have no scales."""
    rng = make_rng()
    q, k, v = (rng.standard_normal((1, 2, 20, 64)).astype(np.float16) for _ in range(3))
    problem = {"q": "1x2x20x64xf16", "chip": "sm_90a"}
    wide = attn.compile(**problem, out_type="f32").simulate(q=q, k=k, v=v)["o"]
    narrow = attn.compile(**problem, out_type="float8_e4m3fn", out_group=32).simulate(q=q, k=k, v=v)
    got = attn.unpack_fp8(narrow["o"].view(np.uint8), narrow["o_scales"])
    most = abs(wide).reshape(1, 2, 20, 2, 32).max(-1).repeat(32, -1)
    assert (abs(got - wide) <= abs(wide) / 16 + most / 448).all()


def test_refusals():
    codes, scales = np.zeros((4, 8), np.uint8), np.ones((4, 2), np.float32)
    with pytest.raises(attn.ArgumentError, match='"o": expected elements of one byte'):
        attn.unpack_fp8(codes.astype(np.float32), scales)
    with pytest.raises(attn.ArgumentError, match="expected f32 or bytes of powers of two, got float64"):
        attn.unpack_fp8(codes, scales.astype(np.float64))
    with pytest.raises(attn.ArgumentError, match=r"expected \[4\] rows of a divisor of 8 scales, got \[4, 3\]"):
        attn.unpack_fp8(codes, np.ones((4, 3), np.float32))
    with pytest.raises(attn.ArgumentError, match="dtype: expected one of f8E4M3FN, f8E5M2, that of o, got f16"):
        attn.unpack_fp8(codes, scales, "float16")


def test_torch():
    torch = pytest.importorskip("torch")
    codes = torch.randn(4, 64).to(torch.float8_e4m3fn)
    scales = torch.rand(4, 2) + 0.5
    wanted = codes.float() * scales.repeat_interleave(32, -1)
    assert torch.equal(attn.unpack_fp8(codes, scales), wanted)
    with pytest.raises(attn.ArgumentError, match="that of o, got f8E5M2 for torch.float8_e4m3fn"):
        attn.unpack_fp8(codes, scales, "float8_e5m2")
