//===- RowShadow.h - A shadow whose rows share their state ------*- C++ -*-===//
//
// Tensor memory is used by whole tiles: all rows of a product, 32 of a load.
// Rows that have seen the same accesses share one shadow, so that an access
// decides one of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCKS_ROWSHADOW_H
#define ATTN_LIB_SIMULATOR_CLOCKS_ROWSHADOW_H

#include "Shadow.h"
#include <bitset>

namespace mlir::attn::sim {

/// Shadow of a memory of rows of cells.
class RowShadow {
public:
  static constexpr unsigned NumRows = 128;
  using Rows = std::bitset<NumRows>;

  /// The rows [first, first + count).
  static Rows range(unsigned first, unsigned count) {
    return (~Rows() >> (NumRows - count)) << first;
  }

  void init(unsigned columns);
  RowShadow clone() const;

  /// Like Shadow::access, for `count` columns of some rows. Calls
  /// `conflict(stamp, earlierWasWrite, row, column)`, for the first of rows in
  /// the same state.
  template <typename Fn>
  void access(Rows rows, unsigned column, unsigned count, ShadowAccess &access,
              Fn &&conflict) {
    while (rows.any()) {
      unsigned row = firstOf(rows);
      Group &group = takeGroup(row, rows);
      group.shadow.access(column, count, access,
                          [&](const Stamp &s, bool wasWrite, uint64_t at) {
                            conflict(s, wasWrite, row, unsigned(at));
                          });
      rows &= ~group.rows;
    }
  }

  /// Forgets columns of all rows, as when they get a new owner.
  void reset(unsigned column, unsigned count);

private:
  /// Rows in the same state.
  struct Group {
    Rows rows;
    Shadow shadow;
  };
  std::vector<std::unique_ptr<Group>> groups;
  std::array<Group *, NumRows> groupOf{};

  static unsigned firstOf(const Rows &rows) {
    unsigned row = 0;
    while (!rows.test(row))
      ++row;
    return row;
  }
  /// The group of a row, without what `rows` does not hold of it.
  Group &takeGroup(unsigned row, const Rows &rows);
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCKS_ROWSHADOW_H
