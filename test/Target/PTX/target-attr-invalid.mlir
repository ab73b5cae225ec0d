// RUN: attn-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{unknown chip 'sm_999', expected one of sm_80, sm_86, sm_89, sm_90a, sm_100a, sm_100f, sm_103a, sm_110, sm_120, sm_121}}
gpu.module @m [#attn.target<chip = "sm_999">] {
}

// -----

// expected-error @below {{chip 'sm_90a' needs PTX 8.0 or later, got PTX 7.8}}
gpu.module @m [#attn.target<chip = "sm_90a", ptx = 78>] {
}

// -----

// expected-error @below {{unknown PTX version 7.9, expected 7.0 to 7.8, 8.0 to 8.8 or 9.0}}
gpu.module @m [#attn.target<chip = "sm_80", ptx = 79>] {
}
