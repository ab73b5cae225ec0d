"""attn.prefill with runs of a fixed number of keys: the bits of attn.decode, however many queries
come at once."""

import attn
import numpy as np
import pytest
from attn.serving import decode_launch
from conftest import draws
from test_decode import check, make_batch
from test_decode_narrow import from_e4m3
from test_prefill import attend_packed, pack

_RUN = {"run_keys": 64, "lse": True}

pytestmark = pytest.mark.usefixtures("without_gpu")


def _same(got, want):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_equal_bits(chip, monkeypatch):
    """Over one chunk, over several, and token by token through attn.decode."""
    monkeypatch.setattr(decode_launch, "get_chip_of", lambda *_: chip)
    seed = draws.draw_seed()
    lengths, queries = np.array([100, 17, 128], np.int32), [9, 1, 6]
    q, counts = pack(queries, seed=seed)
    k, v, table, lengths = make_batch(lengths, seed=seed)[1:]
    whole = attn.prefill(q, k, v, table, lengths, counts, max_seqlen_q=9, **_RUN)
    check(whole, attend_packed(q, counts, k, v, table, lengths))
    # The first sequence's queries in chunks of 4 and 5, beside other numbers of the others' last.
    for chunk, first, last in ((4, 0, 5), (5, 4, 0)):
        parts = [q[first : first + chunk], q[9:10], q[10:16]]
        ends = np.cumsum([0, chunk, 1, 6]).astype(np.int32)
        sizes = lengths - np.array([last, 0, 0], np.int32)
        got = attn.prefill(
            np.concatenate(parts), k, v, table, sizes, ends, max_seqlen_q=6 + chunk, **_RUN
        )
        _same([each[:chunk] for each in got], [each[first : first + chunk] for each in whole])
        _same([each[chunk:] for each in got], [each[9:] for each in whole])
    for row in range(6):
        one = lengths[2:] - np.int32(5 - row)
        got = attn.decode(q[10 + row][None], k, v, table[2:], one, **_RUN)
        _same(got, [each[10 + row : 11 + row] for each in whole])


def test_rows_of_no_sequence():
    """They stay as they were in torch's outputs, and are NaN in new ones."""
    q, counts = pack([5, 3], spare=3)
    arrays = (q, *make_batch([60, 33])[1:], counts)
    want = attn.prefill(*arrays, max_seqlen_q=5, **_RUN)
    check([each[:8] for each in want], attend_packed(q, counts, *arrays[1:-1]))
    assert all(np.isnan(each[8:]).all() for each in want)
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(each) for each in arrays]
    got = attn.prefill(*tensors, max_seqlen_q=5, **_RUN)
    _same([each.numpy()[:8] for each in got], [each[:8] for each in want])
    assert all(each[8:].isnan().all() for each in got)
    out, lse = torch.full_like(got[0], 7), torch.full_like(got[1], 7)
    given = attn.prefill(*tensors, max_seqlen_q=5, run_keys=64, out=out, lse=lse)
    assert given[0] is out and given[1] is lse
    _same([each.numpy()[:8] for each in given], [each[:8] for each in want])
    assert all((each[8:] == 7).all() for each in given)
    # A sequence's queries beyond the bound are no queries.
    less = attn.prefill(*tensors, max_seqlen_q=8, run_keys=64)
    _same([less.numpy()[:8]], [want[0][:8]])


def test_narrow_outputs():
    """8-bit results, also of a row that no sequence has."""
    q, counts = pack([4, 2], spare=1)
    batch = make_batch([40, 20])[1:]
    options = {"max_seqlen_q": 4, "run_keys": 64, "out_scale": 4.0}
    whole = attn.prefill(q, *batch, counts, **options)
    want = attend_packed(q, counts, *batch)[0]
    np.testing.assert_allclose(from_e4m3(whole[:6]) / 4, want, atol=0.07, rtol=0.07)
    assert (whole[6:] == 0xFF).all()


def test_bits_of_integers():
    """bf16, which numpy has as integers, also of a row that no sequence has."""
    q, counts = pack([4, 2], spare=1)
    made = make_batch([40, 20])
    q, k, v = map(attn.arrays.to_bf16, (q, *made[1:3]))
    batch = made[3:]
    o, lse = attn.prefill(q, k, v, *batch, counts, max_seqlen_q=4, **_RUN)
    q, k, v = map(attn.arrays.from_bf16, (q, k, v))
    want = attend_packed(q, counts, k, v, *batch)
    np.testing.assert_allclose(attn.arrays.from_bf16(o[:6]), want[0], atol=2e-2, rtol=2e-2)
    assert np.isnan(attn.arrays.from_bf16(o[6:])).all() and np.isnan(lse[6:]).all()


def make_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    q, counts = pack([5, 3])
    return torch, [torch.from_numpy(each) for each in (q, *make_batch([60, 33])[1:], counts)]


@pytest.mark.parametrize("name", ["float32", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_outputs(name):
    """The kernel rounds to the elements of the caller's output, and to no others before."""
    torch, tensors = make_tensors()
    dtype = getattr(torch, name)
    options = {"max_seqlen_q": 5, "run_keys": 64}
    if dtype.itemsize == 1:
        options["out_scale"] = 4.0
    want = attn.prefill(*tensors, **options, out_type=dtype)
    assert want.dtype == dtype
    out = torch.zeros_like(tensors[0], dtype=dtype)
    assert attn.prefill(*tensors, **options, out=out) is out
    assert torch.equal(out.view(torch.uint8), want.view(torch.uint8))
    wide = attn.prefill(*tensors, **options | {"out_scale": None}).float()
    error = (out.float() / options.get("out_scale", 1.0) - wide).abs().max()
    assert 0 < error < (1e-3 if dtype == torch.float32 else 0.2)


def test_refusals_of_outputs():
    torch, tensors = make_tensors()
    q = tensors[0]
    whole = torch.empty_like(q)

    def refuse(message, **outputs):
        with pytest.raises(ValueError, match=message):
            attn.prefill(*tensors, max_seqlen_q=5, run_keys=64, **outputs)

    refuse('tensor "out": expected shape', out=whole[:-1])
    refuse('tensor "out": expected f16, bf16, f32', out=whole.double())
    refuse("out_scale: expected one with an output of f8E4M3FN", out=whole.to(torch.float8_e4m3fn))
    refuse('tensor "out": expected it on cpu as q, got meta', out=whole.to("meta"))
    refuse('tensor "out": expected a torch tensor as q, got ndarray', out=whole.numpy())
    log = torch.empty(q.shape[:2])
    refuse('tensor "lse": expected shape', out=whole, lse=log[:-1])
    refuse('tensor "lse": expected elements of f32, got f16', out=whole, lse=log.half())
    refuse('tensor "out": expected a tensor to write to', lse=log)
    refuse('tensor "lse": expected a tensor to write to', out=whole, lse=True)


def test_refusals():
    q, counts = pack([5, 3])
    arrays = (q, *make_batch([60, 33])[1:], counts)
    with pytest.raises(ValueError, match="out: expected none with numpy arrays"):
        attn.prefill(*arrays, max_seqlen_q=5, run_keys=64, out=np.empty_like(q))
    with pytest.raises(ValueError, match="lse: expected"):
        attn.prefill(*arrays, max_seqlen_q=5, run_keys=64, lse=np.empty(q.shape[:2], np.float32))
    with pytest.raises(ValueError, match="run_keys: expected no function beside it"):
        attn.prefill(*arrays, max_seqlen_q=5, run_keys=64, score_mod=lambda s, b, h, i, j: s + j)
    with pytest.raises(ValueError, match='"cu_seqlens_q": expected'):
        attn.prefill(*arrays[:-1], counts + np.int32(1), max_seqlen_q=5, run_keys=64)
    with pytest.raises(ValueError, match='tensor "q": expected rank 3, got 4'):
        attn.prefill(q[None], *arrays[1:], max_seqlen_q=5, run_keys=64)

    class Other:
        def __init__(self, array):
            self._array = array
            self.__dlpack__ = array.__dlpack__
            self.__dlpack_device__ = array.__dlpack_device__
            self.shape = array.shape

    with pytest.raises(ValueError, match="run_keys: expected tensors of torch or numpy"):
        attn.prefill(Other(q), *arrays[1:], max_seqlen_q=5, run_keys=64)


def test_no_sequences():
    """Rows of no sequence are what they are without runs."""
    q, k, v, table, lengths = make_batch([70, 3])
    ends, rows = np.zeros(1, np.int32), q[:1]
    o, lse = attn.prefill(rows, k, v, table[:0], lengths[:0], ends, max_seqlen_q=3, **_RUN)
    assert np.isnan(o).all() and np.isnan(lse).all()
