//===- LinearLayoutText.cpp - Text form of linear layouts -----------------===//

#include "TextReader.h"
#include "attn/Layout/LinearLayout.h"

using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

void LinearLayout::print(llvm::raw_ostream &os) const {
  os << '{';
  bool first = true;
  for (const Space &axis : inputs) {
    os << (first ? "" : "; ") << axis.name << ':';
    first = false;
    for (unsigned bit = 0; bit < axis.bits; ++bit) {
      os << " [";
      llvm::interleave(basis(axis.name, bit), os, ",");
      os << ']';
    }
  }
  os << (first ? "->" : " ->");
  first = true;
  for (const Space &dim : outputs) {
    os << (first ? " " : ", ") << dim.name << ": " << dim.size();
    first = false;
  }
  os << '}';
}

std::string LinearLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

Expected<LinearLayout> LinearLayout::parse(StringRef text) {
  TextReader reader(text);
  Expected<LinearLayout> result = reader.linearLayout();
  if (!result)
    return result;
  if (Error error = reader.expectEnd())
    return std::move(error);
  return result;
}
