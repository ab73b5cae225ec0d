// RUN: attn-test-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-verify-arch))'
// RUN: not attn-test-opt %s -split-input-file -o /dev/null --pass-pipeline='builtin.module(gpu.module(attn-verify-arch))'
// RUN: not attn-opt --attn-to-barrier %S/Inputs/fp8-tile.mlir 2>&1 | FileCheck %s --implicit-check-not='see current operation'

// CHECK: error: 'attn.mma' op needs sm_89 or later, got sm_80

// expected-note @below {{the target of the kernels here is #attn.target<chip = "sm_86">}}
gpu.module @older [#attn.target<chip = "sm_86">] {
  gpu.func @kernel() kernel {
    // expected-error @below {{'test_attn.needs_sm90' op needs sm_90 or later, got sm_86}}
    test_attn.needs_sm90
    gpu.return
  }
}

gpu.module @same [#attn.target<chip = "sm_90a">] {
  gpu.func @kernel() kernel {
    test_attn.needs_sm90
    gpu.return
  }
}

gpu.module @no_target {
  gpu.func @kernel() kernel {
    test_attn.needs_sm90
    gpu.return
  }
}

// -----

// Every op, for every target, in nested regions too.

// expected-note @below {{#attn.target<chip = "sm_80">}}
// expected-note @below {{#attn.target<chip = "sm_89">}}
gpu.module @several [#attn.target<chip = "sm_80">, #attn.target<chip = "sm_89">, #attn.target<chip = "sm_100a">, #nvvm.target<chip = "sm_80">] {
  gpu.func @kernel(%a: tensor<64x32xf8E5M2, #attn.auto>, %b: tensor<32x16xf8E5M2, #attn.auto>,
                   %c: tensor<64x16xf32, #attn.auto>, %i: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{'attn.mma' op needs sm_89 or later, got sm_80}}
    %s = attn.mma %a, %b, %c : tensor<64x32xf8E5M2, #attn.auto>, tensor<32x16xf8E5M2, #attn.auto>, tensor<64x16xf32, #attn.auto>
    scf.if %i {
      // expected-error @below {{'test_attn.needs_sm90' op needs sm_90 or later, got sm_80}}
      // expected-error @below {{'test_attn.needs_sm90' op needs sm_90 or later, got sm_89}}
      test_attn.needs_sm90
    }
    // A 16-bit mma and cp.async are fine on every target.
    attn.cp_async.commit
    gpu.return
  }
}

// -----

// Chips after sm_90a do not have its wgmma.

// expected-note @below {{the products of sm_100a are attn.tcgen05.mma}}
gpu.module @dropped [#attn.target<chip = "sm_100a">] {
  gpu.func @kernel(%a: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>,
                   %b: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{'attn.wgmma' op needs sm_90a, got sm_100a}}
    %f = attn.wgmma %a, %b : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.inflight<64x64xf32>
    gpu.return
  }
}
