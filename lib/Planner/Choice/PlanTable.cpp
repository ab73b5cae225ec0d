//===- PlanTable.cpp - Plans that were measured ---------------------------===//

#include "attn/Planner/Choice/PlanTable.h"
#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"
#include "attn/Target/Boards.h"
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
  llvm::Error readProblem(const json::Object &problem, const Twine &place,
                          PlanTableEntry &entry);
  /// Refuses rows of one rank that both cover some problem.
  llvm::Error checkOverlaps(llvm::ArrayRef<PlanTableEntry> entries);

  StringRef name;
};

} // namespace

/// Reads the names in an array of strings; nothing if it is none.
static std::optional<std::vector<std::string>>
readNames(const json::Array *array) {
  if (!array)
    return std::nullopt;
  std::vector<std::string> names;
  for (const json::Value &value : *array) {
    std::optional<StringRef> name = value.getAsString();
    if (!name)
      return std::nullopt;
    names.push_back(name->str());
  }
  return names;
}

llvm::Error TableReader::readProblem(const json::Object &problem,
                                     const Twine &place,
                                     PlanTableEntry &entry) {
  auto readField = [&](StringRef field, StringRef expected) -> llvm::Error {
    const json::Value *value = problem.get(field);
    if (!value)
      return fail(place + "." + field, "expected " + expected);
    llvm::Expected<Condition> condition = Condition::parse(*value);
    if (!condition)
      return fail(place + "." + field, llvm::toString(condition.takeError()));
    entry.fields.emplace_back(field.str(), *condition);
    return llvm::Error::success();
  };
  for (StringRef field : kTexts) {
    // Masks have numbers and commas in their texts.
    if (!problem.getString(field))
      return fail(place + "." + field, "expected a string");
    if (llvm::Error error = readField(field, "a string"))
      return error;
  }
  for (StringRef field : kExtents)
    if (llvm::Error error =
            readField(field, "an integer, a range of them or \"dynamic\""))
      return error;
  if (problem.getString("features") == "any")
    return llvm::Error::success();
  entry.features = readNames(problem.getArray("features"));
  if (!entry.features)
    return fail(place + ".features", "expected an array of strings or \"any\"");
  llvm::sort(*entry.features);
  return llvm::Error::success();
}

llvm::Expected<PlanTableEntry> TableReader::readEntry(const json::Value &value,
                                                      const Twine &place) {
  const json::Object *object = value.getAsObject();
  const json::Object *problem = object ? object->getObject("problem") : nullptr;
  if (!problem)
    return fail(place, "expected an object with an object \"problem\" in it");
  PlanTableEntry entry;
  if (llvm::Error error = readProblem(*problem, place + ".problem", entry))
    return std::move(error);
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
  if (const json::Value *rank = object->get("rank")) {
    if (!rank->getAsInteger())
      return fail(place + ".rank", "expected an integer");
    entry.rank = *rank->getAsInteger();
  }
  if (object->get("boards")) {
    auto boards = readNames(object->getArray("boards"));
    if (!boards || boards->empty())
      return fail(place + ".boards", "expected an array of names of boards");
    entry.boards = std::move(*boards);
  }
  return std::move(entry);
}

/// Returns true if some problem on some board is in the classes of both rows.
static bool overlap(const PlanTableEntry &a, const PlanTableEntry &b) {
  bool shareBoard = a.boards.empty() || b.boards.empty() ||
                    llvm::any_of(a.boards, [&](const std::string &board) {
                      return llvm::is_contained(b.boards, board);
                    });
  bool shareFeatures = !a.features || !b.features || *a.features == *b.features;
  return a.chip == b.chip && shareBoard && shareFeatures &&
         llvm::all_of(llvm::zip(a.fields, b.fields), [](const auto &pair) {
           return std::get<0>(pair).second.overlaps(std::get<1>(pair).second);
         });
}

llvm::Error TableReader::checkOverlaps(llvm::ArrayRef<PlanTableEntry> entries) {
  for (const auto &[i, a] : llvm::enumerate(entries))
    for (const auto &[j, b] : llvm::enumerate(entries.take_front(i)))
      if (a.rank == b.rank && overlap(a, b))
        return fail("plans[" + Twine(j) + "] in line " + Twine(b.line) +
                        " and plans[" + Twine(i) + "] in line " + Twine(a.line),
                    "expected classes without a problem in common, or "
                    "another rank");
  return llvm::Error::success();
}

/// Returns the lines that the objects in the array "plans" begin in.
static std::vector<unsigned> findLines(StringRef text) {
  std::vector<unsigned> lines;
  unsigned line = 1, depth = 0;
  bool isPlans = false;
  for (size_t i = 0; i != text.size(); ++i) {
    char c = text[i];
    line += c == '\n';
    if (c == '"') {
      size_t begin = ++i;
      while (text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
      if (depth == 1)
        isPlans = text.slice(begin, i) == "plans";
    } else if (c == '{' || c == '[') {
      if (depth == 2 && isPlans)
        lines.push_back(line);
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return lines;
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
  for (const auto &[entry, line] : llvm::zip(entries, findLines(text)))
    entry.line = line;
  if (llvm::Error error = checkOverlaps(entries))
    return std::move(error);
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

/// Returns true if a condition holds for a field of a problem.
static bool holds(const Condition &condition, const json::Value &value) {
  if (std::optional<int64_t> number = value.getAsInteger())
    return condition.holds(*number);
  return condition.holds(*value.getAsString());
}

/// Returns the name of the board that a target has the numbers of.
static StringRef getBoardName(const TargetRow &target) {
  for (const Board &board : getBoards())
    if (board.title == target.board)
      return board.name;
  return "";
}

const PlanTableEntry *PlanTable::find(const ProblemFacts &facts,
                                      const TargetRow &target) const {
  json::Object problem = describeProblem(facts);
  StringRef board = getBoardName(target);
  auto covers = [&](const PlanTableEntry &entry) {
    bool isOfTarget =
        entry.chip == target.chip &&
        (entry.boards.empty() || llvm::is_contained(entry.boards, board));
    return isOfTarget &&
           (!entry.features ||
            *entry.features == readNames(problem.getArray("features"))) &&
           llvm::all_of(entry.fields, [&](const auto &field) {
             return holds(field.second, *problem.get(field.first));
           });
  };
  const PlanTableEntry *best = nullptr;
  for (const PlanTableEntry &entry : entries)
    if ((!best || entry.rank > best->rank) && covers(entry))
      best = &entry;
  return best;
}
