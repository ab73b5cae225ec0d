//===- Commands.cpp - The programs inside of the C library ----------------===//
//
// A wheel has LLVM once, in its library; its commands are Python programs that
// call this.
//
//===----------------------------------------------------------------------===//

#include "Tool/Commands.h"
#include "llvm/Support/CommandLine.h"
#include <cstring>

/// Runs the command that is called argv[0], and returns its exit status, or -1
/// where there is none of this name. May end the process, as after --help. A
/// process can run one command once.
extern "C" __attribute__((visibility("default"))) int
attnRunCommand(int argc, char **argv) {
  if (argc < 1)
    return -1;
  if (std::strcmp(argv[0], "attn-compile") == 0)
    return mlir::attn::runAttnCompile(argc, argv);
  if (std::strcmp(argv[0], "attn-sim") != 0)
    return -1;
  // The flags of attn-compile exist since the library was loaded; some have the
  // names of attn-sim's.
  llvm::cl::ResetCommandLineParser();
  return mlir::attn::runAttnSim(argc, argv);
}
