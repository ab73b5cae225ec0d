"""torch tensors in host memory wherever numpy's arrays are taken."""

import warnings

import attn
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn.tensors import host_tensors  # noqa: E402

TOLERANCES = {torch.float16: 4e-3, torch.bfloat16: 3e-2}


def attend(q, k, v, *, hidden=None, scale=None):
    """Attention in float64; `hidden` is True where a key is not seen."""
    q, k, v = (each.double() for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)


def make(*shape, dtype=torch.float16):
    return torch.randn(*shape).to(dtype)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("major", [False, True], ids=["bhnd", "bnhd"])
def test_attention(dtype, major, monkeypatch):
    """On the simulator, with results that lie in memory as q does; one kernel for all lengths."""
    monkeypatch.setenv("ATTN_CHIP", "sm_90a" if major else "sm_80")
    q = (
        make(1, 40, 4, 32, dtype=dtype).transpose(1, 2)
        if major
        else make(1, 4, 40, 32, dtype=dtype)
    )
    k, v = make(1, 2, 53, 32, dtype=dtype), make(1, 2, 53, 32, dtype=dtype)
    hidden = torch.ones(40, 53).triu(1).bool()
    o, lse = attn.attention(q, k, v, causal=True, lse=True)
    want, log = attend(q, k, v, hidden=hidden)
    assert o.dtype == dtype and o.stride() == q.stride() and lse.dtype == torch.float32
    assert (o - want).abs().max() < TOLERANCES[dtype] and (lse - log).abs().max() < 2e-3
    out, into = torch.empty_like(o), torch.empty_like(lse)
    given = attn.attention(q, k, v, causal=True, out=out, lse=into)
    assert given[0] is out and torch.equal(out, o) and torch.equal(into, lse)


@pytest.mark.parametrize("chip", ["sm_89", "sm_100a"])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_narrow_operands(chip, dtype, monkeypatch):
    """8-bit queries, keys and values have kernels wherever the chip multiplies them."""
    if dtype == torch.float8_e5m2:
        pytest.importorskip("ml_dtypes", reason="numpy has no e5m2")
    monkeypatch.setenv("ATTN_CHIP", chip)
    q, k, v = (make(1, heads, count, 32).to(dtype) for heads, count in ((4, 20), (2, 53), (2, 53)))
    o, lse = attn.attention(q, k, v, lse=True)
    want, log = attend(q, k, v)
    assert o.dtype == torch.bfloat16 and (lse - log).abs().max() < 2e-3
    assert (o - want).norm() < 0.08 * want.norm()
    monkeypatch.setenv("ATTN_CHIP", "sm_80")
    with pytest.raises(attn.CompileError, match="8-bit queries on sm_80, which has no mma.sync"):
        attn.attention(q, k, v)


def test_few_lengths_are_compiled(count_kernels):
    """A cache that grows by a key for each call has two kernels."""
    q = make(1, 2, 1, 32)
    for keys in range(20, 26):
        k = make(1, 2, keys, 32)
        assert (attn.attention(q, k, k) - attend(q, k, k)[0]).abs().max() < 4e-3
    attn.attention(make(1, 2, 9, 32), k, k)
    attn.attention(make(1, 2, 10, 32), k, k)
    assert count_kernels() == 2


@pytest.mark.parametrize("chip", ["sm_80", "sm_90a", "sm_100a"])
def test_no_keys(chip, monkeypatch):
    """Results of no keys are zeros, whose LSE is -inf; of no queries there are none."""
    monkeypatch.setenv("ATTN_CHIP", chip)
    nothing, counts = make(1, 2, 0, 32), torch.tensor([0, 20, 40], dtype=torch.int32)
    for queries in (1, 40):
        o, lse = attn.attention(make(1, 2, queries, 32), nothing, nothing, lse=True)
        assert o.shape == (1, 2, queries, 32) and (o == 0).all() and (lse == -torch.inf).all()
    none = torch.zeros_like(counts)
    packed = {"cu_seqlens_q": counts, "cu_seqlens_k": none, "max_seqlen_q": 20}
    o, lse = attn.attention(make(40, 2, 32), *[make(0, 2, 32)] * 2, lse=True, **packed)
    assert (o == 0).all() and (lse == -torch.inf).all()
    k = make(1, 2, 33, 32)
    assert attn.attention(nothing, k, k).shape == nothing.shape
    assert attn.attention(k[:0], k[:0], k[:0]).shape == (0, 2, 33, 32)


def test_packed():
    counts, keys = (torch.tensor(each, dtype=torch.int32) for each in ([0, 5, 17], [0, 9, 30]))
    q, k = make(19, 4, 32), make(30, 2, 32)
    o, lse = attn.attention(q, k, k, cu_seqlens_q=counts, cu_seqlens_k=keys, lse=True)
    for begin, end, first, last in ((0, 5, 0, 9), (5, 17, 9, 30)):
        rows = (each.transpose(0, 1)[None] for each in (q[begin:end], k[first:last], k[first:last]))
        want, log = attend(*rows)
        assert (o[begin:end] - want[0].transpose(0, 1)).abs().max() < 4e-3
        assert (lse[:, begin:end] - log[0]).abs().max() < 2e-3
    assert o[17:].isnan().all() and lse[:, 17:].isnan().all()


WRONG_LENGTHS = [
    ({"cu_seqlens_q": [0, 5, 17]}, '"cu_seqlens_q": expected a torch tensor as q, got list'),
    ({"cu_seqlens_k": (0, 9, 30)}, '"cu_seqlens_k": expected a torch tensor as q, got tuple'),
    ({"cu_seqlens_k": None}, '"cu_seqlens_k": expected one beside the other cu_seqlens, got none'),
    ({"cu_seqlens_q": torch.tensor([0, 5, 17])}, '"cu_seqlens_q": expected elements of i32, got i64'),
    ({"cu_seqlens_q": torch.int32}, '"cu_seqlens_q": expected a torch tensor as q, got dtype'),
    ({"cu_seqlens_q": [0, 17, 5]}, '"cu_seqlens_q": expected sequence 1 to end at 17 to 19 of 19 rows, got 5'),
    ({"cu_seqlens_k": [0, 30, 9]}, '"cu_seqlens_k": expected sequence 1 to end at 30 to 30 of 30 rows, got 9'),
    ({"cu_seqlens_k": [0, 9, 31]}, '"cu_seqlens_k": expected sequence 1 to end at 9 to 30 of 30 rows, got 31'),
    ({"cu_seqlens_k": [0, 30]}, '"cu_seqlens_k": expected as many numbers as cu_seqlens_q, 3, got 2'),
    ({"max_seqlen_q": 11}, "max_seqlen_q: expected at least 12, the queries of sequence 1, got 11"),
    ({"max_seqlen_q": 0}, "max_seqlen_q: expected at least 5, the queries of sequence 0, got 0"),
    ({"sinks": torch.zeros(3)}, r'"sinks": expected shape \[4\], got \[3\]'),
    ({"out": torch.zeros(19, 4, 16)}, r'"out": expected shape \[19, 4, 32\], got \[19, 4, 16\]'),
    ({"out": np.zeros((19, 4, 32))}, '"out": expected a torch tensor as q, got ndarray'),
    ({"out": torch.zeros(19, 4, 32, device="meta")}, '"out": expected it on cpu as q, got meta'),
    ({"out": torch.zeros(19, 4, 32), "lse": torch.zeros(19, 4)}, r'"lse": expected shape \[4, 19\], got \[19, 4\]'),
]


@pytest.mark.parametrize("changed, message", WRONG_LENGTHS)
def test_wrong_lengths(changed, message):
    """Of sequences in one tensor, and of what is written beside them."""
    given = {
        "cu_seqlens_q": torch.tensor([0, 5, 17], dtype=torch.int32),
        "cu_seqlens_k": torch.tensor([0, 9, 30], dtype=torch.int32),
    }
    for name, each in changed.items():
        is_list = isinstance(each, list) and "got list" not in message
        given[name] = torch.tensor(each, dtype=torch.int32) if is_list else each
    with pytest.raises(attn.ArgumentError, match=message):
        attn.attention(make(19, 4, 32), make(30, 2, 32), make(30, 2, 32), **given)


def test_bounds_of_no_lengths():
    q = make(1, 2, 9, 32)
    with pytest.raises(attn.ArgumentError, match="max_seqlen_q: expected none without cu_seqlens_q"):
        attn.attention(q, q, q, max_seqlen_q=9)


def test_captured():
    """A mask and a bias that functions read, of this call's extents."""
    for queries, keys in ((33, 40), (20, 51)):
        q, k = make(2, 2, queries, 32), make(2, 2, keys, 32)
        seen = torch.rand(2, 1, queries, keys) > 0.3
        bias = torch.randn(2, queries, keys)
        o = attn.attention(
            q, k, k,
            score_mod=lambda s, b, h, i, j: s + bias[h, i, j],
            mask_mod=lambda b, h, i, j: seen[b, 0, i, j],
        )  # fmt: skip
        scores = q.double() @ k.double().mT / 32**0.5 + bias
        want = torch.softmax(scores.masked_fill(~seen, -torch.inf), -1) @ k.double()
        assert (o - want).abs().max() < 4e-3


def test_compiled():
    """Under torch.compile, which calls the operator."""
    q = make(1, 2, 16, 32)
    function = torch.compile(lambda each: attn.attention(each, each, each) * 2, backend="aot_eager")
    assert (function(q) - 2 * attend(q, q, q)[0]).abs().max() < 8e-3


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_kernels(dtype):
    """Kernel.run and Kernel.simulate give tensors for tensors."""
    kernel = attn.compile(q=(1, 2, 40, 32), dtype=dtype)
    q = make(1, 2, 40, 32, dtype=dtype)
    for outputs in (kernel.run(q=q, k=q, v=q), kernel.simulate(q=q, k=q, v=q).outputs):
        assert outputs["o"].dtype == dtype and outputs["lse"].dtype == torch.float32
        assert (outputs["o"] - attend(q, q, q)[0]).abs().max() < TOLERANCES[dtype]


def test_narrow_types():
    """8-bit floats by their bits; one of another kind is an error."""
    kernel = attn.compile(
        q=(1, 1, 64, 64), dtype=torch.float8_e4m3fn, out_type="float16", chip="sm_90a"
    )
    q = make(1, 1, 64, 64, dtype=torch.float32).to(torch.float8_e4m3fn)
    o = kernel.run(q=q, k=q, v=q)["o"]
    want = attend(*(each.float() for each in (q, q, q)))[0]
    assert (o - want).abs().max() < 0.1
    with pytest.raises(
        attn.ArgumentTypeError, match="expected elements of float8_e4m3fn, got float8_e5m2"
    ):
        kernel.run(q=q, k=q.float().to(torch.float8_e5m2), v=q)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_serving(dtype):
    """Pages, and partial results."""
    pool = make(6, 8, 2, 32, dtype=dtype)
    table = torch.tensor([[4, 0, 2], [1, 5, 0]], dtype=torch.int32)
    lengths = torch.tensor([20, 0], dtype=torch.int32)
    q = make(2, 4, 32, dtype=dtype)
    o, lse = attn.decode(q, pool, pool, table, lengths, lse=True)
    keys = pool[table[0].long()].reshape(1, 24, 2, 32)[:, :20].transpose(1, 2)
    want, log = attend(q[:1, :, None], keys, keys)
    assert o.dtype == dtype and (o[:1] - want[:, :, 0]).abs().max() < TOLERANCES[dtype]
    assert (lse[:1] - log[:, :, 0]).abs().max() < 2e-3 and not o[1].any()
    out = torch.empty_like(o)
    assert attn.decode(q, pool, pool, table, lengths, out=out) is out and torch.equal(out, o)
    states = torch.randn(3, 2, 4, 1, 32), torch.randn(3, 2, 4, 1)
    merged, _ = attn.merge_states(*states)
    weights = torch.softmax(states[1].double(), 0)[..., None]
    assert (merged - (weights * states[0]).sum(0)).abs().max() < 1e-5
    new = make(2, 2, 32, dtype=dtype)
    before = pool.clone()
    attn.append_kv(new, new, pool, pool.clone(), table, torch.tensor([20, 1], dtype=torch.int32))
    assert torch.equal(pool[2, 3], new[0]) and torch.equal(pool[1, 0], new[1])
    assert (pool != before).sum() <= 2 * new[0].numel()


def test_gradients(monkeypatch):
    """Taken without, with a sentence, said once, where no gradient can be asked for."""
    from attn.tensors import host_tensors

    monkeypatch.setattr(host_tensors, "_said_gradient", False)
    kernel = attn.compile(q=(1, 1, 64, 32), dtype="float16")
    q = make(1, 1, 64, 32).requires_grad_()
    with pytest.warns(attn.GradientRemark, match='tensor "q" requires grad, and results do not'):
        kernel.run(q=q, k=q, v=q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.run(q=q, k=q, v=q)
    with pytest.raises(attn.ArgumentError, match="no backward pass"):
        attn.attention(q, q, q)


def test_arrays_still_come_out_as_arrays():
    kernel = attn.compile(q=(1, 1, 64, 32), dtype="float16")
    q = np.random.randn(1, 1, 64, 32).astype(np.float16)
    assert isinstance(kernel.run(q=q, k=q, v=torch.from_numpy(q))["o"], np.ndarray)


def test_powers_of_two():
    """e8m0, which numpy lacks, both ways."""
    dtype = getattr(torch, "float8_e8m0fnu", None)
    if dtype is None:
        pytest.skip("torch has no e8m0")
    powers = torch.tensor([[0.25, 8.0]]).to(dtype)
    back = host_tensors._to_element(powers.view(torch.uint8).numpy(), "f8E8M0FNU")
    assert back.dtype == dtype and torch.equal(back.float(), powers.float())
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(attn.ArgumentError, match="float8_e8m0fnu in host memory need"):
            host_tensors.to_array("o_scales", powers)
        return
    array = host_tensors.to_array("o_scales", powers)
    assert array.dtype == ml_dtypes.float8_e8m0fnu
    assert array.astype(np.float32).tolist() == [[0.25, 8]]
    assert host_tensors.to_tensor(array).dtype == dtype


#: torch 2.8 traces neither.
TRACED = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 11)


@pytest.mark.skipif(not TRACED, reason="this torch does not trace the call")
def test_appended_by_compiled_code():
    pools = make(6, 16, 2, 64), make(6, 16, 2, 64)
    copies = [each.clone() for each in pools]
    table, lengths = torch.arange(6, dtype=torch.int32).reshape(2, 3), torch.tensor([40, 0], dtype=torch.int32)
    rows = make(2, 2, 64), make(2, 2, 64)
    torch._dynamo.reset()
    torch.compile(attn.append_kv, fullgraph=True, backend="eager")(*rows, *pools, table, lengths)
    attn.append_kv(*rows, *copies, table, lengths)
    for pool, copy, row in zip(pools, copies, rows, strict=True):
        assert torch.equal(pool, copy) and torch.equal(pool[2, 7], row[0])


def read_pages(call, pools):
    """The call on two sequences of q, whose numbers are `numbers`."""
    table = torch.arange(6, dtype=torch.int32).reshape(2, 3)

    def attend(q, lengths, numbers):
        return call(q, *pools, table, lengths, **numbers, lse=True)

    return attend


POOLS = make(6, 16, 2, 64), make(6, 16, 2, 64)
ENDS = torch.tensor([0, 3, 8], dtype=torch.int32)
LENGTHS = torch.tensor([40, 21], dtype=torch.int32)


def take_gradient(call, x):
    return torch.func.grad(lambda x: call(x).float().sum())(x)


def take_tangent(call, x):
    with torch.autograd.forward_ad.dual_level():
        return call(torch.autograd.forward_ad.make_dual(x, x))


@pytest.mark.parametrize(
    "name, derive",
    [
        *((name, take_gradient) for name in ("attention", "decode", "mla_decode", "prefill", "merge_states")),
        ("attention", lambda call, x: torch.func.jvp(call, (x,), (x,))),
        ("attention", take_tangent),
        ("decode", take_tangent),
        ("decode", torch.no_grad()(take_tangent)),
        ("attention", torch.inference_mode()(lambda call, x: torch.func.jvp(call, (x,), (x,)))),
        ("attention", lambda call, x: torch.vmap(lambda x: take_gradient(call, x))(x[None])),
        ("attention", lambda call, x: take_gradient(lambda x: torch.vmap(call)(x[None]), x)),
    ],
)
def test_derivatives(name, derive):
    """torch would take them to be zero; what is not followed is computed."""
    if name == "merge_states":
        x, logs = torch.randn(2, 3, 4, 32), torch.randn(2, 3, 4)
        call = lambda x: attn.merge_states(x, logs)[0]  # noqa: E731
    else:
        attend, x, (numbers, *_) = NUMBERS[name]
        call = lambda x: attend(x, LENGTHS, numbers)[0]  # noqa: E731
    with pytest.raises(attn.ArgumentError, match="no derivatives"):
        derive(call, x)
    # A part of the derivative that the call has no part in.
    assert torch.equal(take_gradient(lambda x: x + call(x.detach()).float().sum(), x), torch.ones_like(x))


#: Calls, q of each, and numbers that differ from call to call.
NUMBERS = {
    "attention": (
        lambda q, lengths, numbers: attn.attention(q, q, q, lse=True, **numbers),
        make(2, 2, 20, 64),
        [{"scale": 0.1 * n, "softcap": 2.0 + n, "window": (3 + n, 5)} for n in (1, 2, 3)],
    ),
    "decode": (
        read_pages(attn.decode, POOLS),
        make(2, 4, 64),
        [{"scale": 0.1 * n, "softcap": 2.0 + n, "window": (3 + n, None), "kv_splits": n, "pad": True} for n in (1, 2)],
    ),
    "mla_decode": (
        read_pages(attn.mla_decode, [make(6, 16, 96)]),
        make(2, 16, 96),
        [{"scale": 0.1 * n, "value_dim": 32 * n} for n in (1, 2)],
    ),
    "flex_attention": (
        lambda q, lengths, numbers: attn.flex_attention(q, q, q, return_lse=True, **numbers),
        make(2, 2, 20, 36),
        [{"scale": 0.1 * n} for n in (1, 2)],
    ),
    "prefill": (
        read_pages(lambda *given, **numbers: attn.prefill(*given, ENDS, **numbers), POOLS),
        make(8, 4, 64),
        [{"max_seqlen_q": 4 + n, "scale": 0.1 * n, "out_scale": 2.0 * n} for n in (1, 2)],
    ),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_compiled_code(name, dynamic):
    """torch.compile makes symbols of them, of all or of those that have changed."""
    if name == "flex_attention" and not TRACED:
        pytest.skip("this torch does not trace the call")
    attend, q, numbers = NUMBERS[name]
    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True, dynamic=dynamic, backend="eager")
    for each in numbers:
        given = q, LENGTHS, each
        for got, want in zip(compiled(*given), attend(*given), strict=True):
            assert torch.equal(got.view(torch.uint8), want.view(torch.uint8))
