// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-fuse-row-maxima))' | FileCheck %s

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!t = tensor<128x64xf32, #attn.auto>
gpu.module @kernels [#attn.target<chip = "sm_103a">] {
  gpu.func @maxima(%s: !s) -> (!t, tensor<128xf32, #attn.auto>) {
    %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #regs>
    %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> !t
    %m = attn.reduce max %t : !t -> tensor<128xf32, #attn.auto>
    gpu.return %t, %m : !t, tensor<128xf32, #attn.auto>
  }
}

// CHECK: gpu.func @maxima
// CHECK: %[[F:.*]], %[[MAX:.*]] = attn.tmem.load %{{.*}} {reduce = #attn<reduce_kind max>}
// CHECK: %[[T:.*]]:2 = attn.tmem.wait %[[F]], %[[MAX]]
// CHECK-NEXT: gpu.return %[[T]]#0, %[[T]]#1
