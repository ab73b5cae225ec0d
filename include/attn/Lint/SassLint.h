//===- SassLint.h - Checks of a kernel's machine code -----------*- C++ -*-===//
//
// ptxas may undo what a kernel was written for: it serialises wgmma, spills,
// moves waits, or lays a path that is rarely taken into the middle of a loop.
// It says so in its log at best. These checks read the log and the listing of
// nvdisasm, compare the loop that does the work with the same loop of the PTX,
// and with what was stored for it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LINT_SASSLINT_H
#define ATTN_LINT_SASSLINT_H

#include "attn/Target/Assembler.h"
#include "attn/Target/CodeListing.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn {

/// What a machine instruction is for: "tensor", "mufu", "fp32", "convert",
/// "integer", "shared", "global", "local", "exchange", "move", "constant",
/// "uniform", "sync", "control" or "other".
llvm::StringRef getSassPurpose(const CodeInstruction &inst);

/// A wait for asynchronous work.
struct CodeWait {
  /// "wgmma" or "cp.async".
  std::string work;
  /// Groups that may still be on their way.
  unsigned pending = 0;
  /// Exponentials between the tensor instruction before the wait and the wait:
  /// work that runs while products are on their way.
  unsigned exponentials = 0;

  bool operator==(const CodeWait &other) const {
    return work == other.work && pending == other.pending;
  }
};

/// The innermost loop with the most tensor instructions; of several the one
/// with the fewest other instructions. Counts are those of its usual path:
/// without the rare path, without loops inside that wait for mbarriers, and
/// without code that stands apart from the loop.
struct HotLoop {
  /// Places of the first and of the last instruction.
  unsigned begin = 0, end = 0;
  unsigned instructions = 0;
  unsigned tensor = 0;
  unsigned exponentials = 0;
  /// By purpose; empty for PTX.
  std::map<std::string, unsigned> purposes;
  /// The moves by opcode, such as MOV and R2UR; not checked where a budget has
  /// none.
  std::map<std::string, unsigned> moves;
  std::vector<CodeWait> waits;
  /// Instructions of rare paths, those that are taken on a vote, between the
  /// loop's first instruction and its last, and elsewhere.
  unsigned rareInside = 0, rareOutside = 0;

  llvm::json::Object toJSON() const;
};

/// The hot loop of a listing; none if no loop has a tensor instruction.
std::optional<HotLoop> findHotLoop(const CodeListing &listing, bool isPTX);

/// A loop that a warp runs once for each block of keys. Counts are those of its
/// usual path with all that is inside of it, also where ptxas moved it.
struct BlockLoop {
  /// Places of the first and of the last instruction.
  unsigned begin = 0, end = 0;
  unsigned instructions = 0;
  unsigned tensor = 0;
  unsigned exponentials = 0;
  /// Instructions on local memory, which hold what ptxas spilled.
  unsigned spillStores = 0, spillLoads = 0;

  unsigned countSpills() const { return spillStores + spillLoads; }
  /// Returns "products", "softmax", "products and softmax", or "other" for the
  /// loops of warps that load, widen or rescale.
  llvm::StringRef getWork() const;
  llvm::json::Object toJSON() const;
};

/// Lists the outermost loops of machine code that run once for each block of
/// keys, in all roles of warps. These are innermost loops with products or with
/// exponentials; and those with as many loops around them as the softmax's loop
/// has, in which something waits for an mbarrier. Loops that do nothing but
/// wait are none, nor are loops of rare paths.
std::vector<BlockLoop> findBlockLoops(const CodeListing &listing);

/// What warps do that leave products to another one.
struct SoftmaxCode {
  /// The innermost loop with the most exponentials.
  HotLoop loop;
  /// What they do with the results of a tile: what runs behind all loops with
  /// exponentials, until the loop around them begins again.
  HotLoop epilogue;
};

/// The code of the softmax where the hot loop has no exponentials, since other
/// warps start its products; else none.
std::optional<SoftmaxCode> findSoftmax(const CodeListing &listing, bool isPTX);

/// What a kernel has of arrivals at mbarriers of other CTAs, and of st.async,
/// whose bytes arrive there.
struct RemoteArrivals {
  /// One that a load may still be on its way at.
  struct Early {
    bool isSend = false;
    /// Places of the signal and of the loads.
    unsigned place = 0;
    std::vector<unsigned> loads;
  };

  unsigned arrivals = 0, sends = 0;
  /// All loads of the kernel from shared memory.
  unsigned loads = 0;
  std::vector<Early> early;
};

/// Whether a listing of machine code arrives in another CTA or sends to one.
bool hasRemoteArrival(const CodeListing &listing);

/// The signals in other CTAs and the loads of the same warp that no
/// instruction in front of them has waited for, on any path of the control
/// flow; none if the listing lacks the words of instructions.
std::optional<RemoteArrivals> findRemoteArrivals(const CodeListing &listing);

/// What is stored for a kernel: how much of everything it may have.
struct SassBudget {
  unsigned registers = 0;
  /// Bytes stored and loaded by spills, as ptxas counts them.
  unsigned spillBytes = 0;
  /// Instructions on local memory.
  unsigned local = 0;
  HotLoop loop;
  /// Where the hot loop has no exponentials.
  std::optional<HotLoop> softmaxLoop, epilogue;
};

/// The budget called `name` in a file of budgets, whose form is described in
/// docs/SassLint.md. Errors: no such name, no such field, a wrong type.
llvm::Expected<SassBudget> readBudget(llvm::StringRef json,
                                      llvm::StringRef name);

/// What is known about a kernel. What is absent is not checked.
struct SassInput {
  /// Empty: the first kernel.
  std::string kernel;
  std::optional<std::string> ptx;
  std::optional<AssemblerLog> log;
  std::optional<std::string> listing;
  std::optional<SassBudget> budget;
};

/// Something that is wrong, or, if not `isError`, that costs a little and
/// cannot be told to be wrong.
struct SassFinding {
  bool isError = true;
  std::string text;
};

struct SassReport {
  std::string kernel;
  unsigned registers = 0;
  unsigned spillBytes = 0;
  unsigned localStores = 0, localLoads = 0;
  std::optional<HotLoop> loop, ptxLoop, softmaxLoop, epilogue;
  /// Absent without machine code.
  std::optional<std::vector<BlockLoop>> blockLoops;
  /// Of a kernel that arrives in other CTAs.
  std::optional<RemoteArrivals> remote;
  std::vector<SassFinding> findings;
  /// Checks that were left out, each with the reason.
  std::vector<std::string> notChecked;

  bool hasErrors() const;
  /// Counts the spill instructions in loops of blocks.
  unsigned countLoopSpills() const;
  llvm::json::Value toJSON() const;
  void print(llvm::raw_ostream &os) const;
};

/// Runs all checks. Errors: no such kernel in the PTX or in the listing.
llvm::Expected<SassReport> lintSass(const SassInput &input);

} // namespace mlir::attn

#endif // ATTN_LINT_SASSLINT_H
