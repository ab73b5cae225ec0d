"""Arrays of one element type in two carriers, as uint16 and ml_dtypes' bfloat16 are: nothing
converts the numbers that numpy takes their bits for."""

import attn
import numpy as np
import pytest
from attn import arrays
from attn.compat import _lists, _wrapper
from test_decode import (
    DIM,
    HEADS,
    KV_HEADS,
    PAGE,
    PAGES,
    VALUES,
    make_batch,
    make_latent,
    make_plan,
)

PAIRS = [
    ("uint16", "bfloat16"),
    ("bfloat16", "uint16"),
    ("uint8", "float8_e4m3fn"),
    ("float8_e4m3fn", "uint8"),
]

pytestmark = pytest.mark.usefixtures("without_gpu")


@pytest.fixture
def stand_in(monkeypatch):
    """A carrier that numpy converts, as ml_dtypes' are: float16, said to have bits of bf16."""
    monkeypatch.setitem(arrays._ELEMENTS, "float16", "bf16")
    return np.dtype("float16")


def find(name):
    return np.dtype(
        name if name.startswith("u") else getattr(pytest.importorskip("ml_dtypes"), name)
    )


def make_bits(width, *shape, seed=0):
    """Finite numbers of either type."""
    return np.random.default_rng(seed).integers(1, 0x70, shape).astype(f"u{width}")


def check_append(of_rows, of_pools, layout="nhd"):
    width = of_rows.itemsize
    shape = (PAGES, PAGE, KV_HEADS, DIM) if layout == "nhd" else (PAGES, KV_HEADS, PAGE, DIM)
    k, v = (make_bits(width, 2, KV_HEADS, DIM, seed=n) for n in range(2))
    pools = [np.zeros(shape, of_pools) for _ in "kv"]
    table, lengths = np.int32([[3, 9], [1, 2]]), np.int32([17, 1])
    attn.append_kv(k.view(of_rows), v.view(of_rows), *pools, table, lengths, layout=layout)
    for rows, pool in zip((k, v), pools, strict=True):
        bits = pool.view(f"u{width}") if layout == "nhd" else pool.view(f"u{width}").swapaxes(1, 2)
        np.testing.assert_array_equal(bits[9, 0], rows[0])
        np.testing.assert_array_equal(bits[1, 0], rows[1])
        assert np.count_nonzero(bits) == rows.size


@pytest.mark.parametrize("layout", ["nhd", "hnd"])
def test_append(stand_in, layout):
    check_append(np.dtype("uint16"), stand_in, layout)
    check_append(stand_in, np.dtype("uint16"), layout)


@pytest.mark.parametrize(("of_rows", "of_pools"), PAIRS)
def test_append_of_ml_dtypes(of_rows, of_pools):
    check_append(find(of_rows), find(of_pools))


def test_outputs_of_the_caller(stand_in):
    bits = make_bits(2, 4, HEADS, DIM)
    for of_values, of_target in ((stand_in, "uint16"), ("uint16", stand_in)):
        target = np.zeros(bits.shape, of_target)
        got, _ = _lists.write({"out": target, "lse": None}, (bits.view(of_values), None))
        assert got is target
        np.testing.assert_array_equal(target.view("u2"), bits)
    frozen = np.zeros(bits.shape, "uint16")
    frozen.flags.writeable = False
    with pytest.raises(attn.ArgumentError, match="out: expected an array that can be written to"):
        _lists.write({"out": frozen, "lse": None}, (bits, None))


def test_columns_and_factors(stand_in):
    """Columns of two carriers in one tensor, and numbers times a factor."""
    first, second = arrays.to_bf16(np.ones((2, 3))), arrays.to_bf16(np.full((2, 2), 3.0))
    for one, other in ((first, second.view(stand_in)), (first.view(stand_in), second)):
        got = _lists.concatenate(one, other, 0.5)
        assert got.dtype == one.dtype
        np.testing.assert_array_equal(arrays.from_bf16(got.view("u2")), [[1, 1, 1, 1.5, 1.5]] * 2)
        same = _lists.concatenate(one, other, 1)
        np.testing.assert_array_equal(arrays.from_bf16(same.view("u2")), [[1, 1, 1, 3, 3]] * 2)
    o = second.copy().view(stand_in)
    _wrapper.multiply(o, np.float32(0.5))
    np.testing.assert_array_equal(arrays.from_bf16(o.view("u2")), [[1.5, 1.5]] * 2)


def test_results_have_the_carrier_of_q(stand_in):
    outputs = {"o": np.zeros(3, "uint16"), "lse": np.zeros(3, "float32")}
    dtypes = {"o": "bf16", "lse": "f32", "q": "bf16"}
    for given in (stand_in, np.dtype("int16"), np.dtype("V2")):
        got = arrays.restore(outputs, {"q": np.zeros(2, given)}, dtypes)
        assert got["o"].dtype == given and got["lse"].dtype == "float32"
    assert arrays.restore(outputs, {}, {})["o"].dtype == "uint16"
    assert arrays.carry(outputs["o"], stand_in).dtype == stand_in
    assert arrays.carry(outputs["o"], "bfloat16").dtype == "uint16"


def test_types_of_ml_dtypes():
    """What has the type of q is like q, whatever carries the pools."""
    bf16 = find("bfloat16")
    q, k, v, table, lengths = make_batch([40, 9], dtype=np.float32)
    narrow = [arrays.to_bf16(each) for each in (q, k, v)]
    want = attn.decode(*narrow, table, lengths)
    mixed = (narrow[0].view(bf16), narrow[1].view(bf16), narrow[2])
    counts = np.int32([0, 1, 2])
    plan = make_plan(2, dtype=bf16)
    plan.plan(lengths, table)
    wrapper_o = np.zeros(q.shape, bf16)
    for got in (
        attn.decode(*mixed, table, lengths),
        attn.prefill(*mixed, table, lengths, counts, max_seqlen_q=1),
        attn.cascade(*mixed, [attn.Level(table, lengths)]),
        plan.run(*mixed),
        attn.decode(
            *mixed, table, lengths, init=(wrapper_o, np.full(q.shape[:2], -np.inf, np.float32))
        ),
    ):
        assert got.dtype == bf16
        np.testing.assert_allclose(got.astype(np.float32), arrays.from_bf16(want), atol=2e-2)
    assert attn.decode(*narrow[:2], mixed[2].view(bf16), table, lengths).dtype == "uint16"
    assert (
        attn.decode(
            *(each[:0] if n in (0,) else each for n, each in enumerate(mixed)),
            table[:0],
            lengths[:0],
        ).dtype
        == bf16
    )
    o, _ = attn.merge_states(
        np.zeros((2, 3, 4, 64), np.float32), np.zeros((2, 3, 4), np.float32), dtype=bf16
    )
    assert o.dtype == bf16
    kernel = attn.compile(q="1x2x32x64xbf16")
    rows = np.zeros((1, 2, 32, 64), bf16)
    assert kernel.simulate(q=rows)["o"].dtype == bf16
    assert kernel.run(q=rows.view("u2"), k=rows, v=rows)["o"].dtype == "uint16"


def test_latent_of_ml_dtypes():
    bf16 = find("bfloat16")
    q, pool, table, lengths = make_latent([100, 2])
    q, pool = (arrays.to_bf16(np.nan_to_num(each.astype(np.float32))) for each in (q, pool))
    want = attn.mla_decode(q, pool, table, lengths, value_dim=VALUES, scale=0.1)
    got = attn.mla_decode(q.view(bf16), pool, table, lengths, value_dim=VALUES, scale=0.1)
    assert got.dtype == bf16
    np.testing.assert_array_equal(got.view("u2"), want)


@pytest.mark.parametrize("dtype", [">f2", ">i4"])
def test_other_byte_orders(dtype):
    q, k, v, table, lengths = make_batch([40, 9])
    if dtype == ">f2":
        k = k.astype(dtype)
    else:
        table = table.astype(dtype)
    with pytest.raises(attn.ArgumentError, match="no kernel takes elements of >"):
        attn.decode(q, k, v, table, lengths)


def refuse_append(message, k_cache, v_cache, **options):
    rows = np.ones((2, KV_HEADS, DIM), np.float16)
    table, lengths = np.int32([[3, 9], [1, 2]]), np.int32([17, 1])
    with pytest.raises(attn.ArgumentError, match=message):
        attn.append_kv(rows, rows, k_cache, v_cache, table, lengths, **options)
    assert not k_cache.any()


def test_refused_before_anything_is_written():
    k = np.zeros((PAGES, PAGE, KV_HEADS, DIM), np.float16)
    v = k.copy()
    v.flags.writeable = False
    refuse_append('"v_cache": expected an array that can be written to', k, v)
    v = np.lib.stride_tricks.as_strided(np.zeros(DIM, np.float16), k.shape, (0, 0, 0, 2))
    refuse_append(
        '"v_cache": expected memory for each element, got one for all of dimension 0', k, v
    )
    refuse_append('"v_cache": expected a tensor, got None', k, None)
    refuse_append('"k_cache": expected pages with heads, keys and columns', k[:, :0], k[:, :0])
    for counts, message in (
        ([0, 2, 1], "sequence 1 to end at 2 to 2 of 2 rows, got 1"),
        ([0, 1, 3], "sequence 1 to end at 1 to 2 of 2 rows, got 3"),
        ([-1, 1, 2], "sequence 0 to begin at 0 to 2 of 2 rows, got -1"),
    ):
        refuse_append(f'"cu_seqlens": expected {message}', k, k.copy(), cu_seqlens=np.int32(counts))
