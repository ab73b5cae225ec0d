"""Runs that a kernel in front of a launch deals, and its part of the launch."""

import attn
import numpy as np
import pytest
from attn.launch import planned_steps
from conftest import make_rng
from test_decode import PAGE, Function, Tensor, driver  # noqa: F401

_BATCH = ("kv_lengths", "page_table")


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
    several = np.exp(make_rng().uniform(np.log(16), np.log(4096), (6, batch)))
    one = np.zeros(batch)
    one[batch // 2] = 4096
    for lengths in (one, np.full(batch, 300), np.where(several[0] < 200, 0, several[0]), *several):
        lengths = lengths.astype(np.int32)
        out = attn.sim.empty((total, 4), np.int32)
        ran = attn.sim.run(
            kernel.ptx, kernel="attn_fwd_plan", grid=total, block=32, args=[lengths, out]
        )
        assert not ran.findings
        np.testing.assert_array_equal(ran.outputs[1], deal(lengths.tolist(), total, most))


def cut(lengths, runs, start, fewest, block=64):
    """The runs that attn.plan_pieces writes, and records by their numbers."""
    sizes = [-(-n // block) + start for n in lengths]
    places = np.cumsum([0, *sizes])
    step = max(-(-int(places[-1]) // runs), 2 * fewest)

    def find(sequence, at):
        inside, size = at - int(places[sequence]), sizes[sequence]
        if inside >= size:
            return size
        if inside < start + fewest:
            return 0
        return inside if size - inside >= fewest else size

    rows, records = np.zeros((runs, 4), np.int32), {}
    for run in range(runs):
        mine = []
        for sequence, size in enumerate(sizes):
            begin, end = find(sequence, run * step), find(sequence, (run + 1) * step)
            if begin < end:
                first = max(begin - start, 0)
                mine.append(sequence + run)
                records[mine[-1]] = [sequence, lengths[sequence], first, end - start - first]
        if mine:
            rows[run, :2] = mine[0], mine[-1] + 1
    for run in range(runs):
        for number in range(*rows[run, :2]):
            sequence, _, first, _ = records[number]
            pieces = [each for each in records.values() if each[0] == sequence]
            if first == 0 and len(pieces) > 1:
                rows[run, 2:] = sequence, len(pieces)
    return rows, records


@pytest.mark.parametrize(
    ("batch", "runs", "start", "fewest"), [(5, 7, 1, 2), (33, 132, 2, 1), (70, 12, 3, 4)]
)
def test_pieces(batch, runs, start, fewest):
    """The same by plain arithmetic; pieces of a sequence are all of its blocks, and neighbours."""
    kernel = attn.compile(
        q=(batch, 64, 1, 192), dtype="bfloat16", kv_heads=1, page_size=64, kv_len=4096, rope_dim=64,
        kv_lengths=[1] * batch, kv_splits=-(-(runs + batch) // batch), schedule="mla", chip="sm_90a",
        plan={"score": "own", "dealt_runs": runs, "start_blocks": start, "piece_blocks": fewest},
    )  # fmt: skip
    several = np.exp(make_rng().uniform(np.log(16), np.log(4096), (3, batch)))
    one = np.zeros(batch)
    one[batch // 2] = 4096
    for lengths in (one, np.full(batch, 300), np.where(several[0] < 200, 0, several[0]), *several):
        lengths = lengths.astype(np.int32)
        out = attn.sim.empty((2 * runs + batch, 4), np.int32)
        ran = attn.sim.run(
            kernel.ptx, kernel="attn_fwd_plan", grid=runs, block=32, args=[lengths, out]
        )
        assert not ran.findings
        rows, records = cut(lengths.tolist(), runs, start, fewest)
        np.testing.assert_array_equal(ran.outputs[1][:runs], rows)
        numbers = sorted(records)
        np.testing.assert_array_equal(
            ran.outputs[1][runs:][numbers], [records[number] for number in numbers]
        )
        for sequence, length in enumerate(lengths.tolist()):
            mine = [number for number in numbers if records[number][0] == sequence]
            assert mine == list(range(mine[0], mine[0] + len(mine)))
            firsts, counts = ([records[number][word] for number in mine] for word in (2, 3))
            assert [*firsts, -(-length // 64)] == [0, *np.cumsum(counts)]
            assert min(counts) >= fewest or len(mine) == 1


def test_parts_of_a_launch():
    """The first step alone needs lengths only, and what it writes persists for the others."""
    record = compile_plan(5, 12, 6).launch
    assert planned_steps.count_planned(record, _BATCH) == 1
    front, mine = planned_steps.take_steps(record, 0, 1)
    rest, others = planned_steps.take_steps(record, 1, 3)
    assert [each["name"] for each in front["tensors"]] == ["kv_lengths"]
    assert [each["name"] for each in front["workspaces"]] == ["work"] and mine == [0]
    assert [each.get("persistent") for each in rest["workspaces"]] == [True, None, None]
    assert others == [0, 1, 2] and len(rest["steps"]) == 2
    for part in (front, rest):
        attn.record.Binder(part)
    whole = attn.compile(q=(1, 4, 1, 64), dtype="bfloat16", kv_heads=1, kv_len=256).launch
    assert planned_steps.count_planned(whole, _BATCH) == 0


def test_plan_that_deals_runs(driver):  # noqa: F811
    """A kernel that reads lengths only is launched by `plan`, the others by each `run`."""
    plan = attn.DecodePlan(
        batch=64, heads=8, kv_heads=1, dim=128, page_size=PAGE, max_pages=2048,
        dtype="float16", device=0,
    )  # fmt: skip
    sizes = [call[1] for call in driver.calls if call[0] == "allocate"]
    lengths, table = Tensor(0x100, (64,), "<i4"), Tensor(0x200, (64, 2048), "<i4")
    q, o = (Tensor(address, (64, 8, 128)) for address in (0x2000, 0x3000))
    pool = Tensor(0x1000, (100, PAGE, 1, 128))
    driver.capturing = True
    driver.calls.clear()
    plan.plan(lengths, table, stream=7)
    assert [call[0] for call in driver.calls] == ["copy", "rows"]
    ((name, grid, stream),) = Function.launches
    assert (name, stream) == ("attn_fwd_plan", 7) and sizes[2] == grid[0] * 4 * 4
    room, work = Function.parameters
    assert (room, work) == (0x10000, 0x30000)
    for _ in range(2):
        plan.run(q, pool, pool, out=o, stream=7)
    assert [name for name, _, _ in Function.launches[1:]] == 2 * ["attn_fwd", "attn_combine"]
    assert Function.launches[1][1][2] == grid[0]
    assert plan.workspace_bytes == sum(sizes[2:]) and plan.splits > 1
    # Without a plan all steps are one call's.
    assert "attn_fwd_plan" not in attn.DecodePlan(
        batch=1, heads=8, kv_heads=1, dim=128, page_size=PAGE, max_pages=64, dtype="float16", device=0,
    ).kernel.name  # fmt: skip
