// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null 2>&1 | FileCheck %s

// A loop whose trips become fewer from tile to tile: that a tile's number is not negative must not
// become that it is not positive. Tiles one to three wait for a signal that nobody gives.

// CHECK: error: {{.*}}deadlock

gpu.module @kernels [#attn.target<chip = "sm_90a">] attributes {attn.rung = "barrier"} {
  gpu.func @down(%n: i32) kernel attributes {nvvm.minctasm = 1 : i32, known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 65536 : i64,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["1", "1", "1"], block = [128, 1, 1],
        tensors = [{access = "read", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>}], args = [{dim = 0 : i64, kind = "size", tensor = "x", type = "i32"}]>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %end = arith.constant 30 : i32
    %never = attn.mbarrier.alloc {name = "never", offset = 8} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %never {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
      %bx = gpu.block_id x
      %b = arith.index_cast %bx : index to i32
      %gx = gpu.grid_dim x
      %g = arith.index_cast %gx : index to i32
      scf.for %i = %b to %n step %g : i32 {
        %begin = arith.muli %i, %c3 : i32
        scf.for %j = %begin to %end step %c1 : i32 {
          gpu.barrier
        }
        %a = arith.cmpi sge, %i, %c1 : i32
        scf.if %a {
          %z = arith.cmpi sle, %i, %c3 : i32
          scf.if %z {
            attn.mbarrier.wait %never[%c0] parity %c0 : !attn.mbarriers<1>
          }
        }
      }
    gpu.return
  }
}
