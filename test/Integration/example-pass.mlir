// A pass from outside of the library (test/lib/ExamplePass), which
// docs/HowTo/add-pass.md goes through.

// RUN: attn-test-opt %s --example-limit-shared --remarks-filter=example.* --remark-format=emitRemark 2>&1 | FileCheck %s
// CHECK: remark: [Passed] within | Category:example.limit-shared | Function=small
// CHECK-SAME: bytes=4096, limit=49152
// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(example-limit-shared{limit=4096}))' | FileCheck %s --check-prefix=SAME
// SAME: gpu.func @small{{.*}}attn.shared_bytes = 4096

// RUN: not attn-test-opt %s --example-limit-shared=limit=4095 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: error: expected at most 4095 bytes of shared memory, got 4096
// RUN: sed 's/attn.shared_bytes = 4096 : i64//' %s > %t.mlir
// RUN: not attn-test-opt %t.mlir --example-limit-shared 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expected 'attn.shared_bytes', which attn-allocate-shared sets, got none

gpu.module @kernels {
  gpu.func @small() kernel attributes {attn.shared_bytes = 4096 : i64} {
    gpu.return
  }
}
