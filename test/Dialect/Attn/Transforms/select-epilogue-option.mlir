// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue{kind=fast}))' -verify-diagnostics

// expected-error@below {{expected the kind auto, direct, shuffled, staged or tma, got 'fast'}}
gpu.module @kernels {
}
