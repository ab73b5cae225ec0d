//===- ParserTest.cpp - What the parser takes and what it rejects ---------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

static std::string parseError(llvm::StringRef text) {
  auto program = parsePTX(text, "t.ptx");
  if (program)
    return "";
  return llvm::toString(program.takeError());
}
static std::string bodyError(llvm::StringRef body) {
  return parseError(wrapKernel(body));
}

TEST(Parser, RejectsWhatItDoesNotKnow) {
  EXPECT_NE(bodyError("frobnicate.b32 %r1, %r2;")
                .find("unknown instruction 'frobnicate.b32 %r1, %r2'"),
            std::string::npos);
  EXPECT_NE(bodyError("add.frob.s32 %r1, %r2, %r3;")
                .find("unknown qualifier '.frob'"),
            std::string::npos);
  EXPECT_NE(bodyError("add.s32 %r1, %r2;")
                .find("expected 3 operands, got 2 in 'add.s32 %r1, %r2'"),
            std::string::npos);
  EXPECT_NE(bodyError("bra nowhere;").find("unknown label 'nowhere'"),
            std::string::npos);
  EXPECT_NE(bodyError("call.uni printf_like, (%r1);")
                .find("unresolved call to 'printf_like'"),
            std::string::npos);
  EXPECT_NE(bodyError("add.s32 %r1, %r2, %d3;")
                .find("register of the instruction's width"),
            std::string::npos);
  EXPECT_NE(bodyError("add.s32 %r1, %r2, %zz;").find("unknown register"),
            std::string::npos);
  EXPECT_NE(bodyError("mov.u32 %r1").find("expected ';'"), std::string::npos);
  // An alignment that is zero in 32 bits.
  EXPECT_NE(bodyError(".shared .align 4294967296 .b8 s[16];")
                .find("expected a power of two up to 1048576 as alignment, got "
                      "4294967296"),
            std::string::npos);
  EXPECT_NE(parseError(".version 8.0\n.target sm_80\n.address_size 32\n")
                .find("expected 64-bit addresses, got 32"),
            std::string::npos);
  EXPECT_NE(parseError(".version 8.0\n.frob\n").find("unknown directive"),
            std::string::npos);
}

/// As LLVM writes it: lines of inline assembly get the lines that follow that
/// of their statement.
TEST(Parser, LinesOfInlineAssembly) {
  std::string text = wrapKernel(".loc 1 7 3\n// begin inline asm\n"
                                ".loc 1 7 3\nmov.u32 %r1, 0;\n"
                                ".loc 1 8 3\nst.global.u32 [%d1 + 64], %r1;\n"
                                "// end inline asm\n.loc 1 9 1\n"
                                "st.global.u32 [%d1 + 4096], %r1;\n");
  Outcome r = runText(text + ".file 1 \"kernel.py\"\n", {}, 64);
  ASSERT_FALSE(r.report.findings.empty()) << r.text();
  EXPECT_EQ(r.report.findings[0].second->file, "kernel.py");
  EXPECT_EQ(r.report.findings[0].second->line, 7u);
}

TEST(Parser, NestingHasAnEnd) {
  auto repeat = [](llvm::StringRef text, size_t count) {
    std::string s;
    for (size_t i = 0; i < count; ++i)
      s += text;
    return s;
  };
  // What recurses: scopes, vectors, addresses, lists, pairs, initial values.
  struct Case {
    std::string before, open, middle, close, after;
  };
  const Case bodies[] = {
      {"", "{", "mov.u32 %r1, 1;", "}", ""},
      {"mov.u32 %r1, ", "{", "%r2", "}", ";"},
      {"mov.u32 %r1, ", "[", "%r2", "]", ";"},
      {"call (%r1), f, ", "(", "%r2", ")", ";"},
      {"mov.u32 ", "%r1|", "%r2", "", ";"},
  };
  const char *message = "expected at most 256 braces, brackets and parentheses "
                        "inside of each other, got more";
  auto getText = [&](const Case &c, size_t depth) {
    return c.before + repeat(c.open, depth) + c.middle +
           repeat(c.close, depth) + c.after;
  };
  for (const Case &c : bodies) {
    EXPECT_EQ(bodyError(getText(c, 250)).find(message), std::string::npos);
    for (size_t depth : {257, 100000}) {
      std::string e = bodyError(getText(c, depth));
      EXPECT_NE(e.find(message), std::string::npos) << c.open << e;
      // Nor without an end.
      e = bodyError(c.before + repeat(c.open, depth));
      EXPECT_NE(e.find(message), std::string::npos) << c.open << e;
    }
  }
  EXPECT_EQ(bodyError(getText(bodies[0], 250)), "");
  Case init{".global .u32 g[1] = ", "{", "1", "}", ";"};
  auto moduleError = [&](size_t depth) {
    return parseError(wrapKernel("", "sm_90a", getText(init, depth)));
  };
  EXPECT_EQ(moduleError(256), "");
  EXPECT_NE(moduleError(100000).find(message), std::string::npos);
}

TEST(Parser, CallsHaveAnEnd) {
  auto chain = [](unsigned count) {
    std::string text;
    for (unsigned i = count; i-- > 0;) {
      text += ".func f" + std::to_string(i) + "() {\n";
      if (i + 1 < count)
        text += "call.uni f" + std::to_string(i + 1) + ";\n";
      text += "ret;\n}\n";
    }
    return parseError(wrapKernel("call.uni f0;", "sm_90a", text));
  };
  EXPECT_EQ(chain(500), "");
  EXPECT_NE(chain(20000).find("expected at most 1000 calls inside of each "
                              "other, got more with 'f"),
            std::string::npos);
}

TEST(Parser, LongListsTakeLinearTime) {
  // Each of these took time or memory that grows with the square.
  constexpr unsigned count = 20000;
  std::string labels = "L: .branchtargets ", branches, constants, moves;
  for (unsigned i = 0; i < count; ++i) {
    std::string n = std::to_string(i);
    labels += (i ? ", T" : "T") + n;
    branches += "T" + n + ":\nbrx.idx %r0, L;\n";
    constants += "mov.u32 %r1, " + n + ";\n";
    moves += "mov.u32 %x" + n + ", %x" + std::to_string(i + 1) + ";\n";
  }
  EXPECT_EQ(bodyError(labels + ";\n" + branches), "");
  EXPECT_EQ(bodyError(constants), "");
  EXPECT_EQ(bodyError(".reg .b32 %x<20001>;\n" + moves +
                      "ld.shared.b32 %x20000, [%r1];\n"),
            "");
}

TEST(Parser, ErrorsCarryTheLine) {
  std::string e = bodyError("mov.u32 %r1, 1;\nfoo.b32 %r1;");
  EXPECT_EQ(e.substr(0, 8), "t.ptx:15") << e;
}

TEST(Parser, SurvivesDamagedText) {
  std::string text = wrapKernel("{ .reg .pred p; setp.lt.s32 p, %r0, 5;\n"
                                "@p bra L; add.s32 %r1, %r0, 1; L: }\n"
                                "st.global.v2.b32 [%d1+8], {%r0, %r1};");
  ASSERT_EQ(parseError(text), "");
  for (size_t i = 0; i < text.size(); ++i) {
    std::string cut = text.substr(0, i);
    parseError(cut);
    std::string changed = text;
    changed[i] = "{}[]();,.:@%0x\""[i % 15];
    parseError(changed);
  }
}

TEST(Parser, ScopesRegistersAndLabels) {
  Outcome r = runBody("{ .reg .b32 x; mov.b32 x, 1;\n bra L; mov.b32 x, 9;\n"
                      "L: mov.b32 %r1, x; }\n"
                      "{ .reg .b32 x; mov.b32 x, 2;\n bra L; mov.b32 x, 9;\n"
                      "L: add.s32 %r1, %r1, x; }\n"
                      ".reg .b32 late<3>; mov.b32 late2, %r1;\n"
                      "st.global.b32 [%d1], late2;",
                      {}, 4, 1);
  ASSERT_TRUE(r.report.isClean()) << r.text();
  EXPECT_EQ(r.at<uint32_t>(0), 3u);
}

TEST(Parser, QualifiersInAnyOrder) {
  Outcome r =
      runBody("mov.b32 %r1, 0f3f800000;\nadd.ftz.rn.f32 %r2, %r1, %r1;\n"
              "st.global.b32 [%d1], %r2;",
              {}, 4, 1);
  ASSERT_TRUE(r.report.isClean()) << r.text();
  EXPECT_EQ(r.at<uint32_t>(0), 0x40000000u);
}

TEST(Parser, ModuleVariablesAndCalls) {
  const char *extra =
      ".global .align 4 .b32 table[3] = {5, 6, 7};\n"
      ".const .align 4 .f32 half = 0.5;\n"
      ".func (.param .b32 res) twice(.param .b32 x)\n{\n"
      ".reg .b32 %v<3>;\nld.param.b32 %v1, [x];\nadd.s32 %v2, %v1, %v1;\n"
      "st.param.b32 [res], %v2;\nret;\n}\n";
  LaunchConfig config;
  config.block = {32, 1, 1};
  Outcome r = runText(
      wrapKernel("ld.global.b32 %r1, [table+8];\nld.const.b32 %r5, [half];\n"
                 "{ .param .b32 a; .param .b32 r;\nst.param.b32 [a], %r1;\n"
                 "call.uni (r), twice, (a);\nld.param.b32 %r2, [r]; }\n"
                 "mul.wide.u32 %d2, %r0, 8;\nadd.s64 %d3, %d1, %d2;\n"
                 "st.global.v2.b32 [%d3], {%r2, %r5};",
                 "sm_80", extra),
      {}, 256, config);
  ASSERT_TRUE(r.report.isClean()) << r.text();
  EXPECT_EQ(r.at<uint32_t>(0), 14u);
  EXPECT_EQ(r.at<uint32_t>(63), 0x3f000000u);
}

TEST(Parser, BranchesByIndex) {
  // Each lane takes its own target, and all meet behind.
  auto kernel = [](const char *count) {
    return wrapKernel(std::string("rem.u32 %r1, %r0, ") + count +
                      ";\nT: .branchtargets A, B, C;\nbrx.idx %r1, T;\n"
                      "A: mov.b32 %r2, 10;\nbra E;\nB: mov.b32 %r2, 20;\n"
                      "bra E;\nC: mov.b32 %r2, 30;\nE:\nbar.sync 0;\n"
                      "mul.wide.u32 %d2, %r0, 4;\nadd.s64 %d3, %d1, %d2;\n"
                      "st.global.b32 [%d3], %r2;");
  };
  LaunchConfig config;
  config.block = {32, 1, 1};
  Outcome r = runText(kernel("3"), {}, 128, config);
  ASSERT_TRUE(r.report.isClean()) << r.text();
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(r.at<uint32_t>(lane), 10 * (1 + lane % 3)) << lane;
  Outcome beyond = runText(kernel("4"), {}, 128, config);
  EXPECT_NE(beyond.text().find("branch index 3 is beyond the 3 targets"),
            std::string::npos)
      << beyond.text();
  EXPECT_NE(bodyError("brx.idx %r1, nowhere;")
                .find("expected a list of branch targets"),
            std::string::npos);
}

TEST(Parser, RejectsRecursion) {
  std::string e = parseError(
      wrapKernel("ret;", "sm_80", ".func f()\n{\ncall.uni f;\nret;\n}\n"));
  EXPECT_NE(e.find("recursion through 'f'"), std::string::npos) << e;
}

TEST(Launch, ChecksTheConfiguration) {
  LaunchConfig config;
  config.block = {2048, 1, 1};
  EXPECT_NE(runText(wrapKernel(""), {}, 4, config).error.find("1024 threads"),
            std::string::npos);
  config.block = {32, 1, 1};
  config.kernel = "other";
  EXPECT_NE(runText(wrapKernel(""), {}, 4, config).error.find("got 'other'"),
            std::string::npos);
  config.kernel = "k";
  config.grid = {3, 1, 1};
  config.cluster = {2, 1, 1};
  EXPECT_NE(runText(wrapKernel(""), {}, 4, config)
                .error.find("multiple of the cluster"),
            std::string::npos);
}
