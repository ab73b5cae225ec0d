"""Kernels of Gluon in which warps hand buffers to each other, and parts of them in flight."""

from __future__ import annotations

from typing import Any

from gluon_faults import allocate_descriptors, floats, halves
from harness import fault
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

#: Used by kernels.
_ = blackwell, hopper, async_copy, mbarrier, tma


@gluon.jit
def add_two_copies(a, o, N: gl.constexpr, LEFT: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, N, layout=layout)
    x = gl.allocate_shared_memory(gl.float32, [2, N], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_load(x.index(0), a + i)
    async_copy.commit_group()
    async_copy.async_load(x.index(1), a + N + i)
    async_copy.commit_group()
    async_copy.wait_group(LEFT)
    first = x.index(0).load(layout)
    second = x.index(1).load(layout)  # found: newest_copy_still_running
    gl.store(o + i, first + second)


@fault("of an asynchronous operation that may still run")
def newest_copy_still_running(gpu: Any, is_faulty: bool) -> None:
    """A wait leaves one group of copies in flight, and both are read."""
    add_two_copies[(1,)](floats(1024), floats(512), 512, int(is_faulty))


@gluon.jit
def copy_shared(a, o, N: gl.constexpr, FAULTY: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, N, layout=layout)
    x = gl.allocate_shared_memory(gl.float32, [2, N], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    x.index(0).store(gl.load(a + i))
    gl.store(o + i, x.index(1 if FAULTY else 0).load(layout))  # found: buffer_that_nobody_fills


@fault("depends on memory that was never written")
def buffer_that_nobody_fills(gpu: Any, is_faulty: bool) -> None:
    """The other one of two buffers is read."""
    copy_shared[(1,)](floats(512), floats(512), 512, is_faulty)


@gluon.jit
def fill_ring(a, full, empty, buffers, ROUNDS: gl.constexpr, M: gl.constexpr, WAITS: gl.constexpr):
    for k in gl.static_range(ROUNDS):
        if k >= 2 and WAITS:
            mbarrier.wait(empty.index(k % 2), (k // 2 - 1) & 1)
        mbarrier.expect(full.index(k % 2), a.block_type.nbytes)  # found: ring_without_room
        tma.async_load(a, [k * M, 0], full.index(k % 2), buffers.index(k % 2))


@gluon.jit
def drain_ring(o, full, empty, buffers, ROUNDS: gl.constexpr, M: gl.constexpr, N: gl.constexpr,
               FLIPS: gl.constexpr, layout: gl.constexpr):
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    for k in gl.static_range(ROUNDS):
        mbarrier.wait(full.index(k % 2), (k // 2 if FLIPS else 0) & 1)
        tile = buffers.index(k % 2).load(layout)  # found: ring_of_one_phase
        mbarrier.arrive(empty.index(k % 2), count=1)
        gl.store(o + (k * M + rows)[:, None] * N + columns[None, :], tile)


@gluon.jit
def copy_by_ring(a, o, ROUNDS: gl.constexpr, M: gl.constexpr, N: gl.constexpr, WAITS: gl.constexpr,
                 FLIPS: gl.constexpr, ARRIVALS: gl.constexpr):
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, N], gl.float16)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    source = tma.make_tensor_descriptor(a, [ROUNDS * M, N], [N, 1], [M, N], shared)
    buffers = gl.allocate_shared_memory(gl.float16, [2, M, N], shared)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=ARRIVALS)
    hopper.fence_async_shared()
    gl.warp_specialize([
        (drain_ring, (o, full, empty, buffers, ROUNDS, M, N, FLIPS, layout)),
        (fill_ring, (source, full, empty, buffers, ROUNDS, M, WAITS)),
    ], [1], [24])


def run_ring(waits: bool = True, flips: bool = True, arrivals: int = 1) -> None:
    """Four tiles through two buffers."""
    allocate_descriptors()
    copy_by_ring[(1,)](halves(256, 64), halves(256, 64), 4, 64, 64, waits, flips, arrivals)


@fault("of an mbarrier that expects 0 more arrivals", chips=("sm_90a", "sm_100a"))
def ring_without_room(gpu: Any, is_faulty: bool) -> None:
    """Warps that load do not wait for those that read."""
    run_ring(waits=not is_faulty)


@fault("of an asynchronous operation that may still run", chips=("sm_90a", "sm_100a"))
def ring_of_one_phase(gpu: Any, is_faulty: bool) -> None:
    """In the second round the phase of the first is waited for."""
    run_ring(flips=not is_faulty)


@gluon.jit
def add_twice(a, b, o, M: gl.constexpr, N: gl.constexpr, FAULTY: gl.constexpr):
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, N], gl.float16)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    da = tma.make_tensor_descriptor(a, [M, N], [N, 1], [M, N], shared)
    db = tma.make_tensor_descriptor(b, [M, N], [N, 1], [M, N], shared)
    do = tma.make_tensor_descriptor(o, [M, N], [N, 1], [M, N], shared)
    x = gl.allocate_shared_memory(gl.float16, [M, N], shared)
    y = gl.allocate_shared_memory(gl.float16, [M, N], shared)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    hopper.fence_async_shared()
    mbarrier.expect(bar, da.block_type.nbytes + (0 if FAULTY else db.block_type.nbytes))
    tma.async_load(da, [0, 0], bar, x)
    tma.async_load(db, [0, 0], bar, y)  # found: one_tile_of_two_expected
    mbarrier.wait(bar, 0)
    first = x.load(layout)
    second = y.load(layout)
    x.store(first + second)
    hopper.fence_async_shared()
    tma.async_store(do, [0, 0], x)
    tma.store_wait(0)


@fault("the CTA exits while a bulk copy still uses its memory", chips=("sm_90a", "sm_100a"))
def one_tile_of_two_expected(gpu: Any, is_faulty: bool) -> None:
    """An mbarrier expects the bytes of the first tile alone."""
    allocate_descriptors()
    add_twice[(1,)](halves(64, 64), halves(64, 64), halves(64, 64), 64, 64, is_faulty)


@gluon.jit
def wait_for_two(a, o, N: gl.constexpr, COUNT: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, N, layout=layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=COUNT)
    value = gl.load(a + i)
    mbarrier.arrive(bar, count=1)
    mbarrier.wait(bar, 0)  # found: mbarrier_of_too_many
    gl.store(o + i, value)


@fault("which lacks 1 of 2 arrivals", chips=("sm_90a", "sm_100a"))
def mbarrier_of_too_many(gpu: Any, is_faulty: bool) -> None:
    """An mbarrier counts two arrivals, and gets one."""
    wait_for_two[(1,)](floats(512), floats(512), 512, 1 + is_faulty)


@gluon.jit
def multiply_twice_hopper(a, b, o, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, LEFT: gl.constexpr):
    la: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    lb: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    mma: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    inner = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    k_rows = gl.arange(0, K, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    x = gl.allocate_shared_memory(gl.float16, [M, K], la, gl.load(a + rows[:, None] * K + inner[None, :]))
    y = gl.allocate_shared_memory(gl.float16, [K, N], lb, gl.load(b + k_rows[:, None] * N + columns[None, :]))
    hopper.fence_async_shared()
    zeros = gl.zeros([M, N], gl.float32, layout=mma)
    first = hopper.warpgroup_mma(x, y, zeros, is_async=True)
    second = hopper.warpgroup_mma(y, x, zeros, is_async=True)
    first = hopper.warpgroup_mma_wait(1, deps=(first,))
    second = hopper.warpgroup_mma_wait(LEFT, deps=(second,))
    r = gl.arange(0, M, layout=gl.SliceLayout(1, mma))
    c = gl.arange(0, N, layout=gl.SliceLayout(0, mma))
    gl.store(o + r[:, None] * N + c[None, :], first + second)  # found: second_product_still_running


@fault("in flight", chips=("sm_90a",))
def second_product_still_running(gpu: Any, is_faulty: bool) -> None:
    """Registers of a wgmma are used that a wait leaves in flight."""
    multiply_twice_hopper[(1,)](halves(64, 64), halves(64, 64), floats(64, 64), 64, 64, 64, int(is_faulty))


@gluon.jit
def multiply_onto(a, b, o, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, ADDS: gl.constexpr,
                  WAITS: gl.constexpr):
    la: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    lb: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], gl.float16)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    inner = gl.arange(0, K, layout=gl.SliceLayout(0, layout))
    k_rows = gl.arange(0, K, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    x = gl.allocate_shared_memory(gl.float16, [M, K], la, gl.load(a + rows[:, None] * K + inner[None, :]))
    y = gl.allocate_shared_memory(gl.float16, [K, N], lb, gl.load(b + k_rows[:, None] * N + columns[None, :]))
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)
    hopper.fence_async_shared()
    sums: gl.constexpr = blackwell.TensorMemoryLayout([M, N], col_stride=1)
    acc = blackwell.allocate_tensor_memory(gl.float32, [M, N], sums)
    blackwell.tcgen05_mma(x, y, acc, use_acc=ADDS)
    blackwell.tcgen05_commit(done)
    if WAITS:
        mbarrier.wait(done, 0)
    x.store(gl.zeros([M, K], gl.float16, layout))  # found: operand_of_a_running_product
    if not WAITS:
        mbarrier.wait(done, 0)
    out = acc.load(acc.get_reg_layout())
    gl.store(o + rows[:, None] * N + columns[None, :], gl.convert_layout(out, layout))  # found: sum_without_a_beginning


@fault("depends on memory that was never written", chips=("sm_100a",))
def sum_without_a_beginning(gpu: Any, is_faulty: bool) -> None:
    """A product adds to tensor memory that nobody has written."""
    multiply_onto[(1,)](halves(128, 64), halves(64, 64), floats(128, 64), 128, 64, 64, is_faulty, True)


@fault("of an asynchronous operation that may still run", chips=("sm_100a",))
def operand_of_a_running_product(gpu: Any, is_faulty: bool) -> None:
    """tcgen05.mma may still read its operand."""
    multiply_onto[(1,)](halves(128, 64), halves(64, 64), floats(128, 64), 128, 64, 64, False, not is_faulty)
