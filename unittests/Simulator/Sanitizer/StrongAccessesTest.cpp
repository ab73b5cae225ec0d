//===- StrongAccessesTest.cpp - Races beside atomics ----------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// Runs a body in which %p1 says whether it is the first CTA.
Outcome runCtas(const std::string &body, unsigned ctas, unsigned threads = 1) {
  LaunchConfig config;
  config.grid = {ctas, 1, 1};
  config.block = {threads, 1, 1};
  return runText(wrapKernel("mov.u32 %r5, %ctaid.x;\n"
                            "setp.eq.u32 %p1, %r5, 0;\n" +
                            body),
                 bytesOf<uint32_t>({1, 0}), 256, config);
}

TEST(StrongAccesses, HideNoPlainWrite) {
  const std::string count = "red.global.add.u32 [%d0], 1;\n";
  const std::string clear = "@%p1 st.global.u32 [%d0], 7;\n";
  expectError(runCtas(clear + count, 3), FindingKind::Race);
  // Of the same CTA, or of one that is told.
  expectClean(runCtas(clear + count + count, 1));
  const std::string tell = clear +
                           "@%p1 red.release.gpu.global.add.u32 [%d0 + 4], 1;\n"
                           "L: ld.acquire.gpu.global.u32 %r6, [%d0 + 4];\n"
                           "setp.eq.u32 %p2, %r6, 0;\n@%p2 bra L;\n";
  expectClean(runCtas(tell + count + count, 3));
  // Strong reads do not see it either.
  expectError(runCtas(clear + "@%p1 " + count +
                          "ld.relaxed.gpu.global.u32 %r6, [%d0];\n"
                          "st.global.u32 [%d1 + 4], %r6;\n",
                      2),
              FindingKind::Race);
  // A later plain write takes its place.
  expectClean(runCtas(clear + "@%p1 " + count + tell + count, 3));
}

TEST(StrongAccesses, OfTheirCtaAlone) {
  auto add = [](const std::string &scope) {
    return "red.relaxed." + scope + ".global.add.u32 [%d0], 1;\n";
  };
  expectError(runCtas(add("cta"), 2), FindingKind::Race);
  expectClean(runCtas(add("gpu"), 2));
  expectClean(runCtas(add("cta"), 1, /*threads=*/64));
  expectError(runCtas("@%p1 " + add("cta") + "@!%p1 " + add("gpu"), 2),
              FindingKind::Race);
}

} // namespace
