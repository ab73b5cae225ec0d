//===- CycleTable.h - Numbers of the cycle model ----------------*- C++ -*-===//
//
// How long what takes on each chip, with what is known about it: measured by
// us, published by others, or believed. A believed number has the other values
// that it may have; a corner of the model takes one value for each.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_CYCLETABLE_H
#define ATTN_TARGET_CYCLETABLE_H

#include "attn/Target/TargetTable.h"
#include "llvm/ADT/SmallVector.h"
#include <array>

namespace mlir::attn {

/// A number of the cycle model. All are of one SM, in its cycles.
enum class CycleNumber : unsigned {
  // Units of a scheduler, of which an SM has four.
  IssueLanes,
  /// Instructions that another one may pass on its way up, in ptxas.
  ScheduleWindow,
  AluLanes,
  FmaLanes,
  ImadLanes,
  ExpLanes,
  DoubleLanes,
  /// Cycles of the float unit for a packed instruction (f32x2) beside those of
  /// a plain one: 2 is twice as long.
  PackedFactor,
  /// Instructions of the special-function unit for a packed ex2.
  PackedExpInstructions,
  /// Cycles of the float unit that the shift and add of an exponent take.
  ExponentAdd,
  // The tensor core.
  TensorFlop,
  TensorFlopFp8,
  MmaSyncFlop,
  TensorLatency,
  PairLatency,
  HalfPairLatency,
  PairOperands,
  HalfPairOperands,
  PairInterval,
  TensorDepth,
  // Tensor memory.
  TmemBytes,
  TmemLatency,
  TmemStoreShare,
  // Shared memory and the ways to it.
  SharedBytes,
  OperandsShare,
  FillsShare,
  L2Bytes,
  // Latencies.
  LatencyFactor,
  AluLatency,
  FmaLatency,
  ExpLatency,
  DoubleLatency,
  MmaLatency,
  SharedLatency,
  ShuffleLatency,
  LocalLatency,
  L2Latency,
  CopyLatency,
  BarrierLatency,
  RemoteLatency,
  Launch,
};
inline constexpr unsigned numCycleNumbers = unsigned(CycleNumber::Launch) + 1;

/// How a number is known.
enum class Evidence : uint8_t { Measured, Published, Believed };
/// "measured", "published" or "believed".
llvm::StringRef getEvidenceName(Evidence evidence);

/// What is known about a number on one chip.
struct CycleEntry {
  double value = 0;
  Evidence evidence = Evidence::Believed;
  llvm::StringRef source;
  /// Other values that a believed number may have.
  llvm::SmallVector<double, 2> others;

  /// The chip has nothing that the number is about.
  bool isAbsent() const;
};

/// What a number is called: in files and on the command line, and in words with
/// its unit.
llvm::StringRef getCycleKey(CycleNumber number);
llvm::StringRef getCycleTitle(CycleNumber number);

/// A value for each number.
class CycleNumbers {
public:
  double operator[](CycleNumber number) const {
    return values[unsigned(number)];
  }
  double &operator[](CycleNumber number) { return values[unsigned(number)]; }

private:
  std::array<double, numCycleNumbers> values{};
};

/// The numbers of one chip.
class CycleTable {
public:
  const CycleEntry &operator[](CycleNumber number) const {
    return entries[unsigned(number)];
  }
  CycleEntry &operator[](CycleNumber number) {
    return entries[unsigned(number)];
  }
  /// The values that we take when nobody asks for a corner.
  CycleNumbers getNominal() const;
  /// Numbers that have other values.
  llvm::SmallVector<CycleNumber> getUncertain() const;
  unsigned count(Evidence evidence) const;

private:
  std::array<CycleEntry, numCycleNumbers> entries;
};

/// The table of a chip of the target table.
const CycleTable &getCycleTable(const TargetRow &target);

/// Mean and largest relative error of the model on launches that it was not
/// fitted to, where it was compared with hardware (docs/CycleModel.md).
struct ModelError {
  double mean = 0, largest = 0;
  llvm::StringRef board;
};
/// Null for a chip on which nobody measured.
const ModelError *getModelError(const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_TARGET_CYCLETABLE_H
