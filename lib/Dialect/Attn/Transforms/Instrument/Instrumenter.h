//===- Instrumenter.h - Puts checks into a kernel ---------------*- C++ -*-===//
//
// What is kept and what is checked stands in docs/Instrument.md. Words of
// shared memory lie behind the kernel's own bytes:
//
//   0               given up: no wait of this CTA waits any more
//   2 + 2 b         signals of barrier b, the number of the op of the last one
//   then            for each partition and array of barriers that it uses, for
//                   each of its warps and each barrier of the array: the phases
//                   waited for, and the signals sent
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INSTRUMENT_INSTRUMENTER_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INSTRUMENT_INSTRUMENTER_H

#include "RelaxedWords.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace mlir::attn::instrument {

struct Options {
  bool checks;
  int64_t timeout, delay, seed;
};

/// Which ops of the module can fail how; a record of `attn_reports` each.
class Sites {
public:
  /// The number of the record.
  int64_t add(StringRef check, Operation *op, MBarrierAllocOp barrier,
              StringRef partition, StringRef buffer = "");
  int64_t size() const { return entries.size(); }
  std::string toText() const {
    return llvm::formatv("{0}", llvm::json::Value(llvm::json::Array(entries)));
  }

private:
  llvm::json::Array entries;
};

/// An array of barriers.
struct Barriers {
  int64_t first = 0;
  int64_t slots = 1;
  /// Signals of a phase; 0 where some are not counted.
  int64_t count = 0;
};

/// A bulk load that signals a barrier.
struct BulkLoad {
  Operation *op = nullptr;
  Value buffer, barriers, index;
};

/// Nothing for other ops.
std::optional<BulkLoad> findBulkLoad(Operation *op);

StringRef nameOf(MBarrierAllocOp op);

/// The warps that run an op.
struct Team {
  WarpSpecializeOp op;
  unsigned index = 0;
  int64_t firstWarp = 0, warps = 0;
  StringRef name;
};

class Instrumenter {
public:
  Instrumenter(gpu::GPUFuncOp kernel, const Options &options, Sites &sites)
      : kernel(kernel), options(options), sites(sites) {}

  /// Puts in all checks of the kernel.
  LogicalResult run();
  /// Bytes that they take behind those of the kernel.
  int64_t getBytes() const { return 4 * words; }

private:
  LogicalResult checkKernel();
  LogicalResult collectBarriers();
  void collectUses();
  Team findTeam(Operation *op);
  bool isAlone(Operation *op) {
    return op->getParentOfType<ElectOp>() != nullptr;
  }
  void clearWords();

  /// Whether a wait of this CTA was not given up, the same for all lanes that
  /// run `op`.
  Value goesOn(ImplicitLocOpBuilder &b, Words &w, Operation *op);
  /// Lets a kernel leave out an op that signals once a wait was given up: one
  /// signal more than a phase wants is a failure of the launch.
  void skipOnceGivenUp(Operation *op);

  void instrument(MBarrierWaitOp op);
  void instrument(MBarrierArriveOp op);
  void instrument(MBarrierExpectTxOp op);
  void instrumentWrite(const BulkLoad &load);
  void instrumentRead(Operation *op, AllocOp alloc, SlotOp slot);
  void signal(Operation *op, Value barriers, Value index,
              std::optional<int64_t> ctas, bool leader,
              std::optional<int64_t> bits);
  /// Waits with a limit; true at the end where it saw the phase.
  void waitWithLimit(MBarrierWaitOp op, Words &w, ImplicitLocOpBuilder &b,
                     Value phase);
  void giveUp(ImplicitLocOpBuilder &b, Words &w, int64_t record,
              ArrayRef<Value> words);
  void pause(Words &w, ImplicitLocOpBuilder &b, int64_t site, Value count);
  /// Calls `body` in the lane that counts for its warp.
  void inOneLane(ImplicitLocOpBuilder &b, Words &w, Operation *op,
                 function_ref<void()> body);
  void reportIf(ImplicitLocOpBuilder &b, Words &w, Value condition,
                int64_t record, Value slot, Value expected, Value seen,
                Value other);

  MBarrierAllocOp allocOf(Value barriers) {
    return barriers.getDefiningOp<MBarrierAllocOp>();
  }
  /// Address of the signals of a barrier, which the last op lies behind.
  Value signalsOf(Words &w, MBarrierAllocOp barriers, Value index) {
    int64_t first = 2 + 2 * arrays[barriers].first;
    return w.add(w.sharedAddress(start + 4 * first), w.multiply(index, 8));
  }
  /// Address of the phases that the warp has waited for; its signals lie
  /// behind.
  Value ownOf(Words &w, const Team &team, MBarrierAllocOp barriers,
              Value index);
  Value divide(ImplicitLocOpBuilder &b, Words &w, Value signals,
               int64_t count) {
    return count == 1 ? signals
                      : arith::DivUIOp::create(b, signals, w.constant(count))
                            .getResult();
  }

  gpu::GPUFuncOp kernel;
  const Options &options;
  Sites &sites;
  int64_t start = 0, words = 2;
  llvm::MapVector<MBarrierAllocOp, Barriers> arrays;
  llvm::MapVector<std::pair<Region *, Operation *>, int64_t> ownWords;
  /// By buffer the barriers that the copies into it signal, null for several.
  DenseMap<AllocOp, MBarrierAllocOp> published;
  /// What the warps of a partition do all of them, each for itself.
  DenseSet<std::pair<Region *, Operation *>> waited, signalled;
};

} // namespace mlir::attn::instrument

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INSTRUMENT_INSTRUMENTER_H
