// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-lower-channels,canonicalize,cse))' | FileCheck %s
// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// A role that signals by commit arrives once, in the order of its releases: one
// commit for each barrier. Parts have barriers of their own.

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!sum = !attn.buffer<64x64xf32, #attn.rows, shared>

// CHECK-LABEL: gpu.func @commit
// CHECK:         %[[K:.*]] = attn.mbarrier.alloc {name = "k.mma"} : <2>
// CHECK:         %[[T:.*]] = attn.mbarrier.alloc {name = "t.mma"} : <1>
// CHECK:         %[[P:.*]] = attn.mbarrier.alloc {name = "t.softmax"} : <2>
// CHECK:         attn.mbarrier.init %[[K]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[T]] {count = 1 : i64}
// CHECK:         attn.mbarrier.init %[[P]] {count = 4 : i64}
// CHECK:         partition "mma"
// CHECK:           attn.elect
// CHECK:             attn.mbarrier.wait %{{.*}}[%[[SLOT:.*]]] parity
// CHECK:             attn.mbarrier.wait %[[P]][%c0_i32] parity
// CHECK:             attn.mbarrier.wait %[[P]][%c1_i32] parity
// CHECK:             test_attn.buffer_product
// CHECK-NEXT:        attn.tcgen05.commit %[[T]][%c0_i32] : <1>
// CHECK:             attn.tcgen05.commit %[[K]][%[[SLOT]]] : <2>
// REMARK: channel 'k' becomes mbarriers
// REMARK-SAME: counts="load 1, mma 1"
// REMARK: channel 't' becomes mbarriers
// REMARK-SAME: counts="mma 1, softmax 4"
gpu.module @kernels {
  gpu.func @commit(%n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %q = attn.alloc {name = "q"} : !slot
    %ring = attn.alloc {name = "k"} : !ring
    %s = attn.alloc {name = "s"} : !sum
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %t = attn.channel.create {name = "t", roles = [#attn.role<"mma", commit>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !attn.channel<1>
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 200 {
      %first = attn.cursor.start %t as "softmax" : !attn.channel<1>
      %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
        %index, %token = attn.channel.acquire %t[%c] as "softmax" : !attn.channel<1>
        %front, %back = attn.channel.split %t, %token as "softmax" : !attn.channel<1> -> !attn.token, !attn.token
        attn.channel.release %t, %front as "softmax" : !attn.channel<1>
        attn.channel.release %t, %back as "softmax" : !attn.channel<1>
        %next = attn.cursor.advance %c on %t : !attn.channel<1>
        scf.yield %next : !attn.cursor
      }
    }
    partition "mma" warps 1 registers 24 {
      attn.elect {
        %k0 = attn.cursor.start %k as "mma" : !attn.channel<2>
        %t0 = attn.cursor.start %t as "mma" : !attn.channel<1>
        %last:2 = scf.for %i = %zero to %n step %one iter_args(%kc = %k0, %tc = %t0) -> (!attn.cursor, !attn.cursor) : i32 {
          %index, %token = attn.channel.acquire %k[%kc] as "mma" : !attn.channel<2>
          %slot = attn.slot %ring[%index] : !ring -> !slot
          %a, %front = attn.channel.acquire %t[%tc] as "mma" part "front" : !attn.channel<1>
          %b, %back = attn.channel.acquire %t[%tc] as "mma" part "back" : !attn.channel<1>
          %whole = attn.channel.join %t, %front, %back as "mma" : !attn.channel<1>
          test_attn.buffer_product %q, %slot to %s : !slot, !slot, !sum
          attn.channel.release %t, %whole as "mma" : !attn.channel<1>
          attn.channel.release %k, %token as "mma" : !attn.channel<2>
          %nk = attn.cursor.advance %kc on %k : !attn.channel<2>
          %nt = attn.cursor.advance %tc on %t : !attn.channel<1>
          scf.yield %nk, %nt : !attn.cursor, !attn.cursor
        }
      }
    }
    partition "load" warps 3 registers 24 {
      attn.elect {
        %first = attn.cursor.start %k as "load" : !attn.channel<2>
        %last = scf.for %i = %zero to %n step %one iter_args(%c = %first) -> !attn.cursor : i32 {
          %index, %token = attn.channel.acquire %k[%c] as "load" : !attn.channel<2>
          attn.channel.release %k, %token as "load" : !attn.channel<2>
          %next = attn.cursor.advance %c on %k : !attn.channel<2>
          scf.yield %next : !attn.cursor
        }
      }
    }
    gpu.return
  }
}
