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
/// number. A part that is left out is nearer than any wrong letter.
static std::optional<size_t> getDistance(StringRef got, StringRef known) {
  if (got == known)
    return 0;
  // Of two letters too many names begin with them.
  size_t least = 3;
  if (got.size() >= least &&
      (known.starts_with(got) || known.ends_with(got)))
    return 1;
  if (known.size() >= least && got.starts_with(known))
    return 2;
  // Another number is no slip: sm_70 does not stand for sm_80.
  if (getDigits(got) != getDigits(known))
    return std::nullopt;
  size_t most = std::min<size_t>(got.size() / 3, 3);
  size_t distance = got.edit_distance(known, /*AllowReplacements=*/true, most);
  if (distance > most)
    return std::nullopt;
  return 2 + 2 * distance - (got.front() == known.front());
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
