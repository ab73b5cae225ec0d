//===- ResourceSum.h - A resource as a sum of named parts -------*- C++ -*-===//

#ifndef ATTN_PLANNER_FACTS_RESOURCESUM_H
#define ATTN_PLANNER_FACTS_RESOURCESUM_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// A resource as a sum of named parts, printed in remarks and errors:
/// "98304 (q 32768 + k 2 x 16384 + v 2 x 16384)".
class ResourceSum {
public:
  /// Adds `count` pieces of `size`; nothing if either is 0.
  void add(llvm::StringRef name, int64_t size, int64_t count = 1);
  int64_t getTotal() const { return total; }
  std::string str() const;

private:
  struct Part {
    std::string name;
    int64_t size;
    int64_t count;
  };
  std::vector<Part> parts;
  int64_t total = 0;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_RESOURCESUM_H
