"""Kernels in Gluon, Triton's lower language: barriers, copies and tensor memory by hand."""

import numpy as np
import triton
from harness import Case, empty, random
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import ampere, blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.blackwell import clc
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

#: Used by kernels.
_ = triton, ampere


@gluon.jit
def ampere_matmul(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, BK: gl.constexpr,
                  STAGES: gl.constexpr):
    """cp.async into a ring, ldmatrix, mma.sync."""
    tile: gl.constexpr = gl.BlockedLayout([1, 8], [8, 4], [4, 1], [1, 0])
    ring: gl.constexpr = gl.SwizzledSharedLayout(8, 2, 4, [1, 0])
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, tile))
    inner = gl.arange(0, BK, layout=gl.SliceLayout(0, tile))
    k_rows = gl.arange(0, BK, layout=gl.SliceLayout(1, tile))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, tile))
    x = gl.allocate_shared_memory(gl.float16, [STAGES, M, BK], ring)
    y = gl.allocate_shared_memory(gl.float16, [STAGES, BK, N], ring)
    for k in gl.static_range(STAGES - 1):
        async_copy.async_load(x.index(k), a + rows[:, None] * K + (k * BK + inner)[None, :])
        async_copy.async_load(y.index(k), b + (k * BK + k_rows)[:, None] * N + columns[None, :])
        async_copy.commit_group()
    sum = gl.zeros([M, N], gl.float32, layout=mma)
    for k in range(0, K // BK):
        ahead = k + STAGES - 1
        async_copy.wait_group(STAGES - 2)
        gl.barrier()
        if ahead < K // BK:
            async_copy.async_load(x.index(ahead % STAGES), a + rows[:, None] * K + (ahead * BK + inner)[None, :])
            async_copy.async_load(y.index(ahead % STAGES), b + (ahead * BK + k_rows)[:, None] * N + columns[None, :])
        async_copy.commit_group()
        u = x.index(k % STAGES).load(gl.DotOperandLayout(0, mma, 2))
        v = y.index(k % STAGES).load(gl.DotOperandLayout(1, mma, 2))
        sum = ampere.mma_v2(u, v, sum)
    out = gl.convert_layout(sum, tile)
    gl.store(c + rows[:, None] * N + columns[None, :], out)


@gluon.jit
def hopper_matmul(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, BK: gl.constexpr,
                  STAGES: gl.constexpr):
    """Tensor copies into a ring of mbarriers, wgmma with one product in flight."""
    la: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, BK], gl.float16)
    lb: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BK, N], gl.float16)
    lc: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, N], gl.float16)
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    da = tma.make_tensor_descriptor(a, [M, K], [K, 1], [M, BK], la)
    db = tma.make_tensor_descriptor(b, [K, N], [N, 1], [BK, N], lb)
    dc = tma.make_tensor_descriptor(c, [M, N], [N, 1], [M, N], lc)
    x = gl.allocate_shared_memory(gl.float16, [STAGES, M, BK], la)
    y = gl.allocate_shared_memory(gl.float16, [STAGES, BK, N], lb)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
    hopper.fence_async_shared()
    for i in gl.static_range(STAGES - 1):
        mbarrier.expect(full.index(i), da.nbytes_per_cta + db.nbytes_per_cta)
        tma.async_load(da, [0, i * BK], full.index(i), x.index(i))
        tma.async_load(db, [i * BK, 0], full.index(i), y.index(i))
    sum = gl.zeros([M, N], gl.float32, layout=mma)
    for k in range(0, K // BK):
        slot = k % STAGES
        mbarrier.wait(full.index(slot), k // STAGES & 1)
        token = hopper.warpgroup_mma(x.index(slot), y.index(slot), sum, is_async=True)
        sum = hopper.warpgroup_mma_wait(1, deps=(token,))
        ahead = k + STAGES - 1
        if ahead < K // BK:
            bar = full.index(ahead % STAGES)
            mbarrier.expect(bar, da.nbytes_per_cta + db.nbytes_per_cta)
            tma.async_load(da, [0, ahead * BK], bar, x.index(ahead % STAGES))
            tma.async_load(db, [ahead * BK, 0], bar, y.index(ahead % STAGES))
    out = hopper.warpgroup_mma_wait(0, deps=(sum,))
    z = gl.allocate_shared_memory(gl.float16, [M, N], lc, out.to(gl.float16))
    hopper.fence_async_shared()
    tma.async_store(dc, [0, 0], z)
    tma.store_wait(0)


@gluon.jit
def producer(da, db, x, y, full, free, BK: gl.constexpr, STEPS: gl.constexpr, STAGES: gl.constexpr):
    for k in range(0, STEPS):
        slot = k % STAGES
        mbarrier.wait(free.index(slot), (k // STAGES & 1) ^ 1)
        mbarrier.expect(full.index(slot), da.nbytes_per_cta + db.nbytes_per_cta)
        tma.async_load(da, [0, k * BK], full.index(slot), x.index(slot))
        tma.async_load(db, [k * BK, 0], full.index(slot), y.index(slot))


@gluon.jit
def consumer(c, x, y, full, free, M: gl.constexpr, N: gl.constexpr, STEPS: gl.constexpr, STAGES: gl.constexpr):
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    sum = gl.zeros([M, N], gl.float32, layout=mma)
    for k in range(0, STEPS):
        slot = k % STAGES
        mbarrier.wait(full.index(slot), k // STAGES & 1)
        sum = hopper.warpgroup_mma(x.index(slot), y.index(slot), sum)
        mbarrier.arrive(free.index(slot), count=1)
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, mma))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, mma))
    gl.store(c + rows[:, None] * N + columns[None, :], sum)


@gluon.jit
def hopper_special(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, BK: gl.constexpr,
                   STAGES: gl.constexpr):
    """A warp that copies beside a warpgroup that multiplies."""
    la: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, BK], gl.float16)
    lb: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BK, N], gl.float16)
    da = tma.make_tensor_descriptor(a, [M, K], [K, 1], [M, BK], la)
    db = tma.make_tensor_descriptor(b, [K, N], [N, 1], [BK, N], lb)
    x = gl.allocate_shared_memory(gl.float16, [STAGES, M, BK], la)
    y = gl.allocate_shared_memory(gl.float16, [STAGES, BK, N], lb)
    full = mbarrier.allocate_mbarrier(batch=STAGES)
    free = mbarrier.allocate_mbarrier(batch=STAGES)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(free.index(i), count=1)
    hopper.fence_async_shared()
    gl.warp_specialize(
        [(consumer, (c, x, y, full, free, M, N, K // BK, STAGES)),
         (producer, (da, db, x, y, full, free, BK, K // BK, STAGES))],
        [1], [24],
    )  # fmt: skip


@gluon.jit
def blackwell_matmul(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, BK: gl.constexpr,
                     A_IN_TMEM: gl.constexpr):
    """tcgen05.mma with A in shared or in tensor memory."""
    la: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, BK], gl.float16)
    lb: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BK, N], gl.float16)
    da = tma.make_tensor_descriptor(a, [M, K], [K, 1], [M, BK], la)
    db = tma.make_tensor_descriptor(b, [K, N], [N, 1], [BK, N], lb)
    x = gl.allocate_shared_memory(gl.float16, [M, BK], la)
    y = gl.allocate_shared_memory(gl.float16, [BK, N], lb)
    bar = mbarrier.allocate_mbarrier()
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.init(done, count=1)
    hopper.fence_async_shared()
    sums: gl.constexpr = blackwell.TensorMemoryLayout([M, N], col_stride=1)
    acc = blackwell.allocate_tensor_memory(gl.float32, [M, N], sums)
    parts: gl.constexpr = blackwell.TensorMemoryLayout([M, BK], col_stride=1)
    left = blackwell.allocate_tensor_memory(gl.float16, [M, BK], parts)
    blocked: gl.constexpr = gl.BlockedLayout([1, BK], [32, 1], [4, 1], [1, 0])
    for k in range(0, K // BK):
        mbarrier.expect(bar, da.nbytes_per_cta + db.nbytes_per_cta)
        tma.async_load(da, [0, k * BK], bar, x)
        tma.async_load(db, [k * BK, 0], bar, y)
        mbarrier.wait(bar, k & 1)
        if A_IN_TMEM:
            left.store(gl.convert_layout(x.load(blocked), left.get_reg_layout()))
            blackwell.tcgen05_mma(left, y, acc, use_acc=k > 0)
        else:
            blackwell.tcgen05_mma(x, y, acc, use_acc=k > 0)
        blackwell.tcgen05_commit(done)
        mbarrier.wait(done, k & 1)
    out = gl.convert_layout(acc.load(acc.get_reg_layout()), gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]))
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])))
    gl.store(c + rows[:, None] * N + columns[None, :], out)


@gluon.jit
def tensor_copy(a, c, M: gl.constexpr, N: gl.constexpr):
    """Shared to tensor memory and back through registers."""
    blocked: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, blocked))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, blocked))
    at = rows[:, None] * N + columns[None, :]
    layout: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=32, rank=2)
    x = gl.allocate_shared_memory(gl.float32, [M, N], layout, gl.load(a + at))
    hopper.fence_async_shared()
    cells: gl.constexpr = blackwell.TensorMemoryLayout([M, N], col_stride=1)
    t = blackwell.allocate_tensor_memory(gl.float32, [M, N], cells)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    blackwell.tcgen05_copy(x, t)
    blackwell.tcgen05_commit(bar)
    mbarrier.wait(bar, 0)
    v = t.load(t.get_reg_layout())
    t.store(v * 2.0)
    w = t.load(t.get_reg_layout())
    gl.store(c + at, gl.convert_layout(w + v, blocked))


@gluon.jit
def stealing(o, BLOCK: gl.constexpr):
    """Each CTA writes its tile, then those of CTAs that it keeps from starting."""
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    tile, more, phase = gl.program_id(0), True, 0
    while more:
        mbarrier.expect(bar, 16)
        clc.try_cancel(answer, bar)
        gl.store(o + tile * BLOCK + gl.arange(0, BLOCK, layout=layout), tile + gl.zeros([BLOCK], gl.int32, layout))
        mbarrier.wait(bar, phase)
        result = clc.load_result(answer)
        more = result.is_canceled()
        if more:
            tile = result.program_id(0)
        phase ^= 1
        gl.barrier()


def cases() -> list[Case]:
    r = random("gluon")
    result = []

    def add(name, kernel, constants, chips, grid=(1,), half=False, warps=4):
        m, n, k = (constants[each] for each in "MNK")
        a, b = r.normal(size=(m, k)).astype(np.float16), r.normal(size=(k, n)).astype(np.float16)
        ref = a.astype(np.float64) @ b.astype(np.float64)
        out = empty((m, n), np.float16 if half else np.float32)
        result.append(
            Case(f"gluon_{name}", kernel, [a, b, out], constants, grid, {2: ref}, 1e-3 if half else 1e-6, chips, warps,
                 gluon=True)
        )  # fmt: skip

    every = (80, 90, 100)
    add("ampere_matmul", ampere_matmul, {"M": 64, "N": 64, "K": 192, "BK": 32, "STAGES": 3}, every)
    add("hopper_matmul", hopper_matmul, {"M": 64, "N": 64, "K": 384, "BK": 64, "STAGES": 3}, (90,), half=True)
    add("hopper_special", hopper_special, {"M": 64, "N": 128, "K": 320, "BK": 64, "STAGES": 2}, (90,))
    for inside in (False, True):
        constants = {"M": 128, "N": 64, "K": 192, "BK": 64, "A_IN_TMEM": inside}
        add(f"blackwell_matmul{'_tmem' * inside}", blackwell_matmul, constants, (100,))
    x = r.normal(size=(128, 32)).astype(np.float32)
    result.append(
        Case("gluon_tensor_copy", tensor_copy, [x, empty((128, 32), np.float32)], {"M": 128, "N": 32}, (1,),
             {1: 3 * x.astype(np.float64)}, 1e-6, (100,), gluon=True)
    )  # fmt: skip
    result.append(
        Case("gluon_stealing", stealing, [empty(7 * 128, np.int32)], {"BLOCK": 128}, (7,),
             {0: np.arange(7, dtype=np.int32).repeat(128)}, 0.0, (100,), gluon=True)
    )  # fmt: skip
    return result
