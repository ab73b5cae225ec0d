// RUN: attn-compile %s --chip=sm_80 --verify -o %t.ptx | FileCheck %s
// RUN: attn-compile %s --chip=sm_80 --emit=plan -o - | FileCheck %s --check-prefix=PLAN

// Keys that a table selects, in runs of a fixed number, from a state on: a problem on
// tensors keeps all of it.

// CHECK: step 2 of 2: kernel attn_combine
// CHECK: findings: none
// CHECK: passed

// PLAN: attn.attention {{.*}} pages(%{{.*}} : memref<2x128xi32>) kv_lengths(%{{.*}} : memref<2xi32>) init(%{{.*}}, %{{.*}} : memref<2x8x1x64xf32>, memref<2x8x1xf32>)
// PLAN-SAME: kv_splits = 2 : i64, page_size = 1 : i64, plan = #attn.{{.*}}run_keys = 64 : i64, selected}
func.func @selected(%q: tensor<2x8x1x64xf16>, %k: tensor<300x2x1x64xf16>, %v: tensor<300x2x1x64xf16>,
                    %table: tensor<2x128xi32>, %lengths: tensor<2xi32>,
                    %init_o: tensor<2x8x1x64xf32>, %init_lse: tensor<2x8x1xf32>)
    -> (tensor<2x8x1x64xf32>, tensor<2x8x1xf32>) {
  %partial_o = tensor.empty() : tensor<2x2x8x1x64xf32>
  %partial_lse = tensor.empty() : tensor<2x2x8x1xf32>
  %p:2 = attn.attention ins(%q, %k, %v : tensor<2x8x1x64xf16>, tensor<300x2x1x64xf16>, tensor<300x2x1x64xf16>)
                        outs(%partial_o, %partial_lse : tensor<2x2x8x1x64xf32>, tensor<2x2x8x1xf32>)
                        pages(%table : tensor<2x128xi32>) kv_lengths(%lengths : tensor<2xi32>)
                        init(%init_o, %init_lse : tensor<2x8x1x64xf32>, tensor<2x8x1xf32>)
                        {kv_splits = 2 : i64, page_size = 1 : i64, run_keys = 64 : i64, selected}
                        -> tensor<2x2x8x1x64xf32>, tensor<2x2x8x1xf32>
  %o = tensor.empty() : tensor<2x8x1x64xf32>
  %lse = tensor.empty() : tensor<2x8x1xf32>
  %r:2 = attn.combine ins(%p#0, %p#1 : tensor<2x2x8x1x64xf32>, tensor<2x2x8x1xf32>)
                      outs(%o, %lse : tensor<2x8x1x64xf32>, tensor<2x8x1xf32>)
                      -> tensor<2x8x1x64xf32>, tensor<2x8x1xf32>
  return %r#0, %r#1 : tensor<2x8x1x64xf32>, tensor<2x8x1xf32>
}
