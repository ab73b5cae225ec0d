// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' | FileCheck %s

gpu.module @kernels {
  gpu.func @store(%o: tensor<64x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %offset: i64, %n: i32, %row: i32,
                  %q: !attn.buffer<64x64xf16, #attn.auto, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%offset] rows %n stride %offset {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %o, %g[%row] scratch %q : !attn.buffer<64x64xf16, #attn.auto, shared> : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }
}

// CHECK: attn.local_store %[[O:.*]], %[[Q:.*]] : tensor<64x64xf16, #attn.auto>, <64x64xf16, #attn.auto, shared>
// CHECK-NEXT: attn.copy_out %[[Q]], %[[G:.*]][%[[ROW:.*]]] : <64x64xf16, #attn.auto, shared>, <?x64xf16>
