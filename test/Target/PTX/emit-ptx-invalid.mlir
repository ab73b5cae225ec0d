// RUN: attn-opt %s -o /dev/null --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-emit-ptx))'

// expected-error @below {{expected one '#attn.target', got 0}}
gpu.module @m {
}

// -----

// expected-error @below {{expected one '#attn.target', got 2}}
gpu.module @m [#attn.target<chip = "sm_80">, #attn.target<chip = "sm_90a">] {
}
