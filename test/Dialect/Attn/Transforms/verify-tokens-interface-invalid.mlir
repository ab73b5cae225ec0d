// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens))' -split-input-file -verify-diagnostics

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

// -----

// An accumulator of another dialect's product is used once.

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!tile = tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
gpu.module @kernels {
  gpu.func @awaited_twice(%b: !b) {
    // expected-note @below {{the accumulator in flight is made here}}
    %s = test_attn.product %b, %b : !b, !b -> !attn.inflight<64x64xf32>
    // expected-note @below {{it is used here}}
    %r = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
    // expected-error @below {{expected one use of the accumulator in flight on each path, got another one}}
    %t = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
    gpu.return
  }
}

// -----

// All cases of a switch have to leave the same rights behind.

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!tile = tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
gpu.module @kernels {
  gpu.func @cases(%b: !b, %i: index) {
    // expected-note @below {{the accumulator in flight is made here}}
    %s = test_attn.product %b, %b : !b, !b -> !attn.inflight<64x64xf32>
    // expected-error @below {{expected the same uses of the accumulator in flight on both paths}}
    scf.index_switch %i
    case 1 {
      %r = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> !tile
      scf.yield
    }
    default {
    }
    gpu.return
  }
}
