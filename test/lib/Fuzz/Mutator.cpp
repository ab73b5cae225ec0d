//===- Mutator.cpp - Inputs that are nearly right -------------------------===//

#include "Mutator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <map>

using namespace mlir::attn::fuzz;
using llvm::ArrayRef;
using llvm::StringRef;

namespace {

/// SplitMix64: the same numbers on every machine, unlike std's distributions.
class Random {
public:
  explicit Random(uint64_t state) : state(state) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// From 0 to `bound` - 1; 0 for a bound of 0.
  size_t below(size_t bound) { return bound ? next() % bound : 0; }
  bool oneIn(unsigned n) { return below(n) == 0; }

private:
  uint64_t state;
};

/// A piece of a text.
struct Span {
  size_t begin = 0, end = 0;
  StringRef in(StringRef text) const { return text.slice(begin, end); }
};

/// One text on its way, with the changes that can be made to it.
class Editor {
public:
  Editor(std::string text, StringRef donor, Random &random)
      : text(std::move(text)), donor(donor), random(random) {}

  void change();
  std::string take() { return std::move(text); }

private:
  void changeByte();
  void changeToken();
  void changeNumber();
  void changeLine();
  void changeGroup();

  std::string makeNumber(StringRef old);
  void replace(Span span, std::string with) {
    text.replace(span.begin, span.end - span.begin, with);
  }

  std::string text;
  StringRef donor;
  Random &random;
};

} // namespace

static bool isWord(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '%' || c == '@' ||
         c == '#' || c == '!' || c == '$';
}

static std::vector<Span> findTokens(StringRef text) {
  std::vector<Span> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i;
    if (llvm::isSpace(text[i])) {
      ++i;
      continue;
    }
    if (text[i] == '"') {
      size_t end = text.find('"', i + 1);
      i = end == StringRef::npos || end - i > 200 ? i + 1 : end + 1;
    } else if (isWord(text[i])) {
      while (i < text.size() && isWord(text[i]))
        ++i;
    } else {
      ++i;
    }
    tokens.push_back({begin, i});
  }
  return tokens;
}

/// Runs of digits with what makes them a number: a sign, an exponent.
static std::vector<Span> findNumbers(StringRef text) {
  std::vector<Span> numbers;
  for (size_t i = 0; i < text.size();) {
    if (!llvm::isDigit(text[i])) {
      ++i;
      continue;
    }
    size_t begin = i;
    while (i < text.size() && llvm::isDigit(text[i]))
      ++i;
    if (begin && text[begin - 1] == '-')
      --begin;
    numbers.push_back({begin, i});
  }
  return numbers;
}

static std::vector<Span> findLines(StringRef text) {
  std::vector<Span> lines;
  for (size_t i = 0; i < text.size();) {
    size_t end = text.find('\n', i);
    end = end == StringRef::npos ? text.size() : end + 1;
    lines.push_back({i, end});
    i = end;
  }
  return lines;
}

/// Bracketed groups, brackets included.
static std::vector<Span> findGroups(StringRef text) {
  std::vector<Span> groups;
  llvm::SmallVector<size_t> open;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool isArrow = c == '>' && i && text[i - 1] == '-';
    if (StringRef("([{<").contains(c))
      open.push_back(i);
    else if (StringRef(")]}>").contains(c) && !isArrow && !open.empty())
      groups.push_back({open.pop_back_val(), i + 1});
  }
  return groups;
}

void Editor::changeByte() {
  size_t at = random.below(text.size() + 1);
  switch (random.below(5)) {
  case 0:
    if (at < text.size())
      text[at] = char(random.below(256));
    break;
  case 1:
    text.insert(at, 1, char(random.below(256)));
    break;
  case 2:
    text.erase(at, 1 + random.below(4));
    break;
  case 3:
    if (at < text.size())
      text[at] ^= char(1 << random.below(8));
    break;
  default:
    text.resize(at);
  }
}

void Editor::changeToken() {
  std::vector<Span> tokens = findTokens(text);
  if (tokens.empty())
    return;
  Span token = tokens[random.below(tokens.size())];
  Span other = tokens[random.below(tokens.size())];
  switch (random.below(6)) {
  case 0:
    return replace(token, "");
  case 1:
    return replace(token, (token.in(text) + " " + token.in(text)).str());
  case 2: {
    if (token.begin > other.begin)
      std::swap(token, other);
    if (token.end > other.begin)
      return;
    std::string first = token.in(text).str(), second = other.in(text).str();
    replace(other, first);
    return replace(token, second);
  }
  case 3:
  case 4:
    return replace(token, other.in(text).str());
  default: {
    std::vector<Span> donors = findTokens(donor);
    if (!donors.empty())
      replace(token, donors[random.below(donors.size())].in(donor).str());
  }
  }
}

std::string Editor::makeNumber(StringRef old) {
  static constexpr llvm::StringLiteral special[] = {
      "0",
      "1",
      "-1",
      "2",
      "3",
      "7",
      "8",
      "15",
      "16",
      "17",
      "31",
      "32",
      "33",
      "63",
      "64",
      "127",
      "128",
      "255",
      "256",
      "257",
      "1000",
      "4096",
      "65535",
      "65536",
      "1048576",
      "16777216",
      "2147483647",
      "2147483648",
      "-2147483648",
      "4294967295",
      "4294967296",
      "9223372036854775807",
      "-9223372036854775808",
      "9223372036854775808",
      "18446744073709551615",
      "18446744073709551616",
      "340282366920938463463374607431768211456",
      "1e308",
      "1e999",
      "0x7fffffff",
      "0.5",
      "-0.0",
      "nan",
      "inf"};
  int64_t value = 0;
  if (random.oneIn(2) && !old.getAsInteger(10, value)) {
    uint64_t number = value;
    switch (random.below(6)) {
    case 0:
      return std::to_string(int64_t(number + 1));
    case 1:
      return std::to_string(int64_t(number - 1));
    case 2:
      return std::to_string(int64_t(number * 2));
    case 3:
      return std::to_string(value / 2);
    case 4:
      return std::to_string(int64_t(-number));
    default:
      return std::to_string(
          int64_t(number ^ (uint64_t(1) << random.below(64))));
    }
  }
  return special[random.below(std::size(special))].str();
}

void Editor::changeNumber() {
  std::vector<Span> numbers = findNumbers(text);
  if (numbers.empty())
    return changeToken();
  Span number = numbers[random.below(numbers.size())];
  replace(number, makeNumber(number.in(text)));
}

void Editor::changeLine() {
  std::vector<Span> lines = findLines(text);
  if (lines.empty())
    return;
  Span line = lines[random.below(lines.size())];
  size_t to = lines[random.below(lines.size())].begin;
  switch (random.below(5)) {
  case 0:
    return replace(line, "");
  case 1:
    text.insert(to, line.in(text).str());
    return;
  case 2: {
    std::string moved = line.in(text).str();
    replace(line, "");
    text.insert(std::min(to, text.size()), moved);
    return;
  }
  case 3: {
    std::vector<Span> donors = findLines(donor);
    if (!donors.empty())
      text.insert(to, donors[random.below(donors.size())].in(donor).str());
    return;
  }
  default: {
    // A block of lines goes.
    size_t end = std::min(text.size(), line.begin + random.below(400));
    text.erase(line.begin, end - line.begin);
  }
  }
}

void Editor::changeGroup() {
  std::vector<Span> groups = findGroups(text);
  if (groups.empty())
    return changeToken();
  Span group = groups[random.below(groups.size())];
  std::string old = group.in(text).str();
  switch (random.below(6)) {
  case 0:
    return replace(group, "");
  case 1:
    return replace(group, {old.front(), old.back()});
  case 2:
    return replace(group, old + old);
  case 3:
    return replace(group, groups[random.below(groups.size())].in(text).str());
  case 4: {
    std::vector<Span> donors = findGroups(donor);
    if (!donors.empty())
      replace(group, donors[random.below(donors.size())].in(donor).str());
    return;
  }
  default: {
    // Into itself: what is around a group, such as an attribute's name, comes
    // along in half of the cases.
    static constexpr unsigned depths[] = {1, 1, 1, 2, 4, 16, 300, 3000};
    unsigned depth = depths[random.below(std::size(depths))];
    size_t name = group.begin;
    if (random.oneIn(2))
      while (name && isWord(text[name - 1]))
        --name;
    std::string open = text.substr(name, group.begin - name) + old.front();
    std::string nested = open + old.substr(1, old.size() - 2) + old.back();
    std::string before, after;
    for (unsigned i = 0; i < depth; ++i) {
      before += open;
      after += old.back();
    }
    replace({name, group.end}, before + nested + after);
  }
  }
}

void Editor::change() {
  switch (random.below(10)) {
  case 0:
    return changeByte();
  case 1:
    return changeLine();
  case 2:
  case 3:
    return changeGroup();
  case 4:
  case 5:
  case 6:
    return changeToken();
  default:
    return changeNumber();
  }
}

Mutator::Mutator(ArrayRef<Seed> corpus) : corpus(corpus) {
  std::map<std::string, std::vector<size_t>> byTarget;
  for (auto [index, seed] : llvm::enumerate(corpus))
    byTarget[seed.target].push_back(index);
  for (auto &[target, indices] : byTarget)
    groups.push_back(indices);
}

Mutator::Case Mutator::make(uint64_t seed, uint64_t index) const {
  Random random(Random(seed).next() ^ Random(~index).next());
  // Every target gets the same share, however many inputs it has.
  const std::vector<size_t> &group = groups[index % groups.size()];
  const Seed &base = corpus[group[random.below(group.size())]];
  llvm::SmallVector<StringRef> parts, donors;
  StringRef(base.text).split(parts, kPartSeparator);
  size_t which = random.below(parts.size());
  StringRef(corpus[group[random.below(group.size())]].text)
      .split(donors, kPartSeparator);
  Editor editor(parts[which].str(), donors[std::min(which, donors.size() - 1)],
                random);
  do
    editor.change();
  while (random.oneIn(3));
  std::string changed = editor.take();
  Case result{base.target, {}};
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (i)
      result.text += kPartSeparator;
    result.text += i == which ? StringRef(changed) : part;
  }
  return result;
}
