//===- ProgramImpl.h - A decoded program ------------------------*- C++ -*-===//
//
// Each instruction is decoded once to a function pointer and operands that are
// offsets into a warp's register file. Registers of all functions are placed
// statically: recursion is rejected, so no frames are needed. Immediates,
// addresses of variables and special registers are constant slots in the same
// file, which makes every operand look alike.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PTX_PROGRAMIMPL_H
#define ATTN_LIB_SIMULATOR_PTX_PROGRAMIMPL_H

#include "Syntax.h"
#include "Types.h"
#include "attn/Simulator/PTX/Program.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <map>
#include <mutex>

namespace mlir::attn::sim {

struct Exec;
struct Inst;
using ExecFn = void (*)(Exec &, const Inst &);

/// Storage class of a register operand.
enum class RegClass : uint8_t { Sink, Pred, R32, R64, R128 };

/// A register operand: `off` counts 32-bit words in the warp's register file,
/// where a 32-bit register is 32 consecutive words (one a lane), a 64-bit one
/// 64, and a predicate one word with a bit for each lane. `meta` numbers the
/// register for the poison masks.
struct Operand {
  uint32_t off = 0;
  uint32_t meta = 0;
  RegClass cls = RegClass::Sink;
  bool negated = false; ///< predicates only
};

/// Classes for the counters.
enum class InstClass : uint8_t {
  Move,
  Alu,
  Imad,
  Float,
  Fma,
  Half,
  Double,
  Convert,
  Compare,
  Special,
  Ex2,
  Branch,
  LdGlobal,
  StGlobal,
  LdShared,
  StShared,
  LdLocal,
  StLocal,
  LdParam,
  Atomic,
  Shuffle,
  Vote,
  Barrier,
  Fence,
  LdMatrix,
  StMatrix,
  Mma,
  CpAsync,
  Mbarrier,
  Bulk,
  Wgmma,
  Tcgen05,
  TmemLd,
  TmemSt,
  Other,
  NumClasses
};
llvm::StringRef stringifyInstClass(InstClass c);

/// What other warps can see of an instruction: nothing, or what changes memory
/// and counts in Cluster::writes; that its threads are there; or anything.
enum class Effect : uint8_t { None, Meeting, Other };

/// Decoded instruction.
struct Inst {
  ExecFn fn = nullptr;
  const Operand *ops = nullptr;
  llvm::StringRef text;
  const void *aux = nullptr; ///< family-specific, owned by the program
  uint32_t auxBytes = 0;     ///< of `aux`, where it is plain data
  int64_t imm = 0;
  uint64_t imm2 = 0;
  uint32_t flags = 0; ///< family-specific
  uint32_t line = 0;
  uint32_t loc = 0;
  uint32_t target = 0; ///< branch or call target, instruction index
  uint32_t guardOff = 0;
  uint32_t guardMeta = 0;
  /// Bit i: the instruction writes ops[i].
  uint64_t written = 0;
  uint8_t numOps = 0;
  bool hasGuard = false;
  bool guardNegated = false;
  /// Has a register that holds what a load may have read.
  bool touchesLoaded = false;
  /// Has a register that some tcgen05.ld writes.
  bool touchesTensorLoad = false;
  /// Writes a register of a product of wgmma, or one that is moved to it; no
  /// wgmma itself.
  bool feedsProduct = false;
  InstClass cls = InstClass::Other;
  Effect effect = Effect::Other;

  bool writes(unsigned operand) const {
    return operand < 64 && (written >> operand & 1) != 0;
  }
};

/// How a constant slot is filled for a warp.
struct ConstSlot {
  enum Kind : uint8_t {
    Plain,        ///< value
    SharedVar,    ///< value + shared base of the CTA (rank in bits 24 and up)
    SharedVarDyn, ///< the same, behind the static variables
    LocalVar,     ///< value is the offset in local memory
    GlobalVar,    ///< value indexes ProgramImpl::globals, imm is added
    ConstVar,
    Special, ///< value is a SpecialReg
  };
  Kind kind = Plain;
  RegClass cls = RegClass::R32;
  uint64_t value = 0;
  int64_t addend = 0;
  uint32_t off = 0;
  uint32_t meta = 0;
};

/// Special registers that do not change while a warp runs.
enum class SpecialReg : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  DynamicSmemSize,
  TotalSmemSize,
  Zero,
};

/// A module-scope `.global` or `.const` variable.
struct GlobalVar {
  AstVariable ast;
};

/// A `.shared` variable.
struct SharedVar {
  std::string name;
  uint32_t offset = 0; ///< of a static one, in a CTA's shared memory
  uint64_t bytes = 0;
  bool isDynamic = false; ///< it lies behind the static ones
  std::string kernel;     ///< that it belongs to; empty for all
};

/// Where things of one function are.
struct FunctionInfo {
  const AstFunction *ast = nullptr;
  uint32_t entry = 0;                 ///< instruction index
  uint32_t returnSlot = 0;            ///< which per-lane return address it uses
  std::vector<uint32_t> paramOffsets; ///< in local memory (device functions)
  std::vector<uint32_t> resultOffsets;
};

class LoadFates;

class ProgramImpl : public Program {
public:
  llvm::StringRef getName() const override { return name; }
  llvm::StringRef getTarget() const override { return ast.target; }
  unsigned getVersion() const override { return ast.version; }
  llvm::ArrayRef<KernelInfo> getKernels() const override { return kernels; }
  bool hasDependentCtas() const override { return communicates; }

  std::string name, text;
  AstModule ast;
  std::vector<KernelInfo> kernels;
  std::map<std::string, uint32_t> kernelEntry; ///< instruction index
  std::vector<Inst> code;
  std::deque<std::vector<Operand>> operandLists;
  std::deque<std::shared_ptr<void>> auxiliaries;
  std::vector<ConstSlot> constants;
  std::vector<GlobalVar> globals;
  std::vector<SharedVar> sharedVars;
  llvm::StringMap<uint32_t> globalIndex;

  uint32_t regWords = 0;     ///< size of a warp's register file, in words
  uint32_t regMetas = 1;     ///< number of registers; 0 is "none"
  uint64_t localBytes = 0;   ///< per thread
  uint32_t staticShared = 0; ///< bytes
  uint32_t dynamicSharedAlign = 16;
  uint32_t functionCount = 0;
  /// Smallest access of each space, which is the shadow's granule.
  uint32_t sharedGranule = 16;
  uint32_t globalGranule = 16;
  /// CTAs can talk to each other: atomics, acquire loads, volatile, CLC.
  bool communicates = false;
  /// Some fence or strong access has a scope below the GPU.
  bool narrowScopes = false;
  /// Some access goes through the async proxy.
  bool usesAsyncProxy = false;
  /// Clusters may take over others that have not been launched.
  bool cancelsLaunches = false;
  /// Where values of loads may go, found when it is asked for first
  /// (getLoadFates).
  mutable std::once_flag fatesFlag;
  mutable std::shared_ptr<const LoadFates> fates;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_PROGRAMIMPL_H
