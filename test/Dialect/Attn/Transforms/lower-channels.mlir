// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-lower-channels,canonicalize,cse))' --split-input-file | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' --split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Cursors: the first role starts with parity 1; a position is slot + parity.

// CHECK-LABEL: gpu.func @positions
// CHECK:         %[[C1:.*]] = arith.constant 1 : i32
// CHECK:         %[[P:.*]] = attn.mbarrier.alloc {name = "c.producer"} : <3>
// CHECK:         %[[C:.*]] = attn.mbarrier.alloc {name = "c.consumer"} : <3>
// CHECK:         attn.mbarrier.init %[[P]] {count = 4 : i64}
// CHECK:         attn.mbarrier.init %[[C]] {count = 8 : i64}
// CHECK:         partition "consumer"
// CHECK-DAG:       %[[C3:.*]] = arith.constant 3 : i32
// CHECK-DAG:       %[[SHIFT:.*]] = arith.constant 16 : i32
// CHECK-DAG:       %[[MASK:.*]] = arith.constant 65535 : i32
// CHECK-DAG:       %[[WRAP:.*]] = arith.constant 65539 : i32
// CHECK:           scf.for {{.*}} iter_args(%[[CUR:.*]] = %{{.*}}) -> (i32)
// CHECK:             %[[SLOT:.*]] = arith.andi %[[CUR]], %[[MASK]]
// CHECK:             %[[PHASE:.*]] = arith.shrui %[[CUR]], %[[SHIFT]]
// CHECK:             attn.mbarrier.wait %[[P]][%[[SLOT]]] parity %[[PHASE]]
// CHECK:             attn.mbarrier.arrive %[[C]][%[[SLOT]]]
// CHECK:             %[[N:.*]] = arith.addi %[[CUR]], %[[C1]]
// CHECK:             %[[NS:.*]] = arith.andi %[[N]], %[[MASK]]
// CHECK:             %[[LAST:.*]] = arith.cmpi eq, %[[NS]], %[[C3]]
// CHECK:             %[[W:.*]] = arith.xori %[[N]], %[[WRAP]]
// CHECK:             %[[NEXT:.*]] = arith.select %[[LAST]], %[[W]], %[[N]]
// CHECK:             scf.yield %[[NEXT]]
// CHECK:         partition "producer"
// CHECK:           %[[PARITY:.*]] = arith.constant 65536 : i32
// CHECK:           iter_args(%{{.*}} = %[[PARITY]]) -> (i32)
// REMARK: channel 'c' becomes mbarriers
// REMARK-SAME: barriers=6, bytes=none, counts="producer 4, consumer 8", depth=3, multicast=1
gpu.module @kernels {
  gpu.func @positions(%n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ch = attn.channel.create {name = "c", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<3>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 96 {
      %first = attn.cursor.start %ch as "consumer" : !attn.channel<3>
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
        %index, %token = attn.channel.acquire %ch[%c] as "consumer" : !attn.channel<3>
        attn.channel.release %ch, %token as "consumer" : !attn.channel<3>
        %next = attn.cursor.advance %c on %ch : !attn.channel<3>
        scf.yield %next : !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
      %first = attn.cursor.start %ch as "producer" : !attn.channel<3>
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
        %index, %token = attn.channel.acquire %ch[%c] as "producer" : !attn.channel<3>
        attn.channel.release %ch, %token as "producer" : !attn.channel<3>
        %next = attn.cursor.advance %c on %ch : !attn.channel<3>
        scf.yield %next : !attn.cursor
      }
    }
    gpu.return
  }
}

// -----

// The only slot of a channel comes again with the other parity.

// CHECK-LABEL: gpu.func @one_slot
// CHECK:         partition "consumer"
// CHECK:           %[[FLIP:.*]] = arith.constant 65536 : i32
// CHECK:           scf.for {{.*}} iter_args(%[[CUR:.*]] = %{{.*}}) -> (i32)
// CHECK:             %[[NEXT:.*]] = arith.xori %[[CUR]], %[[FLIP]]
// CHECK-NEXT:        scf.yield %[[NEXT]]
gpu.module @kernels {
  gpu.func @one_slot(%n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ch = attn.channel.create {name = "c", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 96 {
      %first = attn.cursor.start %ch as "consumer" : !attn.channel<1>
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
        %index, %token = attn.channel.acquire %ch[%c] as "consumer" : !attn.channel<1>
        attn.channel.release %ch, %token as "consumer" : !attn.channel<1>
        %next = attn.cursor.advance %c on %ch : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    partition "producer" warps 4 registers 24 {
      %first = attn.cursor.start %ch as "producer" : !attn.channel<1>
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
        %index, %token = attn.channel.acquire %ch[%c] as "producer" : !attn.channel<1>
        attn.channel.release %ch, %token as "producer" : !attn.channel<1>
        %next = attn.cursor.advance %c on %ch : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    gpu.return
  }
}

// -----

// A cycle of three roles: each waits for the one before it. A slot of depth 1 is
// always slot 0. One thread that releases arrives once. All roles but the first
// start with parity 0.

// CHECK-LABEL: gpu.func @cycle
// CHECK:         %[[A:.*]] = attn.mbarrier.alloc {name = "s.a"} : <1>
// CHECK:         %[[B:.*]] = attn.mbarrier.alloc {name = "s.b"} : <1>
// CHECK:         %[[C:.*]] = attn.mbarrier.alloc {name = "s.c"} : <1>
// CHECK:         attn.mbarrier.init %[[A]] {count = 4 : i64}
// CHECK:         attn.mbarrier.init %[[B]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[C]] {count = 8 : i64}
// CHECK:         partition "a"
// CHECK-DAG:       %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG:       %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:           attn.mbarrier.wait %[[C]][%[[ZERO]]] parity %[[ONE]]
// CHECK:           attn.mbarrier.arrive %[[A]][%[[ZERO]]]
// CHECK:         partition "b"
// CHECK:           attn.mbarrier.wait %[[A]][%[[ZERO]]] parity %[[ZERO]]
// CHECK:           attn.mbarrier.arrive %[[B]][%[[ZERO]]]
// CHECK:         partition "c"
// CHECK:           attn.mbarrier.wait %[[B]][%[[ZERO]]] parity %[[ZERO]]
// CHECK:           attn.mbarrier.arrive %[[C]][%[[ZERO]]]
// REMARK: channel 's' becomes mbarriers
// REMARK-SAME: barriers=3, bytes=none, counts="a 4, b 1, c 8", depth=1, multicast=1
gpu.module @kernels {
  gpu.func @cycle() kernel {
    %ch = attn.channel.create {name = "s", roles = [#attn.role<"a", arrive>, #attn.role<"b", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %ch as "a" : !attn.channel<1>
      %index, %token = attn.channel.acquire %ch[%c] as "a" : !attn.channel<1>
      attn.channel.release %ch, %token as "a" : !attn.channel<1>
    }
    partition "b" warps 4 registers 96 {
      attn.elect {
        %c = attn.cursor.start %ch as "b" : !attn.channel<1>
        %index, %token = attn.channel.acquire %ch[%c] as "b" : !attn.channel<1>
        attn.channel.release %ch, %token as "b" : !attn.channel<1>
      }
    }
    partition "c" warps 8 registers 96 {
      %c = attn.cursor.start %ch as "c" : !attn.channel<1>
      %index, %token = attn.channel.acquire %ch[%c] as "c" : !attn.channel<1>
      attn.channel.release %ch, %token as "c" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

// Bytes are those of all loads with the token, on either path; a token may cross
// the back-edge of a loop, and be released in a branch.

// CHECK-LABEL: gpu.func @bytes
// CHECK:         %[[FULL:.*]] = attn.mbarrier.alloc {name = "k.producer"}
// CHECK:         %[[EMPTY:.*]] = attn.mbarrier.alloc {name = "k.consumer"}
// CHECK:         partition "consumer"
// CHECK:           attn.mbarrier.wait %[[FULL]][
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[HELD:.*]] = %{{.*}}) -> (i32, i32)
// CHECK:             attn.mbarrier.wait %[[FULL]][
// CHECK:             %[[SLOT:.*]] = arith.andi %[[HELD]],
// CHECK:             attn.mbarrier.arrive %[[EMPTY]][%[[SLOT]]]
// CHECK:           scf.if
// CHECK:             attn.mbarrier.arrive %[[EMPTY]][
// CHECK:           else
// CHECK:             attn.mbarrier.arrive %[[EMPTY]][
// CHECK:         partition "producer"
// CHECK:           attn.mbarrier.expect_tx %[[FULL]][%{{.*}}] {bytes = 24576 : i64}
// CHECK:           attn.tma.load {{.*}} barrier %[[FULL]][
// CHECK:           scf.if
// CHECK:             attn.tma.load {{.*}} barrier %[[FULL]][
// CHECK:           else
// CHECK:             attn.tma.load {{.*}} barrier %[[FULL]][
// CHECK-NOT:       attn.mbarrier.arrive
// CHECK:           attn.mbarrier.expect_tx %[[FULL]][%{{.*}}] {bytes = 0 : i64}
// REMARK: channel 'k' becomes mbarriers
// REMARK-SAME: barriers=4, bytes="24576, 0", counts="producer 1, consumer 4", depth=2, multicast=1
!whole = !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
!half = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!mw = !attn.tensor_map<128x64xf16, swizzle = 128>
!mh = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @bytes(%mw: !mw, %mh: !mh, %n: i32, %cond: i1) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.alloc {name = "a"} : !whole
    %b = attn.alloc {name = "b"} : !half
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %c0 = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %i0, %t0 = attn.channel.acquire %k[%c0] as "consumer" : !attn.channel<2>
      %c1 = attn.cursor.advance %c0 on %k : !attn.channel<2>
      %end:2 = scf.for %i = %zero to %n step %one iter_args(%c = %c1, %held = %t0) -> (!attn.cursor, !attn.token) : i32 {
        %index, %token = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
        attn.channel.release %k, %held as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %c on %k : !attn.channel<2>
        scf.yield %next, %token : !attn.cursor, !attn.token
      }
      scf.if %cond {
        attn.channel.release %k, %end#1 as "consumer" : !attn.channel<2>
      } else {
        gpu.printf "other"
        attn.channel.release %k, %end#1 as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c0 = attn.cursor.start %k as "producer" : !attn.channel<2>
        %i0, %t0 = attn.channel.acquire %k[%c0] as "producer" : !attn.channel<2>
        attn.tma.load %mw[%zero, %zero], %a token %t0 : !mw, !whole
        scf.if %cond {
          attn.tma.load %mh[%zero, %zero], %b token %t0 : !mh, !half
        } else {
          attn.tma.load %mh[%one, %zero], %b token %t0 : !mh, !half
        }
        attn.channel.release %k, %t0 as "producer" : !attn.channel<2>
        %c1 = attn.cursor.advance %c0 on %k : !attn.channel<2>
        %i1, %t1 = attn.channel.acquire %k[%c1] as "producer" : !attn.channel<2>
        attn.channel.release %k, %t1 as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

// Kernels without channels stay as they are.

// CHECK-LABEL: gpu.func @nothing
// CHECK-NEXT:    gpu.return
gpu.module @kernels {
  gpu.func @nothing() kernel attributes {attn.warps = array<i64: 4, 1>} {
    gpu.return
  }
}

// -----

// Multicast loads: a slot is free when it is in both CTAs, so that releases
// arrive in both and twice as many count; what is loaded by each CTA alone is
// counted alone. All CTAs start together and stay to the end.

// CHECK-LABEL: gpu.func @multicast
// CHECK:         %[[KP:.*]] = attn.mbarrier.alloc {name = "k.producer"}
// CHECK:         %[[KC:.*]] = attn.mbarrier.alloc {name = "k.consumer"}
// CHECK:         %[[QP:.*]] = attn.mbarrier.alloc {name = "q.producer"}
// CHECK:         %[[QC:.*]] = attn.mbarrier.alloc {name = "q.consumer"}
// CHECK:         attn.mbarrier.init %[[KP]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[KC]] {count = 8 : i64}
// CHECK:         attn.mbarrier.init %[[QP]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[QC]] {count = 4 : i64}
// CHECK:         attn.cluster_barrier
// CHECK-NOT:     gpu.barrier
// CHECK:         partition "consumer"
// CHECK:           attn.mbarrier.wait %[[KP]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK:           attn.mbarrier.arrive %[[KC]][%{{.*}}] {ctas = 2 : i64}
// CHECK:           attn.mbarrier.wait %[[QP]][%{{.*}}] parity %{{.*}} : <1>
// CHECK:           attn.mbarrier.arrive %[[QC]][%{{.*}}] : <1>
// CHECK:         partition "producer"
// CHECK:           attn.mbarrier.wait %[[KC]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK:           attn.mbarrier.expect_tx %[[KP]][%{{.*}}] {bytes = 16384 : i64}
// CHECK:           attn.tma.load {{.*}} barrier %[[KP]][{{.*}} {multicast = 2 : i64}
// CHECK:           attn.mbarrier.expect_tx %[[QP]][%{{.*}}] {bytes = 8192 : i64}
// CHECK:         attn.cluster_barrier
// CHECK-NEXT:    gpu.return
// REMARK: channel 'k' becomes mbarriers
// REMARK-SAME: counts="producer 1, consumer 8", depth=2, masks="producer 3 3, consumer 3 3", multicast=2
// REMARK: channel 'q' becomes mbarriers
// REMARK-SAME: counts="producer 1, consumer 4", depth=1, multicast=1
!whole = !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
!half = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @multicast(%map: !map, %x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %a = attn.alloc {name = "a"} : !whole
    %b = attn.alloc {name = "b"} : !half
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %kt as "consumer" : !attn.channel<2>
      %qc = attn.cursor.start %q as "consumer" : !attn.channel<1>
      %qi, %qt = attn.channel.acquire %q[%qc] as "consumer" : !attn.channel<1>
      attn.channel.release %q, %qt as "consumer" : !attn.channel<1>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !attn.channel<2>
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !attn.channel<2>
        attn.tma.load %map[%x, %x], %a token %kt {multicast = 2} : !map, !whole
        attn.channel.release %k, %kt as "producer" : !attn.channel<2>
        %qc = attn.cursor.start %q as "producer" : !attn.channel<1>
        %qi, %qt = attn.channel.acquire %q[%qc] as "producer" : !attn.channel<1>
        attn.tma.load %map[%x, %x], %b token %qt : !map, !half
        attn.channel.release %q, %qt as "producer" : !attn.channel<1>
      }
    }
    gpu.return
  }
}

// -----

// A partition with two roles of one channel: its elected thread loads what all
// of its warps read.

// CHECK-LABEL: gpu.func @two_roles
// CHECK:         %[[FULL:.*]] = attn.mbarrier.alloc {name = "v.producer"} : <2>
// CHECK:         %[[FREE:.*]] = attn.mbarrier.alloc {name = "v.reader"} : <2>
// CHECK:         attn.mbarrier.init %[[FULL]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[FREE]] {count = 4 : i64}
// CHECK:         attn.elect
// CHECK:           attn.mbarrier.wait %[[FREE]]
// CHECK:           attn.mbarrier.expect_tx %[[FULL]]
// CHECK:           attn.tma.load
// CHECK:         attn.mbarrier.wait %[[FULL]]
// CHECK:         attn.mbarrier.arrive %[[FREE]]
// REMARK: counts="producer 1, reader 4"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @two_roles(%map: !map, %x: i32) kernel {
    %v = attn.alloc {name = "v"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    %ch = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      %load = attn.cursor.start %ch as "producer" : !attn.channel<2>
      %read = attn.cursor.start %ch as "reader" : !attn.channel<2>
      attn.elect {
        %index, %token = attn.channel.acquire %ch[%load] as "producer" : !attn.channel<2>
        %slot = attn.slot %v[%index] : !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
        attn.tma.load %map[%x, %x], %slot token %token : !map, !attn.buffer<64x64xf16, #attn.auto, shared>
        attn.channel.release %ch, %token as "producer" : !attn.channel<2>
      }
      %index, %token = attn.channel.acquire %ch[%read] as "reader" : !attn.channel<2>
      attn.channel.release %ch, %token as "reader" : !attn.channel<2>
    }
    gpu.return
  }
}

// -----

// A release by one thread of each warpgroup arrives once for each.

// CHECK-LABEL: gpu.func @warpgroups
// CHECK:         attn.mbarrier.init %{{.*}} {count = 4 : i64}
// CHECK:         attn.mbarrier.init %{{.*}} {count = 2 : i64}
gpu.module @kernels {
  gpu.func @warpgroups() kernel {
    %ch = attn.channel.create {name = "c", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 96 {
      %c = attn.cursor.start %ch as "consumer" : !attn.channel<1>
      %index, %token = attn.channel.acquire %ch[%c] as "consumer" : !attn.channel<1>
      attn.elect each_warpgroup {
        attn.channel.release %ch, %token as "consumer" : !attn.channel<1>
      }
    }
    partition "producer" warps 4 registers 24 {
      %c = attn.cursor.start %ch as "producer" : !attn.channel<1>
      %index, %token = attn.channel.acquire %ch[%c] as "producer" : !attn.channel<1>
      attn.channel.release %ch, %token as "producer" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

// Parts: each has mbarriers of its own, in a row; the warps of a warpgroup
// release its own part, and bytes are those of a part's loads.

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
// CHECK-LABEL: gpu.func @parts
// CHECK:         %[[P:.*]] = attn.mbarrier.alloc {name = "q.producer"} : <4>
// CHECK:         %[[C:.*]] = attn.mbarrier.alloc {name = "q.consumer"} : <4>
// CHECK:         attn.mbarrier.init %[[P]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[C]] {count = 4 : i64}
// CHECK:         partition "consumer"
// CHECK:           %[[W:.*]] = attn.warpgroup_index
// CHECK:           %[[FIRST:.*]] = arith.muli %[[W]], %c2_i32
// CHECK:           attn.mbarrier.wait %[[P]][%[[FIRST]]]
// CHECK:           attn.mbarrier.arrive %[[C]][%[[FIRST]]]
// CHECK:         partition "producer"
// CHECK:             attn.mbarrier.wait %[[C]][%c0_i32] parity %c1_i32
// CHECK:             attn.mbarrier.expect_tx %[[P]][%c0_i32] {bytes = 8192 : i64}
// CHECK:             attn.mbarrier.wait %[[C]][%c2_i32] parity %c1_i32
// CHECK:             attn.mbarrier.expect_tx %[[P]][%c2_i32] {bytes = 16384 : i64}
// REMARK: channel 'q' becomes mbarriers
// REMARK-SAME: barriers=8, bytes="8192, 16384", counts="producer 1, consumer 4", depth=2, multicast=1, parts=2
gpu.module @kernels {
  gpu.func @parts(%map: !map, %i: i32) kernel {
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<2>
    %a = attn.alloc {name = "a"} : !slot
    %b = attn.alloc {name = "b"} : !slot
    %d = attn.alloc {name = "d"} : !slot
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 96 {
      %c = attn.cursor.start %q as "consumer" : !attn.channel<2>
      %index, %token = attn.channel.acquire %q[%c] as "consumer" {each_warpgroup} : !attn.channel<2>
      attn.channel.release %q, %token as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %q as "producer" : !attn.channel<2>
        %iu, %upper = attn.channel.acquire %q[%c] as "producer" part "upper" : !attn.channel<2>
        attn.tma.load %map[%i, %i], %a token %upper : !map, !slot
        attn.channel.release %q, %upper as "producer" : !attn.channel<2>
        %il, %lower = attn.channel.acquire %q[%c] as "producer" part "lower" : !attn.channel<2>
        attn.tma.load %map[%i, %i], %b token %lower : !map, !slot
        attn.tma.load %map[%i, %i], %d token %lower : !map, !slot
        attn.channel.release %q, %lower as "producer" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

// The cluster's leader fills the slots of both CTAs: it announces bytes and sends
// in both, once all readers of both have arrived in its own CTA. Between the
// others slots stay in their CTA.

// CHECK-LABEL: gpu.func @leader
// CHECK:         %[[P:.*]] = attn.mbarrier.alloc {name = "tile.producer"}
// CHECK:         %[[R:.*]] = attn.mbarrier.alloc {name = "tile.reader"}
// CHECK:         %[[C:.*]] = attn.mbarrier.alloc {name = "tile.consumer"}
// CHECK:         attn.mbarrier.init %[[P]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[R]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[C]] {count = 8 : i64}
// CHECK:         attn.cluster_barrier
// CHECK:         partition "consumer"
// CHECK:           attn.mbarrier.wait %[[R]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK:           attn.mbarrier.arrive %[[C]][%{{.*}}] {leader} : <2>
// CHECK:         partition "producer"
// CHECK:           attn.cluster_leader {
// CHECK:             attn.mbarrier.wait %[[C]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK:             attn.mbarrier.expect_tx %[[P]][%{{.*}}] {bytes = 4 : i64, ctas = 2 : i64}
// CHECK:             attn.scalar_send %{{.*}}, %{{.*}} barrier %[[P]][%{{.*}}] : !attn.mbarriers<2> {ctas = 2 : i64}
// CHECK:           }
// CHECK:           attn.mbarrier.wait %[[P]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK:           attn.mbarrier.arrive %[[R]][%{{.*}}] : <2>
// CHECK:         attn.cluster_barrier
// CHECK-NEXT:    gpu.return
// REMARK: channel 'tile' becomes mbarriers
// REMARK-SAME: barriers=6, bytes=4, counts="producer 1, reader 1, consumer 8", depth=2
gpu.module @kernels {
  gpu.func @leader(%x: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !attn.buffer<2xi32, #attn.rows, shared>
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %p = attn.cursor.start %c as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %c[%p] as "consumer" : !attn.channel<2>
      attn.channel.release %c, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        %r = attn.cursor.start %c as "reader" : !attn.channel<2>
        attn.cluster_leader {
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          attn.scalar_send %x, %ring[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
        }
        %i, %t = attn.channel.acquire %c[%r] as "reader" : !attn.channel<2>
        attn.channel.release %c, %t as "reader" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

// Without clusters each CTA is its own leader.

// CHECK-LABEL: gpu.func @alone
// CHECK:         attn.mbarrier.init %{{.*}} {count = 1 : i64}
// CHECK:         attn.mbarrier.init %{{.*}} {count = 4 : i64}
// CHECK:         gpu.barrier
// CHECK:         attn.mbarrier.arrive %{{[^{]*}} : <2>
// CHECK:         attn.mbarrier.expect_tx %{{.*}} {bytes = 4 : i64} : <2>
// CHECK:         attn.scalar_send %{{.*}}, %{{.*}} barrier %{{.*}} : !attn.mbarriers<2> :
gpu.module @kernels {
  gpu.func @alone(%x: i32) kernel {
    %ring = attn.alloc {name = "tile"} : !attn.buffer<2xi32, #attn.rows, shared>
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %p = attn.cursor.start %c as "consumer" : !attn.channel<2>
      %i, %t = attn.channel.acquire %c[%p] as "consumer" : !attn.channel<2>
      attn.channel.release %c, %t as "consumer" : !attn.channel<2>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %p = attn.cursor.start %c as "producer" : !attn.channel<2>
        attn.cluster_leader {
          %i, %t = attn.channel.acquire %c[%p] as "producer" : !attn.channel<2>
          attn.scalar_send %x, %ring[%i] token %t : !attn.buffer<2xi32, #attn.rows, shared>
          attn.channel.release %c, %t as "producer" : !attn.channel<2>
        }
      }
    }
    gpu.return
  }
}

// -----

// Partitions that have a role together: a slot is free again when all warps of
// both have arrived, and each of them waits for it alone.
// CHECK-LABEL: gpu.func @together
// CHECK: %[[FULL:.*]] = attn.mbarrier.alloc {name = "k.load"} : <2>
// CHECK: %[[FREE:.*]] = attn.mbarrier.alloc {name = "k.use"} : <2>
// CHECK: attn.mbarrier.init %[[FULL]] {count = 1 : i64}
// CHECK: attn.mbarrier.init %[[FREE]] {count = 6 : i64}
// CHECK: partition "left" warps 4
// CHECK: attn.mbarrier.wait %[[FULL]]
// CHECK: attn.mbarrier.arrive %[[FREE]]
// CHECK: partition "right" warps 2
// CHECK: attn.mbarrier.wait %[[FULL]]
// CHECK: attn.mbarrier.arrive %[[FREE]]
// REMARK: counts="load 1, use 6"
gpu.module @kernels {
  gpu.func @together() kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"use" in ["left", "right"], arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "left" warps 4 registers 96 {
      %c = attn.cursor.start %k as "use" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "use" : !attn.channel<2>
      attn.channel.release %k, %t as "use" : !attn.channel<2>
    }
    partition "right" warps 2 registers 24 {
      %c = attn.cursor.start %k as "use" : !attn.channel<2>
      %i, %t = attn.channel.acquire %k[%c] as "use" : !attn.channel<2>
      attn.channel.release %k, %t as "use" : !attn.channel<2>
    }
    partition "load" warps 2 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "load" : !attn.channel<2>
        %i, %t = attn.channel.acquire %k[%c] as "load" : !attn.channel<2>
        attn.channel.release %k, %t as "load" : !attn.channel<2>
      }
    }
    gpu.return
  }
}

// -----

// A role that takes slots as a whole and hands them on in two parts, and one
// that takes the parts and hands the slot on as a whole: only the array between
// them has mbarriers for each part. Tokens of parts are the slot's position.
// CHECK-LABEL: gpu.func @own_parts
// CHECK: %[[S:.*]] = attn.mbarrier.alloc {name = "s.mma"} : <2>
// CHECK: %[[P:.*]] = attn.mbarrier.alloc {name = "s.softmax"} : <4>
// CHECK: attn.mbarrier.init %[[S]] {count = 1 : i64} : <2>
// CHECK: attn.mbarrier.init %[[P]] {count = 4 : i64} : <4>
// CHECK: partition "softmax"
// CHECK: attn.mbarrier.wait %[[S]][%[[SLOT:.*]]] parity
// CHECK-NEXT: attn.mbarrier.arrive %[[P]][%[[SLOT]]]
// CHECK-NEXT: attn.mbarrier.arrive %[[P]][%[[BACK:.*]]] : <4>
// CHECK: partition "mma"
// CHECK: attn.mbarrier.wait %[[P]][%[[FIRST:.*]]] parity
// CHECK-NEXT: attn.mbarrier.wait %[[P]][%[[SECOND:.*]]] parity
// CHECK-NEXT: attn.mbarrier.arrive %[[S]][%[[FIRST]]]
// REMARK: counts="mma 1, softmax 4", depth=2, multicast=1, parts=2
gpu.module @kernels {
  gpu.func @own_parts(%n: i32) kernel {
    %s = attn.channel.create {name = "s", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<2>
    attn.warp_specialize
    partition "softmax" warps 4 registers 96 {
      %c = attn.cursor.start %s as "softmax" : !attn.channel<2>
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<2>
      %front, %back = attn.channel.split %s, %t as "softmax" : !attn.channel<2> -> !attn.token, !attn.token
      attn.channel.release %s, %front as "softmax" : !attn.channel<2>
      attn.channel.release %s, %back as "softmax" : !attn.channel<2>
    }
    partition "mma" warps 1 registers 24 {
      attn.elect {
        %c = attn.cursor.start %s as "mma" : !attn.channel<2>
        %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<2>
        %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<2>
        %t = attn.channel.join %s, %front, %back as "mma" : !attn.channel<2>
        attn.channel.release %s, %t as "mma" : !attn.channel<2>
      }
    }
    partition "idle" warps 3 registers 24 {
    }
    gpu.return
  }
}

// -----

// Two CTAs send each other tiles. All warps wait for the slot of the other CTA,
// which its readers and those of this one hand back, and one thread announces
// what comes here.

// CHECK-LABEL: gpu.func @exchange
// CHECK:         %[[S:.*]] = attn.mbarrier.alloc {name = "s.sender"}
// CHECK:         %[[A:.*]] = attn.mbarrier.alloc {name = "s.adder"}
// CHECK:         attn.mbarrier.init %[[S]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[A]] {count = 8 : i64}
// CHECK:         attn.cluster_barrier
// CHECK:         attn.mbarrier.wait %[[A]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK-NEXT:    attn.elect {
// CHECK-NEXT:      attn.mbarrier.expect_tx %[[S]][%{{.*}}] {bytes = 8192 : i64} : <1>
// CHECK-NEXT:    }
// CHECK-NEXT:    attn.local_send %{{.*}}, %{{.*}} barrier %[[S]][%{{.*}}] : !attn.mbarriers<1> :
// CHECK-NEXT:    attn.mbarrier.wait %[[S]][%{{.*}}] parity %{{.*}} {cluster}
// CHECK-NEXT:    attn.mbarrier.arrive %[[A]][%{{.*}}] {ctas = 2 : i64} : <1>
// CHECK:         attn.cluster_barrier
// CHECK-NEXT:    gpu.return
// REMARK: channel 's' becomes mbarriers
// REMARK-SAME: barriers=2, bytes=8192, counts="sender 1, adder 8", depth=1, masks="sender 3 3, adder 3 3", multicast=2
gpu.module @kernels {
  gpu.func @exchange() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %b = attn.alloc {name = "s"} : !attn.buffer<64x32xf32, #attn.auto, shared>
    %c = attn.channel.create {name = "s", roles = [#attn.role<"sender" in ["softmax"], tx>, #attn.role<"adder" in ["softmax"], arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 96 {
      %t = arith.constant dense<1.0> : tensor<64x32xf32, #attn.auto>
      %p = attn.cursor.start %c as "sender" : !attn.channel<1>
      %r = attn.cursor.start %c as "adder" : !attn.channel<1>
      %i, %to = attn.channel.acquire %c[%p] as "sender" : !attn.channel<1>
      attn.local_send %t, %b token %to : tensor<64x32xf32, #attn.auto>, !attn.buffer<64x32xf32, #attn.auto, shared>
      attn.channel.release %c, %to as "sender" : !attn.channel<1>
      %j, %from = attn.channel.acquire %c[%r] as "adder" : !attn.channel<1>
      attn.channel.release %c, %from as "adder" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

// Two warpgroups of a partition send each its own rows: one thread of each
// announces them, at the mbarrier of its part.

// CHECK-LABEL: gpu.func @exchange_in_parts
// CHECK:         %[[S:.*]] = attn.mbarrier.alloc {name = "s.sender"} : <2>
// CHECK:         %[[A:.*]] = attn.mbarrier.alloc {name = "s.adder"} : <2>
// CHECK:         attn.mbarrier.init %[[S]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[A]] {count = 8 : i64}
// CHECK:         %[[W:.*]] = attn.warpgroup_index
// CHECK:         attn.mbarrier.wait %[[A]][%[[W]]] parity %{{.*}} {cluster}
// CHECK-NEXT:    attn.elect each_warpgroup {
// CHECK-NEXT:      attn.mbarrier.expect_tx %[[S]][%[[W]]] {bytes = 8192 : i64} : <2>
// CHECK:         attn.local_send %{{.*}}, %{{.*}} barrier %[[S]][%{{.*}}] : !attn.mbarriers<2> :
gpu.module @kernels {
  gpu.func @exchange_in_parts() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %b = attn.alloc {name = "s"} : !attn.buffer<128x32xf32, #attn.auto, shared>
    %c = attn.channel.create {name = "s", roles = [#attn.role<"sender" in ["softmax"], tx, parts = ["upper", "lower"]>, #attn.role<"adder" in ["softmax"], arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 8 tiles [8, 1] registers 96 {
      %t = arith.constant dense<1.0> : tensor<128x32xf32, #attn.auto>
      %p = attn.cursor.start %c as "sender" : !attn.channel<1>
      %r = attn.cursor.start %c as "adder" : !attn.channel<1>
      %i, %to = attn.channel.acquire %c[%p] as "sender" {each_warpgroup} : !attn.channel<1>
      attn.local_send %t, %b token %to : tensor<128x32xf32, #attn.auto>, !attn.buffer<128x32xf32, #attn.auto, shared>
      attn.channel.release %c, %to as "sender" : !attn.channel<1>
      %j, %from = attn.channel.acquire %c[%r] as "adder" {each_warpgroup} : !attn.channel<1>
      attn.channel.release %c, %from as "adder" : !attn.channel<1>
    }
    gpu.return
  }
}
