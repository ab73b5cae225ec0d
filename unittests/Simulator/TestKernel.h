//===- TestKernel.h - Running small PTX kernels in tests --------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_SIMULATOR_TESTKERNEL_H
#define ATTN_UNITTESTS_SIMULATOR_TESTKERNEL_H

#include "attn/Simulator/Simulator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>

namespace mlir::attn::sim::testing {

/// A module around the body of a kernel with parameters `in` and `out`, both
/// pointers, and registers of every kind.
inline std::string wrapKernel(llvm::StringRef body,
                              llvm::StringRef target = "sm_100a",
                              llvm::StringRef extra = "") {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << ".version 8.8\n.target " << target << "\n.address_size 64\n"
     << extra
     << ".extern .shared .align 1024 .b8 smem[];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
        ".reg .pred %p<20>;\n.reg .b16 %h<20>;\n.reg .b32 %r<200>;\n"
        ".reg .b64 %d<40>;\n"
        "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\n"
        "mov.u32 %r0, %tid.x;\n"
     << body << "\nret;\n}\n";
  return text;
}

struct Outcome {
  RunReport report;
  std::vector<uint8_t> out;
  std::string error; ///< of parsing or launching

  template <typename T>
  T at(size_t i) const {
    T v;
    std::memcpy(&v, out.data() + i * sizeof(T), sizeof(T));
    return v;
  }
  /// All findings as text, for messages of failing tests.
  std::string text() const {
    std::string s = error;
    llvm::raw_string_ostream os(s);
    report.print(os, "test.ptx");
    return s;
  }
};

/// Appends what a test runs to the file that ATTN_SIM_RECORD names, for
/// scripts/sim-coverage.py.
inline void recordText(llvm::StringRef text) {
  const char *path = std::getenv("ATTN_SIM_RECORD");
  const auto *test = ::testing::UnitTest::GetInstance()->current_test_info();
  if (!path || !test)
    return;
  std::error_code error;
  llvm::raw_fd_ostream os(path, error, llvm::sys::fs::OF_Append);
  os << "#test " << test->test_suite_name() << '.' << test->name() << '\n'
     << text << '\n';
}

/// Expects findings to name the instructions and the address they are about.
inline void expectPlaces(const Outcome &r) {
  // What nobody may be doing, or a CTA as a whole.
  static const FindingKind ofNoInstruction[] = {
      FindingKind::Deadlock, FindingKind::StepLimit, FindingKind::EndlessLoop,
      FindingKind::ExitInFlight, FindingKind::TensorMemoryMisuse};
  static const char *const ofTwo[] = {
      "is not ordered after",
      "without being ordered after",
      "while a signal to one of its mbarriers",
      "depends on memory that was never written",
      "depends on an accumulator that is still in flight",
      "an accumulator was written while it was still in flight",
      "a register of a wgmma was written behind",
      "touches a register of a tcgen05.ld",
      "signals an mbarrier that its CTA has invalidated",
      "of an mbarrier that expects",
      "initialises an mbarrier that is in use",
      "writes over an mbarrier that is in use",
      "lanes of one instruction arrive in phases",
      "the wait takes phase",
      "the wait for phase",
      "threads while a generation of",
  };
  for (const Finding &f : r.report.findings) {
    if (!llvm::is_contained(ofNoInstruction, f.kind))
      EXPECT_TRUE(f.second && f.second->ptxLine) << r.text();
    // vprintf itself reads what it prints.
    bool isPrinted = llvm::StringRef(f.message).starts_with("what is printed");
    for (const char *message : ofTwo)
      if (!isPrinted && llvm::StringRef(f.message).contains(message))
        EXPECT_TRUE(f.first && f.first->ptxLine && f.second) << r.text();
    // A pointer into global memory may be null.
    if (f.space == "shared" || !f.buffer.empty())
      EXPECT_TRUE(f.address && f.bytes) << r.text();
  }
}

/// Runs a kernel of the form above on `in`; `out` has `outBytes` bytes.
inline Outcome runText(llvm::StringRef text, llvm::ArrayRef<uint8_t> in,
                       size_t outBytes, LaunchConfig config = LaunchConfig()) {
  Outcome r;
  auto program = parsePTX(text, "test.ptx");
  if (!program) {
    r.error = llvm::toString(program.takeError());
    return r;
  }
  Memory memory;
  uint64_t inAddress = memory.allocate(in.size(), "in");
  uint64_t outAddress = memory.allocate(outBytes, "out");
  llvm::cantFail(memory.write(inAddress, in));
  config.params.resize(16);
  std::memcpy(config.params.data(), &inAddress, 8);
  std::memcpy(config.params.data() + 8, &outAddress, 8);
  auto report = run(**program, memory, config);
  if (!report) {
    r.error = llvm::toString(report.takeError());
    return r;
  }
  recordText(text);
  r.report = std::move(*report);
  expectPlaces(r);
  r.out.resize(outBytes);
  llvm::cantFail(memory.read(outAddress, r.out));
  return r;
}

/// One warp unless the configuration says otherwise.
inline Outcome runBody(llvm::StringRef body, llvm::ArrayRef<uint8_t> in,
                       size_t outBytes, unsigned threads = 32,
                       unsigned shared = 0) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.dynamicShared = shared;
  return runText(wrapKernel(body), in, outBytes, config);
}

/// Nothing at all is found.
inline void expectClean(const Outcome &r) {
  EXPECT_TRUE(r.error.empty()) << r.error;
  EXPECT_TRUE(r.report.isClean()) << r.text();
  EXPECT_TRUE(r.report.findings.empty()) << r.text();
}
/// At least one error of the kind is found.
inline void expectError(const Outcome &r, FindingKind kind) {
  EXPECT_TRUE(r.error.empty()) << r.error;
  EXPECT_GE(r.report.countErrors(kind), 1u) << r.text();
}
/// Errors of the kind are found, and nothing else.
inline void expectOnly(const Outcome &r, FindingKind kind) {
  expectError(r, kind);
  for (const Finding &f : r.report.findings)
    EXPECT_EQ(f.kind, kind) << r.text();
}

template <typename T>
std::vector<uint8_t> bytesOf(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

} // namespace mlir::attn::sim::testing

#endif // ATTN_UNITTESTS_SIMULATOR_TESTKERNEL_H
