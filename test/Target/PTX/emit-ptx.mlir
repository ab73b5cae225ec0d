// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=%t.ptx}))' | FileCheck %s --check-prefix=ATTR
// RUN: FileCheck %s < %t.ptx
// RUN: %if ptxas %{ attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{assemble assemble-for=sm_90 cubin=%t.cubin}))' | FileCheck %s --check-prefix=PTXAS %}
// RUN: %if ptxas %{ test -s %t.cubin %}

// The kernel keeps its attributes; the module gets the text.
// ATTR: gpu.module @m
// ATTR-SAME: attn.ptx = "{{.*}}.target sm_80
// ATTR: llvm.func @k
// ATTR-SAME: attn.launch = #attn.launch<

// PTXAS: attn.ptxas = {barriers = 0 : i32, registers = {{[0-9]+}} : i32, shared_bytes = 0 : i32, spill_load_bytes = 0 : i32, spill_store_bytes = 0 : i32, stack_bytes = 0 : i32}

// CHECK: .version 7.1
// CHECK: .target sm_80{{$}}
// CHECK: .visible .entry k(
// CHECK: .param .u32 .ptr .shared
// CHECK: .reqntid 128, 1, 1
// CHECK: ld.shared.b32 %r{{[0-9]+}}, [%r{{[0-9]+}}+4];
gpu.module @m [#attn.target<chip = "sm_80", ptx = 71>] {
  llvm.func @k(%s: !llvm.ptr<3>, %o: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_80", ptx = 71, grid = ["1", "1", "1"], block = [128, 1, 1], tensors = [], args = []>} {
    %p = llvm.getelementptr %s[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
    %v = llvm.load %p : !llvm.ptr<3> -> f32
    llvm.store %v, %o : f32, !llvm.ptr<1>
    llvm.return
  }
}
