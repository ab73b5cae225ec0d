//===- RefusalsTest.cpp - What is refused, and in which words -------------===//
//
// Two tables of PTX and messages: Inputs/refusals.txt of what does not decode,
// Inputs/faults.txt of what runs until something is found.
//
//===----------------------------------------------------------------------===//

#include "../TestForms.h"
#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::StringRef;

namespace {

/// A line of a table: what stands in front of ` => `, and the message.
struct Row {
  std::string text, message;
};

std::vector<Row> readRows(StringRef name) {
  std::string file = readInput(name);
  llvm::SmallVector<StringRef> lines;
  StringRef(file).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::vector<Row> rows;
  for (StringRef line : lines) {
    if (line.starts_with("#"))
      continue;
    auto [text, message] = line.split(" => ");
    EXPECT_FALSE(message.empty()) << line.str();
    rows.push_back({text.str(), message.str()});
  }
  EXPECT_GE(rows.size(), 50u);
  return rows;
}

unsigned takeNumber(StringRef text) {
  unsigned value = 0;
  EXPECT_FALSE(text.getAsInteger(10, value)) << text.str();
  return value;
}

/// Runs the kernel of a row of faults.txt.
Outcome runRow(StringRef row) {
  auto [options, body] = row.split(" | ");
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.profile = Profile::Isa;
  std::string target = "sm_100a", directives;
  bool isReadOnly = false;
  llvm::SmallVector<StringRef> words;
  options.split(words, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    auto [name, value] = word.split('=');
    if (name == "threads")
      config.block[0] = takeNumber(value);
    else if (name == "cluster")
      config.grid[0] = config.cluster[0] = takeNumber(value);
    else if (name == "shared")
      config.dynamicShared = takeNumber(value);
    else if (name == "target")
      target = value.str();
    else if (name == "registers")
      directives = (".maxnreg " + value + "\n").str();
    else if (name == "readonly")
      isReadOnly = true;
    else
      ADD_FAILURE() << "unknown option '" << word.str() << "'";
  }
  std::string text = wrapKernel(body, target);
  text.insert(text.find("{\n"), directives);
  Outcome r;
  auto program = parsePTX(text, "test.ptx");
  if (!program) {
    r.error = llvm::toString(program.takeError());
    return r;
  }
  Memory memory;
  uint64_t addresses[] = {memory.allocate(256, "in"),
                          memory.allocate(256, "out")};
  llvm::cantFail(memory.write(addresses[0], std::vector<uint8_t>(256)));
  if (isReadOnly)
    llvm::cantFail(memory.setAccess(addresses[0], Access::Read));
  config.params.resize(sizeof(addresses));
  std::memcpy(config.params.data(), addresses, sizeof(addresses));
  auto report = run(**program, memory, config);
  if (!report)
    r.error = llvm::toString(report.takeError());
  else
    r.report = std::move(*report);
  expectPlaces(r);
  return r;
}

} // namespace

TEST(Refusals, WhatDoesNotDecode) {
  for (const Row &row : readRows("refusals.txt")) {
    StringRef text = row.text;
    bool isModule = text.consume_front("module: ");
    auto program = parsePTX(
        isModule
            ? ".version 8.8\n.target sm_100a\n.address_size 64\n" + text.str()
            : wrapKernel(text),
        "test.ptx");
    ASSERT_FALSE(bool(program)) << row.text;
    std::string error = llvm::toString(program.takeError());
    EXPECT_NE(error.find(row.message), std::string::npos)
        << row.text << "\n  says " << error;
  }
}

TEST(Refusals, WhatIsFound) {
  for (const Row &row : readRows("faults.txt")) {
    Outcome r = runRow(row.text);
    EXPECT_FALSE(r.report.isClean()) << row.text;
    EXPECT_NE(r.text().find(row.message), std::string::npos)
        << row.text << "\n  says " << r.text();
    // Each finding is about an instruction of the row.
    for (const Finding &f : r.report.findings)
      EXPECT_TRUE(f.kind == FindingKind::TensorMemoryMisuse ||
                  (f.second && f.second->ptxLine &&
                   !StringRef(f.second->text).starts_with("ld.param.u64 %d0")))
          << row.text << "\n  says " << r.text();
  }
}

TEST(Refusals, LaunchesThatDoNotFitTheKernel) {
  std::string text = wrapKernel("");
  auto with = [&](const char *directive) {
    std::string changed = text;
    changed.insert(changed.find("{\n"), directive);
    return changed;
  };
  auto errorOf = [](StringRef text, LaunchConfig config) {
    return runText(text, {}, 4, config).error;
  };
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.kernel = "other";
  EXPECT_EQ(errorOf(text, config),
            "expected a kernel of the module, got 'other'");
  config.kernel = "";
  EXPECT_EQ(errorOf(text + ".visible .entry second() { ret; }", config),
            "expected the name of one of the module's 2 kernels, got none");
  EXPECT_EQ(errorOf(with(".reqntid 32, 1, 1\n"), config),
            "expected the block that '.reqntid' asks for, 32 in dimension 0, "
            "got 64");
  EXPECT_EQ(errorOf(with(".maxntid 32, 1, 1\n"), config),
            "expected no more threads than '.maxntid' allows, got 64");
  EXPECT_EQ(errorOf(with(".reqnctapercluster 2, 1, 1\n"), config),
            "expected the cluster that '.reqnctapercluster' asks for, 2 in "
            "dimension 0, got 1");
  EXPECT_EQ(errorOf(".visible .entry e(.param .u64 x) { ret; }", config),
            "expected 8 parameter bytes, got 16");
  EXPECT_EQ(errorOf(".global .u64 p = q;\n" + text, config),
            "expected the initialiser of 'p' to name a variable of the "
            "module, got 'q'");
  LaunchConfig odd = config;
  odd.grid = {3, 1, 1};
  odd.cluster = {2, 1, 1};
  EXPECT_EQ(errorOf(text, odd),
            "expected the grid to be a multiple of the cluster, got 3 and 2");
  odd.grid = odd.cluster = {8, 4, 1};
  EXPECT_EQ(errorOf(text, odd), "expected at most 16 CTAs a cluster, got 32");
  odd.grid = {0, 1, 1};
  EXPECT_EQ(errorOf(text, odd), "expected positive launch sizes, got zero");
}
