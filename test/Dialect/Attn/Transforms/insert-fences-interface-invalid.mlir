// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' -split-input-file -verify-diagnostics

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @not_awaited(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    // expected-note @below {{it starts here; a test_attn.async_wait has to cover its group}}
    test_attn.async_read %a : !b
    test_attn.async_commit
    test_attn.async_wait 1
    // expected-error @below {{write of buffer 'a', which a test_attn.async_read still reads}}
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }
}

// -----

// A wait for another engine's groups does not count.

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @other_engine(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    // expected-note @below {{it starts here; a test_attn.async_wait has to cover its group}}
    test_attn.async_read %a : !b
    attn.tma.wait {pending = 0}
    // expected-error @below {{write of buffer 'a', which a test_attn.async_read still reads}}
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }
}

// -----

// An op that touches a buffer and does not say how is refused.

!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @opaque() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    // expected-error @below {{'test_attn.opaque' op does not say what it does with its buffer}}
    test_attn.opaque %a : !b
    gpu.return
  }
}

// -----

// Products of another dialect read their operands until their wait.

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @product(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %c = attn.alloc {name = "c", offset = 8192 : i64} : !b
    // expected-note @below {{it starts here; a test_attn.product_wait has to cover it}}
    %s = test_attn.product %a, %c : !b, !b -> !attn.inflight<64x64xf32>
    // expected-error @below {{write of buffer 'c', which a test_attn.product still reads}}
    attn.local_store %t, %c : !tile, !b
    %r = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}
