"""Kernels of Triton. What is constant chooses the faulty or the repaired one."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl
from attn.sim import HostArray
from harness import fault
from triton.language.extra import cuda

#: Used by kernels.
_ = cuda


def floats(count: int) -> HostArray:
    """Numbers for a kernel."""
    return HostArray(np.random.default_rng().standard_normal(count, dtype=np.float32))


def zeros(count: int, kind: type = np.float32) -> HostArray:
    """Room for results."""
    return HostArray(np.zeros(count, dtype=kind))


@triton.jit
def sum_in_place(x, o, FAULTY: tl.constexpr):
    value = tl.load(x + tl.program_id(0))
    if FAULTY:
        total = tl.load(o)  # found: racing_sum
        tl.store(o, total + value)
    else:
        tl.atomic_add(o, value)


@fault("of another CTA")
def racing_sum(gpu: Any, is_faulty: bool) -> None:
    """Programs add to one place."""
    sum_in_place[(4,)](floats(4), zeros(1), is_faulty)


@triton.jit
def scale_unmasked(x, o, n, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    if FAULTY:
        v = tl.load(x + i)  # found: missing_mask
    else:
        v = tl.load(x + i, mask=m)
    tl.store(o + i, v * 2, mask=m)


@fault("outside of every allocation")
def missing_mask(gpu: Any, is_faulty: bool) -> None:
    """The last block is not whole."""
    scale_unmasked[(4,)](floats(500), zeros(500), 500, 128, is_faulty)


@triton.jit
def write_rows(o, columns, stride, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    if FAULTY:
        tl.store(o + row * stride + i, row)  # found: rows_that_overlap
    else:
        tl.store(o + row * stride + i, row, mask=i < columns)


@fault("of another CTA")
def rows_that_overlap(gpu: Any, is_faulty: bool) -> None:
    """A block is wider than a row."""
    write_rows[(4,)](HostArray(np.zeros(1024, np.int32)), 100, 100, 128, is_faulty)


@triton.jit
def smooth(x, o, n, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0.0)  # found: in_place_stencil
    if FAULTY:
        tl.store(x + i, left, mask=i < n)
    else:
        tl.store(o + i, left, mask=i < n)


@fault("of another warp")
def in_place_stencil(gpu: Any, is_faulty: bool) -> None:
    """Programs write what others read."""
    smooth[(4,)](floats(512), zeros(512), 512, 128, is_faulty)


@triton.jit
def hand_over(flag, data, o, FAULTY: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 7)
        if FAULTY:
            tl.atomic_xchg(flag, 1, sem="relaxed")
        else:
            tl.debug_barrier()
            tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(o, tl.load(data))  # found: flag_that_releases_nothing


@fault("of another CTA")
def flag_that_releases_nothing(gpu: Any, is_faulty: bool) -> None:
    """A flag says that data is there, which nothing orders before it."""
    flag, data, o = (zeros(1, np.int32) for _ in range(3))
    hand_over[(2,)](flag, data, o, is_faulty, num_warps=1)


@triton.jit
def wait_for_other(flags, o, FAULTY: tl.constexpr):
    own = tl.program_id(0)
    if not FAULTY:
        tl.atomic_xchg(flags + own, 1)
    while tl.atomic_add(flags + (1 - own), 0) == 0:  # found: programs_that_wait_for_each_other
        pass
    if FAULTY:
        tl.atomic_xchg(flags + own, 1)
    tl.store(o + own, own)


@fault("without an end")
def programs_that_wait_for_each_other(gpu: Any, is_faulty: bool) -> None:
    """Each tells the other only after it has heard of it."""
    wait_for_other[(2,)](zeros(2, np.int32), zeros(2, np.int32), is_faulty, num_warps=1)


@triton.jit
def copy_tile(x, o, rows, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, BLOCK], [BLOCK, 1], [16, BLOCK])
    i = tl.arange(0, 16)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tile = source.load([tl.program_id(0) * 16, 0])  # found: descriptor_of_too_many_rows
    tl.store(o + tl.program_id(0) * 16 * BLOCK + i, tile)


@fault("outside of every allocation")
def descriptor_of_too_many_rows(gpu: Any, is_faulty: bool) -> None:
    """A descriptor has more rows than its tensor."""
    triton.set_allocator(lambda size, alignment, stream: HostArray(np.zeros(size + alignment, np.uint8)))
    x = HostArray(np.random.default_rng().standard_normal((24, 64), dtype=np.float32))
    copy_tile[(2,)](x, zeros(32 * 64), 32 if is_faulty else 24, 64)


@triton.jit
def store_numbers(x, BLOCK: tl.constexpr):
    cuda.gdc_launch_dependents()
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i)


@triton.jit
def double_numbers(x, o, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if not FAULTY:
        cuda.gdc_wait()
    v = tl.load(x + i)  # found: load_before_the_wait
    if FAULTY:
        cuda.gdc_wait()
    tl.store(o + i, v * 2)


@fault("which the programmatic launch may overlap", chips=("sm_90a", "sm_100a"))
def load_before_the_wait(gpu: Any, is_faulty: bool) -> None:
    """A programmatic launch loads what the kernel in front of it stores."""
    x, o = zeros(128, np.int32), zeros(128, np.int32)
    store_numbers[(1,)](x, 128)
    double_numbers[(1,)](x, o, 128, is_faulty, launch_pdl=True)


@triton.jit
def sum_in_two_steps(x, partial, counter, o, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    own, count = tl.program_id(0), tl.num_programs(0)
    tl.store(partial + own, tl.sum(tl.load(x + own * BLOCK + tl.arange(0, BLOCK))))
    tl.debug_barrier()
    if FAULTY:
        done = tl.atomic_add(counter, 1, sem="relaxed")
    else:
        done = tl.atomic_add(counter, 1, sem="acq_rel")
    if done == count - 1:
        tl.store(o, tl.sum(tl.load(partial + tl.arange(0, 4))))  # found: last_program_that_acquires_nothing


@fault("of another CTA")
def last_program_that_acquires_nothing(gpu: Any, is_faulty: bool) -> None:
    """The last of several programs adds up what all have left."""
    sum_in_two_steps[(4,)](floats(128), floats(4), zeros(1, np.int32), zeros(1), 32, is_faulty, num_warps=1)


@triton.jit
def add_under_lock(lock, o, x, FAULTY: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    total = tl.load(o)  # found: lock_that_releases_nothing
    tl.store(o, total + tl.load(x + tl.program_id(0)))
    tl.debug_barrier()
    if FAULTY:
        tl.atomic_xchg(lock, 0, sem="relaxed")
    else:
        tl.atomic_xchg(lock, 0, sem="release")


@fault("of another CTA")
def lock_that_releases_nothing(gpu: Any, is_faulty: bool) -> None:
    """A lock is opened before what it guards is there for others."""
    add_under_lock[(3,)](zeros(1, np.int32), zeros(1), floats(3), is_faulty, num_warps=1)


@triton.jit
def count_values(x, bins, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    own = tl.program_id(0)
    if FAULTY:
        if own == 0:
            tl.store(bins + tl.arange(0, 16), 0)
        tl.debug_barrier()
    v = tl.load(x + own * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(bins + v % 16, 1, sem="relaxed")  # found: counters_cleared_by_one_program


@fault("of another CTA")
def counters_cleared_by_one_program(gpu: Any, is_faulty: bool) -> None:
    """One program clears what all add to."""
    x = HostArray(np.arange(512, dtype=np.int32))
    count_values[(4,)](x, zeros(16, np.int32), 128, is_faulty)


@triton.jit
def wait_by_loads(flag, data, o, FAULTY: tl.constexpr):
    if tl.program_id(0) == 0:
        tl.store(data, 7)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        if FAULTY:
            while tl.load(flag, volatile=True) == 0:
                pass
        else:
            while tl.atomic_add(flag, 0, sem="acquire") == 0:
                pass
        tl.store(o, tl.load(data))  # found: flag_read_by_plain_loads


@fault("of another CTA")
def flag_read_by_plain_loads(gpu: Any, is_faulty: bool) -> None:
    """A volatile load sees the flag, and nothing of what was stored before it."""
    flag, data, o = (zeros(1, np.int32) for _ in range(3))
    wait_by_loads[(2,)](flag, data, o, is_faulty, num_warps=1)


@triton.jit
def count_in_a_scope(o, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    if FAULTY:
        tl.atomic_add(o + tl.arange(0, BLOCK), 1, scope="cta")  # found: atomics_of_a_narrow_scope
    else:
        tl.atomic_add(o + tl.arange(0, BLOCK), 1, scope="gpu")


@fault("of another CTA")
def atomics_of_a_narrow_scope(gpu: Any, is_faulty: bool) -> None:
    """Programs add to the same counters, each as if it were alone."""
    count_in_a_scope[(3,)](zeros(128, np.int32), 128, is_faulty)


@triton.jit
def store_tile(o, rows, BLOCK: tl.constexpr):
    target = tl.make_tensor_descriptor(o, [rows, BLOCK], [BLOCK, 1], [16, BLOCK])
    value = tl.full([16, BLOCK], 1.0, tl.float32)
    target.store([tl.program_id(0) * 16, 0], value)  # found: descriptor_that_writes_too_far


@fault("outside of every allocation")
def descriptor_that_writes_too_far(gpu: Any, is_faulty: bool) -> None:
    """The rows of the last tile that a tensor lacks are written after its end."""
    triton.set_allocator(lambda size, alignment, stream: HostArray(np.zeros(size + alignment, np.uint8)))
    store_tile[(2,)](zeros(24 * 64), 32 if is_faulty else 24, 64)


@triton.jit
def overwrite_numbers(x, o, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if not FAULTY:
        cuda.gdc_wait()
    tl.store(x + i, 0)  # found: store_before_the_wait
    if FAULTY:
        cuda.gdc_wait()
    tl.store(o + i, i)


@triton.jit
def copy_numbers(x, o, BLOCK: tl.constexpr):
    cuda.gdc_launch_dependents()
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i))


@fault("which the programmatic launch may overlap", chips=("sm_90a", "sm_100a"))
def store_before_the_wait(gpu: Any, is_faulty: bool) -> None:
    """A programmatic launch overwrites what the kernel in front of it loads."""
    x, o, other = (zeros(128, np.int32) for _ in range(3))
    copy_numbers[(1,)](x, o, 128)
    overwrite_numbers[(1,)](x, other, 128, is_faulty, launch_pdl=True)


@triton.jit
def pass_by(o, BLOCK: tl.constexpr, FAULTY: tl.constexpr):
    cuda.gdc_launch_dependents()
    if not FAULTY:
        cuda.gdc_wait()
    tl.store(o + tl.arange(0, BLOCK), 1)


@triton.jit
def load_after_the_wait(x, o, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    cuda.gdc_wait()
    tl.store(o + i, tl.load(x + i))  # found: chain_with_a_gap


@fault("which the programmatic launch may overlap", chips=("sm_90a", "sm_100a"))
def chain_with_a_gap(gpu: Any, is_faulty: bool) -> None:
    """A kernel between two others waits for neither, so that the last one waits for it alone."""
    x, o, other = (zeros(128, np.int32) for _ in range(3))
    store_numbers[(1,)](x, 128)
    pass_by[(1,)](other, 128, is_faulty, launch_pdl=True)
    load_after_the_wait[(1,)](x, o, 128, launch_pdl=True)
