//===- PartitionsTest.cpp - Partitions with tiles of their own, executed --===//
//
// Two partitions hold tiles, a warp alone loads for both, and they share a role
// of the channel of B.
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

std::string replaceAll(std::string text, llvm::StringRef key,
                       const std::string &value) {
  for (size_t at; (at = text.find(key.str())) != std::string::npos;)
    text.replace(at, key.size(), value);
  return text;
}

/// C (128 x 64) = A B over blocks of 64 of the contraction. The partition
/// `upper` has rows 0 to 63 of C, `lower` the others. They stand in front of
/// the loading warp or behind it.
std::string getProduct(bool consumersFirst) {
  std::string text = R"(
!map = !attn.tensor_map<64x64xbf16, swizzle = 128>
!slot = !attn.buffer<64x64xbf16, #attn.swizzled<span = 128>, shared>
!ring = !attn.buffer<2x64x64xbf16, #attn.swizzled<span = 128>, shared>
!acc = tensor<64x64xf32, #attn.auto>
!channel = !attn.channel<2>
gpu.module @kernels {
  gpu.func @product(%amap: !map, %bmap: !map, %out: !llvm.ptr<1>, %blocks: i32) kernel
      attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    %a0 = attn.alloc {name = "upper"} : !ring
    %a1 = attn.alloc {name = "lower"} : !ring
    %b = attn.alloc {name = "b"} : !ring
    %ch0 = attn.channel.create {name = "upper", roles = [#attn.role<"load", tx>, #attn.role<"upper", arrive>]} : !channel
    %ch1 = attn.channel.create {name = "lower", roles = [#attn.role<"load", tx>, #attn.role<"lower", arrive>]} : !channel
    %chb = attn.channel.create {name = "b", roles = [#attn.role<"load", tx>, #attn.role<"consumer" in ["upper", "lower"], arrive>]} : !channel
    attn.warp_specialize
)";
  auto consumer = [](std::string name, int row) {
    std::string text = R"(
    partition "$NAME" warps 4 tiles [4, 1] registers 168 {
      %ca = attn.cursor.start %ch$I as "$NAME" : !channel
      %cb = attn.cursor.start %chb as "consumer" : !channel
      %none = arith.constant dense<0.0> : !acc
      %c:3 = scf.for %j = %zero to %blocks step %one
          iter_args(%sum = %none, %ai = %ca, %bi = %cb) -> (!acc, !attn.cursor, !attn.cursor) : i32 {
        %as, %at = attn.channel.acquire %ch$I[%ai] as "$NAME" : !channel
        %bs, %bt = attn.channel.acquire %chb[%bi] as "consumer" : !channel
        %aj = attn.slot %a$I[%as] : !ring -> !slot
        %bj = attn.slot %b[%bs] : !ring -> !slot
        %next = attn.wgmma %aj, %bj acc %sum : !acc : !slot, !slot -> !attn.inflight<64x64xf32>
        %done = attn.wgmma.wait %next {pending = 0} : !attn.inflight<64x64xf32> -> !acc
        attn.channel.release %ch$I, %at as "$NAME" : !channel
        attn.channel.release %chb, %bt as "consumer" : !channel
        %an = attn.cursor.advance %ai on %ch$I : !channel
        %bn = attn.cursor.advance %bi on %chb : !channel
        scf.yield %done, %an, %bn : !acc, !attn.cursor, !attn.cursor
      }
      %offset = arith.constant 0 : i64
      %rows = arith.constant 128 : i32
      %stride = arith.constant 64 : i64
      %row = arith.constant $ROW : i32
      %view = attn.global_view %out[%offset] rows %rows stride %stride : !attn.global<?x64xf32>
      attn.global_store %c#0, %view[%row] : !acc, !attn.global<?x64xf32>
    }
)";
    text = replaceAll(text, "$NAME", name);
    text = replaceAll(text, "$ROW", std::to_string(row));
    return replaceAll(text, "$I", row == 0 ? "0" : "1");
  };
  std::string loader = R"(
    partition "idle" warps 2 registers 24 {
    }
    partition "load" warps 1 registers 24 {
      attn.elect {
        %c0 = attn.cursor.start %ch0 as "load" : !channel
        %c1 = attn.cursor.start %ch1 as "load" : !channel
        %cb = attn.cursor.start %chb as "load" : !channel
        %e:3 = scf.for %j = %zero to %blocks step %one
            iter_args(%i0 = %c0, %i1 = %c1, %ib = %cb) -> (!attn.cursor, !attn.cursor, !attn.cursor) : i32 {
          %k = arith.muli %j, %width : i32
          %s0, %t0 = attn.channel.acquire %ch0[%i0] as "load" : !channel
          %v0 = attn.slot %a0[%s0] : !ring -> !slot
          attn.tma.load %amap[%zero, %k], %v0 token %t0 : !map, !slot
          attn.channel.release %ch0, %t0 as "load" : !channel
          %s1, %t1 = attn.channel.acquire %ch1[%i1] as "load" : !channel
          %v1 = attn.slot %a1[%s1] : !ring -> !slot
          attn.tma.load %amap[%width, %k], %v1 token %t1 : !map, !slot
          attn.channel.release %ch1, %t1 as "load" : !channel
          %sb, %tb = attn.channel.acquire %chb[%ib] as "load" : !channel
          %vb = attn.slot %b[%sb] : !ring -> !slot
          attn.tma.load %bmap[%k, %zero], %vb token %tb : !map, !slot
          attn.channel.release %chb, %tb as "load" : !channel
          %n0 = attn.cursor.advance %i0 on %ch0 : !channel
          %n1 = attn.cursor.advance %i1 on %ch1 : !channel
          %nb = attn.cursor.advance %ib on %chb : !channel
          scf.yield %n0, %n1, %nb : !attn.cursor, !attn.cursor, !attn.cursor
        }
      }
    }
    partition "rest" warps 1 registers 24 {
    }
)";
  std::string consumers = consumer("upper", 0) + consumer("lower", 64);
  text += consumersFirst ? consumers + loader : loader + consumers;
  return text + "gpu.return\n}\n}";
}

TEST(Partitions, TilesInTwoOfThem) {
  for (bool consumersFirst : {true, false}) {
    KernelRunner kernel(getProduct(consumersFirst));
    ASSERT_TRUE(bool(kernel));
    for (int32_t blocks : {0, 1, 2, 5}) {
      int64_t k = std::max<int64_t>(blocks, 1) * kBlock;
      HostTensor a = HostTensor::random(DType::BF16, {kM, k});
      HostTensor b = HostTensor::random(DType::BF16, {k, kN});
      HostTensor out = HostTensor::output(DType::F32, {kM, kN});
      kernel.clear();
      kernel.passMap(a, {64, kBlock}, 128);
      kernel.passMap(b, {kBlock, kN}, 128);
      kernel.pass(out);
      kernel.pass(blocks);
      kernel.run(384);
      for (int64_t i = 0; i < kM; ++i)
        for (int64_t j = 0; j < kN; ++j) {
          double expected = 0, scale = 1e-30;
          for (int64_t l = 0; l < blocks * kBlock; ++l) {
            double product = a.at(i * k + l) * b.at(l * kN + j);
            expected += product;
            scale += std::abs(product);
          }
          ASSERT_NEAR(out.at(i * kN + j), expected, 1e-5 * scale)
              << blocks << " blocks, element " << i << ", " << j;
        }
    }
  }
}

/// A warp loads a tile, one partition takes it as a whole and hands it on in
/// two parts, and another one that waits for both parts stores it and hands the
/// slot back as a whole.
constexpr llvm::StringLiteral kRelay = R"(
!map = !attn.tensor_map<64x64xbf16, swizzle = 128>
!slot = !attn.buffer<64x64xbf16, #attn.swizzled<span = 128>, shared>
!ring = !attn.buffer<2x64x64xbf16, #attn.swizzled<span = 128>, shared>
!tile = tensor<64x64xbf16, #attn.auto>
!channel = !attn.channel<2>
gpu.module @kernels {
  gpu.func @relay(%map: !map, %out: !llvm.ptr<1>, %blocks: i32) kernel
      attributes {known_block_size = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %height = arith.constant 64 : i32
    %a = attn.alloc {name = "a"} : !ring
    %ch = attn.channel.create {name = "a", roles = [#attn.role<"load", tx>, #attn.role<"relay", arrive, parts = ["front", "back"]>, #attn.role<"store", arrive>]} : !channel
    attn.warp_specialize
    partition "store" warps 4 tiles [4, 1] registers 168 {
      %c = attn.cursor.start %ch as "store" : !channel
      %offset = arith.constant 0 : i64
      %stride = arith.constant 64 : i64
      %rows = arith.muli %blocks, %height : i32
      %view = attn.global_view %out[%offset] rows %rows stride %stride : !attn.global<?x64xbf16>
      %e = scf.for %j = %zero to %blocks step %one iter_args(%i = %c) -> (!attn.cursor) : i32 {
        %s, %front = attn.channel.acquire %ch[%i] as "store" part "front" : !channel
        %same, %back = attn.channel.acquire %ch[%i] as "store" part "back" : !channel
        %slot = attn.slot %a[%s] : !ring -> !slot
        %tile = attn.local_load %slot : !slot -> !tile
        %row = arith.muli %j, %height : i32
        attn.global_store %tile, %view[%row] : !tile, !attn.global<?x64xbf16>
        %whole = attn.channel.join %ch, %front, %back as "store" : !channel
        attn.channel.release %ch, %whole as "store" : !channel
        %n = attn.cursor.advance %i on %ch : !channel
        scf.yield %n : !attn.cursor
      }
    }
    partition "relay" warps 4 tiles [4, 1] registers 168 {
      %c = attn.cursor.start %ch as "relay" : !channel
      %e = scf.for %j = %zero to %blocks step %one iter_args(%i = %c) -> (!attn.cursor) : i32 {
        %s, %t = attn.channel.acquire %ch[%i] as "relay" : !channel
        %slot = attn.slot %a[%s] : !ring -> !slot
        %tile = attn.local_load %slot : !slot -> !tile
        %twice = arith.addf %tile, %tile : !tile
        attn.local_store %twice, %slot : !tile, !slot
        %front, %back = attn.channel.split %ch, %t as "relay" : !channel -> !attn.token, !attn.token
        attn.channel.release %ch, %front as "relay" : !channel
        attn.channel.release %ch, %back as "relay" : !channel
        %n = attn.cursor.advance %i on %ch : !channel
        scf.yield %n : !attn.cursor
      }
    }
    partition "load" warps 1 registers 24 {
      attn.elect {
        %c = attn.cursor.start %ch as "load" : !channel
        %e = scf.for %j = %zero to %blocks step %one iter_args(%i = %c) -> (!attn.cursor) : i32 {
          %row = arith.muli %j, %height : i32
          %s, %t = attn.channel.acquire %ch[%i] as "load" : !channel
          %slot = attn.slot %a[%s] : !ring -> !slot
          attn.tma.load %map[%row, %zero], %slot token %t : !map, !slot
          attn.channel.release %ch, %t as "load" : !channel
          %n = attn.cursor.advance %i on %ch : !channel
          scf.yield %n : !attn.cursor
        }
      }
    }
    partition "rest" warps 3 registers 24 {
    }
    gpu.return
  }
})";

TEST(Partitions, WholeSlotsAndParts) {
  KernelRunner kernel(kRelay.str());
  ASSERT_TRUE(bool(kernel));
  for (int32_t blocks : {1, 2, 5}) {
    HostTensor in = HostTensor::random(DType::BF16, {64 * blocks, 64});
    HostTensor out = HostTensor::output(DType::BF16, {64 * blocks, 64});
    kernel.clear();
    kernel.passMap(in, {64, 64}, 128);
    kernel.pass(out);
    kernel.pass(blocks);
    kernel.run(384);
    for (int64_t i = 0; i < in.size(); ++i)
      ASSERT_EQ(out.at(i), 2 * in.at(i)) << blocks << " blocks, element " << i;
  }
}

} // namespace
