// RUN: attn-compile %s --chip=sm_80 --emit=llvm | FileCheck %s

// Elements of an aggregate are taken in the block that makes it, in their order,
// also where LLVM sank them: in any other block instruction selection copies all
// elements for each one.

// CHECK-LABEL: define ptx_kernel void @k
// CHECK:      %[[S:.*]] = call { i32, i32, i32 } asm
// CHECK-NEXT: %[[E0:.*]] = extractvalue { i32, i32, i32 } %[[S]], 0
// CHECK-NEXT: %[[E1:.*]] = extractvalue { i32, i32, i32 } %[[S]], 1
// CHECK-NEXT: %[[E2:.*]] = extractvalue { i32, i32, i32 } %[[S]], 2
// CHECK:      br i1
// CHECK-NOT:  extractvalue
// CHECK:      add i32 %[[E2]], %[[E1]]
// CHECK:      ret void
gpu.module @m [#attn.target<chip = "sm_80">] {
  llvm.func @k(%o: !llvm.ptr<1>, %a: i32) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %s = llvm.inline_asm has_side_effects "{ mov.b32 $0, $3; mov.b32 $1, $3; mov.b32 $2, $3; }", "=r,=r,=r,r" %a : (i32) -> !llvm.struct<(i32, i32, i32)>
    %c = llvm.icmp "eq" %a, %zero : i32
    llvm.cond_br %c, ^yes, ^no
  ^yes:
    %e2 = llvm.extractvalue %s[2] : !llvm.struct<(i32, i32, i32)>
    %e1 = llvm.extractvalue %s[1] : !llvm.struct<(i32, i32, i32)>
    %e0 = llvm.extractvalue %s[0] : !llvm.struct<(i32, i32, i32)>
    %x = llvm.add %e2, %e1 : i32
    %y = llvm.mul %x, %e0 : i32
    llvm.store %y, %o : i32, !llvm.ptr<1>
    llvm.br ^no
  ^no:
    llvm.return
  }
}
