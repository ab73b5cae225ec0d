//===- HarnessPages.h - pages and lengths of a launch -----------*- C++ -*-===//
//
// Contents of the tensors that say where a sequence's keys are: lengths, tables
// of pages, counts of pages. What no sequence owns is poisoned: rows behind a
// length are NaN, and pages of no sequence are not even initialised, so that a
// kernel that uses one is found.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_HARNESS_HARNESSPAGES_H
#define ATTN_LIB_HARNESS_HARNESSPAGES_H

#include "attn/Harness/HarnessOptions.h"
#include "attn/Harness/HarnessTensor.h"

namespace mlir::attn::sim {

/// Makes them for the tensors of one launch.
class PageMaker {
public:
  /// `isSelection`: entries that are outside of the pool hide their keys.
  PageMaker(std::vector<HarnessTensor> &tensors, const HarnessOptions &options,
            bool isSelection)
      : tensors(tensors), options(options), isSelection(isSelection) {}
  /// Returns one for the pools, table and lengths of added keys.
  static PageMaker getAdded(std::vector<HarnessTensor> &tensors,
                            const HarnessOptions &options) {
    PageMaker maker(tensors, options, /*isSelection=*/true);
    maker.names = {"added_k", "added_v", "added_lengths", "added_table"};
    return maker;
  }

  /// True for a tensor that make() fills.
  bool makes(const HarnessTensor &tensor) const;
  /// Fills what is not given, when k and v have their contents, and poisons
  /// what no sequence owns. Errors: sizes that do not belong together.
  llvm::Error make();

private:
  struct Names {
    llvm::StringRef keys, values, lengths, table;
  };
  bool isOwn() const { return names.keys == "k"; }
  HarnessTensor *find(llvm::StringRef name) const;
  /// Lists tensors with rows of the pool, null where there is none.
  llvm::SmallVector<HarnessTensor *> listRows() const;
  /// Checks rank, type, access and number of elements of what says where keys
  /// are.
  llvm::Error check(const HarnessTensor &tensor, size_t rank) const;
  int64_t read(const HarnessTensor &tensor, int64_t element) const;
  void write(HarnessTensor &tensor, int64_t element, int64_t value) const;
  void allocate(HarnessTensor &tensor) const;
  bool isMissing(const HarnessTensor *tensor) const {
    return tensor && makes(*tensor);
  }
  int64_t countSequences() const;
  /// Keys that a sequence's part of the table holds, as far as it has one.
  int64_t getCapacity(int64_t sequence) const;
  int64_t getLength(int64_t sequence) const;
  /// The entries of the table that belong to a sequence: first and number.
  std::pair<int64_t, int64_t> getEntries(int64_t sequence) const;
  void makeLengths();
  void makeCounts();
  void makeTable();
  void poison(HarnessTensor &tensor) const;

  std::vector<HarnessTensor> &tensors;
  const HarnessOptions &options;
  bool isSelection;
  Names names = {"k", "v", "kv_lengths", "page_table"};
  HarnessTensor *keys = nullptr, *lengths = nullptr, *counts = nullptr;
  HarnessTensor *table = nullptr, *packedKeys = nullptr;
  int64_t sequences = 0, pageSize = 0;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_HARNESSPAGES_H
