// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens))' 2>&1 | FileCheck %s

// CHECK: error: 'scf.if' op expected the same uses of the token on both paths
// CHECK: note: the token is made here

gpu.module @kernels {
  gpu.func @kernel(%last: i1) kernel {
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      %index, %token = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      scf.if %last {
        attn.channel.release %k, %token as "consumer" : !attn.channel<2>
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }
}
