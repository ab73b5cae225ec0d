// RUN: attn-opt %s --attn-shard-cga --split-input-file -verify-diagnostics

// A multicast of rows that differ would give each CTA a mixture.

!map = !attn.tensor_map<32x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @rank(%map: !map) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    // expected-note @below {{it depends on this}}
    %id = gpu.cluster_block_id x
    %rank = arith.index_cast %id : index to i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        // expected-error @below {{'attn.tma.load' op expected coordinates that are the same in all CTAs of the cluster to multicast, got coordinate 0 that may differ}}
        attn.tma.load %map[%rank, %zero], %k_slot token %kt {multicast = 2} : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Each CTA waits for the parts of all.

!map = !attn.tensor_map<32x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @branch(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    // expected-note @below {{they depend on this}}
    %id = gpu.cluster_block_id x
    %rank = arith.index_cast %id : index to i32
    %cond = arith.cmpi eq, %rank, %zero : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        scf.if %cond {
          // expected-error @below {{'attn.tma.load' op expected all CTAs of the cluster to multicast equally often, got a load under conditions that may differ}}
          attn.tma.load %map[%x, %zero], %k_slot token %kt {multicast = 2} : !map, !slot
        } else {
          attn.tma.load %map[%x, %zero], %k_slot token %kt {multicast = 2} : !map, !slot
        }
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// The host has to encode the smaller box.

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
module attributes {gpu.container_module} {
func.func @launches(%map: !map, %x: i32) {
  %one = arith.constant 1 : index
  // expected-error @below {{'gpu.launch_func' op expected the result of an attn.encode_tensor_map as kernel operand 0, whose box attn-shard-cga divides}}
  gpu.launch_func @kernels::@kernel clusters in (%one, %one, %one) blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%map : !map, %x : i32)
  return
}
gpu.module @kernels {
  // expected-note @below {{for this kernel}}
  gpu.func @kernel(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}
}

// -----

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected argument 0 of the launch record to be a tensor map with box [64, 64], got array<i64: 64, 32>}}
  gpu.func @record(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>,
                  attn.launch = #attn.launch<chip = "sm_90a", ptx = 80, grid = ["2", "1", "1"], block = [256, 1, 1], cluster = [2, 1, 1],
                    tensors = [{access = "read", dtype = "f16", name = "k", shape = array<i64: -1, 64>, strides = array<i64: 64, 1>}],
                    args = [{box = array<i64: 64, 32>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "k"}]>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected argument 0 of the launch record to be a tensor map with box [64, 64], got none}}
  gpu.func @record(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>,
                  attn.launch = #attn.launch<chip = "sm_90a", ptx = 80, grid = ["2", "1", "1"], block = [256, 1, 1], cluster = [2, 1, 1],
                    tensors = [{access = "read", dtype = "f16", name = "k", shape = array<i64: -1, 64>, strides = array<i64: 64, 1>}],
                    args = []>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected argument 0 of the launch record to be a tensor map with box [64, 64], got {kind = "scalar", name = "x", type = "i32"}}}
  gpu.func @record(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>,
                  attn.launch = #attn.launch<chip = "sm_90a", ptx = 80, grid = ["2", "1", "1"], block = [256, 1, 1], cluster = [2, 1, 1],
                    tensors = [{access = "read", dtype = "f16", name = "k", shape = array<i64: -1, 64>, strides = array<i64: 64, 1>}],
                    args = [{kind = "scalar", name = "x", type = "i32"}]>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// What attn-lower-channels refuses.

!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  // expected-note @below {{this kernel has none}}
  gpu.func @nowhere() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    // expected-error @below {{expected a channel made before the kernel's attn.warp_specialize}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{expected 'known_cluster_size' of 1 to 16 CTAs, got [4, 1, 0]}}
  gpu.func @empty_cluster() kernel attributes {known_cluster_size = array<i32: 4, 1, 0>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{expected 'known_cluster_size' of 1 to 16 CTAs, got [8, 4, 1]}}
  gpu.func @large_cluster() kernel attributes {known_cluster_size = array<i32: 8, 4, 1>} {
    gpu.return
  }
}
