//===- Margins.cpp - How schedules rank beside each other -----------------===//

#include "Margins.h"
#include "../../Schedule/Copied/GridTiles.h"
#include "../Facts/BlockCount.h"
#include "attn/Schedule/Core/Schedule.h"
#include "attn/Support/JSON.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
namespace json = llvm::json;

static constexpr int64_t kMarginsVersion = 1;

/// The fields of a problem that rows may name.
static constexpr llvm::StringLiteral kFields[] = {
    "head_dim", "value_dim", "queries",    "group_rows",
    "narrow",   "served",    "reads_dram", "runs"};

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Reads an object of conditions.
static llvm::Error
readConditions(const json::Object *object,
               std::vector<std::pair<std::string, Condition>> &result) {
  if (!object)
    return llvm::Error::success();
  for (const auto &[key, value] : *object) {
    llvm::Expected<Condition> condition = Condition::parse(value);
    if (!condition)
      return condition.takeError();
    result.emplace_back(StringRef(key).str(), *condition);
  }
  return llvm::Error::success();
}

llvm::Expected<Margins::Row> Margins::readRow(const json::Object &object) {
  std::optional<StringRef> schedule = object.getString("schedule");
  std::optional<double> margin = object.getNumber("margin");
  if (!schedule || !margin)
    return llvm::createStringError("expected a schedule and a margin");
  Row row;
  row.schedule = schedule->str();
  row.margin = *margin;
  row.beside = object.getString("beside").value_or("").str();
  if (const json::Array *chips = object.getArray("chips"))
    for (const json::Value &chip : *chips)
      row.chips.push_back(chip.getAsString().value_or("").str());
  if (llvm::Error error =
          readConditions(object.getObject("problem"), row.problem))
    return std::move(error);
  for (const auto &[field, condition] : row.problem)
    if (!llvm::is_contained(kFields, StringRef(field)))
      return llvm::createStringError("unknown field '" + field +
                                     "' of a problem");
  if (llvm::Error error = readConditions(object.getObject("plan"), row.plan))
    return std::move(error);
  return std::move(row);
}

llvm::Expected<Margins> Margins::parse(StringRef text, StringRef name) {
  auto fail = [&](const Twine &what) {
    return llvm::createStringError("margins " + name + ": " + what);
  };
  llvm::Expected<json::Value> parsed = parseJSON(text);
  if (!parsed)
    return fail(llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  const json::Array *rows = root ? root->getArray("margins") : nullptr;
  if (!rows || root->getInteger("version") != kMarginsVersion)
    return fail("expected version " + Twine(kMarginsVersion) +
                " and an array \"margins\"");
  Margins result;
  for (const auto &[i, value] : llvm::enumerate(*rows)) {
    const json::Object *object = value.getAsObject();
    llvm::Expected<Row> row = readRow(object ? *object : json::Object());
    if (!row)
      return fail("margins[" + Twine(i) +
                  "]: " + llvm::toString(row.takeError()));
    result.rows.push_back(std::move(*row));
  }
  return std::move(result);
}

const Margins &Margins::getShipped() {
  static const Margins margins = [] {
    static constexpr char text[] =
#include "Margins.inc"
        ;
    // The text is part of the library, and a test reads it.
    return llvm::cantFail(parse(text, "shipped"));
  }();
  return margins;
}

//===----------------------------------------------------------------------===//
// Asking
//===----------------------------------------------------------------------===//

/// Returns a field of a problem.
static int64_t getField(StringRef field, const ProblemFacts &facts,
                        const TargetRow &target, const PlanEstimate &estimate) {
  if (field == "head_dim")
    return facts.headDim;
  if (field == "value_dim")
    return facts.valueDim;
  if (field == "narrow")
    return facts.isNarrow();
  if (field == "served")
    return facts.isServed();
  if (field == "runs")
    return countRuns(facts);
  // Keys of a problem that says nothing about their lengths may be in L2, if
  // they fit.
  if (field == "reads_dram")
    return estimate.isBoundByDram() &&
           (facts.isServed() || estimate.dramBytes > double(target.l2Bytes));
  auto queries = int64_t(getTypicalExtents(facts).queries);
  if (field == "queries")
    return queries;
  // Rows that the queries of a group of heads are together.
  int64_t group = facts.getGroup();
  return ShapedType::isDynamic(group)
             ? queries
             : queries * int64_t(llvm::PowerOf2Ceil(group));
}

double Margins::find(const ProblemFacts &facts, PlanAttrInterface plan,
                     const TargetRow &target,
                     const PlanEstimate &estimate) const {
  double margin = 1;
  for (const Row &row : rows) {
    bool isOfPlan =
        row.schedule == plan.getSchedule() &&
        (row.chips.empty() || llvm::is_contained(row.chips, target.chip));
    if (!isOfPlan || row.margin <= margin ||
        !llvm::all_of(row.problem, [&](const auto &each) {
          return each.second.holds(
              getField(each.first, facts, target, estimate));
        }))
      continue;
    std::vector<PlanParameterInfo> parameters;
    if (!row.plan.empty())
      parameters = plan.listParameters();
    bool holds = llvm::all_of(row.plan, [&](const auto &each) {
      return llvm::any_of(parameters, [&](const PlanParameterInfo &info) {
        return info.name == each.first &&
               each.second.holds(StringRef(info.value));
      });
    });
    if (holds && !row.beside.empty()) {
      llvm::Expected<const Schedule &> other = lookupSchedule(row.beside);
      holds = bool(other);
      llvm::Error error =
          other ? other->isApplicable(facts, target) : other.takeError();
      if (error)
        holds = false;
      llvm::consumeError(std::move(error));
    }
    if (holds)
      margin = row.margin;
  }
  return margin;
}
