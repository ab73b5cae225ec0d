//===- Documents.h - Masks of equal numbers ---------------------*- C++ -*-===//
//
// Packed documents: a query sees the keys that have its own number. Where
// numbers decrease nowhere, documents lie side by side, and tiles can begin
// where they do.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLANNER_FACTS_DOCUMENTS_H
#define ATTN_LIB_PLANNER_FACTS_DOCUMENTS_H

#include "attn/Planner/Facts/ProblemFacts.h"

namespace mlir::attn {

/// The numbers of documents.
struct Documents {
  /// A tensor of one number for each query, which is that of the key at its
  /// place, or of a row of them for each batch.
  TensorFacts numbers;
  /// There is a row for each batch.
  bool hasBatches = false;
  /// The search for the first key of a document.
  FindKeyOp search;
};

/// Returns the numbers if `key_range` says that a row keeps the keys of its own
/// document, as far as the mask leaves them, and says nothing else; none for
/// other masks, and where queries are not known to be as many as keys.
std::optional<Documents> findDocuments(const ProblemFacts &facts);

/// Returns how many blocks all tiles of a head have without `key_range`, if
/// that is a number that kernels compute with, else the largest one.
int64_t countUnreadBlocks(const ProblemFacts &facts, int64_t blockM,
                          int64_t blockN);

/// Returns the problem of documents of the length that is assumed for them,
/// each a batch of its own.
ProblemFacts getTypicalDocuments(const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_LIB_PLANNER_FACTS_DOCUMENTS_H
