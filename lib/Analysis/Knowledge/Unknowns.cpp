//===- Unknowns.cpp - Numbers that only the launch gives ------------------===//

#include "Unknowns.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn::barriers;
using presburger::IntegerPolyhedron;
using presburger::PresburgerSpace;

Affine Affine::plus(const Affine &other, int64_t times) const {
  Affine result(constant + times * other.constant);
  const auto *own = terms.begin(), *more = other.terms.begin();
  while (own != terms.end() || more != other.terms.end()) {
    bool takesOwn = more == other.terms.end() ||
                    (own != terms.end() && own->first <= more->first);
    bool takesMore = own == terms.end() ||
                     (more != other.terms.end() && more->first <= own->first);
    uint32_t number = takesOwn ? own->first : more->first;
    int64_t factor = 0;
    if (takesOwn)
      factor += own++->second;
    if (takesMore)
      factor += times * more++->second;
    if (factor != 0)
      result.terms.push_back({number, factor});
  }
  return result;
}

int64_t Affine::getCommonFactor() const {
  int64_t common = 0;
  for (auto [number, factor] : terms)
    common = std::gcd(common, factor);
  return isConstant() ? 1 : common;
}

Affine Affine::dividedBy(int64_t divisor) const {
  Affine result(llvm::divideFloorSigned(constant, divisor));
  for (auto [number, factor] : terms)
    result.terms.push_back({number, factor / divisor});
  return result;
}

bool Affine::isSmall() const {
  constexpr int64_t most = int64_t(1) << 40;
  return std::abs(constant) < most && terms.size() < 64 &&
         llvm::all_of(
             terms,
             [](const auto &term) { return std::abs(term.second) < most; });
}

std::string Affine::getText() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [number, factor] : terms)
    os << factor << '*' << number << '+';
  os << constant;
  return text;
}

uint32_t Unknowns::get(const std::string &text, llvm::ArrayRef<Affine> from,
                       bool given) {
  std::string key = text;
  for (const Affine &sum : from)
    key += ";" + sum.getText();
  auto [number, isNew] = numbers.try_emplace(key, sources.size());
  if (!isNew)
    return number->second;
  sources.emplace_back();
  for (const Affine &sum : from)
    for (auto [source, factor] : sum.terms)
      sources.back().push_back(source);
  isGiven.push_back(given);
  texts.push_back(text);
  return number->second;
}

uint32_t Unknowns::getTrips(const Affine &sum) {
  uint32_t number = get(kTrips.str(), {sum});
  trips.try_emplace(number, sum);
  return number;
}

uint32_t Unknowns::getQuotient(const std::string &text, const Affine &of,
                               const Affine &by) {
  uint32_t number = get(text, {of, by});
  quotients.try_emplace(number, Quotient{of, by});
  return number;
}

const Unknowns::Quotient *Unknowns::findQuotient(const Affine &sum) const {
  if (sum.isConstant() || sum != Affine::unknown(sum.terms.front().first))
    return nullptr;
  auto found = quotients.find(sum.terms.front().first);
  return found == quotients.end() ? nullptr : &found->second;
}

bool Unknowns::areComputed(
    llvm::ArrayRef<std::pair<uint32_t, int64_t>> numbers) const {
  llvm::DenseMap<uint32_t, int64_t> values(numbers.begin(), numbers.end());
  return llvm::all_of(numbers, [&](auto known) {
    auto found = definitions.find(known.first);
    if (found == definitions.end())
      return true;
    const auto &[compute, args] = found->second;
    RegionNumber operands[3], result;
    for (auto [place, sum] : llvm::enumerate(args)) {
      operands[place].integer = sum.constant;
      for (auto [number, factor] : sum.terms) {
        if (!values.contains(number))
          return false;
        operands[place].integer += factor * values.lookup(number);
      }
    }
    return compute && compute(operands, result) &&
           result.integer == known.second;
  });
}

bool Unknowns::mayComeAgain(uint32_t number,
                            const llvm::DenseSet<uint32_t> &live) const {
  return !isGiven[number] && llvm::all_of(sources[number], [&](uint32_t from) {
    return live.contains(from) || mayComeAgain(from, live);
  });
}

bool Unknowns::dependsOn(uint32_t number, uint32_t other) const {
  return number == other || llvm::any_of(sources[number], [&](uint32_t from) {
           return dependsOn(from, other);
         });
}

/// A sum that is not negative for the same integers.
static Affine tighten(const Affine &sum) {
  return sum.dividedBy(sum.getCommonFactor());
}

/// Of two sums of the same unknowns the smaller one says more.
void Facts::add(const Affine &given) {
  Affine sum = tighten(given);
  if (sum.isConstant() && sum.constant >= 0)
    return;
  for (Affine &fact : facts)
    if (fact.terms == sum.terms) {
      if (sum.constant < fact.constant)
        answers.clear();
      fact.constant = std::min(fact.constant, sum.constant);
      return;
    }
  facts.push_back(sum);
  answers.clear();
}

/// The sums as rows, and the unknowns of the columns.
static IntegerPolyhedron getRows(llvm::ArrayRef<Affine> sums,
                                 llvm::MapVector<uint32_t, unsigned> &columns) {
  for (const Affine &sum : sums)
    for (auto [number, factor] : sum.terms)
      columns.try_emplace(number, columns.size());
  IntegerPolyhedron rows(PresburgerSpace::getSetSpace(columns.size()));
  for (const Affine &sum : sums) {
    llvm::SmallVector<int64_t> row(columns.size() + 1, 0);
    for (auto [number, factor] : sum.terms)
      row[columns.lookup(number)] = factor;
    row.back() = sum.constant;
    rows.addInequality(row);
  }
  return rows;
}

/// Without an integer, or without any number, for which all hold. To see it the
/// whole table is gone through, a few times as a rule.
static bool isEmpty(llvm::ArrayRef<Affine> sums, int64_t &work) {
  llvm::MapVector<uint32_t, unsigned> columns;
  IntegerPolyhedron rows = getRows(sums, columns);
  work += 2 * sums.size() * (columns.size() + 1);
  return presburger::Simplex(rows).isEmpty();
}

/// Pairs of bounds of an unknown, all of which make a row without it.
static constexpr unsigned kMostPairs = 1024;

/// Numbers that are negative are taken to be below one part of so many.
static constexpr int64_t kFraction = 1 << 20;

bool Facts::areImpossible() const { return isEmpty(facts, work); }

bool Facts::imply(const Affine &given) const {
  Affine sum = tighten(given);
  if (sum.isConstant())
    return sum.constant >= 0;
  for (const Affine &fact : facts)
    if (fact.terms == sum.terms && fact.constant <= sum.constant)
      return true;
  work += answers.size();
  for (const auto &[asked, answer] : answers)
    if (asked == sum)
      return answer;
  std::vector<Affine> all = facts;
  all.push_back(tighten(Affine(-1).plus(sum, -1)));
  bool answer = isEmpty(all, work);
  answers.push_back({sum, answer});
  return answer;
}

std::optional<bool> Facts::decide(const Affine &sum) const {
  if (imply(sum))
    return true;
  if (imply(Affine(-1).plus(sum, -1)))
    return false;
  return std::nullopt;
}

void Facts::forget(llvm::function_ref<bool(uint32_t)> isForgotten) {
  answers.clear();
  llvm::erase_if(facts, [&](const Affine &fact) {
    return llvm::any_of(
        fact.terms, [&](const auto &term) { return isForgotten(term.first); });
  });
}

/// Turns two bounds between which there is one number into an equality, by
/// which an unknown is left out without more rows.
static void findEqualities(IntegerPolyhedron &rows) {
  for (unsigned i = 0; i < rows.getNumInequalities(); ++i) {
    llvm::SmallVector<int64_t> row = rows.getInequality64(i);
    llvm::SmallVector<int64_t> opposite;
    for (int64_t factor : row)
      opposite.push_back(-factor);
    for (unsigned other = i + 1; other < rows.getNumInequalities(); ++other) {
      if (rows.getInequality64(other) != opposite)
        continue;
      rows.removeInequality(other);
      rows.removeInequality(i--);
      rows.addEquality(row);
      break;
    }
  }
}

/// Returns of how many bounds below and above an unknown there are pairs; 0 if
/// an equality says what it is.
static unsigned countPairs(const IntegerPolyhedron &rows, unsigned column) {
  for (unsigned i = 0; i < rows.getNumEqualities(); ++i)
    if (rows.getEquality64(i)[column] != 0)
      return 0;
  unsigned lower = 0, upper = 0;
  for (unsigned i = 0; i < rows.getNumInequalities(); ++i) {
    int64_t factor = rows.getInequality64(i)[column];
    lower += factor > 0;
    upper += factor < 0;
  }
  return lower * upper;
}

/// Returns the unknown whose bounds make the fewest rows, of those behind the
/// first ones.
static unsigned findCheapest(const IntegerPolyhedron &rows, unsigned first) {
  unsigned best = rows.getNumVars() - 1, least = countPairs(rows, best);
  for (unsigned column = best; column-- > first;)
    if (unsigned pairs = countPairs(rows, column); pairs < least) {
      best = column;
      least = pairs;
    }
  return best;
}

/// Leaves an unknown out of what is known. Each pair of bounds of it makes a
/// row; where these would be many more, what speaks of it is forgotten, which
/// is less than is known.
static void eliminate(IntegerPolyhedron &rows, unsigned column, int64_t &work) {
  unsigned pairs = countPairs(rows, column);
  work += int64_t(rows.getNumVars() + 1) * (rows.getNumInequalities() + pairs);
  if (pairs > kMostPairs)
    for (unsigned i = rows.getNumInequalities(); i-- > 0;)
      if (rows.getInequality64(i)[column] != 0)
        rows.removeInequality(i);
  rows.projectOut(column, 1);
}

void Facts::keepOnly(const llvm::DenseSet<uint32_t> &live) {
  answers.clear();
  llvm::MapVector<uint32_t, unsigned> columns;
  llvm::SmallVector<uint32_t> order(live.begin(), live.end());
  llvm::sort(order);
  for (uint32_t number : order)
    columns.try_emplace(number, columns.size());
  unsigned kept = columns.size();
  IntegerPolyhedron rows = getRows(facts, columns);
  findEqualities(rows);
  while (columns.size() > kept && rows.getNumVars() > kept)
    eliminate(rows, findCheapest(rows, kept), work);
  facts.clear();
  auto take = [&](llvm::ArrayRef<int64_t> row, int64_t sign) {
    Affine sum(sign * row.back());
    for (auto [number, column] : columns)
      if (column < kept && row[column] != 0)
        sum.terms.push_back({number, sign * row[column]});
    llvm::sort(sum.terms);
    add(sum);
  };
  for (unsigned i = 0; i < rows.getNumInequalities(); ++i)
    take(rows.getInequality64(i), 1);
  for (unsigned i = 0; i < rows.getNumEqualities(); ++i) {
    take(rows.getEquality64(i), 1);
    take(rows.getEquality64(i), -1);
  }
  // What others say already goes: of any numbers, as they are asked. Of
  // integers they may say what some of them do not say any more once others are
  // gone.
  llvm::sort(facts);
  for (size_t i = 0; i < facts.size();) {
    Affine fact = facts[i];
    facts[i] = Affine(-1).plus(fact, -kFraction);
    bool isImplied = isEmpty(facts, work);
    facts[i] = fact;
    if (isImplied)
      facts.erase(facts.begin() + i);
    else
      ++i;
  }
  answers.clear();
}

std::optional<std::vector<std::pair<uint32_t, int64_t>>>
Facts::findNumbers() const {
  llvm::MapVector<uint32_t, unsigned> columns;
  IntegerPolyhedron rows = getRows(facts, columns);
  std::vector<std::pair<uint32_t, int64_t>> numbers;
  auto take = [&](llvm::ArrayRef<llvm::DynamicAPInt> values) {
    for (auto [number, column] : columns)
      numbers.push_back({number, int64_t(values[column])});
    return numbers;
  };
  if (columns.empty())
    return numbers;
  auto least = rows.findIntegerLexMin();
  if (least.isBounded())
    return take(*least);
  if (least.isEmpty())
    return std::nullopt;
  if (auto sample = rows.findIntegerSample())
    return take(*sample);
  return std::nullopt;
}

/// The most that a search for integers may take, in the measure of `Work`: a
/// thousand steps of a check, so that searches cannot take most of its limit.
static constexpr int64_t kMostSearched = 128 * 1000;

/// The most unknowns among which integers are searched for: a search may take
/// as many steps as a power of their number, whatever the table's size.
static constexpr size_t kMostSearchedUnknowns = 20;

/// So many are searched for the least integers. It is the quicker way as a
/// rule, and where each row adds many of them the slower one by far.
static constexpr size_t kFewUnknowns = 10;

/// Returns what a search for integers takes at least: each unknown is moved
/// once, for which the whole table is gone through.
static int64_t getSearchWork(size_t rows, size_t columns) {
  return int64_t(columns) * rows * (columns + 1);
}

bool Facts::haveIntegers() const {
  llvm::MapVector<uint32_t, unsigned> columns;
  IntegerPolyhedron rows = getRows(facts, columns);
  work += 2 * facts.size() * (columns.size() + 1);
  presburger::Simplex simplex(rows);
  if (simplex.isEmpty())
    return false;
  if (simplex.getSamplePointIfIntegral())
    return true;
  // A search that takes far too long is left out: there may be integers then.
  int64_t search = getSearchWork(facts.size(), columns.size());
  if (search > kMostSearched || columns.size() > kMostSearchedUnknowns)
    return true;
  work += search;
  return columns.size() <= kFewUnknowns ? findNumbers().has_value()
                                        : !rows.isIntegerEmpty();
}

std::optional<int64_t> Facts::findOnly(const Affine &sum) const {
  llvm::MapVector<uint32_t, unsigned> columns;
  IntegerPolyhedron rows = getRows(facts, columns);
  llvm::SmallVector<llvm::DynamicAPInt> coefficients(columns.size() + 1);
  for (auto [number, factor] : sum.terms) {
    auto *column = columns.find(number);
    if (column == columns.end())
      return std::nullopt;
    coefficients[column->second] = llvm::DynamicAPInt(factor);
  }
  coefficients.back() = llvm::DynamicAPInt(sum.constant);
  work += 4 * facts.size() * (columns.size() + 1);
  presburger::Simplex simplex(rows);
  if (simplex.isEmpty())
    return std::nullopt;
  auto [least, most] = simplex.computeIntegerBounds(coefficients);
  if (!least.isBounded() || !most.isBounded() || *least != *most)
    return std::nullopt;
  return int64_t(*least);
}
