// RUN: attn-opt %s --attn-shard-cga --split-input-file | FileCheck %s
// RUN: attn-opt %s --attn-shard-cga --split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// The box shrinks in the kernel's parameter, in the launch record and on the
// host, where another kernel may use the whole one.

// CHECK-LABEL: func.func @launches
// CHECK:         %[[PART:.*]] = attn.encode_tensor_map %{{.*}} -> <16x64xf16, swizzle = 128>
// CHECK-NEXT:    %[[MAP:.*]] = attn.encode_tensor_map %{{.*}} -> <64x64xf16, swizzle = 128>
// CHECK:         gpu.launch_func @kernels::@four {{.*}} args(%{{.*}} : i32, %[[PART]] :
// CHECK:         gpu.launch_func @others::@other {{.*}} args(%[[MAP]] :
// CHECK:         gpu.func @four(%{{.*}}: i32, %[[K:.*]]: !attn.tensor_map<16x64xf16, swizzle = 128>)
// CHECK-SAME:      box = array<i64: 64, 16>
// CHECK:         attn.tma.load %[[K]][{{.*}} {multicast = 4 : i64}
// REMARK: the CTAs of a cluster fill the slots of channel 'k' together
// REMARK-SAME: boxes=1, ctas=4, l2-bytes=2048, l2-bytes-saved=6144, mask=15, rows=16
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
module attributes {gpu.container_module} {
func.func @launches(%tensor: memref<?x64xf16>, %x: i32) {
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %map = attn.encode_tensor_map %tensor : memref<?x64xf16> -> !map
  gpu.launch_func @kernels::@four clusters in (%four, %one, %one) blocks in (%four, %one, %one) threads in (%one, %one, %one) args(%x : i32, %map : !map)
  gpu.launch_func @others::@other blocks in (%four, %one, %one) threads in (%one, %one, %one) args(%map : !map)
  return
}
gpu.module @kernels {
  gpu.func @four(%x: i32, %map: !map) kernel
      attributes {known_cluster_size = array<i32: 4, 1, 1>,
                  attn.launch = #attn.launch<chip = "sm_90a", ptx = 80, grid = ["4", "1", "1"], block = [256, 1, 1], cluster = [4, 1, 1],
                    tensors = [{access = "read", dtype = "f16", name = "k", shape = array<i64: -1, 64>, strides = array<i64: 64, 1>}],
                    args = [{kind = "scalar", name = "x", type = "i32"}, {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "k"}]>} {
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
gpu.module @others {
  gpu.func @other(%map: !map) kernel attributes {attn.warps = array<i64: 4, 1>} {
    gpu.return
  }
}
}

// -----

// What is the same in all CTAs: parameters, tiles, loops over them, loads of
// global memory, and what follows from them. A tensor map that two channels share
// shrinks for both. A prefetch does not read the box.

// CHECK-LABEL: gpu.func @same
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<32x64xf16, swizzle = 128>
// CHECK:         attn.tma.load {{.*}} {multicast = 2 : i64}
// CHECK:         attn.tma.load {{.*}} {multicast = 2 : i64}
// REMARK: fill the slots of channel 'k' together
// REMARK: fill the slots of channel 'v' together
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @same(%map: !map, %n: i32, %lengths: !llvm.ptr<1>) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %v_slot = attn.alloc {name = "v"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
      %vc = attn.cursor.start %v as "consumer" : !ch
      %vi, %vt = attn.channel.acquire %v[%vc] as "consumer" : !ch
      attn.channel.release %v, %vt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        %vc = attn.cursor.start %v as "producer" : !ch
        %vi, %vt = attn.channel.acquire %v[%vc] as "producer" : !ch
        %length = llvm.load %lengths : !llvm.ptr<1> -> i32
        %sum = scf.for %i = %zero to %n step %length iter_args(%s = %zero) -> i32 : i32 {
          %t = arith.addi %s, %i : i32
          scf.yield %t : i32
        }
        %cond = arith.cmpi slt, %sum, %n : i32
        %row = scf.if %cond -> i32 {
          scf.yield %sum : i32
        } else {
          scf.yield %n : i32
        }
        attn.tma.prefetch %map : !map
        %last = attn.tile_loop %n scheduler single iter_args(%row : i32) {
        ^bb0(%tile: i32, %r: i32):
          attn.yield %tile : i32
        }
        attn.tma.load %map[%row, %zero], %k_slot token %kt : !map, !slot
        attn.tma.load %map[%last, %zero], %v_slot token %vt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
        attn.channel.release %v, %vt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Rows that depend on the CTA's rank are its own.

// CHECK-LABEL: gpu.func @rank
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="coordinate 0 of a load depends on gpu.cluster_block_id{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @rank(%map: !map) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
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
        %sum = arith.addi %zero, %rank : i32
        attn.tma.load %map[%sum, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// So does what a loop carries from the end of an iteration, or how often it ran.

// CHECK-LABEL: gpu.func @carried
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="coordinate 0 of a load depends on gpu.cluster_block_id{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @carried(%map: !map, %n: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
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
        %one = arith.constant 1 : i32
        %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %zero, %b = %zero) -> (i32, i32) : i32 {
          scf.yield %b, %rank : i32, i32
        }
        attn.tma.load %map[%r#0, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @trips
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="coordinate 0 of a load depends on gpu.cluster_block_id{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @trips(%map: !map) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
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
        %one = arith.constant 1 : i32
        %r = scf.for %i = %zero to %rank step %one iter_args(%a = %zero) -> i32 : i32 {
          %b = arith.addi %a, %one : i32
          scf.yield %b : i32
        }
        attn.tma.load %map[%r, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// A load that not all CTAs execute as often.

// CHECK-LABEL: gpu.func @branch
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="whether a load runs depends on gpu.block_id{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @branch(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %block = gpu.block_id x
    %cta = arith.index_cast %block : index to i32
    %cond = arith.cmpi eq, %cta, %zero : i32
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
          attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        } else {
          attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        }
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Nobody knows how often a loop runs whose condition is computed in it.

// CHECK-LABEL: gpu.func @while
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="whether a load runs depends on scf.while{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @while(%map: !map, %x: i32, %cond: i1) kernel
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
        scf.if %cond {
          scf.while : () -> () {
            scf.condition(%cond)
          } do {
            scf.yield
          }
        }
        %r = scf.while (%a = %x) : (i32) -> i32 {
          scf.condition(%cond) %a : i32
        } do {
        ^bb0(%a: i32):
          scf.yield %a : i32
        }
        %c = arith.cmpi eq, %r, %x : i32
        scf.if %c {
          attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        } else {
          attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        }
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Shared memory and volatile memory may hold anything.

// CHECK-LABEL: gpu.func @memory
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="coordinate 0 of a load depends on llvm.load{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @memory(%map: !map, %p: !llvm.ptr<1>, %s: !llvm.ptr<3>) kernel
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
        %a = llvm.load volatile %p : !llvm.ptr<1> -> i32
        attn.tma.load %map[%a, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @shared
// CHECK-SAME:    %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK: Reason="coordinate 0 of a load depends on llvm.load{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @shared(%map: !map, %s: !llvm.ptr<3>) kernel
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
        %a = llvm.load %s : !llvm.ptr<3> -> i32
        attn.tma.load %map[%a, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// 64 rows in eight parts of 8 rows, but 24 rows in no four.

// CHECK-LABEL: gpu.func @rows
// CHECK-SAME:    !attn.tensor_map<8x64xf16, swizzle = 128>, %{{.*}}: !attn.tensor_map<8x8x64xf16, swizzle = 128>
// CHECK:         attn.tma.load {{.*}} {multicast = 8 : i64}
// CHECK-NOT:     multicast
// REMARK: the CTAs of a cluster fill the slots of channel 'k' together
// REMARK: Reason="a box of 64 rows is not 8 parts of a multiple of 8 rows{{.*}}", Remark="each CTA fills the slots of channel 'v' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
!map3 = !attn.tensor_map<8x8x64xf16, swizzle = 128>
gpu.module @kernels {
  gpu.func @rows(%map: !map, %map3: !map3, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 8, 1, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %v_slot = attn.alloc {name = "v"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
      %vc = attn.cursor.start %v as "consumer" : !ch
      %vi, %vt = attn.channel.acquire %v[%vc] as "consumer" : !ch
      attn.channel.release %v, %vt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        %vc = attn.cursor.start %v as "producer" : !ch
        %vi, %vt = attn.channel.acquire %v[%vc] as "producer" : !ch
        attn.tma.load %map[%x, %zero], %k_slot token %kt : !map, !slot
        attn.tma.load %map3[%x, %zero, %zero], %v_slot token %vt : !map3, !slot
        attn.channel.release %k, %kt as "producer" : !ch
        attn.channel.release %v, %vt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @odd
// CHECK-NOT:     multicast
// REMARK: Reason="a box of 24 rows is not 4 parts of a multiple of 8 rows{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<24x64xf16, swizzle = 128>
!slot = !attn.buffer<24x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @odd(%map: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 4, 1, 1>} {
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

// A tensor map has one box: what shares it with a load that differs stays whole,
// and so does what shares a map with that.

// CHECK-LABEL: gpu.func @mixed
// CHECK-SAME:    !attn.tensor_map<64x64xf16, swizzle = 128>, %{{.*}}: !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
// REMARK-DAG: Reason="coordinate 0 of a load depends on gpu.cluster_block_id", Remark="each CTA fills the slots of channel 'q' for itself"
// REMARK-DAG: Reason="attn.tma.load uses the tensor map of a load, and is not shared by the CTAs", Remark="each CTA fills the slots of channel 'v' for itself"
// REMARK-DAG: Reason="attn.tma.load uses the tensor map of a load, and is not shared by the CTAs", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @mixed(%map: !map, %other: !map, %x: i32) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %id = gpu.cluster_block_id x
    %rank = arith.index_cast %id : index to i32
    %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %k_slot = attn.alloc {name = "k"} : !slot
    %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %v_slot = attn.alloc {name = "v"} : !slot
    %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !ch
    %q_slot = attn.alloc {name = "q"} : !slot
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %kc = attn.cursor.start %k as "consumer" : !ch
      %ki, %kt = attn.channel.acquire %k[%kc] as "consumer" : !ch
      attn.channel.release %k, %kt as "consumer" : !ch
      %vc = attn.cursor.start %v as "consumer" : !ch
      %vi, %vt = attn.channel.acquire %v[%vc] as "consumer" : !ch
      attn.channel.release %v, %vt as "consumer" : !ch
      %qc = attn.cursor.start %q as "consumer" : !ch
      %qi, %qt = attn.channel.acquire %q[%qc] as "consumer" : !ch
      attn.channel.release %q, %qt as "consumer" : !ch
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %kc = attn.cursor.start %k as "producer" : !ch
        %ki, %kt = attn.channel.acquire %k[%kc] as "producer" : !ch
        %vc = attn.cursor.start %v as "producer" : !ch
        %vi, %vt = attn.channel.acquire %v[%vc] as "producer" : !ch
        %qc = attn.cursor.start %q as "producer" : !ch
        %qi, %qt = attn.channel.acquire %q[%qc] as "producer" : !ch
        attn.tma.load %other[%x, %zero], %k_slot token %kt : !map, !slot
        attn.tma.load %other[%x, %zero], %v_slot token %vt : !map, !slot
        attn.tma.load %map[%x, %zero], %v_slot token %vt : !map, !slot
        attn.tma.load %map[%rank, %zero], %q_slot token %qt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
        attn.channel.release %v, %vt as "producer" : !ch
        attn.channel.release %q, %qt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Stores take whole boxes.

// CHECK-LABEL: gpu.func @stored
// CHECK-NOT:     multicast
// REMARK: Reason="attn.tma.store uses the tensor map of a load{{.*}}", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @stored(%map: !map, %x: i32) kernel
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
        attn.tma.store %k_slot, %map[%x, %zero] : !slot, !map
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// The rows of stacked boxes are no parts that follow each other.

// CHECK-LABEL: gpu.func @stacked
// CHECK-SAME:    !attn.tensor_map<16x2x64xf16, swizzle = 128>
// CHECK:         attn.tma.load {{.*}} {stacked = 2 : i64}
// REMARK: Reason="a load is of stacked boxes", Remark="each CTA fills the slots of channel 'k' for itself"
!map = !attn.tensor_map<16x2x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @stacked(%map: !map, %x: i32) kernel
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
        attn.tma.load %map[%x, %zero, %zero], %k_slot token %kt {stacked = 2} : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// What is a multicast already stays one.

// CHECK-LABEL: gpu.func @given
// CHECK-SAME:    !attn.tensor_map<32x64xf16, swizzle = 128>
// CHECK:         attn.tma.load {{.*}} {multicast = 2 : i64}
// REMARK-NOT: Function=given
!map = !attn.tensor_map<32x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @given(%map: !map, %x: i32) kernel
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
        attn.tma.load %map[%x, %zero], %k_slot token %kt {multicast = 2} : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Kernels without clusters stay as they are.

// CHECK-LABEL: gpu.func @alone
// CHECK-SAME:    !attn.tensor_map<64x64xf16, swizzle = 128>
// CHECK-NOT:     multicast
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @alone(%map: !map, %x: i32) kernel
      {
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

// A channel that a loop over tiles hands over by itself, later, has no releases
// yet. A tile that a counter deals is the same in all CTAs.

// CHECK-LABEL: gpu.func @dealt
// CHECK:         attn.tma.load {{.*}} {multicast = 2 : i64}
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ring = !attn.buffer<2xi32, #attn.auto, shared>
!ch = !attn.channel<1>
gpu.module @kernels {
  gpu.func @dealt(%map: !map, %count: i32, %counter: !llvm.ptr<1>) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %tile = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>]} : !attn.channel<2>
    %ring = attn.alloc {name = "tile"} : !ring
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
        attn.tile_loop %count scheduler dynamic counter %counter channel %tile ring %ring : !llvm.ptr<1>, !attn.channel<2>, !ring iter_args(%kc : !attn.cursor) {
        ^bb0(%i: i32, %c: !attn.cursor):
          %ki, %kt = attn.channel.acquire %k[%c] as "producer" : !ch
          attn.tma.load %map[%i, %zero], %k_slot token %kt : !map, !slot
          attn.channel.release %k, %kt as "producer" : !ch
          %n = attn.cursor.advance %c on %k : !ch
          attn.yield %n : !attn.cursor
        }
      }
    }
    gpu.return
  }
}

// -----

// A part of the rows of a packed sequence may lie behind its end: each CTA loads all.

// CHECK-LABEL: gpu.module @packed
// CHECK:         gpu.func @two(%{{.*}}: i32, %[[K:.*]]: !attn.tensor_map<1x64x64xf16, swizzle = 128>)
// CHECK:         attn.tma.load %[[K]]
// CHECK-NOT:     multicast
// REMARK: a part of a packed sequence's rows may lie behind its end, and TMA reads the address of its map then, which is in front of the tensor
!map = !attn.tensor_map<1x64x64xf16, swizzle = 128>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<1>
gpu.module @packed {
  gpu.func @two(%x: i32, %map: !map) kernel
      attributes {known_cluster_size = array<i32: 2, 1, 1>,
                  attn.launch = #attn.launch<chip = "sm_90a", ptx = 80, grid = ["4", "1", "1"], block = [256, 1, 1], cluster = [2, 1, 1],
                    tensors = [{access = "read", dtype = "f16", name = "k", shape = array<i64: 1, -1, 64>, strides = array<i64: -1, 64, 1>}],
                    args = [{kind = "scalar", name = "x", type = "i32"}, {box = array<i64: 64, 64, 1>, element = "f16", kind = "tensor_map", rank = 3 : i64, swizzle = "128B", tensor = "k", view = "packed"}]>} {
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
        attn.tma.load %map[%x, %x, %zero], %k_slot token %kt : !map, !slot
        attn.channel.release %k, %kt as "producer" : !ch
      }
    }
    gpu.return
  }
}
