// Upstream's own check refuses tcgen05 on sm_103a and sm_100f; the target table
// does not. What those chips lack is refused.
//
// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx))'

gpu.module @a [#attn.target<chip = "sm_103a">] {
  llvm.func @k(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %p: i1) attributes {nvvm.kernel} {
    nvvm.tcgen05.mma %d, %a, %b, %i, %p {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<cta_2>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    llvm.return
  }
}

// -----

gpu.module @f [#attn.target<chip = "sm_100f">] {
  llvm.func @k(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %p: i1) attributes {nvvm.kernel} {
    nvvm.tcgen05.mma %d, %a, %b, %i, %p {kind = #nvvm.tcgen05_mma_kind<f8f6f4>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    // expected-error @below {{'nvvm.tcgen05.shift' op needs sm_100a or sm_103a and PTX 8.6, got sm_100f and PTX 8.8}}
    nvvm.tcgen05.shift %d {group = #nvvm.cta_group<cta_1>} : !llvm.ptr<6>
    llvm.return
  }
}

// -----

gpu.module @i [#attn.target<chip = "sm_103a">] {
  llvm.func @k(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %p: i1) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.mma' op needs sm_100a and PTX 8.6, got sm_103a and PTX 8.8 (i8)}}
    nvvm.tcgen05.mma %d, %a, %b, %i, %p {kind = #nvvm.tcgen05_mma_kind<i8>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    llvm.return
  }
}

// -----

gpu.module @fi [#attn.target<chip = "sm_100f">] {
  llvm.func @k(%d: !llvm.ptr<6>, %a: i64, %b: i64, %i: i32, %p: i1) attributes {nvvm.kernel} {
    // expected-error @below {{'nvvm.tcgen05.mma' op needs sm_100a and PTX 8.6, got sm_100f and PTX 8.8 (i8)}}
    nvvm.tcgen05.mma %d, %a, %b, %i, %p {kind = #nvvm.tcgen05_mma_kind<i8>, ctaGroup = #nvvm.cta_group<cta_1>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    llvm.return
  }
}
