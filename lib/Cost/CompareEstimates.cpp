//===- CompareEstimates.cpp - Two launches under the same corners ---------===//

#include "attn/Cost/Estimate.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

namespace {

/// An estimate as its file has it.
struct Read {
  StringRef name;
  std::string chip;
  std::vector<std::string> numbers; ///< by axis
  std::vector<std::vector<double>> values;
  std::vector<double> cycles;

  double getNominal() const { return cycles.front(); }
  /// Cycles where the numbers have these values; a number that is no axis
  /// changes nothing.
  double get(const std::map<std::string, double> &chosen) const;
};

/// The corners of both estimates together.
class Comparison {
public:
  Comparison(const Read &first, const Read &second)
      : first(first), second(second) {}
  Error collect();
  void print(llvm::raw_ostream &os) const;

private:
  void visit(std::map<std::string, double> &chosen, size_t axis);
  void printDeciding(llvm::raw_ostream &os) const;

  const Read &first, &second;
  std::vector<std::pair<std::string, std::vector<double>>> axes;
  struct Corner {
    std::map<std::string, double> chosen;
    double ratio; ///< cycles of the first by those of the second
  };
  std::vector<Corner> corners;
};

} // namespace

double Read::get(const std::map<std::string, double> &chosen) const {
  size_t corner = 0;
  for (auto [number, known] : llvm::zip_equal(numbers, values)) {
    size_t index = llvm::find(known, chosen.at(number)) - known.begin();
    corner = corner * known.size() + index;
  }
  return cycles[corner];
}

static Error notCorners(StringRef name) {
  return createStringError(name + ": expected a report of --estimate --vary "
                                  "--json on one kernel, got none");
}

static Expected<Read> readEstimate(StringRef name, StringRef text) {
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return createStringError(name + ": " + llvm::toString(parsed.takeError()));
  const json::Object *report = parsed->getAsObject();
  const json::Object *found = report ? report->getObject("estimate") : nullptr;
  const json::Object *corners = found ? found->getObject("corners") : nullptr;
  const json::Array *axes = corners ? corners->getArray("axes") : nullptr;
  const json::Array *cycles = corners ? corners->getArray("cycles") : nullptr;
  std::optional<StringRef> chip =
      found ? found->getString("chip") : std::nullopt;
  if (!axes || !cycles || !chip)
    return notCorners(name);
  Read read;
  read.name = name;
  read.chip = chip->str();
  size_t count = 1;
  for (const json::Value &value : *axes) {
    const json::Object *axis = value.getAsObject();
    std::optional<StringRef> number =
        axis ? axis->getString("number") : std::nullopt;
    const json::Array *values = axis ? axis->getArray("values") : nullptr;
    if (!number || !values)
      return notCorners(name);
    read.numbers.push_back(number->str());
    read.values.emplace_back();
    for (const json::Value &one : *values)
      read.values.back().push_back(one.getAsNumber().value_or(0));
    count *= read.values.back().size();
  }
  for (const json::Value &value : *cycles)
    read.cycles.push_back(value.getAsNumber().value_or(0));
  if (read.cycles.size() != count || !count)
    return createStringError(name + ": expected cycles of " + Twine(count) +
                             " corners, got " + Twine(read.cycles.size()));
  if (!llvm::all_of(read.cycles, [](double value) { return value > 0; }))
    return createStringError(name + ": expected positive cycles");
  return std::move(read);
}

Error Comparison::collect() {
  for (const Read *read : {&first, &second})
    for (auto [number, values] : llvm::zip_equal(read->numbers, read->values)) {
      const std::string &key = number;
      auto known = llvm::find_if(
          axes, [&](const auto &axis) { return axis.first == key; });
      if (known == axes.end())
        axes.push_back({number, values});
      else if (known->second != values)
        return createStringError(second.name + ": expected the values of " +
                                 number + " that " + first.name +
                                 " has, got others: they are of different "
                                 "versions of the model");
    }
  std::map<std::string, double> chosen;
  visit(chosen, 0);
  return Error::success();
}

void Comparison::visit(std::map<std::string, double> &chosen, size_t axis) {
  if (axis == axes.size()) {
    corners.push_back({chosen, first.get(chosen) / second.get(chosen)});
    return;
  }
  for (double value : axes[axis].second) {
    chosen[axes[axis].first] = value;
    visit(chosen, axis + 1);
  }
}

/// Which number splits the corners best into those where the first is faster
/// and the others (the Gini impurity of what is left: 0 where it decides all).
void Comparison::printDeciding(llvm::raw_ostream &os) const {
  auto isFaster = [](const Corner &corner) { return corner.ratio < 1; };
  double least = corners.size();
  std::string line;
  for (const auto &[number, values] : axes) {
    double mixed = 0;
    std::string text = "  " + number + " decides";
    for (double value : values) {
      size_t faster = 0, all = 0;
      for (const Corner &corner : corners)
        if (corner.chosen.at(number) == value) {
          ++all;
          faster += isFaster(corner);
        }
      mixed += double(faster) * double(all - faster) / double(all);
      llvm::raw_string_ostream(text)
          << llvm::formatv("{0} {1} is faster in {2} of {3} with ",
                           value == values.front() ? ":" : ",", first.name,
                           faster, all)
          << llvm::format("%g", value);
    }
    if (mixed >= least)
      continue;
    least = mixed;
    line = text;
  }
  os << line << "\n";
}

void Comparison::print(llvm::raw_ostream &os) const {
  for (const Read *read : {&first, &second}) {
    auto [low, high] =
        std::minmax_element(read->cycles.begin(), read->cycles.end());
    os << llvm::formatv("{0}: {1:F0} cycles on {2}, {3:F0} to {4:F0}\n",
                        read->name, read->getNominal(), read->chip, *low,
                        *high);
  }
  size_t faster = llvm::count_if(
      corners, [](const Corner &corner) { return corner.ratio < 1; });
  size_t slower = llvm::count_if(
      corners, [](const Corner &corner) { return corner.ratio > 1; });
  auto [least, most] = std::minmax_element(
      corners.begin(), corners.end(),
      [](const Corner &a, const Corner &b) { return a.ratio < b.ratio; });
  std::string range = llvm::formatv(
      "cycles by those of {0}: {1:F3} to {2:F3}, {3:F3} nominal", second.name,
      least->ratio, most->ratio, corners.front().ratio);
  if (faster == corners.size() || slower == corners.size()) {
    os << llvm::formatv("{0} is {1} in all {2} corners; {3}\n", first.name,
                        faster ? "faster" : "slower", corners.size(), range);
    return;
  }
  os << llvm::formatv("{0} is faster in {1} of {2} corners, slower in {3}; "
                      "{4}\n",
                      first.name, faster, corners.size(), slower, range);
  if (faster && !axes.empty())
    printDeciding(os);
}

Error mlir::attn::sim::compareEstimates(StringRef firstName, StringRef first,
                                        StringRef secondName, StringRef second,
                                        llvm::raw_ostream &os) {
  Expected<Read> a = readEstimate(firstName, first);
  if (!a)
    return a.takeError();
  Expected<Read> b = readEstimate(secondName, second);
  if (!b)
    return b.takeError();
  if (a->chip != b->chip)
    return createStringError("expected two estimates of one chip, got " +
                             a->chip + " and " + b->chip);
  Comparison comparison(*a, *b);
  if (Error error = comparison.collect())
    return error;
  comparison.print(os);
  return Error::success();
}
