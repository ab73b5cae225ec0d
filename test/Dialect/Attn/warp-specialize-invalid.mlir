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
    // expected-error @below {{expected a name, warps and registers for each of 2 partitions, got 2, 1 and 2}}
    "attn.warp_specialize"() <{names = ["a", "b"], warps = array<i64: 4>, registers = array<i64: 24, 24>}> ({
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
    // expected-error @below {{expected whole warpgroups of 4 warps in partition 'b', got 1 warps}}
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
    }
    partition "b" warps 1 registers 128 {
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
