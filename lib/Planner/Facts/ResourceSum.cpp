//===- ResourceSum.cpp - A resource as a sum of named parts ---------------===//

#include "attn/Planner/Facts/ResourceSum.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::attn;

void ResourceSum::add(llvm::StringRef name, int64_t size, int64_t count) {
  if (size == 0 || count == 0)
    return;
  parts.push_back({name.str(), size, count});
  total += size * count;
}

std::string ResourceSum::str() const {
  std::string text = std::to_string(total) + " (";
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      parts, os,
      [&](const Part &part) {
        os << part.name << ' ';
        if (part.count != 1)
          os << part.count << " x ";
        os << part.size;
      },
      " + ");
  os << ")";
  return text;
}
