//===- PrintTest.cpp - Calls of vprintf -----------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

constexpr const char *kDeclared =
    ".extern .func (.param .b32 result) vprintf (.param .b64 format, "
    ".param .b64 list);\n"
    ".global .align 1 .b8 numbers[] = {91, 37, 100, 32, 37, 108, 108, 100, 32, "
    "37, 46, 49, 102, 93, 10, 0};\n" // [%d %lld %.1f]
    ".global .align 1 .b8 wrong[] = {37, 121, 0};\n"
    ".global .align 1 .b8 endless[] = {46, 46};\n"
    ".global .align 1 .b8 text[] = {60, 37, 115, 62, 0};\n"; // <%s>

/// Prints `format` with a list at %d3, as the threads that %p1 says.
std::string call(const std::string &format) {
  return "mov.u64 %d5, " + format +
         ";\ncvta.global.u64 %d5, %d5;\n"
         "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n"
         "st.param.b64 [a], %d5;\nst.param.b64 [b], %d3;\n"
         "call.uni (c), vprintf, (a, b);\nld.param.b32 %r9, [c];\n}\n";
}

/// A list in local memory, whose first number is %r1, with `stores`.
std::string makeList(const std::string &stores) {
  return ".local .align 8 .b8 depot[32];\nmov.u64 %d2, depot;\n"
         "cvta.local.u64 %d3, %d2;\n" +
         stores;
}

const char *const kStores = "st.local.b32 [%d2], %r1;\n"
                            "mov.b64 %d6, -5;\nst.local.b64 [%d2+8], %d6;\n"
                            "mov.f64 %d7, 0d3FF8000000000000;\n"
                            "st.local.b64 [%d2+16], %d7;\n";

Outcome print(const std::string &body, LaunchConfig config = LaunchConfig()) {
  if (config.block[0] == 1)
    config.block = {32, 1, 1};
  return runText(wrapKernel(body, "sm_100a", kDeclared),
                 std::vector<uint8_t>(16), 16, config);
}

} // namespace

TEST(Print, PrintsByLane) {
  Outcome r = print("setp.lt.u32 %p1, %r0, 2;\n@!%p1 bra end;\n"
                    "mov.b32 %r1, %r0;\n" +
                    makeList(kStores) + call("numbers") +
                    "st.global.b32 [%d1], %r9;\nend:\n");
  expectClean(r);
  EXPECT_EQ(r.report.printed, "[0 -5 1.5]\n[1 -5 1.5]\n");
  EXPECT_EQ(r.at<uint32_t>(0), 3u);
}

TEST(Print, IsInTheOrderOfClusters) {
  LaunchConfig config;
  config.block = {1, 1, 1};
  config.grid = {5, 1, 1};
  std::string body =
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra end;\nmov.u32 %r1, %ctaid.x;\n" +
      makeList(kStores) + call("numbers") + "end:\n";
  for (unsigned threads : {1u, 4u}) {
    config.threads = threads;
    EXPECT_EQ(print(body, config).report.printed,
              "[0 -5 1.5]\n[1 -5 1.5]\n[2 -5 1.5]\n[3 -5 1.5]\n[4 -5 1.5]\n");
  }
}

TEST(Print, PrintsStrings) {
  Outcome r = print("setp.ne.u32 %p1, %r0, 0;\n@%p1 bra end;\n" +
                    makeList("mov.u64 %d6, text;\ncvta.global.u64 %d6, %d6;\n"
                             "st.local.b64 [%d2], %d6;\n") +
                    call("text") + "end:\n");
  expectClean(r);
  EXPECT_EQ(r.report.printed, "<<%s>>");
}

TEST(Print, KeepsABufferOfThem) {
  Outcome r = print(
      "setp.ne.u32 %p1, %r0, 0;\n@%p1 bra end;\nmov.b32 %r1, 0;\n" +
      makeList(kStores) + "mov.b32 %r2, 0;\nagain:\n" + call("numbers") +
      "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 100000;\n@%p2 bra again;\n"
      "end:\n");
  expectClean(r);
  EXPECT_EQ(r.report.printed.size(), kMostPrinted);
  EXPECT_EQ(r.report.printedDropped, 100000 * 11 - kMostPrinted);
}

TEST(Print, FindsWhatIsWrong) {
  // The second number was never stored.
  Outcome r = print("mov.b32 %r1, 7;\n" +
                    makeList("st.local.b32 [%d2], %r1;\n") + call("numbers"));
  expectError(r, FindingKind::UninitialisedRead);
  EXPECT_NE(r.text().find("what is printed depends on memory that was never "
                          "written"),
            std::string::npos);
  r = print(makeList("") + call("wrong"));
  expectError(r, FindingKind::InvalidOperation);
  EXPECT_NE(r.text().find("expected a conversion of printf"),
            std::string::npos);
  r = print("mov.b64 %d3, 0;\n" + call("numbers"));
  expectError(r, FindingKind::OutOfBounds);
  r = print(makeList("") + call("endless"));
  expectError(r, FindingKind::OutOfBounds);
  LaunchConfig config;
  config.block = {32, 1, 1};
  r = runText(wrapKernel(makeList("") + call("%d0"), "sm_100a", kDeclared),
              std::vector<uint8_t>(70000, '.'), 16, config);
  expectError(r, FindingKind::InvalidOperation);
  EXPECT_NE(r.text().find("expected a string of fewer than 65536 characters "
                          "for printf, got no end"),
            std::string::npos);
}

TEST(Print, IsTheOnlyExternalCall) {
  std::string module = wrapKernel("{\n.param .b64 a;\nst.param.b64 [a], %d0;\n"
                                  "call.uni vprintf, (a);\n}\n",
                                  "sm_100a", kDeclared);
  EXPECT_EQ(runText(module, std::vector<uint8_t>(16), 16).error,
            "test.ptx:22: expected one result and two arguments of 'vprintf' "
            "in 'call.uni vprintf, (a)'");
  module = wrapKernel("{\n.param .b64 a;\nst.param.b64 [a], %d0;\n"
                      "call.uni malloc, (a);\n}\n",
                      "sm_100a", ".extern .func malloc (.param .b64 size);\n");
  EXPECT_NE(runText(module, std::vector<uint8_t>(16), 16)
                .error.find("unresolved call to 'malloc'"),
            std::string::npos);
}

namespace {

constexpr const char *kAssertDeclared =
    ".extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, "
    ".param .b64 d, .param .b64 e);\n"
    ".global .align 1 .b8 why[] = {111, 100, 100, 0};\n"     // odd
    ".global .align 1 .b8 file[] = {97, 46, 112, 121, 0};\n" // a.py
    ".global .align 1 .b8 name[] = {107, 0};\n";             // k

/// Asserts that no lane has number 5.
std::string makeAssert(const std::string &arguments) {
  return "setp.ne.u32 %p1, %r0, 5;\n@%p1 bra end;\n"
         "mov.u64 %d5, why;\nmov.u64 %d6, file;\nmov.u64 %d7, name;\n"
         "{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n"
         ".param .b64 d;\n.param .b64 e;\n"
         "st.param.b64 [a], %d5;\nst.param.b64 [b], %d6;\n"
         "st.param.b32 [c], 12;\nst.param.b64 [d], %d7;\n"
         "st.param.b64 [e], 1;\n"
         "call.uni __assertfail, (" +
         arguments + ");\n}\nend:\n";
}

Outcome runAssert(const std::string &arguments) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  return runText(wrapKernel(makeAssert(arguments), "sm_100a", kAssertDeclared),
                 std::vector<uint8_t>(16), 16, config);
}

} // namespace

TEST(Assert, EndsTheLaunch) {
  Outcome r = runAssert("a, b, c, d, e");
  expectError(r, FindingKind::Trap);
  ASSERT_EQ(r.report.findings.size(), 1u);
  EXPECT_EQ(r.report.findings[0].message, "assertion failed: odd (a.py:12, k)");
  EXPECT_EQ(r.report.findings[0].second->lane, 5);
  EXPECT_FALSE(r.report.completed);
}

TEST(Assert, RefusesOtherArguments) {
  EXPECT_NE(runAssert("a, b, c, d")
                .error.find(
                    "expected no result and five arguments of '__assertfail'"),
            std::string::npos);
  EXPECT_NE(
      runAssert("a, b, c, c, e")
          .error.find("expected a '.param' variable of the declared size"),
      std::string::npos);
}
