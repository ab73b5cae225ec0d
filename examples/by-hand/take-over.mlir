// Clusters of two CTAs that take over others which have not started (clusterlaunchcontrol, from sm_100
// on): the grid has a cluster for each of 4 tiles, and each that runs goes on with the tiles of those
// that it gets. One thread of the first CTA asks for the next one in front of its tile; the response
// comes to both CTAs. Element 2 t + r of c is 100 + t for tile t and the CTA's rank r.
//
//   attn-compile examples/by-hand/take-over.mlir -o c.ptx --launch-out=c.json --require-proof
//   attn-sim c.ptx --launch=c.json --started=1
//
// With --started=1 one cluster gets all tiles, with --started=4 each gets its own one.

!ring = !attn.buffer<2xi128, #attn.auto, shared>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @take(%c: !llvm.ptr<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>, known_block_size = array<i32: 128, 1, 1>, nvvm.minctasm = 1 : i32,
      attn.launch = #attn.launch<chip = "sm_100a", ptx = 88, grid = ["8", "1", "1"], block = [128, 1, 1], cluster = [2, 1, 1],
        tensors = [{access = "write", dtype = "i32", name = "c", shape = array<i64: 8>, strides = array<i64: 1>}],
        args = [{kind = "pointer", tensor = "c"}]>} {
    %ring = attn.alloc {name = "tile"} : !ring
    %ch = attn.channel.create {name = "tile", roles = [#attn.role<"asker", tx>, #attn.role<"reader" in ["asker"], arrive>, #attn.role<"store", arrive>]} : !attn.channel<2>
    %count = arith.constant 4 : i32
    %two = arith.constant 2 : i32
    %base = arith.constant 100 : i32
    attn.warp_specialize
    partition "asker" warps 1 registers 24 {
      attn.elect {
        attn.tile_loop %count scheduler clc channel %ch ring %ring : !attn.channel<2>, !ring {
        ^bb0(%tile: i32):
          attn.yield
        }
      }
    }
    partition "store" warps 3 registers 24 {
      %x = gpu.cluster_block_id x
      %rank = arith.index_cast %x : index to i32
      attn.tile_loop %count scheduler clc channel %ch ring %ring : !attn.channel<2>, !ring {
      ^bb0(%tile: i32):
        %first = arith.muli %tile, %two : i32
        %place = arith.addi %first, %rank : i32
        %value = arith.addi %tile, %base : i32
        %at = llvm.getelementptr %c[%place] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        attn.elect {
          llvm.store %value, %at : i32, !llvm.ptr<1>
        }
        attn.yield
      }
    }
    gpu.return
  }
}
