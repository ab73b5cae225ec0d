// A wait must hold back the arithmetic on the registers it waits for. The nvvm
// operations name no registers, so LLVM moves uses above them; tied registers
// in assembly stop that, also in a block that the backend could speculate.
//
// RUN: attn-opt %s -mlir-disable-threading -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=- codegen-level=3 pipeline=default<O3>}))' | FileCheck %s
// RUN: attn-opt %s -mlir-disable-threading -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=-}))' | FileCheck %s

gpu.module @tmem [#attn.target<chip = "sm_100a">] {
  // CHECK-LABEL: .entry tmem_load(
  // CHECK: tcgen05.ld
  // CHECK-NOT: {{mul|add|fma}}.rn.f32
  // CHECK: tcgen05.wait::ld
  // CHECK: {{mul|add|fma}}.rn.f32
  llvm.func @tmem_load(%t: !llvm.ptr<6>, %o: !llvm.ptr<1>, %c: i1) attributes {nvvm.kernel} {
    %two = llvm.mlir.constant(2.0 : f32) : f32
    %v = nvvm.tcgen05.ld %t {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : i32
    llvm.cond_br %c, ^use, ^exit
  ^use:
    %w = llvm.inline_asm has_side_effects asm_dialect = att "tcgen05.wait::ld.sync.aligned;", "=r,0" %v : (i32) -> i32
    %f = llvm.bitcast %w : i32 to f32
    %g = llvm.fmul %f, %two : f32
    %h = llvm.fadd %g, %two : f32
    llvm.store %h, %o : f32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
}

gpu.module @wgmma [#attn.target<chip = "sm_90a">] {
  // CHECK-LABEL: .entry accumulator(
  // CHECK: wgmma.mma_async
  // CHECK-NOT: {{mul|add|fma}}.rn.f32
  // CHECK: wgmma.wait_group.sync.aligned 0
  // CHECK: {{mul|add|fma}}.rn.f32
  llvm.func @accumulator(%a: i64, %o: !llvm.ptr<1>, %c: i1) attributes {nvvm.kernel} {
    %two = llvm.mlir.constant(2.0 : f32) : f32
    nvvm.wgmma.fence.aligned
    %d = llvm.mlir.poison : !llvm.struct<(f32, f32, f32, f32)>
    %r = nvvm.wgmma.mma_async %a, %a, %d, <m = 64, n = 8, k = 16>, D [<f32>, #nvvm.wgmma_scale_out<zero>], A [<f16>, #nvvm.wgmma_scale_in<one>, <row>], B [<f16>, #nvvm.wgmma_scale_in<one>, <col>] : !llvm.struct<(f32, f32, f32, f32)> -> !llvm.struct<(f32, f32, f32, f32)>
    nvvm.wgmma.commit.group.sync.aligned
    %x = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32, f32, f32)>
    llvm.cond_br %c, ^use, ^exit
  ^use:
    %w = llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "=f,0" %x : (f32) -> f32
    %g = llvm.fmul %w, %two : f32
    %h = llvm.fadd %g, %two : f32
    llvm.store %h, %o : f32, !llvm.ptr<1>
    llvm.br ^exit
  ^exit:
    llvm.return
  }
}
