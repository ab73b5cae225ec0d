"""Runs that a kernel in front of a launch deals, and its part of the launch."""

import attn
import numpy as np
import pytest
from attn import _work_plan


def deal(lengths, total, most):
    """What attn.plan_work writes."""
    blocks = [-(-n // 64) + 1 for n in lengths]
    least = max(-(-sum(blocks) // total), -(-max(blocks) // most))
    while sum(-(-n // least) for n in blocks) > total:
        least += 1
    runs = [-(-n // least) for n in blocks]
    longest = sorted(range(len(runs)), key=lambda b: (-(-(-blocks[b] // runs[b])), b))
    records = [[b, run, runs[b], lengths[b]] for b in longest for run in range(runs[b])]
    return np.array(records + [[0] * 4] * (total - len(records)), np.int32)


def compile_plan(batch, total, most):
    return attn.compile(
        q=(batch, 4, 1, 64), dtype="bfloat16", kv_heads=1, page_size=16, kv_len=4096,
        kv_lengths=[1] * batch, kv_splits=most, schedule="decode", chip="sm_90a",
        plan={"dealt_runs": total, "plan_work": True, "combine": "kernel", "warps": 1},
    )  # fmt: skip


@pytest.mark.parametrize(("batch", "total", "most"), [(5, 12, 6), (64, 296, 32), (70, 100, 20)])
def test_records(batch, total, most):
    """The same records as by plain arithmetic, whatever the lengths are."""
    kernel = compile_plan(batch, total, most)
    random = np.random.default_rng(batch)
    drawn = np.exp(random.uniform(np.log(16), np.log(4096), batch))
    one = np.zeros(batch)
    one[batch // 2] = 4096
    for lengths in (drawn, one, np.full(batch, 300), np.where(drawn < 200, 0, drawn)):
        lengths = lengths.astype(np.int32)
        out = attn.sim.empty((total, 4), np.int32)
        ran = attn.sim.run(
            kernel.ptx, kernel="attn_fwd_plan", grid=total, block=32, args=[lengths, out]
        )
        assert not ran.findings
        np.testing.assert_array_equal(ran.outputs[1], deal(lengths.tolist(), total, most))


def test_parts_of_a_launch():
    """The first step alone needs lengths only, and what it writes persists for the others."""
    record = compile_plan(5, 12, 6).launch
    assert _work_plan.count_planned(record) == 1
    front, mine = _work_plan.take_steps(record, 0, 1)
    rest, others = _work_plan.take_steps(record, 1, 3)
    assert [each["name"] for each in front["tensors"]] == ["kv_lengths"]
    assert [each["name"] for each in front["workspaces"]] == ["work"] and mine == [0]
    assert [each.get("persistent") for each in rest["workspaces"]] == [True, None, None]
    assert others == [0, 1, 2] and len(rest["steps"]) == 2
    for part in (front, rest):
        attn.record.Binder(part)
    whole = attn.compile(q=(1, 4, 1, 64), dtype="bfloat16", kv_heads=1, kv_len=256).launch
    assert _work_plan.count_planned(whole) == 0
