//===- ChannelsTest.cpp - Channels between partitions, executed -----------===//

#include "KernelRunner.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

/// A kernel for C = A B with blocks of 64 of the contraction: persistent, with
/// rings of A and B, and results that leave through shared memory and TMA.
struct ProductKernel {
  int64_t depthA = 2;
  int64_t depthB = 2;
  /// CTAs that share each block of B, each with rows of A of its own.
  int64_t cluster = 1;
  std::string scheduler = "strided";
  /// A is handed over in two parts of 64 rows, one for each warpgroup.
  bool parts = false;

  std::string getText() const;
  void run(int64_t tiles, int64_t blocks, unsigned grid, KernelRunner &runner);
};

} // namespace

std::string ProductKernel::getText() const {
  std::string text = R"(
!a_map = !attn.tensor_map<$ROWSx64xbf16, swizzle = 128>
!b_map = !attn.tensor_map<64x64xbf16, swizzle = 128>
!c_map = !attn.tensor_map<128x64xbf16, swizzle = 128>
!a = !attn.buffer<128x64xbf16, #attn.swizzled<span = 128>, shared>
!b = !attn.buffer<64x64xbf16, #attn.swizzled<span = 128>, shared>
!a_ring = !attn.buffer<$DAx128x64xbf16, #attn.swizzled<span = 128>, shared>
!half_ring = !attn.buffer<$HALVESx64x64xbf16, #attn.swizzled<span = 128>, shared>
!b_ring = !attn.buffer<$DBx64x64xbf16, #attn.swizzled<span = 128>, shared>
!acc = tensor<128x64xf32, #attn.auto>
!ca = !attn.channel<$DA>
!cb = !attn.channel<$DB>
gpu.module @kernels {
  gpu.func @product(%amap: !a_map, %bmap: !b_map, %cmap: !c_map, %blocks: i32, %tiles: i32) kernel
      attributes {known_block_size = array<i32: 384, 1, 1>,
                  $CLUSTERSIZE nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    %height = arith.constant 128 : i32
    %ctas = arith.constant $CTAS : i32
    %block_id = gpu.block_id x
    %cta = arith.index_cast %block_id : index to i32
    %rank = arith.remui %cta, %ctas : i32
    %a = attn.alloc {name = "a"} : !a_ring
    %b = attn.alloc {name = "b"} : !b_ring
    %o = attn.alloc {name = "o"} : !a
    %ach = attn.channel.create {name = "a", roles = [#attn.role<"producer", tx$PARTS>, #attn.role<"consumer", arrive$PARTS>]} : !ca
    %bch = attn.channel.create {name = "b", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !cb
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      %a0 = attn.cursor.start %ach as "consumer" : !ca
      %b0 = attn.cursor.start %bch as "consumer" : !cb
      %none = arith.constant dense<0.0> : !acc
      %e:2 = attn.tile_loop %tiles scheduler $SCHEDULER iter_args(%a0, %b0 : !attn.cursor, !attn.cursor) {
      ^bb0(%tile: i32, %ai: !attn.cursor, %bi: !attn.cursor):
        %r:3 = scf.for %j = %zero to %blocks step %one
            iter_args(%sum = %none, %ac = %ai, %bc = %bi) -> (!acc, !attn.cursor, !attn.cursor) : i32 {
          %as, %at = attn.channel.acquire %ach[%ac] as "consumer" $OWN : !ca
          %bs, %bt = attn.channel.acquire %bch[%bc] as "consumer" : !cb
          %aj = attn.slot %a[%as] : !a_ring -> !a
          %bj = attn.slot %b[%bs] : !b_ring -> !b
          %next = attn.wgmma %aj, %bj acc %sum : !acc : !a, !b -> !attn.inflight<128x64xf32>
          %done = attn.wgmma.wait %next {pending = 0} : !attn.inflight<128x64xf32> -> !acc
          attn.channel.release %ach, %at as "consumer" : !ca
          attn.channel.release %bch, %bt as "consumer" : !cb
          %an = attn.cursor.advance %ac on %ach : !ca
          %bn = attn.cursor.advance %bc on %bch : !cb
          scf.yield %done, %an, %bn : !acc, !attn.cursor, !attn.cursor
        }
        %c = arith.truncf %r#0 : !acc to tensor<128x64xbf16, #attn.auto>
        attn.elect {
          attn.tma.wait {pending = 0, read}
        }
        attn.local_store %c, %o : tensor<128x64xbf16, #attn.auto>, !a
        %first = arith.muli %tile, %ctas : i32
        %index = arith.addi %first, %rank : i32
        %row = arith.muli %index, %height : i32
        attn.elect {
          attn.tma.store %o, %cmap[%row, %zero] : !a, !c_map
          attn.tma.commit
        }
        attn.yield %r#1, %r#2 : !attn.cursor, !attn.cursor
      }
      attn.elect {
        attn.tma.wait {pending = 0}
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        %a0 = attn.cursor.start %ach as "producer" : !ca
        %b0 = attn.cursor.start %bch as "producer" : !cb
        %e:2 = attn.tile_loop %tiles scheduler $SCHEDULER iter_args(%a0, %b0 : !attn.cursor, !attn.cursor) {
        ^bb0(%tile: i32, %ai: !attn.cursor, %bi: !attn.cursor):
          %first = arith.muli %tile, %ctas : i32
          %index = arith.addi %first, %rank : i32
          %row = arith.muli %index, %height : i32
          %r:2 = scf.for %j = %zero to %blocks step %one
              iter_args(%ac = %ai, %bc = %bi) -> (!attn.cursor, !attn.cursor) : i32 {
            %k = arith.muli %j, %width : i32
$LOADA            %bs, %bt = attn.channel.acquire %bch[%bc] as "producer" : !cb
            %bj = attn.slot %b[%bs] : !b_ring -> !b
            attn.tma.load %bmap[%k, %zero], %bj token %bt : !b_map, !b
            attn.channel.release %bch, %bt as "producer" : !cb
            %an = attn.cursor.advance %ac on %ach : !ca
            %bn = attn.cursor.advance %bc on %bch : !cb
            scf.yield %an, %bn : !attn.cursor, !attn.cursor
          }
          attn.yield %r#0, %r#1 : !attn.cursor, !attn.cursor
        }
      }
    }
    gpu.return
  }
})";
  auto replace = [&](llvm::StringRef key, const std::string &value) {
    for (size_t at; (at = text.find(key.str())) != std::string::npos;)
      text.replace(at, key.size(), value);
  };
  // The first load comes last in its slot: warpgroups do not wait for each
  static constexpr llvm::StringLiteral kWhole = R"(
            %as, %at = attn.channel.acquire %ach[%ac] as "producer" : !ca
            %aj = attn.slot %a[%as] : !a_ring -> !a
            attn.tma.load %amap[%row, %k], %aj token %at : !a_map, !a
            attn.channel.release %ach, %at as "producer" : !ca
)";
  static constexpr llvm::StringLiteral kHalves = R"(
            %half = arith.constant 64 : i32
            %two = arith.constant 2 : i32
            %halves = attn.reinterpret %a : !a_ring -> !half_ring
            %ls, %lt = attn.channel.acquire %ach[%ac] as "producer" part "lower" : !ca
            %even = arith.muli %ls, %two : i32
            %odd = arith.addi %even, %one : i32
            %lj = attn.slot %halves[%odd] : !half_ring -> !b
            %lower = arith.addi %row, %half : i32
            attn.tma.load %amap[%lower, %k], %lj token %lt : !a_map, !b
            attn.channel.release %ach, %lt as "producer" : !ca
            %us, %ut = attn.channel.acquire %ach[%ac] as "producer" part "upper" : !ca
            %uj = attn.slot %halves[%even] : !half_ring -> !b
            attn.tma.load %amap[%row, %k], %uj token %ut : !a_map, !b
            attn.channel.release %ach, %ut as "producer" : !ca
)";
  replace("$LOADA", parts ? kHalves.str() : kWhole.str());
  replace("$PARTS", parts ? R"(, parts = ["upper", "lower"])" : "");
  replace("$OWN", parts ? "{each_warpgroup}" : "");
  replace("$ROWS", parts ? "64" : "128");
  replace("$HALVES", std::to_string(2 * depthA));
  std::string size = std::to_string(cluster);
  replace("$DA", std::to_string(depthA));
  replace("$DB", std::to_string(depthB));
  replace("$CTAS", size);
  replace("$SCHEDULER", scheduler);
  replace("$CLUSTERSIZE",
          cluster > 1 ? "known_cluster_size = array<i32: " + size + ", 1, 1>,"
                      : "");
  return text;
}

void ProductKernel::run(int64_t tiles, int64_t blocks, unsigned grid,
                        KernelRunner &runner) {
  int64_t m = tiles * cluster * kM, k = blocks * kBlock;
  HostTensor a = HostTensor::random(DType::BF16, {m, k});
  HostTensor b = HostTensor::random(DType::BF16, {k, kN});
  HostTensor c = HostTensor::output(DType::BF16, {m, kN});
  runner.clear();
  runner.grid = grid * cluster;
  runner.cluster = cluster;
  runner.passMap(a, {parts ? kM / 2 : kM, kBlock}, 128);
  runner.passMap(b, {kBlock / cluster, kN}, 128);
  runner.passMap(c, {kM, kN}, 128);
  runner.pass(int32_t(blocks));
  runner.pass(int32_t(tiles));
  runner.run(384);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < kN; ++j) {
      double expected = 0, scale = 0;
      for (int64_t l = 0; l < k; ++l) {
        double product = a.at(i * k + l) * b.at(l * kN + j);
        expected += product;
        scale += std::abs(product);
      }
      ASSERT_NEAR(c.at(i * kN + j), expected,
                  1e-5 * scale + std::abs(expected) / 256)
          << tiles << " tiles, " << blocks << " blocks, grid " << grid
          << ", element " << i << ", " << j;
    }
}

TEST(Channels, PersistentProduct) {
  for (auto [depthA, depthB] : {std::pair(1, 1), std::pair(2, 3)}) {
    ProductKernel kernel;
    kernel.depthA = depthA;
    kernel.depthB = depthB;
    KernelRunner runner(kernel.getText());
    ASSERT_TRUE(bool(runner));
    // The slots are at different places of their rings in each tile.
    kernel.run(/*tiles=*/3, /*blocks=*/5, /*grid=*/1, runner);
    kernel.run(/*tiles=*/3, /*blocks=*/1, /*grid=*/2, runner);
  }
}

TEST(Channels, PartsOfSlots) {
  for (int64_t depth : {1, 3}) {
    ProductKernel kernel;
    kernel.depthA = depth;
    kernel.parts = true;
    KernelRunner runner(kernel.getText());
    ASSERT_TRUE(bool(runner));
    kernel.run(/*tiles=*/3, /*blocks=*/5, /*grid=*/1, runner);
    kernel.run(/*tiles=*/3, /*blocks=*/1, /*grid=*/2, runner);
  }
}

TEST(Channels, TileSchedulers) {
  for (const char *scheduler : {"single", "strided", "snake"}) {
    ProductKernel kernel;
    kernel.scheduler = scheduler;
    KernelRunner runner(kernel.getText());
    ASSERT_TRUE(bool(runner));
    // Whole rounds, and last rounds in both directions; CTAs without a tile.
    bool single = kernel.scheduler == "single";
    for (int64_t tiles : {2, 3, 5, 6, 8})
      kernel.run(tiles, /*blocks=*/2, /*grid=*/single ? tiles : 3, runner);
    kernel.run(/*tiles=*/1, /*blocks=*/2, /*grid=*/3, runner);
  }
}

TEST(Channels, MulticastInClusters) {
  for (auto [cluster, isa] :
       {std::pair(2, false), std::pair(2, true), std::pair(4, false)}) {
    ProductKernel kernel;
    kernel.cluster = cluster;
    kernel.scheduler = "snake";
    KernelRunner runner(kernel.getText(), isa);
    ASSERT_TRUE(bool(runner));
    EXPECT_NE(runner.ptx.find("multicast::cluster"), std::string::npos);
    // Signals to other CTAs have the cluster as their scope, or a cheap one.
    EXPECT_EQ(runner.ptx.find("arrive.release.cluster") != std::string::npos,
              isa);
    kernel.run(/*tiles=*/1, /*blocks=*/4, /*grid=*/1, runner);
    kernel.run(/*tiles=*/3, /*blocks=*/3, /*grid=*/2, runner);
  }
}
