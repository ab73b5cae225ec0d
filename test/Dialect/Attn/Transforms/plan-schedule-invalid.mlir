// RUN: attn-opt %s -attn-plan=schedule=other -verify-diagnostics

func.func @planned(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{has a plan of schedule 'split_q', but the option says 'other'}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.split_q<>}
  return
}
