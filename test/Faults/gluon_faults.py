"""Kernels of Gluon: asynchronous copies, mbarriers, products, tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
from attn.sim import HostArray
from harness import fault
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell, hopper
from triton.experimental.gluon.language.nvidia.ampere import async_copy
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

#: Used by kernels.
_ = blackwell, hopper, async_copy, mbarrier, tma


def halves(*shape: int) -> HostArray:
    """Numbers for a kernel."""
    return HostArray(np.random.default_rng().standard_normal(shape).astype(np.float16))


def floats(*shape: int) -> HostArray:
    """Room for results."""
    return HostArray(np.zeros(shape, np.float32))


def allocate_descriptors() -> None:
    """Room for the descriptors that kernels make."""
    triton.set_allocator(lambda size, alignment, stream: HostArray(np.zeros(size + alignment, np.uint8)))


@gluon.jit
def copy_asynchronously(a, o, N: gl.constexpr, FAULTY: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, N, layout=layout)
    x = gl.allocate_shared_memory(gl.float32, [N], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    async_copy.async_load(x, a + i)
    async_copy.commit_group()
    if not FAULTY:
        async_copy.wait_group(0)
    gl.store(o + i, x.load(layout))  # found: copies_not_waited_for


@fault("of an asynchronous operation that may still run")
def copies_not_waited_for(gpu: Any, is_faulty: bool) -> None:
    """cp.async without a wait."""
    copy_asynchronously[(1,)](floats(512), floats(512), 512, is_faulty)


@gluon.jit
def load_tile(a, o, M: gl.constexpr, N: gl.constexpr, PHASE: gl.constexpr, WAITS: gl.constexpr, BYTES: gl.constexpr):
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, N], gl.float16)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    da = tma.make_tensor_descriptor(a, [M, N], [N, 1], [M, N], shared)
    x = gl.allocate_shared_memory(gl.float16, [M, N], shared)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    hopper.fence_async_shared()
    mbarrier.expect(bar, BYTES)
    tma.async_load(da, [0, 0], bar, x)
    if WAITS:
        mbarrier.wait(bar, PHASE)  # found: bytes_that_never_come
        tile = x.load(layout)  # found: tile_of_a_wrong_phase
    else:
        tile = x.load(layout)  # found: tile_not_waited_for
    gl.store(o + rows[:, None] * N + columns[None, :], tile)


@fault("of an asynchronous operation that may still run", chips=("sm_90a", "sm_100a"))
def tile_not_waited_for(gpu: Any, is_faulty: bool) -> None:
    """A tensor copy without a wait."""
    allocate_descriptors()
    load_tile[(1,)](halves(64, 64), halves(64, 64), 64, 64, 0, not is_faulty, 8192)


@fault("of an asynchronous operation that may still run", chips=("sm_90a", "sm_100a"))
def tile_of_a_wrong_phase(gpu: Any, is_faulty: bool) -> None:
    """A wait for the phase before the first."""
    allocate_descriptors()
    load_tile[(1,)](halves(64, 64), halves(64, 64), 64, 64, int(is_faulty), True, 8192)


@fault("which lacks 8192 bytes", chips=("sm_90a", "sm_100a"))
def bytes_that_never_come(gpu: Any, is_faulty: bool) -> None:
    """An mbarrier expects twice what is copied."""
    allocate_descriptors()
    load_tile[(1,)](halves(64, 64), halves(64, 64), 64, 64, 0, True, 16384 if is_faulty else 8192)


@gluon.jit
def store_tile(o, M: gl.constexpr, N: gl.constexpr, WAITS: gl.constexpr):
    shared: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, N], gl.float16)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    x = gl.allocate_shared_memory(gl.float16, [M, N], shared)
    do = tma.make_tensor_descriptor(o, [2 * M, N], [N, 1], [M, N], shared)
    x.store(gl.full([M, N], 1.0, gl.float16, layout))
    hopper.fence_async_shared()
    tma.async_store(do, [0, 0], x)
    if WAITS:
        tma.store_wait(0)
    x.store(gl.full([M, N], 2.0, gl.float16, layout))  # found: buffer_reused_too_early
    hopper.fence_async_shared()
    tma.async_store(do, [M, 0], x)
    tma.store_wait(0)


@fault("of an asynchronous operation that may still run", chips=("sm_90a", "sm_100a"))
def buffer_reused_too_early(gpu: Any, is_faulty: bool) -> None:
    """A tensor copy may still read."""
    allocate_descriptors()
    store_tile[(1,)](halves(128, 64), 64, 64, not is_faulty)


@gluon.jit
def multiply_hopper(a, b, o, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, FAULTY: gl.constexpr):
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
    sum = hopper.warpgroup_mma(x, y, gl.zeros([M, N], gl.float32, layout=mma), is_async=True)
    if not FAULTY:
        sum = hopper.warpgroup_mma_wait(0, deps=(sum,))
    x.store(gl.zeros([M, K], gl.float16, layout))  # found: operand_overwritten
    if FAULTY:
        sum = hopper.warpgroup_mma_wait(0, deps=(sum,))
    r = gl.arange(0, M, layout=gl.SliceLayout(1, mma))
    c = gl.arange(0, N, layout=gl.SliceLayout(0, mma))
    gl.store(o + r[:, None] * N + c[None, :], sum)


@fault("of an asynchronous operation that may still run", chips=("sm_90a",))
def operand_overwritten(gpu: Any, is_faulty: bool) -> None:
    """wgmma may still read its operand."""
    multiply_hopper[(1,)](halves(64, 64), halves(64, 64), floats(64, 64), 64, 64, 64, is_faulty)


@gluon.jit
def multiply_blackwell(a, b, o, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, COMMITS: gl.constexpr,
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
    blackwell.tcgen05_mma(x, y, acc, use_acc=False)
    if COMMITS:
        blackwell.tcgen05_commit(done)
    if WAITS:
        mbarrier.wait(done, 0)  # found: product_not_committed
    out = acc.load(acc.get_reg_layout())  # found: product_not_waited_for
    gl.store(o + rows[:, None] * N + columns[None, :], gl.convert_layout(out, layout))


@fault("of tensor memory", chips=("sm_100a",))
def product_not_waited_for(gpu: Any, is_faulty: bool) -> None:
    """tcgen05.mma may still run when its result is loaded."""
    multiply_blackwell[(1,)](halves(128, 64), halves(64, 64), floats(128, 64), 128, 64, 64, True, not is_faulty)


@fault("which lacks 1 of 1 arrival", chips=("sm_100a",))
def product_not_committed(gpu: Any, is_faulty: bool) -> None:
    """Nothing tells the mbarrier that the product has ended."""
    multiply_blackwell[(1,)](halves(128, 64), halves(64, 64), floats(128, 64), 128, 64, 64, not is_faulty, True)
