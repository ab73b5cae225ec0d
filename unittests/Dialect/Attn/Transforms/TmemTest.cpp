//===- TmemTest.cpp - Products in tensor memory, executed -----------------===//

#include "KernelRunner.h"
#include "attn/Layout/SharedLayout.h"
#include "attn/Layout/TensorMemoryLayout.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

/// `text` with each key replaced by its value.
std::string
fill(std::string text,
     std::initializer_list<std::pair<llvm::StringRef, std::string>> values) {
  for (const auto &[key, value] : values)
    for (size_t at; (at = text.find(key.str())) != std::string::npos;)
      text.replace(at, key.size(), value);
  return text;
}

std::string number(int64_t value) { return std::to_string(value); }

struct TmemProduct {
  int64_t m, n, k;
  TmemShape shape = TmemShape::S32x32b;
  DType type = DType::F16;
  bool mnMajorA = false, mnMajorB = false;
  std::string chip = "sm_100a";
};

std::string nameTmem(const ::testing::TestParamInfo<TmemProduct> &info) {
  const TmemProduct &p = info.param;
  return llvm::formatv("{0}_m{1}n{2}k{3}_{4}_{5}{6}_{7}",
                       stringifyDType(p.type), p.m, p.n, p.k,
                       stringifyTmemShape(p.shape), p.mnMajorA ? "mn" : "k",
                       p.mnMajorB ? "mn" : "k", p.chip);
}

class TmemProductTest : public ::testing::TestWithParam<TmemProduct> {};

/// C = A B + A B: the second product adds to the first one's accumulator.
constexpr llvm::StringLiteral kProduct = R"(
!amap = !attn.tensor_map<ROWSAxBOXAxTYPE, swizzle = SPANA>
!bmap = !attn.tensor_map<ROWSBxBOXBxTYPE, swizzle = SPANB>
!alies = !attn.buffer<ROWSAxCOLSAxTYPE, #attn.auto, shared>
!blies = !attn.buffer<ROWSBxCOLSBxTYPE, #attn.auto, shared>
!a = !attn.buffer<MxKxTYPE, #attn.auto, shared>
!b = !attn.buffer<KxNxTYPE, #attn.auto, shared>
!d = !attn.buffer<MxNxf32, #attn.tmem<m = M>, tmem>
!flying = !attn.inflight<MxNxf32, #attn.tmem_regs<shape_SHAPE, warps = [4, 1]>>
!tile = tensor<MxNxf32, #attn.auto>
!out = !attn.global<?xNxf32>
gpu.module @kernels [#attn.target<chip = "CHIP">] {
  gpu.func @product(%amap: !amap, %bmap: !bmap, %out: !llvm.ptr<1>) kernel
      attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>} {
    %zero = arith.constant 0 : i32
    %no = arith.constant false
    %yes = arith.constant true
    %alies = attn.alloc {name = "a"} : !alies
    %blies = attn.alloc {name = "b"} : !blies
    // One that starts elsewhere than at column 0.
    %other = attn.tmem_alloc {name = "other", column = 0 : i64} : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
    %d = attn.tmem_alloc {name = "d"} : !d
    %full = attn.mbarrier.alloc : !attn.mbarriers<1>
    %done = attn.mbarrier.alloc : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %done {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    VIEWA
    VIEWB
    attn.elect {
      attn.mbarrier.expect_tx %full[%zero] {bytes = BYTES} : !attn.mbarriers<1>
      attn.tma.load %amap[%zero, %zero], %alies barrier %full[%zero] : !attn.mbarriers<1> : !amap, !alies
      attn.tma.load %bmap[%zero, %zero], %blies barrier %full[%zero] : !attn.mbarriers<1> : !bmap, !blies
      attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<1>
      attn.tcgen05.mma %a, %b, %d accumulate %no : !a, !b, !d
      attn.tcgen05.mma %a, %b, %d accumulate %yes : !a, !b, !d
      attn.tcgen05.commit %done[%zero] : !attn.mbarriers<1>
    }
    attn.mbarrier.wait %done[%zero] parity %zero : !attn.mbarriers<1>
    %flying = attn.tmem.load %d : !d -> !flying
    %c = attn.tmem.wait %flying : !flying -> !tile
    %off = arith.constant 0 : i64
    %rows = arith.constant M : i32
    %stride = arith.constant N : i64
    %view = attn.global_view %out[%off] rows %rows stride %stride : !out
    attn.global_store %c, %view[%zero] : !tile, !out
    gpu.return
  }
})";

TEST_P(TmemProductTest, Product) {
  const TmemProduct &p = GetParam();
  int64_t bytes = getByteWidth(p.type);
  int64_t rowsA = p.mnMajorA ? p.k : p.m, colsA = p.mnMajorA ? p.m : p.k;
  int64_t rowsB = p.mnMajorB ? p.k : p.n, colsB = p.mnMajorB ? p.n : p.k;
  unsigned spanA = SharedLayout::chooseSpan(colsA, 8 * bytes);
  unsigned spanB = SharedLayout::chooseSpan(colsB, 8 * bytes);
  auto view = [](llvm::StringRef name, bool transposed) {
    return llvm::formatv(
               transposed ? "%{0} = attn.transpose %{0}lies : !{0}lies -> !{0}"
                          : "%{0} = attn.reinterpret %{0}lies : !{0}lies -> "
                            "!{0}",
               name)
        .str();
  };
  KernelRunner kernel(
      fill(kProduct.str(), {{"VIEWA", view("a", p.mnMajorA)},
                            {"VIEWB", view("b", !p.mnMajorB)},
                            {"ROWSA", number(rowsA)},
                            {"ROWSB", number(rowsB)},
                            {"COLSA", number(colsA)},
                            {"COLSB", number(colsB)},
                            {"BOXA", number(spanA / bytes)},
                            {"BOXB", number(spanB / bytes)},
                            {"SPANA", number(spanA)},
                            {"SPANB", number(spanB)},
                            {"BYTES", number((p.m + p.n) * p.k * bytes)},
                            {"SHAPE", stringifyTmemShape(p.shape).str()},
                            {"CHIP", p.chip},
                            {"M", number(p.m)},
                            {"N", number(p.n)},
                            {"K", number(p.k)},
                            // Names of types have these letters.
                            {"TYPE", stringifyDType(p.type).str()}}));
  if (!kernel)
    return;
  HostTensor a = HostTensor::random(p.type, {rowsA, colsA});
  HostTensor b = HostTensor::random(p.type, {rowsB, colsB});
  HostTensor out = HostTensor::output(DType::F32, {p.m, p.n});
  kernel.passMap(a, {rowsA, spanA / bytes}, spanA);
  kernel.passMap(b, {rowsB, spanB / bytes}, spanB);
  kernel.pass(out);
  kernel.run(128);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double expected = 0, scale = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        double product = a.at(p.mnMajorA ? k * p.m + i : i * p.k + k) *
                         b.at(p.mnMajorB ? k * p.n + j : j * p.k + k);
        expected += 2 * product;
        scale += 2 * std::abs(product);
      }
      ASSERT_NEAR(out.at(i * p.n + j), expected, scale * 1e-5)
          << "element " << i << ", " << j;
    }
}

std::vector<TmemProduct> getTmemProducts() {
  std::vector<TmemProduct> products;
  for (int64_t n : {16, 48, 64, 80, 96, 128, 176, 192})
    products.push_back({128, n, 64});
  for (int64_t n : {8, 24, 64, 80, 104, 256})
    products.push_back({64, n, 64, TmemShape::S16x256b});
  for (TmemShape shape : getTmemShapes())
    for (int64_t m : {64, 128})
      if (m == 128 || getTmemLanes(shape) == 16)
        products.push_back({m, 96, 80, shape, DType::BF16});
  for (int64_t k : {16, 32, 48, 96, 128, 192})
    products.push_back({128, 64, k});
  for (bool mnMajorA : {false, true})
    for (bool mnMajorB : {false, true})
      for (int64_t m : {64, 128})
        products.push_back({m, 128, 112, TmemShape::S16x256b, DType::BF16,
                            mnMajorA, mnMajorB});
  products.push_back({128, 96, 32, TmemShape::S32x32b, DType::F16, true, true});
  // More columns than an instruction has.
  products.push_back(
      {64, 320, 48, TmemShape::S16x256b, DType::F16, false, true});
  // 8-bit operands, of rows of one span and of several.
  for (DType type : {DType::F8E4M3FN, DType::F8E5M2})
    for (bool mnMajorB : {false, true})
      for (int64_t n : {32, 64, 128})
        products.push_back(
            {128, n, 64, TmemShape::S32x32b, type, false, mnMajorB});
  products.push_back(
      {64, 256, 96, TmemShape::S16x256b, DType::F8E4M3FN, true, true});
  for (const char *chip : {"sm_100f", "sm_103a"})
    products.push_back(
        {128, 128, 128, TmemShape::S32x32b, DType::BF16, false, true, chip});
  return products;
}

INSTANTIATE_TEST_SUITE_P(Shapes, TmemProductTest,
                         ::testing::ValuesIn(getTmemProducts()), nameTmem);

/// O = sum over blocks of P_j V_j, where P_j is S_j = Q K_j^T rounded to the
/// operands' type. One thread loads and multiplies; the warps of `round` read S
/// and write P over it.
constexpr llvm::StringLiteral kTwoProducts = R"(
!qmap = !attn.tensor_map<MxDxTYPE, swizzle = 128>
!kmap = !attn.tensor_map<64xDxTYPE, swizzle = 128>
!q = !attn.buffer<MxDxTYPE, #attn.swizzled<span = 128>, shared>
!k = !attn.buffer<64xDxTYPE, #attn.swizzled<span = 128>, shared>
!kt = !attn.buffer<Dx64xTYPE, #attn.transposed<#attn.swizzled<span = 128>>, shared>
!s = !attn.buffer<Mx64xf32, #attn.tmem<m = M>, tmem>
!p = !attn.buffer<Mx64xTYPE, #attn.tmem<m = M>, tmem>
!o = !attn.buffer<MxDxf32, #attn.tmem<m = M>, tmem>
!half = !attn.buffer<MxHALFxf32, #attn.tmem<m = M>, tmem>
#regs = #attn.tmem_regs<shape_SHAPE, warps = [4, 1]>
!sf = !attn.inflight<Mx64xf32, #regs>
!of = !attn.inflight<MxHALFxf32, #regs>
!st = tensor<Mx64xf32, #attn.auto>
!pt = tensor<Mx64xTYPE, #attn.auto>
!ot = tensor<MxHALFxf32, #attn.auto>
!out = !attn.global<?xHALFxf32>
!bar = !attn.mbarriers<1>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @products(%qmap: !qmap, %kmap: !kmap, %vmap: !kmap, %out: !llvm.ptr<1>, %blocks: i32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    %q = attn.alloc {name = "q"} : !q
    %k = attn.alloc {name = "k"} : !k
    %v = attn.alloc {name = "v"} : !k
    %s = attn.tmem_alloc {name = "s", fields = [#attn.field<"s", 0, 64>, #attn.field<"p", 32, 32>]} : !s
    %o = attn.tmem_alloc {name = "o"} : !o
    %qfull = attn.mbarrier.alloc : !bar
    %kvfull = attn.mbarrier.alloc : !bar
    %sfull = attn.mbarrier.alloc : !bar
    %pfull = attn.mbarrier.alloc : !bar
    %done = attn.mbarrier.alloc : !bar
    attn.elect {
      attn.mbarrier.init %qfull {count = 1} : !bar
      attn.mbarrier.init %kvfull {count = 1} : !bar
      attn.mbarrier.init %sfull {count = 1} : !bar
      attn.mbarrier.init %pfull {count = 4} : !bar
      attn.mbarrier.init %done {count = 1} : !bar
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "round" warps 4 tiles [4, 1] registers 168 {
      scf.for %j = %zero to %blocks step %one : i32 {
        %parity = arith.andi %j, %one : i32
        attn.mbarrier.wait %sfull[%zero] parity %parity : !bar
        %scores = attn.tmem.field %s "s" : !s -> !s
        %f = attn.tmem.load %scores : !s -> !sf
        %t = attn.tmem.wait %f : !sf -> !st
        %r = arith.truncf %t : !st to !pt
        %p = attn.tmem.field %s "p" : !s -> !p
        attn.tmem.store %r, %p : !pt, !p
        attn.mbarrier.arrive %pfull[%zero] : !bar
      }
      %last = arith.subi %blocks, %one : i32
      %lastParity = arith.andi %last, %one : i32
      attn.mbarrier.wait %done[%zero] parity %lastParity : !bar
      %low = attn.tmem.slice %o {column = 0} : !o -> !half
      %high = attn.tmem.slice %o {column = HALF} : !o -> !half
      %f0 = attn.tmem.load %low : !half -> !of
      %f1 = attn.tmem.load %high : !half -> !of
      %t0, %t1 = attn.tmem.wait %f0, %f1 : !of, !of -> !ot, !ot
      %off0 = arith.constant 0 : i64
      %off1 = arith.constant HALF : i64
      %rows = arith.constant M : i32
      %stride = arith.constant D : i64
      %view0 = attn.global_view %out[%off0] rows %rows stride %stride {alignment = 32 : i64} : !out
      attn.global_store %t0, %view0[%zero] : !ot, !out
      %view1 = attn.global_view %out[%off1] rows %rows stride %stride {alignment = 16 : i64} : !out
      attn.global_store %t1, %view1[%zero] : !ot, !out
    }
    partition "products" warps 1 registers 168 {
      attn.elect {
        attn.mbarrier.expect_tx %qfull[%zero] {bytes = QBYTES} : !bar
        attn.tma.load %qmap[%zero, %zero], %q barrier %qfull[%zero] : !bar : !qmap, !q
        attn.mbarrier.wait %qfull[%zero] parity %zero : !bar
        scf.for %j = %zero to %blocks step %one : i32 {
          %parity = arith.andi %j, %one : i32
          %before = arith.xori %parity, %one : i32
          attn.mbarrier.wait %done[%zero] parity %before : !bar
          %row = arith.muli %j, %width : i32
          attn.mbarrier.expect_tx %kvfull[%zero] {bytes = KVBYTES} : !bar
          attn.tma.load %kmap[%row, %zero], %k barrier %kvfull[%zero] : !bar : !kmap, !k
          attn.tma.load %vmap[%row, %zero], %v barrier %kvfull[%zero] : !bar : !kmap, !k
          attn.mbarrier.wait %kvfull[%zero] parity %parity : !bar
          %kt = attn.transpose %k : !k -> !kt
          %no = arith.constant false
          attn.tcgen05.mma %q, %kt, %s accumulate %no : !q, !kt, !s
          attn.tcgen05.commit %sfull[%zero] : !bar
          attn.mbarrier.wait %pfull[%zero] parity %parity : !bar
          %p = attn.tmem.field %s "p" : !s -> !p
          %more = arith.cmpi ne, %j, %zero : i32
          attn.tcgen05.mma %p, %v, %o accumulate %more : !p, !k, !o
          attn.tcgen05.commit %done[%zero] : !bar
        }
      }
    }
    partition "rest" warps 3 registers 168 {
    }
    gpu.return
  }
})";

/// The same, handed around on channels. S, P and O of the tile are one right
/// that goes from the products to the warps and back: with the last one O is
/// complete.
constexpr llvm::StringLiteral kOnChannels = R"(
!qmap = !attn.tensor_map<MxDxTYPE, swizzle = 128>
!kmap = !attn.tensor_map<64xDxTYPE, swizzle = 128>
!q = !attn.buffer<MxDxTYPE, #attn.auto, shared>
!k = !attn.buffer<64xDxTYPE, #attn.auto, shared>
!ring = !attn.buffer<2x64xDxTYPE, #attn.auto, shared>
!kt = !attn.buffer<Dx64xTYPE, #attn.auto, shared>
!s = !attn.buffer<Mx64xf32, #attn.tmem<m = M>, tmem>
!p = !attn.buffer<Mx64xTYPE, #attn.tmem<m = M>, tmem>
!o = !attn.buffer<MxDxf32, #attn.tmem<m = M>, tmem>
#regs = #attn.tmem_regs<shape_SHAPE, warps = [4, 1]>
!sf = !attn.inflight<Mx64xf32, #regs>
!of = !attn.inflight<MxDxf32, #regs>
!st = tensor<Mx64xf32, #attn.auto>
!pt = tensor<Mx64xTYPE, #attn.auto>
!ot = tensor<MxDxf32, #attn.auto>
!out = !attn.global<?xDxf32>
!one = !attn.channel<1>
!two = !attn.channel<2>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @products(%qmap: !qmap, %kmap: !kmap, %vmap: !kmap, %out: !llvm.ptr<1>, %blocks: i32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 1 : i32} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %width = arith.constant 64 : i32
    %q = attn.alloc {name = "q"} : !q
    %k = attn.alloc {name = "k"} : !ring
    %v = attn.alloc {name = "v"} : !ring
    %s = attn.tmem_alloc {name = "s", fields = [#attn.field<"p", 32, 32>]} : !s
    %o = attn.tmem_alloc {name = "o"} : !o
    %chq = attn.channel.create {name = "q", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !one
    %chk = attn.channel.create {name = "k", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !two
    %chv = attn.channel.create {name = "v", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !two
    %cht = attn.channel.create {name = "tile", roles = [#attn.role<"mma", commit>, #attn.role<"round", arrive>]} : !one
    attn.warp_specialize
    partition "round" warps 4 tiles [4, 1] registers 168 {
      %c = attn.cursor.start %cht as "round" : !one
      %e = scf.for %j = %zero to %blocks step %one iter_args(%i = %c) -> (!attn.cursor) : i32 {
        %slot, %right = attn.channel.acquire %cht[%i] as "round" : !one
        %f = attn.tmem.load %s : !s -> !sf
        %t = attn.tmem.wait %f : !sf -> !st
        %r = arith.truncf %t : !st to !pt
        %p = attn.tmem.field %s "p" : !s -> !p
        attn.tmem.store %r, %p : !pt, !p
        attn.channel.release %cht, %right as "round" : !one
        %n = attn.cursor.advance %i on %cht : !one
        scf.yield %n : !attn.cursor
      }
      %slot, %right = attn.channel.acquire %cht[%e] as "round" : !one
      %f = attn.tmem.load %o : !o -> !of
      %t = attn.tmem.wait %f : !of -> !ot
      attn.channel.release %cht, %right as "round" : !one
      %off = arith.constant 0 : i64
      %rows = arith.constant M : i32
      %stride = arith.constant D : i64
      %view = attn.global_view %out[%off] rows %rows stride %stride : !out
      attn.global_store %t, %view[%zero] : !ot, !out
    }
    partition "mma" warps 1 registers 168 {
      attn.elect {
        %no = arith.constant false
        %cq = attn.cursor.start %chq as "mma" : !one
        %ck = attn.cursor.start %chk as "mma" : !two
        %cv = attn.cursor.start %chv as "mma" : !two
        %ct = attn.cursor.start %cht as "mma" : !one
        %p = attn.tmem.field %s "p" : !s -> !p
        %qslot, %qright = attn.channel.acquire %chq[%cq] as "mma" : !one
        %kslot, %kright = attn.channel.acquire %chk[%ck] as "mma" : !two
        %tslot, %tright = attn.channel.acquire %cht[%ct] as "mma" : !one
        %k0 = attn.slot %k[%kslot] : !ring -> !k
        %kt0 = attn.transpose %k0 : !k -> !kt
        attn.tcgen05.mma %q, %kt0, %s accumulate %no : !q, !kt, !s
        attn.channel.release %chk, %kright as "mma" : !two
        attn.channel.release %cht, %tright as "mma" : !one
        %ck1 = attn.cursor.advance %ck on %chk : !two
        %ct1 = attn.cursor.advance %ct on %cht : !one
        %last = arith.subi %blocks, %one : i32
        %e:3 = scf.for %j = %zero to %last step %one iter_args(%ik = %ck1, %iv = %cv, %it = %ct1) -> (!attn.cursor, !attn.cursor, !attn.cursor) : i32 {
          %vs, %vright = attn.channel.acquire %chv[%iv] as "mma" : !two
          %ts, %right = attn.channel.acquire %cht[%it] as "mma" : !one
          %vj = attn.slot %v[%vs] : !ring -> !k
          %more = arith.cmpi ne, %j, %zero : i32
          attn.tcgen05.mma %p, %vj, %o accumulate %more : !p, !k, !o
          attn.channel.release %chv, %vright as "mma" : !two
          %ks, %kr = attn.channel.acquire %chk[%ik] as "mma" : !two
          %kj = attn.slot %k[%ks] : !ring -> !k
          %ktj = attn.transpose %kj : !k -> !kt
          attn.tcgen05.mma %q, %ktj, %s accumulate %no : !q, !kt, !s
          attn.channel.release %chk, %kr as "mma" : !two
          attn.channel.release %cht, %right as "mma" : !one
          %nk = attn.cursor.advance %ik on %chk : !two
          %nv = attn.cursor.advance %iv on %chv : !two
          %nt = attn.cursor.advance %it on %cht : !one
          scf.yield %nk, %nv, %nt : !attn.cursor, !attn.cursor, !attn.cursor
        }
        %vs, %vright = attn.channel.acquire %chv[%e#1] as "mma" : !two
        %ts, %right = attn.channel.acquire %cht[%e#2] as "mma" : !one
        %vj = attn.slot %v[%vs] : !ring -> !k
        %more = arith.cmpi ne, %last, %zero : i32
        attn.tcgen05.mma %p, %vj, %o accumulate %more : !p, !k, !o
        attn.channel.release %chv, %vright as "mma" : !two
        attn.channel.release %chq, %qright as "mma" : !one
        attn.channel.release %cht, %right as "mma" : !one
      }
    }
    partition "load" warps 1 registers 168 {
      attn.elect {
        %cq = attn.cursor.start %chq as "load" : !one
        %ck = attn.cursor.start %chk as "load" : !two
        %cv = attn.cursor.start %chv as "load" : !two
        %qslot, %qright = attn.channel.acquire %chq[%cq] as "load" : !one
        attn.tma.load %qmap[%zero, %zero], %q token %qright : !qmap, !q
        attn.channel.release %chq, %qright as "load" : !one
        %e:2 = scf.for %j = %zero to %blocks step %one iter_args(%ik = %ck, %iv = %cv) -> (!attn.cursor, !attn.cursor) : i32 {
          %row = arith.muli %j, %width : i32
          %ks, %kright = attn.channel.acquire %chk[%ik] as "load" : !two
          %kj = attn.slot %k[%ks] : !ring -> !k
          attn.tma.load %kmap[%row, %zero], %kj token %kright : !kmap, !k
          attn.channel.release %chk, %kright as "load" : !two
          %vs, %vright = attn.channel.acquire %chv[%iv] as "load" : !two
          %vj = attn.slot %v[%vs] : !ring -> !k
          attn.tma.load %vmap[%row, %zero], %vj token %vright : !kmap, !k
          attn.channel.release %chv, %vright as "load" : !two
          %nk = attn.cursor.advance %ik on %chk : !two
          %nv = attn.cursor.advance %iv on %chv : !two
          scf.yield %nk, %nv : !attn.cursor, !attn.cursor
        }
      }
    }
    partition "rest" warps 2 registers 168 {
    }
    gpu.return
  }
})";

struct TwoProducts {
  int64_t m;
  TmemShape shape;
  DType type;
};

void runTwoProducts(llvm::StringRef text, const TwoProducts &p,
                    bool isaOnly = false) {
  constexpr int64_t d = 64, block = 64;
  int64_t bytes = getByteWidth(p.type);
  KernelRunner kernel(
      fill(text.str(), {{"QBYTES", number(p.m * d * bytes)},
                        {"KVBYTES", number(2 * block * d * bytes)},
                        {"SHAPE", stringifyTmemShape(p.shape).str()},
                        {"TYPE", stringifyDType(p.type).str()},
                        {"HALF", number(d / 2)},
                        {"M", number(p.m)},
                        {"D", number(d)}}),
      isaOnly);
  ASSERT_TRUE(bool(kernel));
  // One thread's products run in order, and so do its commits.
  kernel.assumptions = 1 << 0 | 1 << 1;
  for (int32_t blocks : {1, 2, 5}) {
    HostTensor q = HostTensor::random(p.type, {p.m, d});
    HostTensor k = HostTensor::random(p.type, {block * blocks, d});
    HostTensor v = HostTensor::random(p.type, {block * blocks, d});
    HostTensor out = HostTensor::output(DType::F32, {p.m, d});
    kernel.clear();
    kernel.passMap(q, {p.m, d}, 128);
    kernel.passMap(k, {block, d}, 128);
    kernel.passMap(v, {block, d}, 128);
    kernel.pass(out);
    kernel.pass(blocks);
    kernel.run(256);
    for (int64_t i = 0; i < p.m; ++i) {
      std::vector<double> expected(d), scale(d, 1e-30);
      for (int64_t key = 0; key < block * blocks; ++key) {
        double s = 0;
        for (int64_t c = 0; c < d; ++c)
          s += q.at(i * d + c) * k.at(key * d + c);
        for (int64_t c = 0; c < d; ++c) {
          expected[c] += s * v.at(key * d + c);
          scale[c] += std::abs(s * v.at(key * d + c));
        }
      }
      // P is rounded.
      for (int64_t c = 0; c < d; ++c)
        ASSERT_NEAR(out.at(i * d + c), expected[c],
                    scale[c] * (p.type == DType::BF16 ? 4e-3 : 5e-4))
            << blocks << " blocks, element " << i << ", " << c;
    }
  }
}

TEST(Tmem, TwoProductsOverSeveralBlocks) {
  for (DType type : {DType::F16, DType::BF16}) {
    runTwoProducts(kTwoProducts, {128, TmemShape::S32x32b, type});
    runTwoProducts(kTwoProducts, {128, TmemShape::S16x256b, type});
    runTwoProducts(kTwoProducts, {64, TmemShape::S16x256b, type});
    runTwoProducts(kTwoProducts, {64, TmemShape::S16x32bx2, type});
  }
}

TEST(Tmem, TwoProductsOnChannels) {
  runTwoProducts(kOnChannels, {128, TmemShape::S32x32b, DType::BF16});
  runTwoProducts(kOnChannels, {64, TmemShape::S16x256b, DType::F16});
}

/// By the manual alone, but for the order of one thread's products and commits.
TEST(Tmem, TwoProductsByTheManual) {
  for (llvm::StringRef text : {kTwoProducts, kOnChannels}) {
    runTwoProducts(text, {128, TmemShape::S32x32b, DType::F16},
                   /*isaOnly=*/true);
    runTwoProducts(text, {64, TmemShape::S16x256b, DType::BF16},
                   /*isaOnly=*/true);
  }
}

} // namespace
