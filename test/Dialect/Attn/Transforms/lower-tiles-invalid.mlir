// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' -split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @no_offset() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{'attn.alloc' op expected an offset; attn-allocate-shared gives it one}}
    %b = attn.alloc : !attn.buffer<64xf32, #attn.rows, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @auto_layout(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected a tile whose layout is chosen, got 'tensor<64x8xf32, #attn.auto>'}}
    %t = tensor.splat %x : tensor<64x8xf32, #attn.auto>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @not_expanded(%s: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{'attn.kv_loop' op expected an earlier pass to have replaced this op}}
    %r = attn.kv_loop %n, %n, %n, %n block 32 stages 1 iter_args(%s : f32) {
    ^bb0(%key: i32, %acc: f32):
      attn.yield %acc : f32
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @narrow_rows(%p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride : !attn.global<?x64xf16>
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-error @below {{expected rows aligned to at least 4 bytes, got 2}}
    attn.cp_async %g[%row], %b : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @uneven_constant() kernel attributes {attn.warps = array<i64: 1, 1>} {
    // expected-error @below {{expected a tile constant with equal elements}}
    %t = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : tensor<16xi32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @rows_across_warps(%x: f32) kernel attributes {attn.warps = array<i64: 1, 2>} {
    %t = tensor.splat %x : tensor<16x32xf32, #attn.mma<warps = [1, 2]>>
    // expected-error @below {{expected a row to be held by one warp, got a tile whose rows cross warps}}
    %m = attn.reduce max %t : tensor<16x32xf32, #attn.mma<warps = [1, 2]>> -> tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 2]>>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @column_in_a_round(%x: f16, %y: f32) kernel attributes {attn.warps = array<i64: 1, 2>} {
    %a = tensor.splat %x : tensor<16x16xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [1, 2]>>>
    %b = tensor.splat %x : tensor<16x16xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [1, 2]>>>
    %c = tensor.splat %y : tensor<16x32xf32, #attn.mma<warps = [1, 2]>>
    // expected-error @below {{expected 'column' to be a multiple of 16, 8 for each of 2 warps along the columns, got 8}}
    %d = attn.mma %a, %b, %c {column = 8} : tensor<16x16xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [1, 2]>>>, tensor<16x16xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [1, 2]>>>, tensor<16x32xf32, #attn.mma<warps = [1, 2]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @view_argument(%g: !attn.global<?x64xf16>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected buffers and views made in the kernel, got one from elsewhere of type '!attn.global<?x64xf16>'}}
    %t = attn.global_load %g[%row] : !attn.global<?x64xf16> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @buffer_argument(%b: !attn.buffer<64x64xf16, #attn.rows, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected buffers and views made in the kernel, got one from elsewhere of type '!attn.buffer<64x64xf16, #attn.rows, shared>'}}
    %t = attn.local_load %b : !attn.buffer<64x64xf16, #attn.rows, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @tile_argument(%t: tensor<64x64xf32, #attn.mma<warps = [4, 1]>>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected a tile made by an op that can be lowered, got 'tensor<64x64xf32, #attn.mma<warps = [4, 1]>>'}}
    %e = attn.exp2 %t : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @foreign_op() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{cannot be lowered from tiles to scalars}}
    %t = tensor.empty() : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @foreign_use(%x: f32, %i: index) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{cannot take a tile as operand}}
    %e = tensor.extract %t[%i, %i] : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @accumulator(%x: f16, %y: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = tensor.splat %x : tensor<64x16xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>
    %b = tensor.splat %x : tensor<16x64xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [4, 1]>>>
    %c = tensor.splat %y : tensor<64x64xf32, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    // expected-error @below {{expected an accumulator with an #attn.mma layout, got 'tensor<64x64xf32, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>'}}
    %d = attn.mma %a, %b, %c : tensor<64x16xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>, tensor<16x64xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [4, 1]>>>, tensor<64x64xf32, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @contraction(%y: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {offset = 0 : i64} : !attn.buffer<64x20xf16, #attn.rows, shared>
    %b = attn.alloc {offset = 4096 : i64} : !attn.buffer<20x64xf16, #attn.rows, shared>
    %c = tensor.splat %y : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected a contraction extent that is a multiple of 8, got 20}}
    %d = attn.mma %a, %b, %c : !attn.buffer<64x20xf16, #attn.rows, shared>, !attn.buffer<20x64xf16, #attn.rows, shared>, tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @operand(%x: f16, %y: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = tensor.splat %x : tensor<64x16xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    %b = tensor.splat %x : tensor<16x64xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [4, 1]>>>
    %c = tensor.splat %y : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected operand tiles in the fragments of the accumulator's instruction, got 'tensor<64x16xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>'}}
    %d = attn.mma %a, %b, %c : tensor<64x16xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>, tensor<16x64xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [4, 1]>>>, tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @broadcast(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r = tensor.splat %x : tensor<64xf32, #attn.blocked<per_thread = [1], warps = 4, order = [0]>>
    // expected-error @below {{expected layouts that keep rows in their threads, got}}
    %t = attn.broadcast %r : tensor<64xf32, #attn.blocked<per_thread = [1], warps = 4, order = [0]>> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @broadcast_columns(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %r = tensor.splat %x : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    // expected-error @below {{expected layouts that keep columns in their threads, got}}
    %t = attn.broadcast %r {columns} : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @conversion(%x: f16) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected a conversion inside warps; attn-materialize-scratch places the others}}
    %r = attn.convert_layout %t : tensor<64x64xf16, #attn.mma<warps = [4, 1]>> -> tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @single_elements(%x: f16) kernel attributes {attn.warps = array<i64: 1, 1>} {
    %t = tensor.splat %x : tensor<16x8xf16, #attn.mma<warps = [1, 1]>>
    // expected-error @below {{expected a conversion inside warps; attn-materialize-scratch places the others}}
    %r = attn.convert_layout %t : tensor<16x8xf16, #attn.mma<warps = [1, 1]>> -> tensor<16x8xf16, #attn.blocked<per_thread = [1, 1], warps = 1, order = [0, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @eight_bits(%x: f8E4M3FN) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf8E4M3FN, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected no arithmetic on 8-bit floats, got 'tensor<64x8xf8E4M3FN, #attn.mma<warps = [4, 1]>>'}}
    %s = arith.addf %t, %t : tensor<64x8xf8E4M3FN, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @open_sums(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{the parent's layout is not known yet}}
    %l = tensor.splat %x : tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @few_elements(%x: f32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64, attn.shared_bytes = 1024 : i64} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<96xf32, #attn.rows, shared>
    %t = tensor.splat %x : tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    // expected-error @below {{expected a buffer of at least 128 elements for 4 registers of a thread, got 96}}
    %y = attn.team_take %t via %b from 1 : tensor<16x8xf32, #attn.mma<warps = [1, 1]>> via <96xf32, #attn.rows, shared>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @few_shared(%x: f32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64, attn.shared_bytes = 1024 : i64} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<96xf32, #attn.rows, shared>
    %t = tensor.splat %x : tensor<16x16xf32, #attn.mma<warps = [1, 1]>>
    // expected-error @below {{expected a buffer of at least 256 elements for 8 registers of a thread, got 96}}
    %y:2 = attn.team_share %t via %b : tensor<16x16xf32, #attn.mma<warps = [1, 1]>> via <96xf32, #attn.rows, shared> -> tensor<16x8xf32, #attn.mma<warps = [1, 1]>>, tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @other_teams(%x: f32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64, attn.shared_bytes = 4096 : i64} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<256xf32, #attn.rows, shared>
    %t = tensor.splat %x : tensor<16x16xf32, #attn.mma<warps = [1, 1]>>
    // expected-error @below {{expected results of 4 teams, got those of 2}}
    %y:2 = attn.team_share %t via %b : tensor<16x16xf32, #attn.mma<warps = [1, 1]>> via <256xf32, #attn.rows, shared> -> tensor<16x8xf32, #attn.mma<warps = [1, 1]>>, tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @torn_fragments(%x: f32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64, attn.shared_bytes = 4096 : i64} {
    %b = attn.alloc {offset = 0 : i64} : !attn.buffer<384xf32, #attn.rows, shared>
    %m = tensor.splat %x : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>
    %t = tensor.splat %x : tensor<16x16xf32, #attn.mma<warps = [1, 1]>>
    // expected-error @below {{expected teams to divide a tile by 4 registers or a multiple of them, got}}
    %y:4 = attn.team_share %m, %t via %b : tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16x16xf32, #attn.mma<warps = [1, 1]>> via <384xf32, #attn.rows, shared> -> tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16x8xf32, #attn.mma<warps = [1, 1]>>, tensor<16xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 1]>>>, tensor<16x8xf32, #attn.mma<warps = [1, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @slice(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x32xf32, #attn.mma<warps = [4, 1]>>
    // expected-error @below {{expected a slice whose elements stay in their threads and registers, got columns 4 to 20 of}}
    %s = attn.slice %t {column = 4} : tensor<64x32xf32, #attn.mma<warps = [4, 1]>> -> tensor<64x16xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @depth_parts() kernel attributes {attn.warps = array<i64: 2, 2>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>
    %k = attn.alloc {offset = 4096 : i64} : !attn.buffer<64x32xf16, #attn.swizzled<span = 64>, shared>
    %zero = arith.constant dense<0.0> : tensor<32x64xf32, #attn.mma<warps = [2, 2]>>
    // expected-error @below {{expected as many warps along the columns as 'depth_parts', with a run of them each and without copies, got 2 and #attn.mma<warps = [2, 2]>}}
    %s = attn.mma %q, %k, %zero {depth_parts = 2} : !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x32xf16, #attn.swizzled<span = 64>, shared>, tensor<32x64xf32, #attn.mma<warps = [2, 2]>>
    gpu.return
  }
}

// -----

#v = #attn.swizzled<span = 64>
#acc = #attn.mma<warps = [4, 1]>
gpu.module @kernels {
  gpu.func @plain_columns() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<16x64xf8E4M3FN, #v, shared>
    %p = arith.constant dense<1.0> : tensor<64x16xf16, #attn.operand<index = 0, parent = #acc>>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    // expected-error @below {{expected an accumulator with column_quads, got #attn.mma<warps = [4, 1]>}}
    %o = attn.mma %p, %v, %zero : tensor<64x16xf16, #attn.operand<index = 0, parent = #acc>>, !attn.buffer<16x64xf8E4M3FN, #v, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }
}

// -----

#v = #attn.swizzled<span = 128>
#acc = #attn.mma<warps = [4, 1], column_quads = true>
gpu.module @kernels {
  gpu.func @quads() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<16x64xf16, #v, shared>
    %p = arith.constant dense<1.0> : tensor<64x16xf16, #attn.operand<index = 0, parent = #acc>>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    // expected-error @below {{expected an accumulator without column_quads, got #attn.mma<warps = [4, 1], column_quads = true>}}
    %o = attn.mma %p, %v, %zero : tensor<64x16xf16, #attn.operand<index = 0, parent = #acc>>, !attn.buffer<16x64xf16, #v, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }
}

// -----

#k = #attn.swizzled<span = 64>
#acc = #attn.mma<warps = [4, 1]>
gpu.module @kernels {
  gpu.func @plain_depth() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.alloc {offset = 0 : i64} : !attn.buffer<32x64xf8E4M3FN, #k, shared>
    %q = arith.constant dense<1.0> : tensor<64x64xf16, #attn.operand<index = 0, parent = #acc>>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #acc>
    %kt = attn.transpose %k : !attn.buffer<32x64xf8E4M3FN, #k, shared> -> !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#k>, shared>
    // expected-error @below {{expected operand tiles in the fragments of the accumulator's instruction, got 'tensor<64x64xf16}}
    %s = attn.mma %q, %kt, %zero : tensor<64x64xf16, #attn.operand<index = 0, parent = #acc>>, !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#k>, shared>, tensor<64x32xf32, #acc>
    gpu.return
  }
}

// -----

// Four keys of 8 bits in a word are beside four columns of a in a row.
#k = #attn.swizzled<span = 64>
#acc = #attn.mma<warps = [4, 1]>
gpu.module @kernels {
  gpu.func @plain_buffer() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %q = attn.alloc {offset = 0 : i64} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %k = attn.alloc {offset = 8192 : i64} : !attn.buffer<32x64xf8E4M3FN, #k, shared>
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #acc>
    %kt = attn.transpose %k : !attn.buffer<32x64xf8E4M3FN, #k, shared> -> !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#k>, shared>
    // expected-error @below {{expected 'a' in registers or a buffer with column_quads beside 8-bit floats whose contraction is contiguous, got '!attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>'}}
    %s = attn.mma %q, %kt, %zero : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x32xf8E4M3FN, #attn.transposed<#k>, shared>, tensor<64x32xf32, #acc>
    gpu.return
  }
}

// -----

#v = #attn.swizzled<span = 64>
#acc = #attn.mma<warps = [4, 1], column_quads = true>
gpu.module @kernels {
  gpu.func @few_keys() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<8x64xf8E4M3FN, #v, shared>
    %p = arith.constant dense<1.0> : tensor<64x8xf16, #attn.operand<index = 0, parent = #acc>>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    // expected-error @below {{expected multiples of 16 of 8-bit floats that become f16, got 8 x 64}}
    %o = attn.mma %p, %v, %zero : tensor<64x8xf16, #attn.operand<index = 0, parent = #acc>>, !attn.buffer<8x64xf8E4M3FN, #v, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [4, 1]>
#v = #attn.swizzled<span = 64>

gpu.module @kernels {
  gpu.func @interleaved_layout(%x: f8E4M3FN) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<32x64xf8E4M3FN, #v, shared>
    %p = tensor.splat %x : tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc>>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    // expected-error @below {{expected an accumulator with column_quads, got #attn.mma<warps = [4, 1]>}}
    %o = attn.mma %p, %v, %zero {interleaved} : tensor<64x32xf8E4M3FN, #attn.operand<index = 0, parent = #acc>>, !attn.buffer<32x64xf8E4M3FN, #v, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }
}

// -----

#acc = #attn.mma<warps = [4, 1], column_quads = true>
#v = #attn.swizzled<span = 64>

gpu.module @kernels {
  gpu.func @interleaved_depth(%x: f8E4M3FN) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %v = attn.alloc {offset = 0 : i64} : !attn.buffer<48x64xf8E4M3FN, #v, shared>
    %p = tensor.splat %x : tensor<64x48xf8E4M3FN, #attn.operand<index = 0, parent = #acc>>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
    // expected-error @below {{expected multiples of 32 x 16 of 8-bit floats whose columns are contiguous, got 48 x 64}}
    %o = attn.mma %p, %v, %zero {interleaved} : tensor<64x48xf8E4M3FN, #attn.operand<index = 0, parent = #acc>>, !attn.buffer<48x64xf8E4M3FN, #v, shared>, tensor<64x64xf32, #acc>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @constant_pairs() kernel attributes {attn.warps = array<i64: 4, 1>} {
    // expected-error @below {{expected results of f4E2M1FN that are rounded from f32, got a constant}}
    %t = arith.constant dense<1.0> : tensor<64x16xf4E2M1FN, #attn.mma<warps = [4, 1]>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @parted_pairs(%x: f32, %p: !llvm.ptr<1>, %off: i64, %n: i32, %stride: i64, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %stride : !attn.global<?x16xi8>
    %t = tensor.splat %x : tensor<64x32xf32, #attn.blocked<per_thread = [2, 1], warps = 4, order = [1, 0]>>
    %f = arith.truncf %t : tensor<64x32xf32, #attn.blocked<per_thread = [2, 1], warps = 4, order = [1, 0]>> to tensor<64x32xf4E2M1FN, #attn.blocked<per_thread = [2, 1], warps = 4, order = [1, 0]>>
    // expected-error @below {{expected threads that have pairs of neighbours of f4E2M1FN}}
    attn.global_store %f, %g[%row] : tensor<64x32xf4E2M1FN, #attn.blocked<per_thread = [2, 1], warps = 4, order = [1, 0]>>, !attn.global<?x16xi8>
    gpu.return
  }
}
