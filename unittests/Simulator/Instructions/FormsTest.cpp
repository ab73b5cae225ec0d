//===- FormsTest.cpp - Forms decode, and compute as an H200 ---------------===//
//
// Inputs/forms.txt lists the instruction forms. Inputs/h200-results.txt has,
// for those that only use registers, a hash of what an H200 computed for the
// 128 rows of Inputs/h200-rows.bin: 6 registers of 16 bits, 4 of 32, 4 bytes of
// padding, 3 of 64 bits.
//
//===----------------------------------------------------------------------===//

#include "../TestForms.h"
#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::SmallVector;
using llvm::StringRef;

namespace {

std::string parseError(StringRef chip, const std::string &statements) {
  auto program = parsePTX(makeModule(chip, statements), "form.ptx");
  return program ? "" : llvm::toString(program.takeError());
}

uint64_t hash(llvm::ArrayRef<uint64_t> values) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (uint64_t v : values)
    for (unsigned i = 0; i < 8; ++i)
      h = (h ^ (v >> (8 * i) & 0xff)) * 0x100000001b3ull;
  return h;
}

/// Loads a row's registers, executes, and puts the result into %d20.
std::string evaluate(StringRef instruction) {
  std::string body =
      "ld.global.b16 %h1,[%d30];\nld.global.b16 %h2,[%d30+2];\n"
      "ld.global.b16 %h3,[%d30+4];\nld.global.b16 %h4,[%d30+6];\n"
      "ld.global.b32 %r1,[%d30+12];\nld.global.b32 %r2,[%d30+16];\n"
      "ld.global.b32 %r3,[%d30+20];\nld.global.b32 %r4,[%d30+24];\n"
      "ld.global.b64 %d1,[%d30+32];\nld.global.b64 %d2,[%d30+40];\n"
      "ld.global.b64 %d3,[%d30+48];\n"
      "and.b32 %r20,%r1,1;\nsetp.ne.u32 %p1,%r20,0;\n"
      "and.b32 %r20,%r2,1;\nsetp.ne.u32 %p2,%r20,0;\n"
      "mov.b16 %h0,0;\nmov.b32 %r0,0;\nmov.b64 %d0,0;\n"
      "mov.pred %p0,0;\nmov.pred %p3,0;\n";
  body += instruction.str() + "\n";
  StringRef last = instruction.rtrim("; ").rsplit(';').second.trim();
  if (last.empty())
    last = instruction.rtrim("; ");
  StringRef operands = last.split(' ').second.trim();
  StringRef first = operands.split(',').first;
  if (operands.starts_with("{")) {
    SmallVector<StringRef> registers;
    operands.drop_front().split('}').first.split(registers, ',');
    body += "mov.b64 %d20,0;\n";
    for (StringRef r : registers) {
      if (r == "_")
        continue;
      bool half = r.starts_with("%h");
      body += "cvt.u64." + std::string(half ? "u16" : "u32") + " %d21," +
              r.str() + ";\nshl.b64 %d20,%d20," + (half ? "16" : "32") +
              ";\nor.b64 %d20,%d20,%d21;\n";
    }
  } else if (first.starts_with("%h")) {
    body += "cvt.u64.u16 %d20," + first.str() + ";\n";
  } else if (first.starts_with("%d")) {
    body += "mov.b64 %d20," + first.str() + ";\n";
  } else if (first.starts_with("%p")) {
    body += "selp.u64 %d20,1,0,%p0;\nselp.u64 %d21,2,0,%p3;\n"
            "or.b64 %d20,%d20,%d21;\n";
  } else {
    body += "cvt.u64.u32 %d20,%r0;\n";
    if (first.contains('|'))
      body += "selp.u64 %d21,0x100000000,0,%p0;\nor.b64 %d20,%d20,%d21;\n";
  }
  return body;
}

} // namespace

TEST(Forms, DecodeOrRefuse) {
  std::string text = readInput("forms.txt");
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  unsigned count = 0;
  for (StringRef line : lines) {
    if (line.empty() || line.starts_with("#"))
      continue;
    bool refused = line.consume_front("refused ");
    auto [chip, form] = line.split(' ');
    std::vector<std::string> all;
    expand(form.str(), all);
    for (const std::string &each : all) {
      ++count;
      std::string error = parseError(chip, fillOperands(each));
      EXPECT_EQ(!error.empty(), refused) << each << "\n" << error;
    }
  }
  EXPECT_GT(count, 2500u);
}

TEST(Forms, AgreeWithH200) {
  std::string rows = readInput("h200-rows.bin");
  ASSERT_EQ(rows.size(), 128 * 56u);
  std::string text = readInput("h200-results.txt");
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, false);
  llvm::erase_if(lines, [](StringRef line) { return line.starts_with("#"); });
  ASSERT_GT(lines.size(), 1000u);
  constexpr unsigned perKernel = 100;
  for (size_t begin = 0; begin < lines.size(); begin += perKernel) {
    size_t n = std::min<size_t>(perKernel, lines.size() - begin);
    std::string body;
    for (size_t i = 0; i < n; ++i)
      body += evaluate(lines[begin + i].split(' ').second) +
              "st.global.b64 [%d31+" + std::to_string(1024 * i) + "],%d20;\n";
    std::string kernel =
        ".version 9.0\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 rows, .param .u64 out)\n{\n" +
        std::string(declarations) +
        "ld.param.u64 %d30,[rows];\nld.param.u64 %d31,[out];\n"
        "mov.u32 %r30,%tid.x;\nmul.wide.u32 %d32,%r30,56;\n"
        "add.u64 %d30,%d30,%d32;\nmul.wide.u32 %d32,%r30,8;\n"
        "add.u64 %d31,%d31,%d32;\n" +
        body + "ret;\n}\n";
    LaunchConfig config;
    config.block = {128, 1, 1};
    Outcome r = runText(
        kernel, llvm::ArrayRef((const uint8_t *)rows.data(), rows.size()),
        1024 * n, config);
    ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
    for (size_t i = 0; i < n; ++i) {
      auto [want, form] = lines[begin + i].split(' ');
      std::vector<uint64_t> values;
      for (unsigned row = 0; row < 128; ++row)
        values.push_back(r.at<uint64_t>(128 * i + row));
      EXPECT_EQ(llvm::utohexstr(hash(values), true, 16), want.str())
          << form.str();
    }
  }
}
