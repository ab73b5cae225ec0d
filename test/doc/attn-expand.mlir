// RUN: attn-opt %s --attn-expand=chip=sm_80 | FileCheck %s

func.func @attention(%q: memref<1x8x300x64xf16>, %k: memref<1x8x300x64xf16>,
                     %v: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>)
                 outs(%o : memref<1x8x300x64xf16>) {plan = #attn.split_q<block_m = 128, block_n = 64>}
  return
}

// CHECK: gpu.launch_func {{.*}} threads in {{.*}} args(
// CHECK: gpu.module @attention_kernels [#attn.target<chip = "sm_80">] attributes {attn.rung = "tile"} {
// CHECK:   gpu.func @attn_fwd({{.*}}) kernel attributes {attn.launch = #attn.launch<
// CHECK:     attn.global_view
// CHECK:     attn.alloc {name = "q"} : <128x64xf16, #attn.auto, shared>
// CHECK:     attn.alloc {name = "k"} : <2x64x64xf16, #attn.auto, shared>
// CHECK:     attn.kv_loop
// CHECK:       attn.stage
// CHECK:       attn.mma
// CHECK:       attn.online_softmax
// CHECK:     attn.store_result
