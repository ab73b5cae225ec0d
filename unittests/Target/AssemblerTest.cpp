//===- AssemblerTest.cpp - Tests of the ptxas reader ----------------------===//

#include "attn/Target/Assembler.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace mlir::attn;

using Severity = AssemblerMessage::Severity;

namespace {

TEST(Assembler, ReadsResources) {
  AssemblerLog log = parseAssemblerLog(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Function properties for k\n"
      "    976 bytes stack frame, 964 bytes spill stores, 960 bytes spill "
      "loads\n"
      "ptxas info    : Used 64 registers, used 2 barriers, 976 bytes "
      "cumulative "
      "stack size, 128 bytes smem, 360 bytes cmem[0]\n"
      "ptxas info    : Compile time = 41.578 ms\n"
      "ptxas info    : Compiling entry function 'l' for 'sm_80'\n"
      "ptxas info    : Function properties for l\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  ASSERT_EQ(log.functions.size(), 2u);
  const FunctionResources &k = log.functions[0];
  EXPECT_EQ(k.name, "k");
  EXPECT_EQ(k.registers, 64u);
  EXPECT_EQ(k.barriers, 2u);
  EXPECT_EQ(k.stackBytes, 976u);
  EXPECT_EQ(k.spillStoreBytes, 964u);
  EXPECT_EQ(k.spillLoadBytes, 960u);
  EXPECT_EQ(k.sharedBytes, 128u);
  EXPECT_EQ(log.functions[1].name, "l");
  EXPECT_EQ(log.functions[1].registers, 8u);
  EXPECT_TRUE(log.messages.empty());
  EXPECT_FALSE(log.hasErrors());
}

TEST(Assembler, ReadsLostPerformance) {
  AssemblerLog log = parseAssemblerLog(
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' "
      "ignored; unable to determine register count at entry.\n"
      "ptxas warning : Registers are spilled to local memory in function 'k', "
      "964 bytes spill stores, 964 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'w' for 'sm_90a'\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
      "instructions are serialized due to non wgmma instructions defining "
      "accumulator registers of a wgmma between start and end of the pipeline "
      "stage in the function 'w'\n"
      "ptxas warning : Unresolved extern variable 'x'\n");
  ASSERT_EQ(log.messages.size(), 4u);
  EXPECT_EQ(log.messages[0].code, "C7508");
  EXPECT_EQ(log.messages[0].severity, Severity::Performance);
  EXPECT_EQ(log.messages[0].function, "");
  EXPECT_EQ(log.messages[1].severity, Severity::Performance);
  EXPECT_EQ(log.messages[1].function, "k");
  EXPECT_EQ(log.messages[2].code, "C7510");
  EXPECT_EQ(log.messages[2].function, "w");
  EXPECT_EQ(log.messages[3].severity, Severity::Warning);
  EXPECT_EQ(log.messages[3].text, "Unresolved extern variable 'x'");
}

TEST(Assembler, ReadsErrors) {
  AssemblerLog log = parseAssemblerLog(
      "ptxas /tmp/a; b.ptx, line 4; error   : Unknown modifier '.bar'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n");
  ASSERT_EQ(log.messages.size(), 2u);
  EXPECT_EQ(log.messages[1].severity, Severity::Error);
  EXPECT_TRUE(log.hasErrors());
  log = parseAssemblerLog("ptxas x.ptx, line 4; error   : Unknown modifier "
                          "'.bar'\n");
  ASSERT_EQ(log.messages.size(), 1u);
  EXPECT_EQ(log.messages[0].line, 4u);
  EXPECT_EQ(log.messages[0].text, "Unknown modifier '.bar'");
}

TEST(Assembler, IgnoresWhatItDoesNotKnow) {
  for (llvm::StringRef text :
       {"", "\n\n", "ptxas", "ptxas ", "ptxas info",
        "ptxas info :", "ptxas : ", "    12 bytes stack frame",
        "something else", "ptxas info : (C", "ptxas x, line ; error : y"}) {
    AssemblerLog log = parseAssemblerLog(text);
    EXPECT_TRUE(log.functions.empty());
  }
}

TEST(Assembler, MissingProgramIsAnError) {
  AssemblerOptions options;
  options.chip = "sm_80";
  options.ptxas = "/nonexistent/ptxas";
  llvm::Expected<AssemblerResult> result = assemblePTX("", options);
  ASSERT_FALSE(bool(result));
  EXPECT_NE(llvm::toString(result.takeError())
                .find("cannot run /nonexistent/ptxas: "),
            std::string::npos);
}

TEST(Assembler, FailureWithoutMessagesIsAnError) {
  AssemblerOptions options;
  options.chip = "sm_80";
  options.ptxas = "/bin/false";
  llvm::Expected<AssemblerResult> result = assemblePTX("", options);
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(llvm::toString(result.takeError()),
            "/bin/false failed with status 1: ");
}

TEST(Assembler, MissingTemporaryFolderIsAnError) {
  const char *before = getenv("TMPDIR");
  std::string saved = before ? before : "";
  setenv("TMPDIR", "/nonexistent", /*overwrite=*/1);
  AssemblerOptions options;
  options.chip = "sm_80";
  options.ptxas = "/bin/true";
  llvm::Expected<AssemblerResult> result = assemblePTX("", options);
  if (before)
    setenv("TMPDIR", saved.c_str(), /*overwrite=*/1);
  else
    unsetenv("TMPDIR");
  ASSERT_FALSE(bool(result));
  EXPECT_NE(llvm::toString(result.takeError()).find("no temporary file: "),
            std::string::npos);
}

TEST(Assembler, Assembles) {
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas) {
    EXPECT_EQ(llvm::toString(ptxas.takeError()),
              "no ptxas in $CUDA_HOME/bin, in /usr/local/cuda/bin or on the "
              "PATH");
    GTEST_SKIP() << "no ptxas";
  }
  AssemblerOptions options;
  options.chip = "sm_90"; // PTX for sm_80 runs on later chips
  llvm::StringRef text = ".version 8.0\n.target sm_80\n.address_size 64\n"
                         ".visible .entry k() { ret; }\n";
  AssemblerResult result = llvm::cantFail(assemblePTX(text, options));
  EXPECT_FALSE(result.cubin.empty());
  EXPECT_FALSE(result.log.hasErrors());
  ASSERT_EQ(result.log.functions.size(), 1u);
  EXPECT_EQ(result.log.functions[0].name, "k");

  result = llvm::cantFail(assemblePTX(".version 8.0\nnonsense\n", options));
  EXPECT_TRUE(result.cubin.empty());
  EXPECT_TRUE(result.log.hasErrors());
  EXPECT_EQ(result.log.messages[0].line, 2u);
}

/// What getPtxasVersion says of a ptxas that is a shell script.
std::string getVersionOf(llvm::StringRef script) {
  llvm::SmallString<128> home, bin;
  llvm::sys::fs::createUniqueDirectory("attn-cuda", home);
  llvm::sys::path::append(bin = home, "bin");
  llvm::sys::fs::create_directory(bin);
  llvm::SmallString<128> program = bin;
  llvm::sys::path::append(program, "ptxas");
  std::error_code code;
  llvm::raw_fd_ostream(program, code) << script;
  llvm::sys::fs::setPermissions(program, llvm::sys::fs::all_all);
  const char *before = std::getenv("CUDA_HOME");
  std::string saved = before ? before : "";
  setenv("CUDA_HOME", home.c_str(), /*overwrite=*/1);
  llvm::Expected<std::string> version = getPtxasVersion();
  if (before)
    setenv("CUDA_HOME", saved.c_str(), /*overwrite=*/1);
  else
    unsetenv("CUDA_HOME");
  llvm::sys::fs::remove_directories(home);
  return version ? *version : "error: " + llvm::toString(version.takeError());
}

TEST(Assembler, StatesItsVersion) {
  EXPECT_EQ(getVersionOf("#!/bin/sh\necho Ptx\necho Build cuda_13.0\n"),
            "Build cuda_13.0");
  EXPECT_NE(getVersionOf("#!/bin/sh\nexit 3\n").find("expected a version from"),
            std::string::npos);
  EXPECT_NE(
      getVersionOf("#!/bin/sh\necho one line\n").find("expected a version"),
      std::string::npos);
  EXPECT_NE(getVersionOf("#!/none\n").find("error: cannot run"),
            std::string::npos);
}

} // namespace
