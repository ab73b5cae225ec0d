// RUN: attn-opt %s -split-input-file -verify-diagnostics

gpu.module @m {
  gpu.func @none() kernel {
    // expected-error @below {{expected at least one partition, got none}}
    attn.warp_specialize
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @attributes() kernel {
    // expected-error @below {{expected a name, warps, two extents of tiles and registers for each of 2 partitions, got 2, 1, 2 and 2}}
    "attn.warp_specialize"() <{names = ["a", "b"], warps = array<i64: 4>, tiles = array<i64: 4, 1>, registers = array<i64: 24, 24>}> ({
      attn.yield
    }, {
      attn.yield
    }) : () -> ()
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @names() kernel {
    // expected-error @below {{expected partitions of different names, got 'a' twice}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "a" warps 4 registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @warps() kernel {
    // expected-error @below {{expected 1 to 32 warps in partition 'b', got 0}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 0 registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @two_warpgroups() kernel {
    // expected-error @below {{expected partition 'b' to be whole warpgroups of 4 warps, or to lie in one, got warps 2 to 5}}
    attn.warp_specialize
    partition "a" warps 2 registers 128 {
    }
    partition "b" warps 4 registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @part_of_warpgroup() kernel {
    // expected-error @below {{expected whole warpgroups of 4 warps in all, got 6 warps; a partition without ops may take the rest}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 2 registers 64 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @two_budgets() kernel {
    // expected-error @below {{expected one number of registers for the partitions of a warpgroup, got 80 in "b" and 64 in "c"}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 1 registers 80 {
    }
    partition "c" warps 3 registers 64 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @grid() kernel {
    // expected-error @below {{expected the grid of partition 'a' to deal its 8 warps to two powers of two (rows, columns), or to any number of rows and 1, got [4, 1]}}
    attn.warp_specialize
    partition "a" warps 8 tiles [4, 1] registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @odd_grid() kernel {
    // expected-error @below {{expected the grid of partition 'a' to deal its 12 warps to two powers of two (rows, columns), or to any number of rows and 1, got [6, 2]}}
    attn.warp_specialize
    partition "a" warps 12 tiles [6, 2] registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @no_grid(%x: f32) kernel {
    // expected-note @below {{expected 'tiles [rows, columns]' after the partition's warps here}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 4 registers 128 {
      // expected-error @below {{expected no register tile in partition "b", whose grid of warps nothing states}}
      %t = tensor.splat %x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @registers() kernel {
    // expected-error @below {{expected 24 to 256 registers, a multiple of 8, in partition 'b', got 20}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 4 registers 20 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @multiple() kernel {
    // expected-error @below {{expected 24 to 256 registers, a multiple of 8, in partition 'a', got 28}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 28 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @sum() kernel {
    // expected-error @below {{expected at most 65536 registers in all, got 66560 (a 8 x 32 x 240 + b 4 x 32 x 40)}}
    attn.warp_specialize
    partition "a" warps 8 tiles [8, 1] registers 240 {
    }
    partition "b" warps 4 registers 40 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @nested(%c: i1) kernel {
    // expected-note @below {{it stands in this op}}
    scf.if %c {
      // expected-error @below {{expected to stand at the top level of a kernel}}
      attn.warp_specialize
      partition "a" warps 4 tiles [4, 1] registers 128 {
      }
      partition "b" warps 4 registers 128 {
      }
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @two() kernel {
    // expected-note @below {{another one is here}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 4 registers 128 {
    }
    // expected-error @below {{expected to be the only one}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 4 registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @tile() kernel {
    // expected-note @below {{the tile is made here}}
    %t = arith.constant dense<0.0> : tensor<64x64xf32, #attn.auto>
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
      // expected-error @below {{expected no register tile from outside the partition}}
      %u = arith.addf %t, %t : tensor<64x64xf32, #attn.auto>
    }
    partition "b" warps 4 registers 128 {
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @product_of_a_thread(%n: i32) kernel {
    %x = attn.alloc {name = "x", offset = 1024} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      %xt = attn.transpose %x : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      %p = attn.wgmma %x, %xt : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared> -> <64x64xf32>
      %t = attn.wgmma.wait %p {pending = 0 : i64} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @tile_of_a_thread(%n: i32) kernel {
    %x = attn.alloc {name = "x", offset = 1024} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      %t = attn.local_load %x : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      attn.local_store %t, %x : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @barrier_of_a_thread(%n: i32) kernel {
    %x = attn.alloc {name = "x", offset = 1024} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %v = arith.constant dense<1.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    attn.local_store %v, %x : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %wg = attn.warpgroup_index
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      gpu.barrier
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @transposed_by_a_thread(%n: i32) kernel {
    %v = attn.alloc {name = "v", offset = 0} : !attn.buffer<64x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
    %w = attn.alloc {name = "w", offset = 4096} : !attn.buffer<64x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      attn.local_transpose %v, %w : !attn.buffer<64x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>, !attn.buffer<64x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
    }
    gpu.barrier
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @reduced_by_a_thread(%out: !llvm.ptr<1>) kernel {
    %c0 = arith.constant 0 : i32
    %z64 = arith.constant 0 : i64
    %o64 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i32
    %x = attn.alloc {name = "x", offset = 1024} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %t = attn.local_load %x : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %e = arith.extf %t : tensor<64x64xf16, #attn.mma<warps = [4, 1]>> to tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    %g = attn.global_view %out[%z64] rows %c64 stride %o64 : <?xf32>
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      %r = attn.reduce max %e : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> -> tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
      attn.global_store %r, %g[%c0] : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, <?xf32>
    }
    gpu.barrier
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @vote_of_a_thread(%n: i32) kernel {
    %x = attn.alloc {name = "x", offset = 1024} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
    %t = attn.local_load %x : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %z = arith.constant dense<0.0> : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    %q = arith.cmpf ogt, %t, %z : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      %h = attn.rare any %q default(%t : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>) : tensor<64x64xi1, #attn.mma<warps = [4, 1]>> {
        %u = arith.addf %t, %t : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
        attn.yield %u : tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
      }
    }
    gpu.barrier
    gpu.return
  }
}

// -----

// Ops of other dialects.

gpu.module @m {
  gpu.func @one_lane(%all: i32) kernel {
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      nvvm.bar.warp.sync %all : i32
    }
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @shuffle(%x: i32, %all: i32) kernel {
    // expected-note @below {{one thread runs this region}}
    attn.elect {
      // expected-error @below {{needs all threads of a warp, and one comes to it}}
      %y = nvvm.shfl.sync bfly %all, %x, %x, %all : i32 -> i32
    }
    gpu.return
  }
}

// -----

// Lanes tell each other what their sequences have.
func.func @dealt_by_one_thread(%lengths: !llvm.ptr<1>, %index: i32) {
  // expected-note @below {{one thread runs this region}}
  attn.elect {
    // expected-error @below {{needs all threads of a warp, and one comes to it}}
    %sequence, %run, %runs = attn.deal_run %index of 264 from %lengths[64] up to %index most 32
  }
  return
}
