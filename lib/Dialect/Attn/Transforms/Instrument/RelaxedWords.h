//===- RelaxedWords.h - Words that a checked kernel keeps -------*- C++ -*-===//
//
// Single words of shared and of global memory, read and written as relaxed
// accesses, so that no order comes from them: a kernel with checks is ordered
// by what it is ordered by without.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INSTRUMENT_RELAXEDWORDS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INSTRUMENT_RELAXEDWORDS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Support/ReportLayout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn::instrument {

/// Instructions on words and i32 values, all at the place of `b`.
class Words {
public:
  Words(ImplicitLocOpBuilder &b, gpu::GPUFuncOp kernel)
      : b(b), kernel(kernel) {}

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value multiply(Value x, int64_t y) {
    return y == 1 ? x : arith::MulIOp::create(b, x, constant(y)).getResult();
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }

  /// The warp of a thread, the first thread of a warp, the CTA of a grid.
  Value warp();
  Value isFirstLane();
  Value cta();

  /// The i32 address of dynamic shared memory, `bytes` behind its start.
  Value sharedAddress(int64_t bytes);
  /// The same address in the CTA of rank `rank` of the cluster.
  Value inCTA(Value address, Value rank);
  Value load(Value address);
  void store(Value address, Value value);
  /// Adds to a word and returns what it was.
  Value fetchAdd(Value address, Value value, bool remote = false);

  /// Nanoseconds, i64.
  Value now();
  void sleep(Value nanoseconds);
  /// Ends the thread.
  void exit();

  /// The first use of a record of `attn_reports` fills it, others count.
  void report(int64_t record, ArrayRef<Value> words);
  /// The first word of `attn_reports`.
  Value loadSeed();

private:
  Value assemble(Type result, StringRef text, StringRef constraints,
                 ValueRange operands);
  /// The address of `attn_reports`, i64.
  Value reports();

  ImplicitLocOpBuilder &b;
  gpu::GPUFuncOp kernel;
};

using namespace reports;

} // namespace mlir::attn::instrument

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_INSTRUMENT_RELAXEDWORDS_H
