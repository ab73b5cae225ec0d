//===- Factor.cpp - A calibrated number of the model of time --------------===//

#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/CalibrationFile.h"
#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"
#include "llvm/ADT/STLExtras.h"
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
  std::vector<std::optional<double>> values(std::size(kFactorNames));
  if (llvm::Error error = readFactors(*factors, values))
    return fail(llvm::toString(std::move(error)));
  Calibration result;
  result.board = board->str();
  for (auto [factor, value] : llvm::zip(kFactorNames, values)) {
    if (!value)
      return fail("expected a factor '" + llvm::StringRef(factor) +
                  "', got none");
    result.values.push_back(*value);
  }
  return result;
}

/// Returns the factors of this process.
static Calibration &getUsed() {
  static Calibration calibration = [] {
    static constexpr char text[] =
#include "Calibration.inc"
        ;
    // The text is part of the library, and a test reads it.
    return llvm::cantFail(Calibration::parse(text, "shipped"));
  }();
  return calibration;
}

const Calibration &Calibration::getShipped() { return getUsed(); }

llvm::Error mlir::attn::useCalibration(llvm::StringRef path) {
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  llvm::Expected<Calibration> calibration = Calibration::parse(*text, path);
  if (!calibration)
    return calibration.takeError();
  getUsed() = std::move(*calibration);
  return llvm::Error::success();
}
