//===- WgmmaTest.cpp - Products of warpgroups, executed -------------------===//

#include "KernelRunner.h"
#include "attn/Layout/SharedLayout.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

struct WgmmaProduct {
  DType a, b;
  int64_t n, k;
  unsigned warpgroups = 1;
  /// A comes from registers.
  bool registers = false;
  /// B lies as K x N.
  bool mnMajor = false;
};

std::string nameWgmma(const ::testing::TestParamInfo<WgmmaProduct> &info) {
  const WgmmaProduct &p = info.param;
  return llvm::formatv("{0}_{1}_m{2}n{3}k{4}_{5}_{6}", stringifyDType(p.a),
                       stringifyDType(p.b), 64 * p.warpgroups, p.n, p.k,
                       p.registers ? "RS" : "SS",
                       p.mnMajor ? "mn_major" : "k_major");
}

class WgmmaTest : public ::testing::TestWithParam<WgmmaProduct> {};

/// C = A B + A B, with and without an accumulator, the second product started
/// on the first one's registers in flight.
TEST_P(WgmmaTest, Product) {
  const WgmmaProduct &p = GetParam();
  int64_t m = 64 * p.warpgroups, bytes = getByteWidth(p.a);
  int64_t rowsB = p.mnMajor ? p.k : p.n, colsB = p.mnMajor ? p.n : p.k;
  unsigned spanA = SharedLayout::chooseSpan(p.k, 8 * bytes);
  unsigned spanB = SharedLayout::chooseSpan(colsB, 8 * bytes);
  auto type = [](DType dtype) { return stringifyDType(dtype).str(); };
  std::string mapA =
      llvm::formatv("!attn.tensor_map<{0}x{1}x{2}, swizzle = {3}>", m,
                    spanA / bytes, type(p.a), spanA);
  std::string mapB =
      llvm::formatv("!attn.tensor_map<{0}x{1}x{2}, swizzle = {3}>", rowsB,
                    spanB / bytes, type(p.b), spanB);
  std::string bufferA = llvm::formatv("!attn.buffer<{0}x{1}x{2}, #attn.auto, "
                                      "shared>",
                                      m, p.k, type(p.a));
  // B is slot 1 of a ring.
  std::string bufferB = llvm::formatv("{0}x{1}x{2}, #attn.auto, shared>", rowsB,
                                      colsB, type(p.b));
  std::string ring = "!attn.buffer<2x" + bufferB;
  bufferB = "!attn.buffer<" + bufferB;
  std::string operandB = bufferB, viewB;
  if (!p.mnMajor) {
    operandB = llvm::formatv("!attn.buffer<{0}x{1}x{2}, #attn.auto, shared>",
                             p.k, p.n, type(p.b));
    viewB = "%operand = attn.transpose %b : " + bufferB + " -> " + operandB;
  } else {
    viewB = "";
  }
  std::string operandA = bufferA, loadA, a = "%a";
  if (p.registers) {
    operandA =
        llvm::formatv("tensor<{0}x{1}x{2}, #attn.auto>", m, p.k, type(p.a));
    loadA = "%fragments = attn.local_load %a : " + bufferA + " -> " + operandA;
    a = "%fragments";
  }
  std::string b = p.mnMajor ? "%b" : "%operand";
  std::string acc = llvm::formatv("!attn.inflight<{0}x{1}xf32>", m, p.n);
  std::string tile = llvm::formatv("tensor<{0}x{1}xf32, #attn.auto>", m, p.n);
  int64_t bytesA = m * p.k * bytes;
  int64_t slotB = (rowsB * colsB * bytes + 1023) / 1024 * 1024;
  int64_t barriers = bytesA + 2 * slotB;
  std::string global = llvm::formatv("!attn.global<?x{0}xf32>", p.n);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "gpu.module @kernels [#attn.target<chip = \"sm_90a\">] {\ngpu.func "
        "@product(%ma: "
     << mapA << ", %mb: " << mapB
     << ", %out: !llvm.ptr<1>, %slot: i32) kernel attributes {attn.warps = "
        "array<i64: "
     << 4 * p.warpgroups
     << ", 1>, known_block_size = array<i32: " << 128 * p.warpgroups
     << ", 1, 1>} {\n"
     << "%zero = arith.constant 0 : i32\n"
     << "%a = attn.alloc {offset = 0 : i64} : " << bufferA << "\n"
     << "%ring = attn.alloc {offset = " << bytesA << " : i64} : " << ring
     << "\n%b = attn.slot %ring[%slot] : " << ring << " -> " << bufferB << "\n"
     << "%full = attn.mbarrier.alloc {offset = " << barriers
     << " : i64} : !attn.mbarriers<1>\n"
     << "attn.elect {\nattn.mbarrier.init %full {count = 1} : "
        "!attn.mbarriers<1>\nattn.mbarrier.fence_init\n}\ngpu.barrier\n"
     << "attn.elect {\nattn.mbarrier.expect_tx %full[%zero] {bytes = "
     << bytesA + rowsB * colsB * bytes << "} : !attn.mbarriers<1>\n"
     << "attn.tma.load %ma[%zero, %zero], %a barrier %full[%zero] : "
        "!attn.mbarriers<1> : "
     << mapA << ", " << bufferA
     << "\nattn.tma.load %mb[%zero, %zero], %b barrier %full[%zero] : "
        "!attn.mbarriers<1> : "
     << mapB << ", " << bufferB << "\n}\n"
     << "attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<1>\n"
     << loadA << "\n"
     << viewB << "\n"
     << "%c0 = attn.wgmma " << a << ", " << b << " : " << operandA << ", "
     << operandB << " -> " << acc << "\n"
     << "%c1 = attn.wgmma " << a << ", " << b << " acc %c0 : " << acc << " : "
     << operandA << ", " << operandB << " -> " << acc << "\n"
     << "%c = attn.wgmma.wait %c1 {pending = 0} : " << acc << " -> " << tile
     << "\n"
     << "%off = arith.constant 0 : i64\n%rows = arith.constant " << m
     << " : i32\n%stride = arith.constant " << p.n << " : i64\n"
     << "%view = attn.global_view %out[%off] rows %rows stride %stride : "
     << global << "\nattn.global_store %c, %view[%zero] : " << tile << ", "
     << global << "\ngpu.return\n}\n}\n";
  KernelRunner kernel(text);
  if (!kernel)
    return;
  HostTensor tensorA = HostTensor::random(p.a, {m, p.k});
  HostTensor tensorB = HostTensor::random(p.b, {rowsB, colsB});
  HostTensor out = HostTensor::output(DType::F32, {m, p.n});
  kernel.passMap(tensorA, {m, spanA / bytes}, spanA);
  kernel.passMap(tensorB, {rowsB, spanB / bytes}, spanB);
  kernel.pass(out);
  kernel.pass(1);
  kernel.run(128 * p.warpgroups, barriers + 8);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double expected = 0, scale = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        double product = tensorA.at(i * p.k + k) *
                         tensorB.at(p.mnMajor ? k * p.n + j : j * p.k + k);
        expected += 2 * product;
        scale += 2 * std::abs(product);
      }
      // Sums of f32 in any order; fp8 products are summed in fewer bits.
      ASSERT_NEAR(out.at(i * p.n + j), expected,
                  scale * (bytes == 1 ? 1e-3 : 1e-5))
          << "element " << i << ", " << j;
    }
}

std::vector<WgmmaProduct> getWgmmaProducts() {
  std::vector<WgmmaProduct> products;
  constexpr DType f16 = DType::F16, bf16 = DType::BF16, e4m3 = DType::F8E4M3FN,
                  e5m2 = DType::F8E5M2;
  for (int64_t n : {8, 16, 24, 64, 80, 96, 128, 176, 256})
    products.push_back({f16, f16, n, 64});
  for (int64_t n : {16, 32, 64, 80, 96, 128, 176, 256})
    products.push_back({f16, f16, n, 80, 1, true, true});
  for (unsigned warpgroups : {1, 2})
    for (bool registers : {false, true})
      for (bool mnMajor : {false, true}) {
        products.push_back(
            {bf16, bf16, 64, 128, warpgroups, registers, mnMajor});
        products.push_back({f16, f16, 96, 96, warpgroups, registers, mnMajor});
      }
  for (bool registers : {false, true}) {
    products.push_back({e4m3, e4m3, 128, 128, 2, registers});
    products.push_back({e5m2, e4m3, 80, 96, 1, registers});
    products.push_back({e4m3, e5m2, 192, 192, 1, registers});
  }
  return products;
}

INSTANTIATE_TEST_SUITE_P(Shapes, WgmmaTest,
                         ::testing::ValuesIn(getWgmmaProducts()), nameWgmma);

} // namespace
