// RUN: attn-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null

// What could hide a missing wait, had the check taken it for something else.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  // expected-note @below {{where argument 0 is 1}}
  gpu.func @flag(%size: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %n = arith.trunci %size : i32 to i1
    %is = arith.cmpi eq, %n, %true : i1
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      scf.if %is {
        // expected-error @below {{deadlock: 'a' waits for phase 0 of named barrier 1}}
        // expected-note @below {{'a' warps 0-3 wait here}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      attn.elect {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  // expected-warning @below {{cannot be checked: its clusters do not lie along x}}
  gpu.func @along_y(%n: i32) kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 1, 2, 1>, nvvm.minctasm = 1 : i32, known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "2", "1"], block = [128, 1, 1], cluster = [1, 2, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %ma = attn.mbarrier.alloc {name = "a", offset = 0} : !attn.mbarriers<1>
    %mb = attn.mbarrier.alloc {name = "b", offset = 8} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %ma {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %mb {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    %by = gpu.block_id y
    %y = arith.index_cast %by : index to i32
    %is = arith.cmpi eq, %y, %c0 : i32
    attn.elect {
      scf.if %is {
        attn.mbarrier.arrive %ma[%c0] {ctas = 2} : !attn.mbarriers<1>
      }
      attn.mbarrier.wait %ma[%c0] parity %c0 : !attn.mbarriers<1>
    }
    attn.cluster_barrier
    gpu.return
  }
}

// -----

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @slot_of_slot(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<4x64x64xf16, #attn.swizzled<span = 128>, shared>
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
      %s = attn.slot %k[%c1] : !attn.buffer<4x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      %h = attn.reinterpret %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<2x32x64xf16, #attn.swizzled<span = 128>, shared>
      %hs = attn.slot %h[%c0] : !attn.buffer<2x32x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>
      %v = arith.constant dense<1.0> : tensor<32x64xf16, #attn.mma<warps = [2, 2]>>
      // expected-warning @below {{cannot be checked: 'attn.local_store' op cannot tell which bytes it touches: it goes through a slot of a slot}}
      attn.local_store %v, %hs : tensor<32x64xf16, #attn.mma<warps = [2, 2]>>, !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>
    }
    partition "b" warps 4 tiles [4, 1] registers 128 {
      %s = attn.slot %k[%c1] : !attn.buffer<4x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
      %v = arith.constant dense<2.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      attn.local_store %v, %s : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }
}

// -----

// Shared memory other than buffers.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @workgroup_memref(%n: i32) workgroup(%m : memref<4xi32, #gpu.address_space<workgroup>>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %i = arith.constant 0 : index
      // expected-warning @below {{cannot be checked: what it does to shared memory or to who waits for whom is not known}}
      memref.store %c1, %m[%i] : memref<4xi32, #gpu.address_space<workgroup>>
    }
    partition "b" warps 4 registers 24 {
      %i = arith.constant 0 : index
      %l = memref.load %m[%i] : memref<4xi32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }
}

// -----

// A parity is 0 or 1, not how often the ring has gone around.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @parity_2(%map: !attn.tensor_map<1x1x64x64xf16, swizzle = 128>) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "x", shape = array<i64: 1, 1, 1024, 64>, strides = array<i64: 65536, 65536, 64, 1>}], args = [{kind = "tensor_map", tensor = "x", rank = 4 : i64, element = "f16", box = array<i64: 64, 64, 1, 1>, swizzle = "128B"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c5 = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0} : !attn.buffer<1x64x64xf16, #attn.swizzled<span = 128>, shared>
    %full = attn.mbarrier.alloc {name = "k.full", offset = 49152} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "k.empty", offset = 49280} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 128 {
      scf.for %i = %c0 to %c5 step %c1 : i32 {
        %slot = arith.remui %i, %c1 : i32
        %lap = arith.divui %i, %c1 : i32
        %par = arith.remui %lap, %c2 : i32
        // expected-warning @below {{cannot be checked: its parity is 2, neither 0 nor 1}}
        attn.mbarrier.wait %full[%slot] parity %lap : !attn.mbarriers<1>
        %s = attn.slot %k[%slot] : !attn.buffer<1x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        %t = attn.local_load %s : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.fence.proxy_async
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<1>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %c5 step %c1 : i32 {
          %slot = arith.remui %i, %c1 : i32
          %lap = arith.divui %i, %c1 : i32
          %par = arith.remui %lap, %c2 : i32
          %odd = arith.xori %par, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %odd : !attn.mbarriers<1>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 8192} : !attn.mbarriers<1>
          %s = attn.slot %k[%slot] : !attn.buffer<1x64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
          attn.tma.load %map[%c0, %c0, %i, %c0], %s barrier %full[%slot] : !attn.mbarriers<1> : !attn.tensor_map<1x1x64x64xf16, swizzle = 128>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
        }
      }
    }
    gpu.return
  }
}

// -----

// No launch says how many CTAs there are.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @grid_not_given() kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      // expected-warning @below {{cannot be checked: the upper bound does not follow from constants}}
      scf.for %i = %c0 to %g step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

// An unsigned loop of 64 bits.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @unsigned_64(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %z = arith.constant 0 : i64
      %o = arith.constant 1 : i64
      %u = arith.constant 4294967298 : i64
      scf.for unsigned %i = %z to %u step %o : i64 {
        // expected-error @below {{deadlock}}
        // expected-note @below {{'a' warps 0-3 wait here}}
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 24 {
      scf.for %i = %c0 to %c2 step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

// Inline assembly is not believed: what is not plainly arithmetic on registers is not known.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @assembly(%n: i32) kernel attributes {attn.warps = array<i64: 4, 1>, nvvm.minctasm = 1 : i32, known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 65536 : i64} {
    %lane = llvm.inline_asm "mov.u32 $0, %laneid;", "=r" : () -> i32
    %same = llvm.inline_asm has_side_effects "{ .reg .b32 t; add.u32 t, $1, 1; sub.u32 $0, t, 1; }", "=r,r" %lane : (i32) -> i32
    // expected-warning @below {{cannot be checked: its instruction 'bar.sync 0' does more than to compute with registers}}
    llvm.inline_asm "bar.sync 0;", "" : () -> ()
    gpu.return
  }
}

// -----

// A counter that wraps around before it is at its end goes on for ever.

gpu.module @kernels {
  gpu.func @wraps() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 128 {
      %last = arith.constant 2147483647 : i32
      %step = arith.constant 1073741824 : i32
      // expected-warning @below {{cannot be checked: the condition does not follow}}
      scf.for %i = %c0 to %last step %step : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 128 {
      scf.for %i = %c0 to %c2 step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

// Of few bits it does so soon.

gpu.module @kernels {
  gpu.func @wraps_soon() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 128 {
      %first = arith.constant 0 : i8
      %last = arith.constant 127 : i8
      %step = arith.constant 64 : i8
      // expected-warning @below {{cannot be checked: the condition does not follow}}
      scf.for %i = %first to %last step %step : i8 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 128 {
      scf.for %i = %c0 to %c2 step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

// What an op makes of numbers that it promises not to have is open.

gpu.module @kernels {
  gpu.func @promises() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 128 {
      %last = arith.constant 2147483647 : i32
      %more = arith.addi %last, %c1 overflow<nsw> : i32
      %is_more = arith.cmpi sgt, %more, %last : i32
      // expected-warning @below {{cannot be checked: the condition does not follow}}
      scf.if %is_more {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 128 {
      scf.for %i = %c0 to %c2 step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

// An index cannot hold the number.

gpu.module @kernels {
  gpu.func @too_large() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 128 {
      %large = arith.constant 4294967298 : index
      %low = arith.index_cast %large : index to i32
      // expected-warning @below {{cannot be checked: the upper bound does not follow}}
      scf.for %i = %c0 to %low step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 128 {
      scf.for %i = %c0 to %c2 step %c1 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    gpu.return
  }
}

// -----

// The product has more bits than an index of the kernel: what becomes of it depends on who computes it.

gpu.module @kernels {
  gpu.func @product() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %k = arith.constant 65536 : index
    %k_i32 = arith.constant 65536 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 128 {
      %product = arith.muli %k, %k : index
      %quotient = arith.divui %product, %k : index
      %trips = arith.index_cast %quotient : index to i32
      // expected-warning @below {{cannot be checked: the upper bound does not follow}}
      scf.for %i = %c0 to %trips step %k_i32 : i32 {
        attn.named_barrier %c1 {threads = 256}
      }
    }
    partition "b" warps 4 registers 128 {
    }
    gpu.return
  }
}

// -----

// Each of very many tiles is of a kind of its own.

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @kinds() kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [128, 1, 1], tensors = [], args = []>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %all = arith.constant 3000000 : i32
    attn.warp_specialize
    partition "a" warps 4 registers 24 {
      %x = gpu.block_id x
      %block = arith.index_cast %x : index to i32
      %g = gpu.grid_dim x
      %grid = arith.index_cast %g : index to i32
      // expected-warning @below {{cannot be checked: it has more kinds of tiles or blocks than are told apart}}
      scf.for %tile = %block to %all step %grid : i32 {
        scf.for %i = %c0 to %tile step %c1 : i32 {
          attn.named_barrier %c1 {threads = 128}
        }
      }
    }
    gpu.return
  }
}
