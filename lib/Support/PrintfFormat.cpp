//===- PrintfFormat.cpp - Formats of printf on a GPU ----------------------===//

#include "attn/Support/PrintfFormat.h"
#include "llvm/ADT/Twine.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cstdio>
#include <optional>

using namespace mlir::attn;
using llvm::StringRef;

/// The argument that a conversion is of; nothing for one that is not known.
static std::optional<PrintfArgument> getArgument(char conversion, bool isLong) {
  using Kind = PrintfArgument::Kind;
  if (StringRef("diouxXc").contains(conversion))
    return PrintfArgument{Kind::Integer, isLong ? 8u : 4u};
  if (StringRef("fFeEgGaA").contains(conversion))
    return PrintfArgument{Kind::Float, 8};
  if (conversion == 's')
    return PrintfArgument{Kind::String, 8};
  if (conversion == 'p')
    return PrintfArgument{Kind::Pointer, 8};
  return std::nullopt;
}

/// The most characters that a conversion is padded to, so that one does not
/// fill the host's memory.
static constexpr int kMostWidth = 4096;

static bool isTooWide(StringRef flags) {
  while (!flags.empty()) {
    flags = flags.drop_until([](char c) { return c >= '1' && c <= '9'; });
    unsigned number = 0;
    if (!flags.empty() &&
        (flags.consumeInteger(10, number) || number > unsigned(kMostWidth)))
      return true;
  }
  return false;
}

llvm::Expected<llvm::SmallVector<PrintfPiece>>
mlir::attn::parsePrintfFormat(StringRef format) {
  llvm::SmallVector<PrintfPiece> pieces;
  auto addText = [&](StringRef text) {
    if (pieces.empty() || !pieces.back().arguments.empty())
      pieces.emplace_back();
    pieces.back().text += text;
  };
  while (!format.empty()) {
    size_t percent = std::min(format.find('%'), format.size());
    if (percent != 0) {
      addText(format.take_front(percent));
      format = format.drop_front(percent);
      continue;
    }
    if (format.starts_with("%%")) {
      addText("%");
      format = format.drop_front(2);
      continue;
    }
    PrintfPiece piece;
    size_t at = std::min(format.find_first_not_of("-+ #0123456789.*", 1),
                         format.size());
    if (isTooWide(format.take_front(at)))
      return llvm::createStringError(
          "expected a width and a precision of at most " +
          llvm::Twine(kMostWidth) + " in a conversion of printf, got '" +
          format.take_front(at) + "'");
    piece.arguments.assign(format.take_front(at).count('*'), PrintfArgument());
    StringRef length = format.substr(at).take_while(
        [](char c) { return StringRef("hljztL").contains(c); });
    at += length.size();
    StringRef conversion = format.take_front(at + 1);
    // A long double is a double there.
    bool isLong = length.find_first_of("ljzt") != StringRef::npos;
    std::optional<PrintfArgument> argument =
        at < format.size() ? getArgument(format[at], isLong) : std::nullopt;
    if (!argument)
      return llvm::createStringError(
          "expected a conversion of printf (d, i, o, u, x, X, c, f, F, e, E, "
          "g, G, a, A, s or p), got '" +
          conversion + "'");
    piece.text = conversion.str();
    piece.arguments.push_back(*argument);
    pieces.push_back(std::move(piece));
    format = format.drop_front(at + 1);
  }
  return pieces;
}

template <typename Argument>
static std::string printOne(const std::string &format, Argument argument) {
  int size = std::snprintf(nullptr, 0, format.c_str(), argument);
  std::string text(std::max(size, 0) + 1, '\0');
  std::snprintf(text.data(), text.size(), format.c_str(), argument);
  text.pop_back();
  return text;
}

std::string mlir::attn::printConversion(const PrintfPiece &piece,
                                        llvm::ArrayRef<uint64_t> arguments,
                                        StringRef string) {
  // Flags, width and precision as they are, with numbers for stars; the length
  // is that of the host's type.
  StringRef text = piece.text;
  std::string format;
  size_t star = 0;
  for (char c : text.drop_back().take_while(
           [](char c) { return !StringRef("hljztL").contains(c); })) {
    if (c != '*') {
      format += c;
      continue;
    }
    int number = std::clamp(int(arguments[star++]), -kMostWidth, kMostWidth);
    // A negative precision is none.
    if (number < 0 && format.back() == '.')
      format.pop_back();
    else
      format += std::to_string(number);
  }
  uint64_t argument = arguments.back();
  using Kind = PrintfArgument::Kind;
  switch (piece.arguments.back().kind) {
  case Kind::Float:
    return printOne(format + text.back(), llvm::bit_cast<double>(argument));
  case Kind::String:
    return printOne(format + text.back(), string.str().c_str());
  case Kind::Pointer:
    return printOne(format + text.back(),
                    reinterpret_cast<void *>(uintptr_t(argument)));
  case Kind::Integer:
    break;
  }
  if (text.back() == 'c')
    return printOne(format + "c", int(argument));
  if (piece.arguments.back().bytes == 8)
    return printOne(format + "ll" + text.back(), (long long)argument);
  // Narrower lengths cut the number off.
  std::string narrower(text.count('h'), 'h');
  return printOne(format + narrower + text.back(), int(argument));
}
