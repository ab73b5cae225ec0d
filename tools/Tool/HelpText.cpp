//===- HelpText.cpp - LLVM's help texts for terminals ---------------------===//

#include "HelpText.h"
#include "llvm/ADT/SmallVector.h"

using namespace mlir::attn;
using llvm::StringRef;

/// Where the dash stands that begins what an option does.
static constexpr unsigned kDash = 26;

/// Appends words to `text`, whose last line is `used` columns long; lines after
/// it begin in column `indent`.
static void appendWords(std::string &text, size_t used, size_t indent,
                        StringRef words) {
  llvm::SmallVector<StringRef> parts;
  words.split(parts, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  bool isFirst = true;
  for (StringRef word : parts) {
    if (!isFirst && used + 1 + word.size() > kHelpColumns) {
      text += "\n" + std::string(indent, ' ');
      used = indent;
      isFirst = true;
    }
    if (!isFirst) {
      text += ' ';
      ++used;
    }
    text += word;
    used += word.size();
    isFirst = false;
  }
  text += '\n';
}

std::string mlir::attn::wrapHelp(StringRef text) {
  std::string wrapped;
  // Where what the last option does begins; lines without a name go on there.
  size_t column = 0;
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.rtrim();
    StringRef words = line.ltrim();
    size_t indent = line.size() - words.size();
    if (indent == 0 || words.empty()) {
      column = 0;
      appendWords(wrapped, 0, 0, words);
      continue;
    }
    bool isNamed = words.front() == '-' || words.front() == '=';
    size_t end = words.find(" - ");
    if (!isNamed || end == StringRef::npos) {
      bool goesOn = !isNamed && column && indent >= kDash / 2;
      size_t start = goesOn ? column : indent;
      wrapped += std::string(start, ' ');
      appendWords(wrapped, start, start, words);
      continue;
    }
    StringRef option = words.take_front(end).rtrim();
    StringRef rest = words.drop_front(end + 3);
    // Values of an option are indented once more.
    size_t deeper = rest.size() - rest.ltrim().size();
    wrapped += std::string(indent, ' ') + option.str();
    size_t used = indent + option.size();
    if (used >= kDash) {
      wrapped += '\n';
      used = 0;
    }
    wrapped += std::string(kDash - used, ' ') + "- " + std::string(deeper, ' ');
    column = kDash + 2 + deeper;
    appendWords(wrapped, column, column, rest);
  }
  return wrapped;
}
