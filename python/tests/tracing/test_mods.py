"""score_mod and mask_mod as Python functions, simulated and compared with float64."""

import functools
import inspect
import math

import attn
import numpy as np
import pytest
from attn.tracing import mod_regions, traced_values
from attn import mods as am
from conftest import make_rng


def attend(q, k, v, score_mod=None, mask_mod=None):
    """Attention in float64; the functions get whole index arrays."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(array, group, axis=1) for array in (k, v))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    b, h, i, j = np.ogrid[tuple(slice(extent) for extent in scores.shape)]
    if score_mod:
        scores = score_mod(scores, b, h, i, j)
    if mask_mod:
        scores = np.where(mask_mod(b, h, i, j), scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = np.nan_to_num(weights)
    return weights @ v / np.maximum(weights.sum(-1, keepdims=True), 1e-300)


def check(shape, keys, kv_heads=None, score_mod=None, mask_mod=None, reference=None, **flags):
    """Simulates with fresh inputs, and compares with the same function, or with
    `reference`, on float64 arrays."""
    generator = make_rng()
    batch, heads, queries, dim = shape
    kv_heads = kv_heads or heads
    q = generator.standard_normal(shape).astype(np.float16)
    k, v = generator.standard_normal((2, batch, kv_heads, keys, dim)).astype(np.float16)
    kernel = attn.compile(
        q="x".join(map(str, shape)) + "xf16",
        kv_heads=kv_heads,
        kv_len=keys,
        score_mod=score_mod,
        mask_mod=mask_mod,
        **flags,
    )
    result = kernel.simulate(q=q, k=k, v=v)
    assert result.passed, result.text
    wanted = attend(q, k, v, **(reference or {"score_mod": score_mod, "mask_mod": mask_mod}))
    error = np.linalg.norm(result["o"] - wanted) / np.linalg.norm(wanted)
    assert error < 2e-3, error
    return kernel


def test_alibi():
    slopes = np.float32([0.5, 0.25, 0.125, 0.0625])

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    kernel = check((1, 4, 70, 64), 70, score_mod=alibi)
    assert kernel.captures == {"capture0": slopes}


def test_relative_bias_from_a_table():
    table = make_rng().standard_normal((2, 257)).astype(np.float32)

    def relative(score, b, h, q_idx, kv_idx):
        return score + table[h, am.clip(kv_idx - q_idx, -128, 128) + 128]

    def reference(score, b, h, q_idx, kv_idx):
        return score + table[h, np.clip(kv_idx - q_idx, -128, 128) + 128]

    check((1, 2, 90, 64), 300, score_mod=relative, reference={"score_mod": reference})


def test_document_mask():
    documents = np.sort(make_rng().integers(0, 5, (2, 100)))

    def same(b, h, q_idx, kv_idx):
        return documents[b, q_idx] == documents[b, kv_idx]

    assert documents.dtype == np.int64
    check((2, 2, 100, 64), 100, mask_mod=same)


def test_sliding_window():
    window = 40

    def sliding(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & (q_idx - kv_idx < window)

    check((1, 2, 130, 64), 130, mask_mod=sliding)


def test_softcap_with_torchs_or_maths_names():
    def reference(score, *_):
        return 5 * np.tanh(score / 5)

    for tanh in (am.tanh, math.tanh, np.tanh):
        check(
            (1, 1, 40, 64),
            64,
            score_mod=lambda score, b, h, q_idx, kv_idx: 5 * tanh(score / 5),
            reference={"score_mod": reference},
        )
    check(
        (1, 1, 40, 64),
        64,
        score_mod=lambda score, b, h, q_idx, kv_idx: 5 * math.tanh(score / 5),
        reference={"score_mod": reference},
    )


def test_prefix_lm():
    prefixes = np.int32([10, 60])

    def prefix(b, h, q_idx, kv_idx):
        return (kv_idx < prefixes[b]) | (q_idx >= kv_idx)

    check((2, 2, 80, 64), 80, mask_mod=prefix)


def test_both_with_mask_and_groups():
    slopes, offsets = np.float16([1, 0.5, 0.25, 0.125]), np.int8([0, 3, -3])

    def score_mod(score, b, h, q_idx, kv_idx):
        return score - slopes[h] * abs(q_idx - kv_idx)

    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx + offsets[h % 3]) % 4 != 0

    reference = {
        "score_mod": score_mod,
        "mask_mod": lambda b, h, i, j: mask_mod(b, h, i, j) & (j <= i),
    }
    check(
        (1, 4, 70, 64),
        70,
        kv_heads=2,
        score_mod=score_mod,
        mask_mod=mask_mod,
        reference=reference,
        causal=True,
    )


def test_packed_sequences():
    """Indices count from the start of the sequence, b is its number."""
    slopes = np.float32([[0.1, 0.2], [0.3, 0.4]])
    lengths_q, lengths_k = [17, 40], [30, 25]

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + slopes[b, h] * (kv_idx - q_idx)

    kernel = attn.compile(
        q="1x2x57x64xf16", varlen="q:17,40/k:30,25", dynamic=True, score_mod=score_mod
    )
    generator = make_rng()
    q = generator.standard_normal((1, 2, 57, 64)).astype(np.float16)
    k, v = generator.standard_normal((2, 1, 2, 55, 64)).astype(np.float16)
    sums = {"cu_seqlens_q": np.int32([0, 17, 57]), "cu_seqlens_k": np.int32([0, 30, 55])}
    result = kernel.simulate(q=q, k=k, v=v, **sums)
    assert result.passed, result.text
    for b in range(2):
        rows = slice(sum(lengths_q[:b]), sum(lengths_q[: b + 1]))
        keys = slice(sum(lengths_k[:b]), sum(lengths_k[: b + 1]))
        parts = (q[:, :, rows], k[:, :, keys], v[:, :, keys])
        wanted = attend(*parts, lambda s, _, h, i, j, b=b: s + slopes[b, h] * (j - i))
        error = np.linalg.norm(result["o"][:, :, rows] - wanted) / np.linalg.norm(wanted)
        assert error < 2e-3


SCALE = np.float32(0.5)
TABLE = np.arange(-3, 5, dtype=np.float64)


def helper(value, weight=TABLE):
    return weight[value] * SCALE


def test_helpers_globals_and_defaults():
    def score_mod(score, b, h, q_idx, kv_idx, *, factor=np.array(2.0)):
        return score + factor * helper(kv_idx % 8) - helper(2)

    check((1, 1, 33, 64), 50, score_mod=score_mod)


def test_partial_and_bound_method():
    def score_mod(slope, score, b, h, q_idx, kv_idx):
        return score + slope * (kv_idx - q_idx)

    check((1, 1, 33, 64), 50, score_mod=functools.partial(score_mod, -0.25))

    class Bias:
        slope = -0.5

        def score_mod(self, score, b, h, q_idx, kv_idx):
            return score + self.slope * (q_idx + kv_idx)

    bias = Bias()
    first = check((1, 1, 33, 64), 50, score_mod=bias.score_mod)
    bias.slope = -0.25
    # Its attributes may change, so that it is traced anew.
    assert check((1, 1, 33, 64), 50, score_mod=bias.score_mod).ptx != first.ptx


def same_indices(score, b, h, q_idx, kv_idx):
    """Python's meaning of every integer operator."""
    x = q_idx - 20
    y = kv_idx % 7 + 1
    total = x // y + x % y + x // 4 + x % 4 + (x // -3) + x % -3
    total = total + (x << 2) + (x >> 1) + (x & 12) + (x | 3) + (x ^ 5) + ~x - (-x) + x**3
    return score + total * 1e-3


def same_floats(score, b, h, q_idx, kv_idx):
    x = score * 1.5
    total = x // 0.75 + x % 0.75 + x**2 + abs(x) ** 0.5 + (2 + abs(x)) ** -2 - x / 3
    return total * 0.25 + (x > 0.5) - (x <= -0.5) + True


@pytest.mark.parametrize("function", [same_indices, same_floats])
def test_operators(function):
    check((1, 1, 64, 64), 64, score_mod=function)


@pytest.mark.parametrize(
    "name",
    ["exp", "exp2", "log", "log2", "tanh", "sqrt", "floor", "ceil", "trunc", "abs", "rint"],
)
def test_functions(name):
    """The package's, numpy's and (where they exist) math's."""
    of_numpy = getattr(np, name)
    known = am.round if name == "rint" else getattr(am, name)
    of_math = getattr(math, name, None)

    def score_mod(score, b, h, q_idx, kv_idx):
        x = am.abs(score) + 0.5
        return known(x) + of_numpy(x) - score / 2

    def reference(score, b, h, q_idx, kv_idx):
        return 2 * of_numpy(abs(score) + 0.5) - score / 2

    check((1, 1, 32, 64), 64, score_mod=score_mod, reference={"score_mod": reference})
    if of_math:
        assert known(2.5) == of_math(2.5)


def test_quotients_of_indices_are_exact():
    """49 * (1 / 49) is less than 1 in f32."""

    def score_mod(score, b, h, q_idx, kv_idx):
        return score / 7 + am.floor(kv_idx / 49) + kv_idx.float() // 41

    def reference(score, b, h, q_idx, kv_idx):
        return score / 7 + kv_idx // 49 + kv_idx // 41

    check((1, 1, 32, 64), 200, score_mod=score_mod, reference={"score_mod": reference})
    assert attn.score_mod(score_mod).text.count("divf") == 2


def test_choices():
    def score_mod(score, b, h, q_idx, kv_idx):
        kept = np.where(score > 0, score, am.minimum(score * 2, -0.5))
        return max(kept, min(q_idx, kv_idx, 3) - 4.0, -2) + am.where(q_idx == 3, -math.inf, 0.0)

    def reference(score, b, h, q_idx, kv_idx):
        kept = np.where(score > 0, score, np.minimum(score * 2, -0.5))
        least = np.minimum(np.minimum(q_idx, kv_idx), 3) - 4.0
        return np.maximum(np.maximum(kept, least), -2)

    def mask_mod(b, h, q_idx, kv_idx):
        either = am.logical_or(q_idx == kv_idx, am.logical_not(kv_idx & 1))
        return am.logical_and(either, am.logical_xor(True, q_idx == 3))

    def mask_reference(b, h, q_idx, kv_idx):
        return ((q_idx == kv_idx) | (kv_idx % 2 == 0)) & (q_idx != 3)

    check(
        (1, 1, 32, 64),
        64,
        score_mod=score_mod,
        mask_mod=mask_mod,
        reference={"score_mod": reference, "mask_mod": mask_reference},
    )


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "bool", "int32", "int64"]
)
def test_types_of_captured_tensors(dtype):
    bias = (make_rng().standard_normal((40, 50)) * 100).astype(dtype)

    def score_mod(score, b, h, q_idx, kv_idx):
        return score + bias[q_idx][kv_idx] * 0.03

    def reference(score, b, h, q_idx, kv_idx):
        return score + bias[q_idx, kv_idx] * 0.03

    check((1, 1, 40, 64), 50, score_mod=score_mod, reference={"score_mod": reference})


def get_line(function, text):
    """The number of the line of a function with this text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if text in line)


def branch(score, b, h, q_idx, kv_idx):
    if q_idx > kv_idx:  # here
        return score
    return 0.0


def chain(score, b, h, q_idx, kv_idx):
    return am.where(0 < q_idx < 3, score, 0.0)  # here


def unknown(score, b, h, q_idx, kv_idx):
    return np.arctan(score)  # here


def conversion(score, b, h, q_idx, kv_idx):
    return score + math.erf(score)  # here


def plain_list(score, b, h, q_idx, kv_idx):
    return score + [1.0, 2.0][h]  # here


def loop(score, b, h, q_idx, kv_idx):
    return sum(score for _ in range(q_idx))  # here


def text(score, b, h, q_idx, kv_idx):
    return score + "1"  # here


def own_error(score, b, h, q_idx, kv_idx):
    raise KeyError("mine")  # here


def float_index(score, b, h, q_idx, kv_idx):
    return score + TABLE[score]  # here


def many_indices(score, b, h, q_idx, kv_idx):
    return score + TABLE[h, q_idx]  # here


def outside(score, b, h, q_idx, kv_idx):
    return score + TABLE[8]  # here


def whole_tensor(score, b, h, q_idx, kv_idx):
    return score + TABLE.sum()  # here


def shifts(score, b, h, q_idx, kv_idx):
    return score << 2  # here


def zero(score, b, h, q_idx, kv_idx):
    return score + q_idx // 0  # here


def exponent(score, b, h, q_idx, kv_idx):
    return score**0.3  # here


def no_result(score, b, h, q_idx, kv_idx):  # here
    score + 1


def tensor_result(score, b, h, q_idx, kv_idx):  # here
    return TABLE


def bool_result(score, b, h, q_idx, kv_idx):  # here
    return q_idx > 3


def few_parameters(score, b, h):  # here
    return score


def method(score, b, h, q_idx, kv_idx):
    return score.cumsum()  # here


def condition(score, b, h, q_idx, kv_idx):
    return am.where(q_idx, score, 0.0)  # here


@pytest.mark.parametrize(
    "function, message",
    [
        (branch, "an if, and, or, not or chained comparison depends on a traced value; use where"),
        (chain, "an if, and, or, not or chained comparison"),
        (unknown, "the function arctan cannot be traced; known are abs, ceil"),
        (conversion, "a call that takes a Python float depends on a traced value"),
        (plain_list, "an index depends on a traced value; index a torch tensor or numpy array"),
        (loop, "an index depends on a traced value"),
        (text, r"\+: expected a number, got str"),
        (own_error, "score_mod: KeyError: 'mine'"),
        (float_index, "expected an integer as index, got f32"),
        (many_indices, r"expected at most 1 indices of a tensor of shape \[8\], got 2"),
        (outside, "index 8 is outside of a dimension of 8 elements"),
        (whole_tensor, "a captured tensor has no 'sum' here; index it down to one element"),
        (shifts, "<<: expected integers, got a float"),
        (zero, "division by zero"),
        (exponent, r"\*\*: expected 0.5 or an integer from -64 to 64, got 0.3"),
        (no_result, "score_mod: expected a number as result, got NoneType; is a return missing?"),
        (tensor_result, "score_mod: expected a number as result, got a tensor"),
        (bool_result, "score_mod: expected a number as result, got i1"),
        (
            few_parameters,
            r"expected score_mod\(score, b, h, q_idx, kv_idx\), got .*\(score, b, h\)",
        ),
        (method, "a traced value has no method 'cumsum'"),
        (condition, "where: expected a condition of type bool, got i32"),
    ],
)
def test_untraceable(function, message, empty_cache):
    with pytest.raises(attn.TraceError, match=message) as caught:
        attn.compile(q="1x2x64x64xf16", score_mod=function)
    line = get_line(function, "# here")
    assert (caught.value.file, caught.value.line) == (__file__, line)
    assert str(caught.value).startswith(f"{__file__}:{line}: ") and "# here" in str(caught.value)
    assert not list(empty_cache.glob("*"))


def test_wrong_mask_mods():
    for function, message in (
        (lambda b, h, i, j: i, "mask_mod: expected a bool as result, got i32"),
        (lambda b, h, i, j: 1, "mask_mod: expected a bool as result, got int"),
        (lambda s, b, h, i, j: True, r"expected mask_mod\(b, h, q_idx, kv_idx\)"),
        (3, "mask_mod: expected a function, got int"),
        (attn.score_mod(lambda s, b, h, i, j: s), "mask_mod: expected a mask_mod, got a score_mod"),
    ):
        with pytest.raises(attn.TraceError, match=message):
            attn.compile(q="1x2x64x64xf16", mask_mod=function)
    with pytest.raises(TypeError, match="go with q=...; a problem as text or file has regions"):
        attn.compile("module {}", mask_mod=lambda b, h, i, j: True)
    complex_table = np.zeros(3, np.complex64)
    with pytest.raises(attn.ArgumentError, match="captured tensor: expected .*, got complex64"):
        attn.compile(q="1x2x64x64xf16", score_mod=lambda s, b, h, i, j: s + complex_table[h])


def test_traces_are_kept_as_long_as_they_hold():
    limit, table = 3, np.ones(4, np.float32)

    def mask_mod(b, h, q_idx, kv_idx):
        return (kv_idx < limit) & (table[h] > 0)

    mod_regions._traces.clear()
    first = attn.mask_mod(mask_mod)
    assert attn.mask_mod(mask_mod).text is first.text and len(mod_regions._traces) == 1
    assert attn.mask_mod(first) is first
    table = np.zeros(4, np.float32)
    second = attn.mask_mod(mask_mod)
    assert second.text is first.text and second.tensors[0] is table
    limit = 4
    assert attn.mask_mod(mask_mod).text != first.text
    limit = 3.0
    assert attn.mask_mod(mask_mod).text.count("f32") > first.text.count("f32")
    limit = 2.5
    assert "0x40200000" in attn.mask_mod(mask_mod).text and len(mod_regions._traces) == 4
    assert repr(first) == "<attn mask_mod that reads 1 tensors>"


def test_one_tensor_under_two_names():
    def make(left, right):
        return lambda s, b, h, i, j: s + left[h] - right[h]

    a, b = np.ones(2, np.float32), np.zeros(2, np.float32)
    assert len(attn.score_mod(make(a, a)).tensors) == 1
    assert [each is a for each in attn.score_mod(make(b, a)).tensors] == [False, True]


def test_equal_operations_are_one():
    traced = attn.score_mod(lambda s, b, h, i, j: s + (i - j) * (i - j) + 0 * (s * 3))
    assert traced.text.count("arith.subi") == 1
    unused = attn.score_mod(lambda s, b, h, i, j: (s * 3, s + 1)[1])
    assert "mulf" not in unused.text


def test_the_text_is_part_of_the_key(empty_cache):
    def make(limit):
        return lambda b, h, i, j: j < limit

    first = attn.compile(q="1x1x32x64xf16", mask_mod=make(3))
    second = attn.compile(q="1x1x32x64xf16", mask_mod=make(4))
    third = attn.compile(q="1x1x32x64xf16")
    assert len({first.ptx, second.ptx, third.ptx}) == 3
    assert attn.compile(q="1x1x32x64xf16", mask_mod=make(4)).ptx is second.ptx


def test_rungs_and_given_captures():
    slopes = np.float32([1, 2])
    kernel = attn.compile(
        q="1x2x32x64xf16", causal=True, score_mod=lambda s, b, h, i, j: s + slopes[h] * j
    )
    assert "score_mod {" in kernel.mlir("problem") and "mask = " in kernel.mlir("problem")
    assert kernel.simulate(capture0=np.float32([3, 4])).passed
    with pytest.raises(TypeError, match='array "capture0": expected elements of float32'):
        kernel.simulate(capture0=np.zeros(2))


def test_traced_values_have_no_python_value():
    value = traced_values.Graph().make("f32", "%score")
    for use in (int, float, len, iter, bool):
        with pytest.raises(attn.TraceError, match="depends on a traced value"):
            use(value)
    with pytest.raises(attn.TraceError, match="expected a number that fits f32, got 1e"):
        value + 1e39
    with pytest.raises(attn.TraceError, match="expected an integer of 64 bits"):
        value + 2**70
    with pytest.raises(attn.TraceError, match=r"to\(\): expected float32, int32, int64 or bool"):
        value.to("float16")
    converted = [value.to(np.float32), value.int(), value.long(), value.bool(), value.float()]
    assert [each.type for each in converted] == ["f32", "i32", "i64", "i1", "f32"]
    assert repr(value) == "<traced f32>"
