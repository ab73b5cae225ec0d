// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-tmem{print-map=true}))' 2>&1 | FileCheck %s

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @attention() kernel {
    %s = attn.tmem_alloc {name = "s", fields = [#attn.field<"s", 0, 128>, #attn.field<"p", 64, 64>]} : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    %o = attn.tmem_alloc {name = "o"} : !attn.buffer<2x128x64xf32, #attn.tmem<m = 128>, tmem>
    %scores = attn.tmem.field %s "s" : !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
    gpu.return
  }
}

// CHECK: remark: tensor memory, 256 columns, 256 reserved
// CHECK-NEXT: {{^ +0 +128  s$}}
// CHECK-NEXT: {{^ +0 +128    s$}}
// CHECK-NEXT: {{^ +64 +64    p$}}
// CHECK-NEXT: {{^ +128 +128  o, 2 slots$}}

// CHECK: gpu.func @attention
// CHECK:   %[[SLOT:.*]] = attn.alloc {name = "tmem"} : <1xi32, #attn.rows, shared>
// CHECK:   %[[BASE:.*]] = attn.tmem.reserve %[[SLOT]] {columns = 256 : i64}
// CHECK:   attn.tmem_alloc {column = 0 : i64,
// CHECK:   attn.tmem_alloc {column = 128 : i64, name = "o"}
// CHECK:   attn.tmem.dealloc %[[BASE]] {columns = 256 : i64}
// CHECK:   gpu.return
