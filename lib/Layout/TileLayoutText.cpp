//===- TileLayoutText.cpp - Text form of register tiles -------------------===//

#include "Errors.h"
#include "TextReader.h"
#include "attn/Layout/TileLayout.h"

using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

void TileLayout::print(llvm::raw_ostream &os) const {
  unitLayout.print(os);
  if (!reps.empty()) {
    os << " * (";
    llvm::interleaveComma(reps, os, [&](const Repetition &rep) {
      os << dimName(rep.dim) << " x " << rep.count;
    });
    os << ')';
  }
  if (!hasAllWarps())
    os << " of " << warps << " warps";
}

std::string TileLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

Expected<TileLayout> TileLayout::parse(StringRef text) {
  TextReader reader(text);
  Expected<LinearLayout> unit = reader.linearLayout();
  if (!unit)
    return unit.takeError();
  SmallVector<Repetition> reps;
  if (reader.accept("*")) {
    if (Error error = reader.expect("("))
      return std::move(error);
    do {
      if (Error error = reader.expect("dim"))
        return std::move(error);
      Expected<int64_t> dim = reader.integer();
      if (!dim)
        return dim.takeError();
      if (*dim < 0 || *dim >= int64_t(unit->dims().size()))
        return reader.unexpected("a dimension of the unit");
      if (Error error = reader.expect("x"))
        return std::move(error);
      Expected<int64_t> count = reader.integer();
      if (!count)
        return count.takeError();
      reps.push_back({unsigned(*dim), *count});
    } while (reader.accept(","));
    if (Error error = reader.expect(")"))
      return std::move(error);
  }
  int64_t numWarps = 0;
  if (reader.accept("of")) {
    Expected<int64_t> count = reader.integer();
    if (!count)
      return count.takeError();
    numWarps = *count;
    if (Error error = reader.expect("warps"))
      return std::move(error);
    if (numWarps < 1 || numWarps > 32)
      return makeError("expected 1 to 32 warps, got {0}", numWarps);
  }
  if (Error error = reader.expectEnd())
    return std::move(error);
  return get(*unit, reps, numWarps);
}
