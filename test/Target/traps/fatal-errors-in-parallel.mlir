// Modules are translated on several threads; a fatal error on one of them leaves
// the others alone.
//
// RUN: not attn-opt %s -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx{check=false}))' 2>&1 | FileCheck %s

// CHECK-COUNT-3: error: LLVM cannot translate this module for sm_80 and PTX 8.0: Cannot select
// CHECK-NOT: error:

gpu.module @bad1 [#attn.target<chip = "sm_80">] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}

gpu.module @good1 [#attn.target<chip = "sm_90a">] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}

gpu.module @bad2 [#attn.target<chip = "sm_80">] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}

gpu.module @good2 [#attn.target<chip = "sm_100a">] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}

gpu.module @bad3 [#attn.target<chip = "sm_80">] {
  llvm.func @k(%b: !llvm.ptr<3>, %n: i32) attributes {nvvm.kernel} {
    nvvm.mbarrier.arrive.expect_tx %b, %n : !llvm.ptr<3>, i32
    llvm.return
  }
}
