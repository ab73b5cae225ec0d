// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels,canonicalize,cse))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-check-channels))' -o /dev/null

// A role that signals by copies: each of its threads arrives when its own copies have come.

// CHECK-LABEL: gpu.func @copies
// CHECK: %[[LOAD:.*]] = attn.mbarrier.alloc {name = "k.load"} : <2>
// CHECK: %[[READ:.*]] = attn.mbarrier.alloc {name = "k.read"} : <2>
// CHECK: attn.mbarrier.init %[[LOAD]] {count = 64 : i64}
// CHECK: attn.mbarrier.init %[[READ]] {count = 4 : i64}
// CHECK: attn.cp_async %
// CHECK-NEXT: attn.cp_async.arrive %[[LOAD]][%{{.*}}] : <2>
gpu.module @kernels [#attn.target<chip = "sm_80">] {
  gpu.func @copies(%rows: !attn.global<?x64xf16>, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
    %ch = attn.channel.create {name = "k", roles = [#attn.role<"load", copies>, #attn.role<"read", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "read" warps 4 tiles [4, 1] registers 96 {
      %c = attn.cursor.start %ch as "read" : !attn.channel<2>
      %r = scf.for %i = %zero to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %ch[%at] as "read" : !attn.channel<2>
        %slot = attn.slot %k[%index] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %slot : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.channel.release %ch, %token as "read" : !attn.channel<2>
        %next = attn.cursor.advance %at on %ch : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
    }
    partition "load" warps 2 registers 96 {
      %c = attn.cursor.start %ch as "load" : !attn.channel<2>
      %r = scf.for %i = %zero to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %ch[%at] as "load" : !attn.channel<2>
        %slot = attn.slot %k[%index] : !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        attn.cp_async %rows[%i], %slot : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        attn.channel.release %ch, %token as "load" : !attn.channel<2>
        %next = attn.cursor.advance %at on %ch : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
    }
    gpu.return
  }
}
