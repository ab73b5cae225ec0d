// A statement that all threads of a warp execute together is emitted once, even
// when LLVM unrolls, rotates and merges loops: the driver marks it convergent.
//
// RUN: attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=-}))' | FileCheck %s
// RUN: attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{output=- codegen-level=3 pipeline=default<O3>}))' | FileCheck %s

gpu.module @m [#attn.target<chip = "sm_80">] {
  // CHECK-LABEL: .entry loop(
  // CHECK-COUNT-1: bar.warp.sync -1;
  // CHECK-NOT: bar.warp.sync
  llvm.func @loop(%n: i32, %s: f32, %o: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %init = llvm.mlir.constant(0.0 : f32) : f32
    llvm.br ^loop(%zero, %init : i32, f32)
  ^loop(%i: i32, %a: f32):
    %b = llvm.inline_asm has_side_effects asm_dialect = att "bar.warp.sync -1; add.f32 $0, $1, $2;", "=f,f,0" %s, %a : (f32, f32) -> f32
    %j = llvm.add %i, %one : i32
    %c = llvm.icmp "slt" %j, %n : i32
    llvm.cond_br %c, ^loop(%j, %b : i32, f32), ^exit
  ^exit:
    llvm.store %b, %o : f32, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: .entry wait(
  // CHECK-COUNT-1: bar.sync 1, 64;
  // CHECK-NOT: bar.sync
  llvm.func @wait(%n: i32) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^loop(%zero : i32)
  ^loop(%i: i32):
    nvvm.inline_ptx "bar.sync 1, 64;"
    %j = llvm.add %i, %one : i32
    %c = llvm.icmp "slt" %j, %n : i32
    llvm.cond_br %c, ^loop(%j : i32), ^exit
  ^exit:
    llvm.return
  }
}
