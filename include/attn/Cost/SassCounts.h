//===- SassCounts.h - Machine instructions of a launch ----------*- C++ -*-===//
//
// What the machine executes for a run on the simulator: ptxas assembles the
// PTX with lines, nvdisasm lists the machine instructions, and each basic block
// is counted as often as the PTX that it comes from was executed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COST_SASSCOUNTS_H
#define ATTN_COST_SASSCOUNTS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <string>

namespace mlir::attn::sim {

/// Machine instructions of one launch, counted for warps.
struct SassCounts {
  /// Registers of a thread.
  unsigned registers = 0;
  uint64_t total = 0;
  /// By unit: "tensor", "mufu", "fma", "alu", "fp64", "lsu", "uniform",
  /// "control".
  std::map<std::string, uint64_t> classes;

  llvm::json::Value toJSON() const;
  void print(llvm::raw_ostream &os) const;
};

/// The unit of a machine instruction, by its name without operands.
llvm::StringRef getSassClass(llvm::StringRef name);

/// PTX with a `.loc` for each line of its own before each statement; its own
/// `.loc`, `.file` and debug sections are blanked.
std::string numberLines(llvm::StringRef ptx);

/// Counts from the listing that `nvdisasm -g -c` prints. `lines` has the
/// executions of each line of the PTX. Errors: no such kernel in the listing.
llvm::Expected<SassCounts>
countListing(llvm::StringRef listing, llvm::StringRef kernel,
             const std::map<unsigned, uint64_t> &lines);

/// Assembles for `chip` and counts. Errors: ptxas or nvdisasm are missing or
/// fail. PTX of a version that the installed ptxas does not know is read as of
/// that which it knows.
llvm::Expected<SassCounts> countSass(llvm::StringRef ptx,
                                     llvm::StringRef kernel,
                                     llvm::StringRef chip,
                                     const std::map<unsigned, uint64_t> &lines);

/// Registers of a thread at launch, and who says so.
struct RegisterCount {
  unsigned count = 0;
  std::string source; ///< such as "ptxas"
};

/// Registers of a thread from ptxas alone; `mayLowerVersion` lets it read PTX
/// of a version that it does not know as that which it knows. Errors as above.
llvm::Expected<RegisterCount> countRegisters(llvm::StringRef ptx,
                                             llvm::StringRef kernel,
                                             llvm::StringRef chip,
                                             bool mayLowerVersion = false);

} // namespace mlir::attn::sim

#endif // ATTN_COST_SASSCOUNTS_H
