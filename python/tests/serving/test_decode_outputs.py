"""Outputs of 8 bits, latent operands apart, and plans with a state to go on from, on the
simulator."""

import attn
import numpy as np
import pytest
from attn.serving import decode_launch
from attn.tensors import tensor_views
from test_decode import (
    DIM,
    HEADS,
    MLA_HEADS,
    PAGE,
    VALUES,
    Function,
    Tensor,
    attend,
    attend_latent,
    check,
    driver,  # noqa: F401
    make_batch,
    make_latent,
    make_latent_plan,
    make_plan,
    make_tensors,
    refuse,
)
from test_decode_init import make_state, merge
from test_decode_narrow import from_e4m3

pytestmark = pytest.mark.usefixtures("without_gpu")


@pytest.mark.parametrize("splits", [1, 3])
def test_output_of_8_bits(splits):
    """Rounding to nearest: a relative error of 1/16 at most, and less than that of the result."""
    batch = make_batch([100, 0, 17])
    want, log = attend(*batch)
    o, lse = attn.decode(*batch, out_scale=32.0, kv_splits=splits, lse=True)
    assert o.dtype == np.uint8
    np.testing.assert_allclose(from_e4m3(o) / 32, want, rtol=0.07, atol=4e-3)
    check([lse], [log])


@pytest.mark.parametrize("splits", [1, 3])
def test_scaled_groups(splits):
    """What scales say is the largest number of a group; rows without keys have 1."""
    batch = make_batch([100, 0, 17])
    plan = make_plan(out_type="float8_e4m3fn", out_group=DIM // 2, lse=True, kv_splits=splits)
    assert plan.splits == splits
    plan.plan(batch[4], batch[3])
    o, lse, scales = plan.run(*batch[:3])
    want, log = attend(*batch)
    assert scales.shape == (3, HEADS, 2) and (scales[1] == 1).all()
    most = np.abs(want.reshape(3, HEADS, 2, -1)).max(-1)
    np.testing.assert_allclose(scales[[0, 2]] * 448, most[[0, 2]], rtol=1e-2)
    got = from_e4m3(o) * scales.repeat(DIM // 2, -1)
    np.testing.assert_allclose(got, want, rtol=0.07, atol=4e-3)
    check([lse], [log])


@pytest.mark.parametrize("splits", [1, 3])
def test_results_of_4_bits(splits):
    """Of rows without keys numbers and scales are zeros."""
    batch = make_batch([100, 0, 17])
    options = {"out_type": "f4E2M1FN", "out_group": 16, "out_scale": 3.0}
    plan = make_plan(**options, lse=True, kv_splits=splits)
    assert plan.splits == splits
    plan.plan(batch[4], batch[3])
    o, lse, scales = plan.run(*batch[:3])
    want, log = attend(*batch)
    assert o.dtype == np.uint8 and o.shape == (3, HEADS, DIM // 2)
    assert scales.dtype == np.uint8 and scales.shape == (3, HEADS, DIM // 16)
    assert not o[1].any() and not scales[1].any()
    most = np.abs(want.reshape(3, HEADS, -1, 16)).max(-1).repeat(16, -1)
    assert (abs(attn.unpack_nvfp4(o, scales, 3.0) - want) <= 0.18 * most + 2e-3).all()
    check([lse], [log])


def test_latent_results_of_4_bits():
    q, pool, table, lengths = make_latent([100, 0, 17])
    plan = make_latent_plan(out_type="f4E2M1FN", out_group=16)
    plan.plan(lengths, table)
    want = attend_latent(q, pool, table, lengths, 0.125)[0]
    most = np.abs(want.reshape(3, MLA_HEADS, -1, 16)).max(-1).repeat(16, -1)
    assert (abs(attn.unpack_nvfp4(*plan.run(q, pool)) - want) <= 0.18 * most + 2e-3).all()


def test_scaled_groups_of_latent_rows():
    """What the schedule cannot scale itself is merged from one run."""
    q, pool, table, lengths = make_latent([100, 0, 17])
    plan = make_latent_plan(out_type="float8_e4m3fn", out_group=32)
    plan.plan(lengths, table)
    o, scales = plan.run(q, pool)
    want = attend_latent(q, pool, table, lengths, 0.125)[0]
    assert scales.shape == (3, MLA_HEADS, VALUES // 32)
    got = from_e4m3(o) * scales.repeat(32, -1)
    np.testing.assert_allclose(got, want, rtol=0.07, atol=4e-3)


def test_refused_outputs():
    batch = make_batch([17])
    with pytest.raises(ValueError, match="out_scale: expected a finite number, got nan"):
        attn.decode(*batch, out_scale=float("nan"))
    refuse(
        "out_scale: expected one with an output of f8E4M3FN", make_plan, out_type="float8_e4m3fn"
    )
    message = "out_scale: expected none with an output of f16"
    refuse(message, make_plan, out_type="float16", out_scale=2.0)
    refuse("out_scale: expected none beside scales of the output",
           make_plan, out_type="float8_e4m3fn", out_scale=2.0, out_group=16)  # fmt: skip
    refuse("out_group: expected a divisor of 64 columns, got 40",
           make_plan, out_type="float8_e4m3fn", out_group=DIM // 2 + 8)  # fmt: skip
    refuse("out_group: expected 16 with an output of f4E2M1FN, got none",
           make_plan, out_type="f4E2M1FN")  # fmt: skip
    refuse(f"out_group: expected 16 with an output of f4E2M1FN, got {DIM // 2}",
           make_plan, out_type="f4E2M1FN", out_group=DIM // 2)  # fmt: skip


def test_results_of_numpy_are_new():
    batch = make_batch([100, 0, 17])
    plan = make_plan(lse=True)
    plan.plan(batch[4], batch[3])
    for name in ("out", "lse", "out_scales"):
        refuse(f"{name}: expected none with numpy arrays, whose results are new",
               plan.run, *batch[:3], **{name: batch[0]})  # fmt: skip


def test_batch_without_queries(monkeypatch):
    """Nothing is compiled: maps of TMA have no extent of 0."""
    monkeypatch.setattr(decode_launch, "get_runner", None)
    q, k, v, table, lengths = make_batch([100, 0, 17])
    o, lse = attn.decode(q[:0], k, v, table[:0], lengths[:0], lse=True)
    assert o.shape == (0, *q.shape[1:]) and lse.shape == (0, HEADS)
    o, lse = attn.prefill(
        q[:0], k, v, table, lengths, np.int32([0, 0, 0, 0]), max_seqlen_q=5, lse=True
    )
    assert o.shape == (0, *q.shape[1:]) and lse.shape == (0, HEADS) and o.dtype == np.float16


def test_plan_with_a_state():
    batch = make_batch([100, 0, 17])
    state = make_state(batch[0].shape, np.float16)
    plan = make_plan(init="float16", lse=True)
    plan.plan(batch[4], batch[3])
    check(plan.run(*batch[:3], init=state), merge(state, attn.decode(*batch, lse=True)))
    refuse('tensor "init": expected a tensor, as the plan was made', plan.run, *batch[:3])
    refuse('tensor "init_o": expected elements of f16, got f32',
           plan.run, *batch[:3], init=(state[0].astype(np.float32), state[1]))  # fmt: skip
    refuse('tensor "init_lse": expected the shape that the plan was made for,',
           plan.run, *batch[:3], init=(state[0], state[1][:, :2]))  # fmt: skip
    plain = make_plan()
    plain.plan(batch[4], batch[3])
    refuse('tensor "init": expected none, as the plan was made', plain.run, *batch[:3], init=state)


@pytest.mark.parametrize("queries", [1, 2])
def test_latent_operands_apart(queries):
    q, pool, table, lengths = make_latent([100, 2, 17], queries)
    want = attend_latent(q, pool, table, lengths, 0.125)
    options = {"value_dim": VALUES, "scale": 0.125, "lse": True}
    parts = q[..., :VALUES].copy(), q[..., VALUES:].copy()
    rows, rope = pool[..., :VALUES].copy(), pool[..., VALUES:].copy()
    check(
        attn.mla_decode(parts[0], rows, table, lengths, q_rope=parts[1], k_rope=rope, **options),
        want,
    )
    check(attn.mla_decode(q, rows, table, lengths, k_rope=pool[..., VALUES:], **options), want)
    plan = make_latent_plan(max_pages=table.shape[1], queries=queries, rope_apart=True, lse=True)
    plan.plan(lengths, table)
    check(plan.run(parts[0], rows, q_rope=parts[1], k_rope=rope), want)
    refuse(
        'tensor "q_rope": expected a tensor, as the plan was made',
        plan.run,
        parts[0],
        rows,
        k_rope=rope,
    )
    refuse('tensor "k_rope": expected a tensor, as the plan was made',
           plan.run, parts[0], rows, q_rope=parts[1])  # fmt: skip


def test_refused_parts():
    q, pool, table, lengths = make_latent([17])
    options = {"value_dim": VALUES, "scale": 0.125}
    rows, rope = pool[..., :VALUES], pool[..., VALUES:]
    first, second = q[..., :VALUES], q[..., VALUES:]
    batch = (table, lengths)
    refuse('tensor "q_rope": expected none without k_rope',
           attn.mla_decode, first, pool, *batch, q_rope=second, **options)  # fmt: skip
    refuse('tensor "q_rope": expected elements as q, f16, got f32',
           attn.mla_decode, first, rows, *batch, k_rope=rope,
           q_rope=second.astype(np.float32), **options)  # fmt: skip
    refuse('tensor "q_rope": expected the shape of q but for its columns,',
           attn.mla_decode, first, rows, *batch, k_rope=rope, q_rope=second[:, :4], **options)  # fmt: skip
    refuse("rope_apart: expected a latent plan of 16-bit pools", make_plan, rope_apart=True)
    refuse('tensor "k_rope": expected rotated columns, got none',
           attn.mla_decode, first, rows, *batch, k_rope=rope[..., :0], **options)  # fmt: skip
    latent = {"batch": 3, "heads": MLA_HEADS, "page_size": PAGE, "max_pages": 8, "dtype": "float16"}
    latent |= {"latent": True, "scale": 0.125, "dim": VALUES}
    for value_dim in (VALUES, VALUES + 64):
        for beside, option in (
            ("rope_apart", {"rope_apart": True}),
            ("scales of rows", {"scales": "rows", "kv_dtype": "float8_e4m3fn"}),
        ):
            message = f"expected fewer than the {VALUES} columns of a key beside {beside}"
            refuse(
                f"value_dim: {message}, got {value_dim}",
                attn.DecodePlan,
                **latent,
                value_dim=value_dim,
                **option,
            )


def test_bytes_are_no_output_of_a_call():
    """Only a plan knows that they are packed results. Nothing is launched."""
    q, k, v, table, lengths = (
        tensor_views.view("", each)._replace(device=0) for each in make_batch([17])
    )
    for columns in (DIM, DIM // 2):
        out = q._replace(dtype="i8", shape=(*q.shape[:2], columns))
        refuse('tensor "out": expected f16, bf16, f32 or floats of 8 bits, got i8',
               attn.decode, q, k, v, table, lengths, out=out)  # fmt: skip


@pytest.mark.parametrize("name", ["out", "lse", "sinks", "amax"])
def test_outputs_in_host_memory(driver, name):  # noqa: F811
    """Kernels would write to another memory than the GPU's."""
    _, _, q, pool, o = make_tensors()
    lengths = Tensor(0x100, (3,), "<i4")
    table = Tensor(0x200, (3, 5), "<i4")
    shapes = {"out": (3, HEADS, DIM), "lse": (3, HEADS), "sinks": (HEADS,), "amax": (1,)}
    given = {"out": o, name: np.zeros(shapes[name], np.float16 if name == "out" else np.float32)}
    launches = len(Function.launches)
    with pytest.raises(attn.ArgumentError, match=f'"{name}": expected it on'):
        attn.decode(q, pool, pool, table, lengths, **given)
    plan = make_plan(device=0, kv_splits=1, **{name: True} if name != "out" else {})
    plan.plan(lengths, table)
    with pytest.raises(attn.ArgumentError, match=f'"{name}": expected it on'):
        plan.run(q, pool, pool, **given)
    assert len(Function.launches) == launches
