// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens))' -verify-diagnostics

// An op of another dialect that fills a slot needs its token as a load does.

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @released(%b: !b, %ch: !attn.channel<1>) {
    %c = attn.cursor.start %ch as "producer" : !attn.channel<1>
    // expected-note @below {{the token is made here}}
    %i, %t = attn.channel.acquire %ch[%c] as "producer" : !attn.channel<1>
    test_attn.async_fill %b token %t : !b
    // expected-note @below {{it is used here}}
    attn.channel.release %ch, %t as "producer" : !attn.channel<1>
    // expected-error @below {{expected loads with a token before its release}}
    test_attn.async_fill %b token %t : !b
    gpu.return
  }
}
