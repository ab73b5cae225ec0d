//===- PlanTable.cpp - Plans that were measured ---------------------------===//

#include "attn/Planner/Choice/PlanTable.h"
#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::attn;
namespace json = llvm::json;

static constexpr StringLiteral kTexts[] = {"type", "out_type", "mask"};
static constexpr StringLiteral kExtents[] = {
#define ATTN_EXTENT(FACT, NAME) NAME,
#include "attn/Problem/Options.def"
};
static constexpr StringLiteral kDynamic("dynamic");
static constexpr int64_t kTableVersion = 1;

static json::Value toValue(int64_t extent) {
  return ShapedType::isDynamic(extent) ? json::Value(kDynamic)
                                       : json::Value(extent);
}

/// The mask as IR prints it, without what all masks have and without defaults:
/// "causal", "window, left = 4, right = 0".
static std::string getMaskText(MaskAttr mask) {
  std::string text = stringifyEnum(mask.getKind()).str();
  if (mask.getAlign() != MaskAlign::TopLeft)
    text += (", align = " + stringifyEnum(mask.getAlign())).str();
  for (auto [name, bound] :
       {std::pair("left", mask.getLeft()), {"right", mask.getRight()}})
    if (bound != -1)
      text += (Twine(", ") + name + " = " + Twine(bound)).str();
  return text;
}

json::Object attn::describeProblem(const ProblemFacts &facts) {
  std::vector<StringRef> features;
#define ATTN_FEATURE(ID, NAME, GIVEN, RECORD)                                  \
  if (GIVEN)                                                                   \
    features.push_back(NAME);
#include "attn/Problem/Options.def"
  // Tables have them in the order of the alphabet.
  llvm::sort(features);
  json::Object problem{{"type", llvm::to_string(facts.elementType)},
                       {"out_type", llvm::to_string(facts.outType)},
                       {"mask", getMaskText(facts.mask)},
                       {"features", json::Array(features)}};
#define ATTN_EXTENT(FACT, NAME) problem[NAME] = toValue(facts.FACT);
#include "attn/Problem/Options.def"
  return problem;
}

namespace {

/// Reads a table and knows where it is.
class TableReader {
public:
  TableReader(StringRef name) : name(name) {}
  llvm::Expected<std::vector<PlanTableEntry>> read(StringRef text);

private:
  llvm::Error fail(const Twine &place, const Twine &what) {
    return llvm::createStringError("plan table " + name + ": " + place + ": " +
                                   what);
  }
  llvm::Expected<PlanTableEntry> readEntry(const json::Value &value,
                                           const Twine &place);
  llvm::Error checkProblem(const json::Object &problem, const Twine &place);

  StringRef name;
};

} // namespace

/// True for an extent, "dynamic", or [least, most].
static bool isExtent(const json::Value &value) {
  if (value.getAsInteger() || value.getAsString() == kDynamic)
    return true;
  const json::Array *range = value.getAsArray();
  return range && range->size() == 2 && (*range)[0].getAsInteger() &&
         (*range)[1].getAsInteger();
}

llvm::Error TableReader::checkProblem(const json::Object &problem,
                                      const Twine &place) {
  for (StringRef field : kTexts)
    if (!problem.getString(field))
      return fail(place + "." + field, "expected a string");
  for (StringRef field : kExtents) {
    const json::Value *value = problem.get(field);
    if (!value || !isExtent(*value))
      return fail(place + "." + field,
                  "expected an integer, [least, most] or \"dynamic\"");
  }
  const json::Array *features = problem.getArray("features");
  if (!features || llvm::any_of(*features, [](const json::Value &feature) {
        return !feature.getAsString();
      }))
    return fail(place + ".features", "expected an array of strings");
  return llvm::Error::success();
}

llvm::Expected<PlanTableEntry> TableReader::readEntry(const json::Value &value,
                                                      const Twine &place) {
  const json::Object *object = value.getAsObject();
  const json::Object *problem = object ? object->getObject("problem") : nullptr;
  if (!problem)
    return fail(place, "expected an object with an object \"problem\" in it");
  if (llvm::Error error = checkProblem(*problem, place + ".problem"))
    return std::move(error);
  PlanTableEntry entry;
  entry.problem = *problem;
  for (auto [field, slot] : {std::pair(StringRef("chip"), &entry.chip),
                             {"plan", &entry.plan},
                             {"board", &entry.board}}) {
    std::optional<StringRef> text = object->getString(field);
    if (!text)
      return fail(place + "." + field, "expected a string");
    *slot = text->str();
  }
  std::optional<double> time = object->getNumber("microseconds");
  if (!time)
    return fail(place + ".microseconds", "expected a number");
  entry.microseconds = *time;
  return std::move(entry);
}

llvm::Expected<std::vector<PlanTableEntry>> TableReader::read(StringRef text) {
  llvm::Expected<json::Value> parsed = parseJSON(text);
  if (!parsed)
    return fail("JSON", llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  std::optional<int64_t> version;
  if (root)
    version = root->getInteger("version");
  if (version != kTableVersion)
    return fail("version", "expected " + Twine(kTableVersion) + ", got " +
                               (version ? std::to_string(*version) : "none"));
  const json::Array *plans = root->getArray("plans");
  if (!plans)
    return fail("plans", "expected an array");
  std::vector<PlanTableEntry> entries;
  for (const auto &[i, value] : llvm::enumerate(*plans)) {
    llvm::Expected<PlanTableEntry> entry =
        readEntry(value, "plans[" + std::to_string(i) + "]");
    if (!entry)
      return entry.takeError();
    entries.push_back(std::move(*entry));
  }
  return std::move(entries);
}

llvm::Expected<PlanTable> PlanTable::parse(StringRef text, StringRef name) {
  llvm::Expected<std::vector<PlanTableEntry>> entries =
      TableReader(name).read(text);
  if (!entries)
    return entries.takeError();
  PlanTable table;
  table.name = name.str();
  table.entries = std::move(*entries);
  return std::move(table);
}

llvm::Expected<PlanTable> PlanTable::read(StringRef path) {
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  return parse(*text, path);
}

const PlanTable &PlanTable::getShipped() {
  static const PlanTable table = [] {
    static constexpr char text[] =
#include "ShippedPlans.inc"
        ;
    // The text is part of the library, and a test reads it.
    return llvm::cantFail(parse(text, "shipped"));
  }();
  return table;
}

/// Whether an extent of a table's entry covers one of a problem.
static bool covers(const json::Value &entry, const json::Value &extent) {
  const json::Array *range = entry.getAsArray();
  std::optional<int64_t> number = extent.getAsInteger();
  if (!range || !number)
    return entry == extent;
  return *(*range)[0].getAsInteger() <= *number &&
         *number <= *(*range)[1].getAsInteger();
}

const PlanTableEntry *PlanTable::find(const ProblemFacts &facts,
                                      StringRef chip) const {
  json::Object problem = describeProblem(facts);
  for (const PlanTableEntry &entry : entries)
    if (entry.chip == chip && llvm::all_of(problem, [&](const auto &field) {
          const json::Value *wanted = entry.problem.get(field.first);
          return wanted && covers(*wanted, field.second);
        }))
      return &entry;
  return nullptr;
}
