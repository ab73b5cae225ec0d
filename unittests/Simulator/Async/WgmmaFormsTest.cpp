//===- WgmmaFormsTest.cpp - wgmma of every type ---------------------------===//
//
// 64 and 8 rows of 32 bytes each; small integers in every type, so that
// results are exact.
//
//===----------------------------------------------------------------------===//

#include "../MatrixKernels.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

int valueOf(bool b, bool isUnsigned, unsigned row, unsigned k) {
  int v = b ? int(row * 2 + k * 3) % 5 - 2 : int(row * 3 + k * 5) % 7 - 3;
  return isUnsigned ? v + 3 : v;
}

uint32_t encode(llvm::StringRef type, int v) {
  float f = float(v);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  uint32_t sign = bits >> 31, e = v ? (bits >> 23 & 255) : 0, m = bits >> 16;
  if (type == "tf32")
    return bits;
  if (type == "bf16")
    return bits >> 16;
  if (type == "f16")
    return half(f);
  if (type == "e4m3")
    return sign << 7 | (v ? (e - 120) << 3 | (m >> 4 & 7) : 0);
  if (type == "e5m2")
    return sign << 7 | (v ? (e - 112) << 2 | (m >> 5 & 3) : 0);
  return v & 255;
}

void check(const std::string &d, const std::string &a, const std::string &b,
           const std::string &flags) {
  unsigned bytes = a == "tf32" ? 4 : a == "f16" || a == "bf16" ? 2 : 1;
  unsigned k = 32 / bytes, regs = d == "f16" ? 2 : 4;
  std::vector<uint8_t> in(72 * 32);
  auto place = [&](const std::string &type, bool isB, unsigned rows) {
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned i = 0; i < k; ++i) {
        uint32_t v = encode(type, valueOf(isB, type[0] == 'u', r, i));
        unsigned at = i * bytes;
        std::memcpy(in.data() + (isB ? 2048 : 0) + r / 8 * 256 + at / 16 * 128 +
                        r % 8 * 16 + at % 16,
                    &v, bytes);
      }
  };
  place(a, false, 64);
  place(b, true, 8);
  bool isInt = d == "s32", is16 = a == "f16" || a == "bf16";
  std::string shape = ".m64n8k" + std::to_string(k);
  std::string s = fillShared(72 * 32) +
                  "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
                  descriptor(10, 1024, false) + descriptor(11, 3072, false) +
                  "setp.ne.u32 %p0, %r0, %r0;\nwgmma.fence.sync.aligned;\n"
                  "wgmma.mma_async.sync.aligned" +
                  shape + flags + "." + d + "." + a + "." + b + " " +
                  list("%r", 100, regs) + ", %d10, %d11, %p0" +
                  (isInt  ? ""
                   : is16 ? ", 1, 1, 0, 0"
                          : ", 1, 1") +
                  ";\nwgmma.commit_group.sync.aligned;\n"
                  "wgmma.wait_group.sync.aligned 0;\n"
                  "mul.wide.u32 %d2, %r0, 16;\nadd.s64 %d3, %d1, %d2;\n";
  for (unsigned i = 0; i < regs; ++i)
    s += "st.global.b32 [%d3+" + std::to_string(4 * i) + "], %r" +
         std::to_string(100 + i) + ";\n";
  LaunchConfig config;
  config.block = {128, 1, 1};
  config.dynamicShared = 8192;
  Outcome r = runText(wrapKernel(s, "sm_90a"), in, 128 * 16, config);
  ASSERT_TRUE(r.error.empty() && r.report.isClean()) << s << r.text();
  for (unsigned t = 0; t < 128; ++t)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = t / 32 * 16 + t % 32 / 4 + i / 2 * 8;
      unsigned col = t % 4 * 2 + i % 2;
      int want = 0;
      for (unsigned j = 0; j < k; ++j)
        want += valueOf(false, a[0] == 'u', row, j) *
                valueOf(true, b[0] == 'u', col, j);
      if (d == "f16")
        EXPECT_EQ(r.at<uint16_t>(t * 8 + i), half(float(want))) << a << b;
      else if (isInt)
        EXPECT_EQ(r.at<int32_t>(t * 4 + i), want) << a << b;
      else
        EXPECT_EQ(r.at<float>(t * 4 + i), float(want)) << a << b;
    }
}

} // namespace

TEST(WgmmaForms, EveryType) {
  for (const char *d : {"f32", "f16"}) {
    check(d, "f16", "f16", "");
    for (const char *a : {"e4m3", "e5m2"})
      for (const char *b : {"e4m3", "e5m2"})
        check(d, a, b, "");
  }
  check("f32", "bf16", "bf16", "");
  check("f32", "tf32", "tf32", "");
  for (const char *flags : {"", ".satfinite"})
    for (const char *a : {"u8", "s8"})
      for (const char *b : {"u8", "s8"})
        check("s32", a, b, flags);
}
