//===- KeySource.h - Where the keys of a tile come from ---------*- C++ -*-===//
//
// Keys and values are rows of a batch, rows of packed sequences, or rows of
// pages that a table names. Whoever emits a loop over keys asks for their
// number and for views of their rows, and does not know which it is.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_KEYSOURCE_H
#define ATTN_LIB_SCHEDULE_CORE_KEYSOURCE_H

#include "RowViews.h"
#include <memory>

namespace mlir::attn {

/// Where keys that TMA copies together lie in a bounded view of k or v.
struct KeyBox {
  /// The batch or page, i32. One that does not exist is outside of the tensor.
  Value lead;
  /// The first key's row among those of `lead`, and how many of them belong to
  /// the sequence, i32; up to 0 for none.
  Value row, end;
};

class KeySource {
public:
  explicit KeySource(KernelContext &context)
      : context(context), facts(context.facts), b(context.b) {}
  /// What the problem's keys lie in.
  static std::unique_ptr<KeySource> create(KernelContext &context);
  virtual ~KeySource() = default;

  /// Finds the sequence of `batch`, i32: emits its length and where it begins.
  virtual void find(Value batch) = 0;
  /// The rows of k or v that belong to a key head of the sequence, as many as
  /// it is long: `columns` of them from `first` on, all if 0. What else memory
  /// holds does not exist in the view.
  virtual Value emitView(StringRef name, const TileCoordinates &at,
                         int64_t first, int64_t columns) = 0;
  Value emitView(StringRef name, const TileCoordinates &at) {
    return emitView(name, at, /*first=*/0, /*columns=*/0);
  }
  /// True if rows of k and v that the sequence does not have follow its own, so
  /// that TMA has to be told in each copy where these end.
  virtual bool isBounded() const { return false; }
  /// Where the keys from `first` on are, i32, which are all in one page; only
  /// if bounded. Reads no entry of the table behind that of the last key.
  virtual KeyBox emitBox(Value first) {
    llvm_unreachable("only of bounded keys");
  }

  /// The number of keys, i32.
  Value length;
  /// The first row in packed tensors, i64; null where there is none.
  Value start;

protected:
  /// The length of `kv_lengths` for `batch`, from 0 to `capacity`.
  Value emitOwnLength(Value batch, Value capacity);

  KernelContext &context;
  const ProblemFacts &facts;
  ImplicitLocOpBuilder &b;
};

/// The length of a packed sequence, and its first row as i64 in `start`.
Value emitPackedLength(KernelContext &context, StringRef name, Value batch,
                       Value &start);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_KEYSOURCE_H
