"""Kernels of PTX: shared and global memory, asynchronous copies, barriers."""

from __future__ import annotations

from typing import Any

from harness import ptx_fault

HOPPER = ("sm_90a", "sm_100a")

#: %d0 is the address of the first argument, %d1 that of this thread's word, %r0 the thread's
#: number, %r1 the address of its word in shared memory; %d5 and %d2 are of the second argument.
HEAD = """
.visible .entry main(.param .u64 p, .param .u64 q)
{
.reg .b64 %d<8>;
.reg .b32 %r<12>;
.reg .pred %p<4>;
.shared .align 128 .b8 tile[1024];
.shared .align 8 .b64 bar;
ld.param.u64 %d0, [p];
ld.param.u64 %d5, [q];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d1, %r0, 4;
add.u64 %d2, %d5, %d1;
add.u64 %d1, %d0, %d1;
shl.b32 %r1, %r0, 2;
mov.u32 %r2, tile;
add.u32 %r1, %r2, %r1;
mov.u32 %r3, bar;
setp.eq.u32 %p0, %r0, 0;
"""
INIT = """
@!%p0 bra READY;
mbarrier.init.shared.b64 [%r3], 1;
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0;
"""
#: The first thread copies 256 bytes of the second argument to shared memory.
BULK = """
@!%p0 bra STARTED;
mbarrier.arrive.expect_tx.shared.b64 %d6, [%r3], 256;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d5], 256, [%r3];
STARTED:
"""
TAIL = "ret;\n}\n"


def on_words(count: int = 64, **shape: Any) -> Any:
    """A launch on `count` words that are there, and as many more."""

    def launch(gpu: Any, function: Any) -> None:
        gpu.launch(function, gpu.upload(range(count)), gpu.upload(range(count)), **{"block": 64, **shape})

    return launch


ptx_fault(
    "missing_barrier",
    HEAD
    + """
st.shared.u32 [%r1], %r0;
bar.sync 0; //+
xor.b32 %r4, %r1, 128;
ld.shared.u32 %r5, [%r4]; // found
st.global.u32 [%d1], %r5;
"""
    + TAIL,
    "read is not ordered after an earlier write of another warp",
    launch=on_words(),
)
ptx_fault(
    "barrier_too_early",
    HEAD
    + """
st.shared.u32 [%r1], %r0;
bar.sync 0;
xor.b32 %r4, %r1, 128;
ld.shared.u32 %r5, [%r4];
bar.sync 0; //+
st.shared.u32 [%r1], %r5; // found
st.global.u32 [%d1], %r5;
"""
    + TAIL,
    "write is not ordered after an earlier read of another warp",
    launch=on_words(),
)
ptx_fault(
    "missing_copy_wait",
    HEAD
    + """
cp.async.ca.shared.global [%r1], [%d1], 4;
cp.async.commit_group;
cp.async.wait_group 0; //+
ld.shared.u32 %r5, [%r1]; // found
st.global.u32 [%d2], %r5;
"""
    + TAIL,
    "of an asynchronous operation that may still run",
    launch=on_words(),
)
ptx_fault(
    "one_group_too_few",
    HEAD
    + """
cp.async.ca.shared.global [%r1], [%d1], 4;
cp.async.commit_group;
cp.async.ca.shared.global [%r1 + 512], [%d1], 4;
cp.async.commit_group;
cp.async.wait_group 1; //-
cp.async.wait_group 0; //+
ld.shared.u32 %r5, [%r1 + 512]; // found
st.global.u32 [%d2], %r5;
"""
    + TAIL,
    "of an asynchronous operation that may still run",
    launch=on_words(),
)
ptx_fault(
    "wrong_phase",
    HEAD
    + INIT
    + BULK
    + """
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 1; //-
mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0; //+
@!%p1 bra WAIT;
ld.shared.u32 %r5, [%r1]; // found
st.global.u32 [%d1], %r5;
"""
    + TAIL,
    "of an asynchronous operation that may still run",
    launch=on_words(),
    target="sm_90",
    chips=HOPPER,
)
ptx_fault(
    "missing_wait",
    HEAD
    + INIT
    + BULK
    + """
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0; //+
@!%p1 bra WAIT; //+
ld.shared.u32 %r5, [%r1]; // found
st.global.u32 [%d1], %r5;
"""
    + TAIL,
    "of an asynchronous operation that may still run",
    launch=on_words(),
    target="sm_90",
    chips=HOPPER,
)
ptx_fault(
    "too_few_bytes_expected",
    HEAD
    + INIT
    + BULK.replace("[%r3], 256;", "[%r3], 512; //-\nmbarrier.arrive.expect_tx.shared.b64 %d6, [%r3], 256; //+", 1)
    + """
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0;
@!%p1 bra WAIT; // found
ld.shared.u32 %r5, [%r1];
st.global.u32 [%d1], %r5;
"""
    + TAIL,
    "which lacks 256 bytes",
    launch=on_words(),
    target="sm_90",
    chips=HOPPER,
)
ptx_fault(
    "missing_proxy_fence",
    HEAD
    + """
st.shared.u32 [%r1], %r0;
fence.proxy.async.shared::cta; //+
bar.sync 0;
@!%p0 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256; // found
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
"""
    + TAIL,
    "read is not ordered after an earlier write of a generic access",
    launch=on_words(),
    target="sm_90",
    chips=HOPPER,
)
ptx_fault(
    "source_reused_too_early",
    HEAD
    + """
st.shared.u32 [%r1], %r0;
fence.proxy.async.shared::cta;
bar.sync 0;
@!%p0 bra DONE;
cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 256;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0; //+
st.shared.u32 [%r1], %r3; // found
DONE:
"""
    + TAIL,
    "of an asynchronous operation that may still run",
    launch=on_words(),
    target="sm_90",
    chips=HOPPER,
)
ptx_fault(
    "missing_cluster_barrier",
    HEAD
    + """
mov.u32 %r4, %cluster_ctarank;
add.u32 %r5, %r4, 7;
st.shared.u32 [%r1], %r5;
barrier.cluster.arrive.aligned; //+
barrier.cluster.wait.aligned; //+
xor.b32 %r4, %r4, 1;
mapa.shared::cluster.u32 %r6, %r1, %r4;
ld.shared::cluster.u32 %r7, [%r6]; // found
st.global.u32 [%d1], %r7;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
"""
    + TAIL,
    "is not ordered after an earlier write",
    launch=on_words(grid=2, cluster=2, block=32),
    target="sm_90",
    chips=HOPPER,
)
ptx_fault(
    "racing_programs",
    HEAD
    + """
mov.u32 %r4, %ctaid.x;
st.global.u32 [%d1], %r4; // found //-
red.global.add.u32 [%d1], %r4; //+
"""
    + TAIL,
    "of another CTA",
    launch=on_words(grid=4),
)
ptx_fault(
    "lost_update",
    HEAD
    + """
ld.global.u32 %r4, [%d0]; // found //-
add.u32 %r4, %r4, 1; //-
st.global.u32 [%d0], %r4; //-
red.global.add.u32 [%d0], 1; //+
"""
    + TAIL,
    "of another CTA",
    launch=on_words(grid=4, block=1),
)
ptx_fault(
    "flag_without_release",
    HEAD
    + """
mov.u32 %r4, %ctaid.x;
setp.ne.u32 %p1, %r4, 0;
@%p1 bra TAKE;
st.global.u32 [%d0 + 64], %r0;
red.relaxed.gpu.global.add.u32 [%d0], 1; //-
red.release.gpu.global.add.u32 [%d0], 1; //+
bra DONE;
TAKE:
ld.acquire.gpu.global.u32 %r5, [%d0];
setp.eq.u32 %p2, %r5, 0;
@%p2 bra TAKE;
ld.global.u32 %r6, [%d0 + 64]; // found
st.global.u32 [%d0 + 128], %r6;
DONE:
"""
    + TAIL,
    "of another CTA",
    launch=lambda gpu, function: gpu.launch(function, gpu.upload([0] * 64), 0, grid=2, block=1),
)
ptx_fault(
    "uninitialised_shared",
    HEAD
    + """
st.shared.u32 [%r1], %r0; //+
ld.shared.u32 %r5, [%r1];
add.u32 %r5, %r5, 1;
st.global.u32 [%d1], %r5; // found
"""
    + TAIL,
    "never written",
    launch=on_words(),
)
ptx_fault(
    "uninitialised_global",
    HEAD
    + """
ld.global.u32 %r5, [%d5]; //-
mov.u32 %r5, 1; //+
st.global.u32 [%d1], %r5; // found
"""
    + TAIL,
    "never written",
    launch=lambda gpu, function: gpu.launch(function, gpu.upload([0] * 32), gpu.allocate(32)),
)
ptx_fault(
    "one_element_too_far",
    HEAD
    + """
setp.lt.u32 %p1, %r0, 63; //+
@!%p1 bra DONE; //+
ld.global.u32 %r5, [%d1 + 4]; // found
st.global.u32 [%d2], %r5;
DONE:
"""
    + TAIL,
    "outside of every allocation",
    launch=on_words(),
)
ptx_fault(
    "divergent_barrier",
    HEAD
    + """
setp.lt.u32 %p1, %r0, 32; //-
@%p1 bra DONE; //-
bar.sync 0, 96; // found //-
bar.sync 0; //+
st.global.u32 [%d1], %r0;
DONE:
"""
    + TAIL,
    "which lacks 64 of 96 threads",
    launch=on_words(),
)
ptx_fault(
    "arrival_that_never_comes",
    HEAD
    + """
@!%p0 bra READY;
mbarrier.init.shared.b64 [%r3], 2; //-
mbarrier.init.shared.b64 [%r3], 1; //+
READY:
bar.sync 0;
@!%p0 bra WAIT;
mbarrier.arrive.shared.b64 %d6, [%r3];
WAIT:
mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0;
@!%p1 bra WAIT; // found
st.global.u32 [%d1], %r0;
"""
    + TAIL,
    "which lacks 1 of 2 arrivals",
    launch=on_words(),
    target="sm_90",
    chips=HOPPER,
)
