"""The torch operators of servers without a GPU: shapes, tracing and errors; their
kernel on the CPU is a float64 reference."""

import os
import pathlib
import subprocess
import sys

import attn
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn import torch_serving  # noqa: E402
from attn.serving import appending, cascading  # noqa: E402


def decode(q, k, v, table, lengths, sinks=None, layout="nhd", causal=True, *options):
    rows = q[:, :, None] if q.dim() == 3 else q
    if layout == "nhd":
        k, v = k.transpose(1, 2), v.transpose(1, 2)
    o = torch.zeros(*rows.shape[:3], v.shape[3], dtype=torch.float64)
    lse = torch.full(rows.shape[:3], -torch.inf, dtype=torch.float64)
    for b, length in enumerate(lengths.tolist()):
        ids = table[b, : -(-length // k.shape[2])].long()
        keys, values = (
            pool[ids].transpose(0, 1).flatten(1, 2)[:, :length].double() for pool in (k, v)
        )
        group = rows.shape[1] // keys.shape[0]
        keys, values = (each.repeat_interleave(group, 0) for each in (keys, values))
        scores = rows[b].double() @ keys.transpose(1, 2) / rows.shape[3] ** 0.5
        if length:
            o[b], lse[b] = torch.softmax(scores, -1) @ values, torch.logsumexp(scores, -1)
    # Laid out as the operator promises.
    if rows.shape[2] > 1 and rows.stride(1) < rows.stride(2):
        o = o.transpose(1, 2).contiguous().transpose(1, 2)
    o, lse = o.to(q.dtype), lse.float()
    return (o[:, :, 0].clone(), lse[:, :, 0].clone()) if q.dim() == 3 else (o, lse)


def decode_latent(q, pool, table, lengths, value_dim, scale, *options):
    keys = pool[:, :, None]
    scaled = (q.double() * scale * q.shape[-1] ** 0.5).to(torch.float64)
    o, lse = decode(scaled, keys, keys[..., :value_dim], table, lengths)
    return o.to(q.dtype), lse


def merge(o, lse, dtype=torch.float32):
    total = torch.logsumexp(lse, 0)
    return (torch.exp(lse - total)[..., None] * o).sum(0).to(dtype), total


@pytest.fixture
def on_cpu():
    """The operators compute the reference on the CPU."""

    def write(*operands, o, lse=None):
        result, log = decode(*operands)
        o.copy_(result)
        if lse is not None:
            lse.copy_(log)

    def write_latent(*operands, o, lse=None):
        result, log = decode_latent(*operands)
        o.copy_(result)
        if lse is not None:
            lse.copy_(log)

    def write_merged(*operands, o, lse):
        for target, source in zip((o, lse), merge(*operands), strict=True):
            target.copy_(source)

    with torch.library._scoped_library("attn", "IMPL") as library:
        library.impl("decode", lambda *operands: decode(*operands)[0], "CPU")
        library.impl("decode_lse", decode, "CPU")
        library.impl("decode_out", write, "CPU")
        library.impl("mla_decode", lambda *operands: decode_latent(*operands)[0], "CPU")
        library.impl("mla_decode_lse", decode_latent, "CPU")
        library.impl("mla_decode_out", write_latent, "CPU")
        library.impl("merge_states", merge, "CPU")
        library.impl("merge_states_out", write_merged, "CPU")
        yield


def make_batch(queries=0, layout="nhd"):
    order = (20, 16, 2, 32) if layout == "nhd" else (20, 2, 16, 32)
    k, v = (torch.randn(order).half() for _ in "kv")
    shape = (3, 4, 32) if queries == 0 else (3, 4, queries, 32)
    table = torch.randperm(20)[:18].reshape(3, 6).int()
    return torch.randn(shape).half(), k, v, table, torch.tensor([0, 17, 90], dtype=torch.int32)


@pytest.mark.parametrize("queries", [0, 3])
@pytest.mark.parametrize("layout", ["nhd", "hnd"])
def test_opcheck(on_cpu, queries, layout):
    batch = make_batch(queries, layout)
    for operator in (torch.ops.attn.decode, torch.ops.attn.decode_lse):
        torch.library.opcheck(operator, (*batch, None, layout))
    outputs = {"o": torch.empty_like(batch[0]), "lse": torch.empty(batch[0].shape[:-1])}
    torch.library.opcheck(torch.ops.attn.decode_out, (*batch, None, layout), outputs)


def make_latent():
    q, _, _, table, lengths = make_batch()
    return torch.randn(*q.shape[:2], 48).half(), torch.randn(20, 16, 48).half(), table, lengths


def test_opcheck_latent(on_cpu):
    batch = (*make_latent(), 32, 0.25)
    for operator in (torch.ops.attn.mla_decode, torch.ops.attn.mla_decode_lse):
        torch.library.opcheck(operator, batch)
    outputs = {"o": torch.empty(3, 4, 32).half(), "lse": torch.empty(3, 4)}
    torch.library.opcheck(torch.ops.attn.mla_decode_out, batch, outputs)


def test_latent_calls(on_cpu):
    batch, options = make_latent(), {"value_dim": 32, "scale": 0.25}
    o, lse = attn.mla_decode(*batch, **options, lse=True)
    want, want_lse = decode_latent(*batch, 32, 0.25)
    torch.testing.assert_close(o, want)
    torch.testing.assert_close(lse, want_lse)
    out = torch.empty_like(o)
    assert attn.mla_decode(*batch, **options, out=out) is out
    torch.testing.assert_close(out, want)
    assert attn.mla_decode(*batch, **options).shape == (3, 4, 32)
    with pytest.raises(attn.ArgumentError, match='tensor "kv_cache": expected a torch tensor'):
        attn.mla_decode(batch[0], [1], *batch[2:], **options)
    with pytest.raises(attn.ArgumentError, match="expected q of rank 3 or 4, got 2"):
        torch_serving._LATENT_DECODE.make(batch[0][0], *batch[1:], 32)


def test_opcheck_merge(on_cpu):
    states = torch.randn(3, 5, 4, 32), torch.randn(3, 5, 4)
    torch.library.opcheck(torch.ops.attn.merge_states, (*states, torch.float16))
    outputs = {"o": torch.empty(5, 4, 32), "lse": torch.empty(5, 4)}
    torch.library.opcheck(torch.ops.attn.merge_states_out, states, outputs)


def test_calls(on_cpu):
    """attn.decode and attn.merge_states go through the operators."""
    batch = make_batch()
    o, lse = attn.decode(*batch, lse=True)
    want, want_lse = decode(*batch)
    torch.testing.assert_close(o, want)
    torch.testing.assert_close(lse, want_lse)
    assert attn.decode(*batch).shape == (3, 4, 32)
    out, log = torch.empty_like(o), torch.empty_like(lse)
    assert attn.decode(*batch, out=out, lse=log) == (out, log)
    assert attn.decode(*batch, out=out) is out
    torch.testing.assert_close(out, want)
    turned = make_batch(3)
    turned = (turned[0].transpose(1, 2).contiguous().transpose(1, 2), *turned[1:])
    assert attn.decode(*turned).stride(1) == 32
    states = torch.randn(3, 5, 4, 32), torch.randn(3, 5, 4)
    merged, total = attn.merge_states(*states, dtype=torch.float16)
    assert merged.dtype == torch.float16 and total.shape == (5, 4)
    assert attn.merge_states(*states, out=merged, lse=total) == (merged, total)


def test_cascade(on_cpu):
    """Passes write their parts of the states, which one call merges."""
    q, k, v, table, lengths = make_batch()
    count = torch.tensor([21], dtype=torch.int32)
    ids = torch.tensor([page for page in range(20) if page not in table])
    levels = [attn.Level(ids[None].int(), count, 3), attn.Level(table, lengths)]
    o, lse = attn.cascade(q, k, v, levels, lse=True)
    states = [decode(q, k, v, ids.repeat(3, 1).int(), count.repeat(3)),
              decode(q, k, v, table, lengths)]  # fmt: skip
    want, total = merge(*(torch.stack([each[i].float() for each in states]) for i in (0, 1)))
    torch.testing.assert_close(o, want.half(), atol=2e-3, rtol=0)
    torch.testing.assert_close(lse, total)
    assert o.dtype == torch.float16 and o.shape == q.shape


def test_compiled(on_cpu):
    """torch.compile traces a call without a break."""
    batch = make_batch()
    function = torch.compile(lambda *each: attn.decode(*each) * 2, fullgraph=True, backend="eager")
    torch.testing.assert_close(function(*batch), decode(*batch)[0] * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"out": True}, 'tensor "lse": expected a tensor to write to'),
        ({"lse": True, "stream": 3}, "stream: expected none, since torch tensors use torch's"),
        ({"k_cache": [1]}, 'tensor "k_cache": expected a torch tensor as q, got list'),
    ],
)
def test_refused(change, message):
    names = ("q", "k_cache", "v_cache", "page_table", "kv_lengths")
    arguments = {**dict(zip(names, make_batch(), strict=True)), **change}
    if change.get("out"):
        arguments |= {"out": torch.empty(3, 4, 32), "lse": True}
    with pytest.raises(attn.ArgumentError) as error:
        attn.decode(**arguments)
    assert message in str(error.value)


def test_rank():
    q, k, v, table, lengths = make_batch()
    with pytest.raises(attn.ArgumentError, match="expected q of rank 3 or 4 and pools of rank 4"):
        attn.decode(q[0], k, v, table, lengths)
    with pytest.raises(attn.ArgumentError, match='tensor "out": expected a tensor'):
        attn.merge_states(torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 4), lse=torch.zeros(3, 4))


def test_packed_shapes():
    """The fake kernels of attn.prefill, and an operator's arguments from the schema."""
    _, k, v, table, lengths = make_batch()
    q, counts = torch.zeros(7, 4, 32).half(), torch.tensor([0, 3, 3, 7], dtype=torch.int32)
    o, lse = torch_serving._PREFILL.make_lse(q, k, v, table, lengths, counts, 4)
    assert o.shape == q.shape and o.dtype == q.dtype
    assert lse.shape == (7, 4) and lse.dtype == torch.float32
    with pytest.raises(attn.ArgumentError, match="expected q of rank 3 and pools of rank 4, got 4"):
        torch_serving._PREFILL.make(q[None], k, v, table, lengths, counts, 4)


def test_what_operators_launch(monkeypatch):
    """Arguments arrive under their names, those with defaults too."""
    launches = []
    monkeypatch.setattr(torch_serving, "_is_on_host", lambda tensor: False)
    monkeypatch.setattr(
        torch_serving.decode_launch, "launch_decode", lambda tensors, settings, *_: launches.append((tensors, settings))
    )  # fmt: skip
    q, k, v, table, lengths = batch = make_batch()
    seen = torch.ones(90, dtype=torch.bool)
    scales = torch.ones(1), torch.ones(2)
    attn.decode(
        *batch, window=(5, None), softcap=2.0, kv_splits=3, k_scale=scales[0], v_scale=scales[1],
        mask_mod=lambda b, h, q_idx, kv_idx: seen[kv_idx], lse=True,
    )  # fmt: skip
    tensors, settings = launches[-1]
    names = (
        "q",
        "k_cache",
        "v_cache",
        "page_table",
        "kv_lengths",
        "k_scale",
        "v_scale",
        "capture0",
    )
    for name, tensor in zip(names, (*batch, *scales, seen), strict=True):
        assert tensors[name] is tensor
    assert tensors["o"].shape == q.shape and tensors["lse"].shape == q.shape[:2]
    assert tensors["sinks"] is None and settings.window == (5, -1) and settings.softcap == 2.0
    assert (
        settings.kv_splits == 3 and settings.layout == "nhd" and "capture" not in settings.score_mod
    )
    assert "%mask_mod0" in settings.mask_mod
    state = torch.zeros(q.shape), torch.zeros(q.shape[:-1])
    attn.decode(*batch, init=state, lse=True)
    tensors, _ = launches[-1]
    assert tensors["init_o"] is state[0] and tensors["init_lse"] is state[1]
    with pytest.raises(attn.ArgumentError, match='tensor "init_lse": expected a torch tensor as q'):
        attn.decode(*batch, init=(state[0], 1.0))
    rows, pool, *rest = make_latent()
    attn.mla_decode(rows, pool, *rest, value_dim=32, scale=0.25, causal=False)
    assert launches[-1][0]["init_o"] is None
    tensors, settings = launches[-1]
    assert tensors["k_cache"] is pool and tensors["v_cache"] is None and tensors["lse"] is None
    assert (settings.value_dim, settings.scale, settings.causal) == (32, 0.25, False)
    counts, sinks = torch.tensor([0, 1, 2, 3], dtype=torch.int32), torch.zeros(4)
    out = torch.empty_like(q)
    assert (
        attn.prefill(q, k, v, table, lengths, counts, max_seqlen_q=1, sinks=sinks, out=out) is out
    )
    tensors, settings = launches[-1]
    assert tensors["cu_seqlens_q"] is counts and tensors["sinks"] is sinks and tensors["o"] is out
    assert settings.max_seqlen_q == 1 and settings.scale is None
    attn.prefill(
        q, k, v, table, lengths, counts, max_seqlen_q=1, k_scale=scales[0], v_scale=scales[1], out=out
    )  # fmt: skip
    tensors, _ = launches[-1]
    assert tensors["k_scale"] is scales[0] and tensors["v_scale"] is scales[1]
    assert tensors["k_scales"] is None and tensors["v_scales"] is None


def test_rows_that_no_kernel_writes():
    """New outputs of packed queries begin as NaN, of whatever type; others are all written."""
    for dtype in (
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    ):
        assert torch_serving._PREFILL._erase(torch.zeros(2, 3).to(dtype)).float().isnan().all()
    assert not torch_serving._DECODE._erase(torch.zeros(2, 3)).isnan().any()


def test_groups_that_do_not_cover_the_batch(on_cpu, monkeypatch):
    """What no group has, which only a device knows, has no keys in its level."""
    q, k, v, table, _ = make_batch()
    lengths = torch.tensor([5, 17, 90], dtype=torch.int32)
    first = attn.Level(table[:1], lengths[:1], torch.tensor([1, 1], dtype=torch.int32))
    real = cascading._attend
    monkeypatch.setattr(
        cascading,
        "_attend",
        lambda rows, pools, level, *rest: (
            None if level is first else real(rows, pools, level, *rest)
        ),
    )
    o, lse = attn.cascade(q, k, v, [first, attn.Level(table, lengths)], lse=True)
    want, want_lse = decode(q, k, v, table, lengths)
    torch.testing.assert_close(o, want)
    torch.testing.assert_close(lse, want_lse)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_append(dtype):
    """torch's operators, on any device: bits of 8-bit floats too."""
    pools = [torch.zeros(6, 4, 2, 8).to(dtype) for _ in "kv"]
    rows = [torch.randn(5, 2, 8).to(dtype) for _ in "kv"]
    table = torch.tensor([[3, 1], [5, -1]], dtype=torch.int32)
    lengths, counts = (
        torch.tensor([6, 5], dtype=torch.int32),
        torch.tensor([0, 3, 5], dtype=torch.int32),
    )
    appending._append_torch(tuple(zip(rows, pools)), table, lengths, counts)
    for each, pool in zip(rows, pools):
        want = torch.zeros(6, 4, 2, 8)
        want[3, 3], want[1, 0], want[1, 1], want[5, 3] = each[:4].float()
        torch.testing.assert_close(pool.float(), want)


def test_arguments_that_are_no_tensors():
    batch = make_batch()
    partial = torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 4)
    for call, name in (
        (lambda: attn.decode(*batch, out=3), "out"),
        (lambda: attn.decode(batch[0], None, *batch[2:]), "k_cache"),
        (lambda: attn.decode(batch[0], [1], *batch[2:]), "k_cache"),
        (lambda: attn.merge_states(partial[0], None), "partial_lse"),
        (lambda: attn.merge_states(*partial, out=partial[0][0], lse=3), "lse"),
        (lambda: attn.cascade(*batch[:3], [attn.Level(batch[3], None)]), "kv_lengths"),
    ):
        with pytest.raises(attn.ArgumentError, match=f'"{name}": expected a'):
            call()
    # torch would do nothing at all.
    for given in ({"partial_lse": partial[1].to("meta")}, {"out": partial[0][0].to("meta")}):
        arguments = dict(zip(("partial_o", "partial_lse"), partial, strict=True)) | given
        arguments |= {"lse": partial[1][0]} if "out" in given else {}
        with pytest.raises(attn.ArgumentError, match="expected it on cpu as partial_o, got meta"):
            attn.merge_states(**arguments)
    with pytest.raises(attn.ArgumentError, match="lse: expected True or False, got 3"):
        attn.decode(*batch, lse=3)


@pytest.mark.skipif(pathlib.Path("/proc/driver/nvidia/version").exists(), reason="a driver is here")
def test_packed_results_of_a_plan():
    """On the stand-in driver, in a process whose torch has a GPU."""
    script = pathlib.Path(__file__).resolve().parents[1] / "on_stand_in.py"
    command = [sys.executable, str(script), "--chip=sm_80", "gpu_packed.py"]
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rows_that_are_not_divided(on_cpu):
    o, sums = torch.randn(3, 5, 4, 32), torch.rand(3, 5, 4) + 1
    rows = torch.stack((torch.randn(3, 5, 4), sums), -1)
    got = attn.merge_states(o, rows)
    want = merge(o / sums[..., None], rows[..., 0] + sums.log())
    for each, expected in zip(got, want, strict=True):
        torch.testing.assert_close(each, expected)
    with pytest.raises(attn.ArgumentError, match="elements of f32, got torch.float16"):
        attn.merge_states(o.half(), rows)
    with pytest.raises(attn.ArgumentError, match="both of numpy or both of torch"):
        attn.merge_states(o, rows.numpy())
