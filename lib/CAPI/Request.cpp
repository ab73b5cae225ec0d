//===- Request.cpp - Options of the C interface ---------------------------===//

#include "Request.h"
#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include <mutex>

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Reads options into the flags of a problem and the options of a compilation.
class OptionReader {
public:
  llvm::Error read(StringRef name, StringRef value);

  ProblemFlags problem;
  CompileOptions compile;

private:
  llvm::Error fail(StringRef name, const Twine &message) {
    return llvm::createStringError("option \"" + name + "\": " + message);
  }
  llvm::Error readValue(StringRef name, StringRef value, bool &result);
  llvm::Error readValue(StringRef name, StringRef value, int64_t &result);
  llvm::Error readValue(StringRef name, StringRef value, std::string &result);
  llvm::Error readRung(StringRef value);
};

} // namespace

llvm::Error OptionReader::readValue(StringRef name, StringRef value,
                                    bool &result) {
  if (!value.empty() && value != "true" && value != "false")
    return fail(name, "expected true or false, got \"" + value + "\"");
  result = value != "false";
  return llvm::Error::success();
}

llvm::Error OptionReader::readValue(StringRef name, StringRef value,
                                    int64_t &result) {
  if (value.getAsInteger(10, result))
    return fail(name, "expected an integer, got \"" + value + "\"");
  return llvm::Error::success();
}

llvm::Error OptionReader::readValue(StringRef name, StringRef value,
                                    std::string &result) {
  result = value.str();
  return llvm::Error::success();
}

llvm::Error OptionReader::readRung(StringRef value) {
  llvm::Expected<Rung> rung = parseRung(value);
  if (!rung)
    return fail("emit", llvm::toString(rung.takeError()));
  compile.last = *rung;
  return llvm::Error::success();
}

llvm::Error OptionReader::read(StringRef name, StringRef value) {
  std::optional<llvm::Error> read;
  problem.forEach([&](const OptionRow &row, auto &slot) {
    if (row.getFlag() == name)
      read.emplace(readValue(name, value, slot.emplace()));
  });
  if (read)
    return std::move(*read);
  const std::pair<StringRef, bool *> bools[] = {
      {"shipped-plans", &compile.shippedPlans},
      {"read-masks", &compile.readMasks},
      {"assemble-check", &compile.assembleCheck},
      {"split-keys", &compile.splitKeys},
      {"debug-lines", &compile.debugLines},
      {"check-barriers", &compile.checkBarriers},
      {"require-proof", &compile.requireProof}};
  for (auto [option, slot] : bools)
    if (option == name)
      return readValue(name, value, *slot);
  if (name == "chip")
    compile.chip = value.str();
  else if (name == "board")
    compile.board = value.str();
  else if (name == "schedule")
    compile.schedule = value.str();
  else if (name == "plan-table")
    compile.planTable = value.str();
  else if (name == "epilogue")
    compile.epilogue = value.str();
  else if (name == "partials")
    compile.partials = value.str();
  else if (name == "set")
    compile.set.push_back(value.str());
  else if (name == "emit")
    return readRung(value);
  else
    return fail(name, "there is no such option");
  return llvm::Error::success();
}

llvm::Expected<ParsedRequest>
mlir::attn::parseRequest(const AttnRequest &request) {
  OptionReader reader;
  for (const auto &[name, value] : request.options)
    if (llvm::Error error = reader.read(name, value))
      return std::move(error);
  llvm::Expected<const TargetRow &> target =
      lookupTarget(reader.compile.getChip());
  if (!target)
    return target.takeError();
  ParsedRequest parsed;
  parsed.compile = std::move(reader.compile);
  std::string first = reader.problem.getFirstGiven();
  if (request.text) {
    if (!first.empty())
      return llvm::createStringError(
          "option \"" + first +
          "\" describes a problem, but the problem comes from text");
    return std::move(parsed);
  }
  if (first.empty())
    return llvm::createStringError(
        "expected a problem as text or as option \"q\", got neither");
  llvm::Expected<Problem> problem = parseProblem(reader.problem);
  if (!problem)
    return problem.takeError();
  parsed.problem = std::move(*problem);
  return std::move(parsed);
}

OwningOpRef<ModuleOp> mlir::attn::makeModule(const AttnRequest &request,
                                             const ParsedRequest &parsed,
                                             MLIRContext &context,
                                             llvm::SourceMgr &sources) {
  OwningOpRef<ModuleOp> module;
  if (parsed.problem) {
    module = buildProblem(&context, *parsed.problem);
  } else {
    if (std::optional<TextProblem> problem = findTextProblem(*request.text)) {
      emitError(FileLineColLoc::get(&context, request.fileName, problem->line,
                                    problem->column))
          << problem->message;
      return nullptr;
    }
    sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(*request.text, request.fileName),
        llvm::SMLoc());
    module = parseSourceFile<ModuleOp>(sources, &context);
  }
  if (!module || failed(verify(*module)))
    return nullptr;
  return module;
}

std::optional<std::string>
mlir::attn::runSafely(llvm::function_ref<void()> function) {
  // The compiler applies the pass manager's command line options, which have
  // to exist, with their defaults, where there is no command line.
  static std::once_flag once;
  std::call_once(once, [] { registerPassManagerCLOptions(); });
  return runGuarded(function);
}
