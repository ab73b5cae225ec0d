//===- PtxasData.cpp - What ptxas was seen to spill -----------------------===//

#include "PtxasData.h"
#include "../../Schedule/Copied/CopiedExtents.h"
#include "../../Schedule/Copied/GridTiles.h"
#include "../../Schedule/Tma/RingFacts.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Support/JSON.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
namespace json = llvm::json;

static constexpr int64_t kDataVersion = 1;

static constexpr StringLiteral kFeatures[] = {
#define PTXAS_FEATURE(name, value) name,
#include "PtxasFeatures.def"
#undef PTXAS_FEATURE
};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

class PtxasData::Reader {
public:
  explicit Reader(StringRef name) : name(name) {}
  llvm::Expected<PtxasData> read(StringRef text);

private:
  llvm::Error fail(const Twine &place, const Twine &what) {
    return llvm::createStringError("ptxas data " + name + ": " + place + ": " +
                                   what);
  }
  llvm::Error readConditions(const json::Object &object, const Twine &place,
                             Conditions &result);
  llvm::Error readRow(const json::Object &object, const Twine &place,
                      PtxasData &data);

  StringRef name;
};

llvm::Error PtxasData::Reader::readConditions(const json::Object &object,
                                              const Twine &place,
                                              Conditions &result) {
  for (StringRef part : {"problem", "plan"}) {
    const json::Object *fields = object.getObject(part);
    if (!fields)
      continue;
    for (const auto &[key, value] : *fields) {
      StringRef field = key;
      llvm::Expected<Condition> condition = Condition::parse(value);
      if (!condition)
        return fail(place + "." + part + "." + field,
                    llvm::toString(condition.takeError()));
      if (part == "plan") {
        result.parameters.emplace_back(field.str(), *condition);
        continue;
      }
      const auto *known = llvm::find(kFeatures, field);
      if (known == std::end(kFeatures))
        return fail(place + ".problem",
                    "expected features of PtxasFeatures.def, got '" + field +
                        "'");
      result.features.emplace_back(known - std::begin(kFeatures), *condition);
    }
  }
  return llvm::Error::success();
}

/// Returns the values of the parameters that a row names one value of, sorted.
static std::vector<std::pair<std::string, std::string>>
listExact(const json::Object *plan) {
  std::vector<std::pair<std::string, std::string>> exact;
  if (!plan)
    return exact;
  for (const auto &[key, value] : *plan) {
    if (std::optional<int64_t> number = value.getAsInteger())
      exact.emplace_back(StringRef(key).str(), std::to_string(*number));
    else if (std::optional<bool> flag = value.getAsBoolean())
      exact.emplace_back(StringRef(key).str(), *flag ? "true" : "false");
    else if (std::optional<StringRef> text = value.getAsString();
             text && !text->contains(' ') && *text != "any")
      exact.emplace_back(StringRef(key).str(), text->str());
  }
  llvm::sort(exact);
  return exact;
}

llvm::Error PtxasData::Reader::readRow(const json::Object &object,
                                       const Twine &place, PtxasData &data) {
  std::optional<StringRef> schedule = object.getString("schedule");
  if (!schedule)
    return fail(place + ".schedule", "expected a string");
  std::optional<StringRef> verdict = object.getString("verdict");
  if (verdict != "spills" && verdict != "fits")
    return fail(place + ".verdict",
                "expected \"spills\" or \"fits\", got " +
                    (verdict ? "\"" + *verdict + "\"" : Twine("none")));
  Row row;
  row.spills = verdict == "spills";
  if (object.get("chips")) {
    const json::Array *chips = object.getArray("chips");
    for (const json::Value &chip : chips ? *chips : json::Array())
      row.chips.push_back(chip.getAsString().value_or("").str());
    if (row.chips.empty() || llvm::is_contained(row.chips, ""))
      return fail(place + ".chips", "expected an array of chips");
  }
  if (const json::Value *generation = object.get("generation")) {
    llvm::Expected<Condition> condition = Condition::parse(*generation);
    if (!condition)
      return fail(place + ".generation", llvm::toString(condition.takeError()));
    row.generation = *condition;
  }
  if (llvm::Error error = readConditions(object, place, row.all))
    return error;
  if (const json::Array *any = object.getArray("any"))
    for (const auto &[i, each] : llvm::enumerate(*any)) {
      const json::Object *alternative = each.getAsObject();
      if (!alternative)
        return fail(place + ".any", "expected an array of objects");
      if (llvm::Error error =
              readConditions(*alternative, place + ".any[" + Twine(i) + "]",
                             row.any.emplace_back()))
        return error;
    }
  row.exact = listExact(object.getObject("plan"));
  data.rows[*schedule].push_back(std::move(row));
  return llvm::Error::success();
}

llvm::Expected<PtxasData> PtxasData::Reader::read(StringRef text) {
  llvm::Expected<json::Value> parsed = parseJSON(text);
  if (!parsed)
    return fail("JSON", llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  std::optional<int64_t> number;
  if (root)
    number = root->getInteger("version");
  if (number != kDataVersion)
    return fail("version", "expected " + Twine(kDataVersion) + ", got " +
                               (number ? std::to_string(*number) : "none"));
  std::optional<StringRef> ptxas = root->getString("ptxas");
  if (!ptxas)
    return fail("ptxas", "expected a string");
  const json::Array *rows = root->getArray("rows");
  if (!rows)
    return fail("rows", "expected an array");
  PtxasData data;
  data.version = ptxas->str();
  for (const auto &[i, value] : llvm::enumerate(*rows)) {
    const json::Object *object = value.getAsObject();
    std::string place = "rows[" + std::to_string(i) + "]";
    if (!object)
      return fail(place, "expected an object");
    if (llvm::Error error = readRow(*object, place, data))
      return std::move(error);
  }
  return std::move(data);
}

llvm::Expected<PtxasData> PtxasData::parse(StringRef json, StringRef name) {
  return Reader(name).read(json);
}

const PtxasData &PtxasData::getShipped() {
  static const PtxasData data = [] {
    static constexpr char text[] =
#include "PtxasData.inc"
        ;
    // The text is part of the library, and a test reads it.
    return llvm::cantFail(parse(text, "shipped"));
  }();
  return data;
}

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

/// Returns true if a mask counts from the end of keys that may end inside a
/// block.
static bool hasMaskedTail(const ProblemFacts &facts, int64_t blockN) {
  return facts.mask.hasRight() &&
         facts.mask.getAlign() == MaskAlign::BottomRight &&
         (facts.hasLengths() || ShapedType::isDynamic(facts.keys) ||
          facts.keys % blockN != 0);
}

static bool isKnown(int64_t extent) { return !ShapedType::isDynamic(extent); }

namespace {
using Feature = int64_t (*)(const PtxasCase &);
} // namespace

static constexpr Feature kGetters[] = {
#define PTXAS_FEATURE(name, value)                                             \
  +[](const PtxasCase &asked) -> int64_t {                                     \
    [[maybe_unused]] const ProblemFacts &facts = asked.facts;                  \
    [[maybe_unused]] const TargetRow &target = asked.target;                   \
    [[maybe_unused]] const CopiedExtents *copied = asked.copied;               \
    [[maybe_unused]] const KnownSums &known = asked.known;                     \
    [[maybe_unused]] int64_t blockN = asked.blockN;                            \
    return value;                                                              \
  },
#include "PtxasFeatures.def"
#undef PTXAS_FEATURE
};

/// Answers conditions about one plan, whose parameters are read when a row asks
/// for one.
class PtxasData::Asker {
public:
  explicit Asker(const PtxasCase &asked) : asked(asked) {}

  bool holds(const Conditions &conditions) {
    for (const auto &[index, condition] : conditions.features) {
      int64_t value = kGetters[index](asked);
      if (!isKnown(value) || !condition.holds(value))
        return false;
    }
    for (const auto &[name, condition] : conditions.parameters) {
      const std::string *value = findParameter(name);
      if (!value || !condition.holds(StringRef(*value)))
        return false;
    }
    return true;
  }

  bool holds(const Row &row) {
    if (!row.chips.empty() && !llvm::is_contained(row.chips, asked.target.chip))
      return false;
    if (row.generation && !row.generation->holds(
                              int64_t(asked.target.instructionCapability / 10)))
      return false;
    return holds(row.all) &&
           (row.any.empty() ||
            llvm::any_of(row.any,
                         [&](const Conditions &each) { return holds(each); }));
  }

private:
  const std::string *findParameter(StringRef name) {
    if (parameters.empty())
      for (PlanParameterInfo &info :
           PlanAttrInterface(asked.plan).listParameters())
        parameters.emplace_back(info.name, std::move(info.value));
    for (const auto &[other, value] : parameters)
      if (other == name)
        return &value;
    return nullptr;
  }

  const PtxasCase &asked;
  SmallVector<std::pair<StringRef, std::string>> parameters;
};

std::optional<bool> PtxasData::findSpills(const PtxasCase &asked) const {
  auto found = rows.find(PlanAttrInterface(asked.plan).getSchedule());
  if (found == rows.end())
    return std::nullopt;
  Asker asker(asked);
  for (const Row &row : found->second)
    if (asker.holds(row))
      return row.spills;
  return std::nullopt;
}

std::vector<std::vector<std::pair<std::string, std::string>>>
PtxasData::listFitting(StringRef schedule) const {
  std::vector<std::vector<std::pair<std::string, std::string>>> plans;
  auto found = rows.find(schedule);
  if (found == rows.end())
    return plans;
  for (const Row &row : found->second)
    if (!row.spills && !row.exact.empty() &&
        !llvm::is_contained(plans, row.exact))
      plans.push_back(row.exact);
  return plans;
}

std::vector<std::pair<std::string, std::string>>
PtxasData::listParameters() const {
  std::vector<std::pair<std::string, std::string>> result;
  auto add = [&](StringRef schedule, const Conditions &conditions) {
    for (const auto &[name, condition] : conditions.parameters)
      result.emplace_back(schedule.str(), name);
  };
  for (const auto &[schedule, all] : rows)
    for (const Row &row : all) {
      add(schedule, row.all);
      for (const Conditions &each : row.any)
        add(schedule, each);
    }
  llvm::sort(result);
  result.erase(llvm::unique(result), result.end());
  return result;
}
