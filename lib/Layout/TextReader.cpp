//===- TextReader.cpp - Reading the text form of layouts ------------------===//

#include "TextReader.h"
#include "Errors.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

bool TextReader::accept(StringRef token) {
  skipSpace();
  return rest.consume_front(token);
}

Error TextReader::unexpected(StringRef what) {
  skipSpace();
  std::string got =
      rest.empty() ? "the end" : "'" + rest.take_front(8).str() + "'";
  return makeError("expected {0} at character {1} of the layout, got {2}", what,
                   whole.size() - rest.size(), got);
}

Error TextReader::expect(StringRef token) {
  if (accept(token))
    return Error::success();
  return unexpected(("'" + token + "'").str());
}

Error TextReader::expectEnd() {
  skipSpace();
  return rest.empty() ? Error::success() : unexpected("the end");
}

Expected<int64_t> TextReader::integer() {
  skipSpace();
  int64_t value = 0;
  StringRef before = rest;
  if (rest.consumeInteger(10, value)) {
    rest = before;
    return unexpected("an integer");
  }
  return value;
}

Expected<Coords> TextReader::integers() {
  Coords result;
  do {
    Expected<int64_t> value = integer();
    if (!value)
      return value.takeError();
    result.push_back(*value);
  } while (accept(","));
  return result;
}

Expected<StringRef> TextReader::identifier() {
  skipSpace();
  StringRef name = rest.take_while(
      [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
  if (name.empty() || llvm::isDigit(name.front()))
    return unexpected("a name");
  rest = rest.drop_front(name.size());
  return name;
}

Expected<LinearLayout> TextReader::linearLayout() {
  SmallVector<std::pair<StringRef, SmallVector<Coords>>> axes;
  SmallVector<std::pair<StringRef, int64_t>> dims;
  if (Error error = expect("{"))
    return std::move(error);
  while (!accept("->")) {
    if (!axes.empty())
      if (Error error = expect(";"))
        return std::move(error);
    Expected<StringRef> name = identifier();
    if (!name)
      return name.takeError();
    axes.emplace_back(*name, SmallVector<Coords>());
    if (Error error = expect(":"))
      return std::move(error);
    while (accept("[")) {
      Expected<Coords> basis = integers();
      if (!basis)
        return basis.takeError();
      axes.back().second.push_back(*basis);
      if (Error error = expect("]"))
        return std::move(error);
    }
  }
  while (!accept("}")) {
    if (!dims.empty())
      if (Error error = expect(","))
        return std::move(error);
    Expected<StringRef> name = identifier();
    if (!name)
      return name.takeError();
    if (Error error = expect(":"))
      return std::move(error);
    Expected<int64_t> size = integer();
    if (!size)
      return size.takeError();
    dims.emplace_back(*name, *size);
  }
  Expected<LinearLayout> result = LinearLayout::get(dims);
  if (!result)
    return result;
  for (auto &[name, bases] : axes)
    if (Error error = result->addAxis(name, bases))
      return std::move(error);
  return result;
}
