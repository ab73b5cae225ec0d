//===- Suggest.cpp - The name that a wrong one stands for -----------------===//

#include "attn/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <optional>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::StringRef;

/// Letters and digits alone, in lower case.
static std::string normalize(StringRef name) {
  std::string text;
  for (char c : name)
    if (llvm::isAlnum(c))
      text.push_back(llvm::toLower(c));
  return text;
}

/// The digits of a name.
static std::string getDigits(StringRef name) {
  std::string digits;
  for (char c : name)
    if (llvm::isDigit(c))
      digits.push_back(c);
  return digits;
}

/// How far `known` is from `got`, both normalized; what is not near has no
/// number. One wrong letter is nearer than a part that is left out.
static std::optional<size_t> getDistance(StringRef got, StringRef known) {
  auto [shorter, longer] = std::minmax({got.size(), known.size()});
  // Another number is no slip: sm_70 does not stand for sm_80.
  size_t most = std::min<size_t>(got.size() / 3, 3);
  size_t letters = getDigits(got) == getDigits(known)
                       ? got.edit_distance(known, /*AllowReplacements=*/true,
                                           /*MaxEditDistance=*/most)
                       : most + 1;
  // With two letters too many names begin.
  bool isPart =
      shorter >= 3 && (known.starts_with(got) || known.ends_with(got) ||
                       got.starts_with(known));
  if (letters > std::min<size_t>(most, isPart ? 1 : most)) {
    if (!isPart)
      return std::nullopt;
    letters = 2;
  }
  // Of the same kind, the one of a similar length.
  constexpr size_t scale = 64;
  return letters * scale + std::min(longer - shorter, scale - 1);
}

StringRef mlir::attn::findNearest(StringRef got, ArrayRef<StringRef> known,
                                  ArrayRef<Synonym> synonyms) {
  std::string wanted = normalize(got);
  if (wanted.empty())
    return {};
  for (const Synonym &synonym : synonyms)
    if (wanted == normalize(synonym.theirs) &&
        llvm::is_contained(known, synonym.ours))
      return synonym.ours;
  StringRef nearest;
  size_t least = SIZE_MAX;
  for (StringRef name : known) {
    std::string text = normalize(name);
    if (text.empty())
      continue;
    std::optional<size_t> distance = getDistance(wanted, text);
    if (distance && *distance < least) {
      least = *distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string mlir::attn::suggest(StringRef got, ArrayRef<StringRef> known,
                                ArrayRef<Synonym> synonyms) {
  StringRef nearest = findNearest(got, known, synonyms);
  if (nearest.empty())
    return {};
  return "; did you mean '" + nearest.str() + "'?";
}
