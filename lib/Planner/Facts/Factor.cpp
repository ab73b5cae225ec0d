//===- Factor.cpp - A calibrated number of the model of time --------------===//

#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/CalibrationFile.h"
#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"
#include "attn/Target/Boards.h"
#include "attn/Target/TargetTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::attn;
namespace json = llvm::json;

static constexpr int64_t kCalibrationVersion = 1;

/// Reads the value of each named factor.
static llvm::Error readFactors(const json::Array &factors,
                               std::vector<std::optional<double>> &values) {
  for (const auto &[i, value] : llvm::enumerate(factors)) {
    std::string place = "factors[" + std::to_string(i) + "]";
    const json::Object *object = value.getAsObject();
    std::optional<llvm::StringRef> factor;
    std::optional<double> number;
    if (object) {
      factor = object->getString("name");
      number = object->getNumber("value");
    }
    if (!factor || !number)
      return llvm::createStringError(
          place + ": expected an object with a name and a value");
    // How far off estimates were where it was fitted; null where nobody said.
    const json::Value *residual = object->get("residual");
    if (!residual ||
        (!residual->getAsNull() && residual->getAsNumber().value_or(-1) < 0))
      return llvm::createStringError(
          place + ": expected a residual of factor '" + *factor +
          "', a number of at least 0 or null");
    unsigned index = findFactor(*factor);
    if (index == values.size())
      return llvm::createStringError(place + ": unknown factor '" + *factor +
                                     "'");
    if (values[index])
      return llvm::createStringError(place + ": factor '" + *factor +
                                     "' stands there twice");
    values[index] = number;
  }
  return llvm::Error::success();
}

/// Returns true for the factors that each file has.
static constexpr bool kScales[] = {
#define ATTN_PLAN_FACTOR(name, meaning) false,
#define ATTN_PLAN_SCALE(name, meaning) true,
#include "attn/Planner/Facts/Factors.def"
};

llvm::Expected<Calibration> Calibration::parse(llvm::StringRef text,
                                               llvm::StringRef name) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError("calibration " + name + ": " + what);
  };
  llvm::Expected<json::Value> parsed = parseJSON(text);
  if (!parsed)
    return fail(llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  const json::Array *factors = root ? root->getArray("factors") : nullptr;
  std::optional<llvm::StringRef> board;
  if (root)
    board = root->getString("board");
  if (!factors || !board || root->getInteger("version") != kCalibrationVersion)
    return fail("expected version " + llvm::Twine(kCalibrationVersion) +
                ", a board and an array \"factors\"");
  const Calibration *base = nullptr;
  if (std::optional<llvm::StringRef> other = root->getString("clocks_of")) {
    base = *other == *board ? nullptr : findShipped(*other);
    if (!base)
      return fail("expected another board with a file in 'clocks_of', got '" +
                  *other + "'");
  }
  std::vector<std::optional<double>> values(std::size(kFactorNames));
  if (llvm::Error error = readFactors(*factors, values))
    return fail(llvm::toString(std::move(error)));
  Calibration result;
  result.board = board->str();
  for (const auto &[i, value] : llvm::enumerate(values)) {
    if (!value && base && !kScales[i])
      value = base->values[i];
    if (!value)
      return fail("expected a factor '" + llvm::StringRef(kFactorNames[i]) +
                  "', got none");
    result.values.push_back(*value);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Files of the library
//===----------------------------------------------------------------------===//

namespace {
struct ShippedFile {
  llvm::StringLiteral board;
  const char *text;
};
} // namespace

/// The board whose file has all factors, before others that refer to it.
static constexpr llvm::StringLiteral kMeasuredBoard("h200");

static constexpr ShippedFile kShippedFiles[] = {
#include "Calibration.inc"
};

static llvm::StringMap<Calibration> readShipped(bool isMeasured) {
  llvm::StringMap<Calibration> calibrations;
  // The texts are part of the library, and a test reads them.
  for (const ShippedFile &file : kShippedFiles)
    if ((file.board == kMeasuredBoard) == isMeasured)
      calibrations.try_emplace(file.board, llvm::cantFail(Calibration::parse(
                                               file.text, file.board)));
  return calibrations;
}

const Calibration *Calibration::findShipped(llvm::StringRef board) {
  static const llvm::StringMap<Calibration> measured = readShipped(true);
  auto found = measured.find(board);
  if (found != measured.end())
    return &found->second;
  static const llvm::StringMap<Calibration> others = readShipped(false);
  found = others.find(board);
  return found != others.end() ? &found->second : nullptr;
}

//===----------------------------------------------------------------------===//
// The calibration in use
//===----------------------------------------------------------------------===//

/// Holds the file that a flag named, if any.
static std::optional<Calibration> &getGiven() {
  static std::optional<Calibration> given;
  return given;
}

static thread_local const Calibration *inScope = nullptr;

const Calibration &Calibration::getUsed() {
  if (const std::optional<Calibration> &given = getGiven())
    return *given;
  return inScope ? *inScope : *findShipped(kMeasuredBoard);
}

llvm::Error mlir::attn::useCalibration(llvm::StringRef path) {
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  llvm::Expected<Calibration> calibration = Calibration::parse(*text, path);
  if (!calibration)
    return calibration.takeError();
  getGiven() = std::move(*calibration);
  return llvm::Error::success();
}

CalibrationScope::CalibrationScope(const TargetRow &target) : before(inScope) {
  for (const Board &board : getBoards())
    if (board.title == target.board)
      inScope = Calibration::findShipped(board.name);
}

CalibrationScope::~CalibrationScope() { inScope = before; }

double Calibration::getScale(const ProblemFacts &facts,
                             llvm::StringRef schedule) const {
  double scale = 1;
  auto apply = [&](llvm::StringRef kind) {
    unsigned index = findFactor((kind + "." + schedule).str());
    if (index != values.size())
      scale *= values[index];
  };
  apply("time");
  if (facts.cuSeqlensQ)
    apply("packed");
  if (facts.hasLengths())
    apply("lengths");
  if (facts.isPaged())
    apply("pages");
  return scale;
}
