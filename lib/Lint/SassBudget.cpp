//===- SassBudget.cpp - What is stored for a kernel -----------------------===//

#include "attn/Lint/SassLint.h"
#include "attn/Support/JSON.h"

using namespace mlir::attn;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Reads fields of one object and remembers the first error.
class BudgetReader {
public:
  BudgetReader(StringRef name) : name(name) {}

  unsigned count(const llvm::json::Object &object, StringRef field);
  const llvm::json::Object *object(const llvm::json::Object &object,
                                   StringRef field);
  HotLoop loop(const llvm::json::Object &object);
  llvm::Error takeError();

private:
  void fail(StringRef field, StringRef expected) {
    if (problem.empty())
      problem =
          ("budget \"" + name + "\": expected " + expected + " '" + field + "'")
              .str();
  }

  StringRef name;
  std::string problem;
};

} // namespace

unsigned BudgetReader::count(const llvm::json::Object &object,
                             StringRef field) {
  std::optional<int64_t> value = object.getInteger(field);
  if (value && *value >= 0)
    return *value;
  fail(field, "a count");
  return 0;
}

const llvm::json::Object *BudgetReader::object(const llvm::json::Object &object,
                                               StringRef field) {
  const llvm::json::Object *value = object.getObject(field);
  if (!value)
    fail(field, "an object");
  return value;
}

HotLoop BudgetReader::loop(const llvm::json::Object &object) {
  HotLoop loop;
  loop.instructions = count(object, "instructions");
  loop.tensor = count(object, "tensor");
  loop.exponentials = count(object, "exponentials");
  loop.rareInside = count(object, "rare_inside");
  loop.rareOutside = count(object, "rare_outside");
  if (const llvm::json::Object *purposes = this->object(object, "purposes"))
    for (const auto &[purpose, value] : *purposes)
      loop.purposes[StringRef(purpose).str()] = count(*purposes, purpose);
  if (object.get("moves"))
    if (const llvm::json::Object *moves = this->object(object, "moves"))
      for (const auto &[opcode, value] : *moves)
        loop.moves[StringRef(opcode).str()] = count(*moves, opcode);
  const llvm::json::Array *waits = object.getArray("waits");
  if (!waits) {
    fail("waits", "an array");
    return loop;
  }
  for (const llvm::json::Value &value : *waits) {
    const llvm::json::Object *wait = value.getAsObject();
    std::optional<StringRef> work;
    if (wait)
      work = wait->getString("work");
    if (!work) {
      fail("waits", "objects with a string \"work\" in");
      break;
    }
    loop.waits.push_back(
        {work->str(), count(*wait, "pending"), count(*wait, "exponentials")});
  }
  return loop;
}

llvm::Error BudgetReader::takeError() {
  if (problem.empty())
    return llvm::Error::success();
  return llvm::createStringError(problem);
}

llvm::Expected<SassBudget> mlir::attn::readBudget(StringRef json,
                                                  StringRef name) {
  llvm::Expected<llvm::json::Value> file = parseJSON(json);
  if (!file)
    return file.takeError();
  const llvm::json::Object *kernels = nullptr;
  if (const llvm::json::Object *root = file->getAsObject())
    kernels = root->getObject("kernels");
  const llvm::json::Object *entry = nullptr;
  if (kernels)
    entry = kernels->getObject(name);
  if (!entry)
    return llvm::createStringError("expected a budget \"" + name +
                                   "\" under \"kernels\", got none");
  BudgetReader reader(name);
  SassBudget budget;
  budget.registers = reader.count(*entry, "registers");
  budget.spillBytes = reader.count(*entry, "spill_bytes");
  budget.local = reader.count(*entry, "local");
  if (const llvm::json::Object *loop = reader.object(*entry, "hot_loop"))
    budget.loop = reader.loop(*loop);
  if (entry->get("softmax_loop"))
    if (const llvm::json::Object *loop = reader.object(*entry, "softmax_loop"))
      budget.softmaxLoop = reader.loop(*loop);
  if (entry->get("epilogue"))
    if (const llvm::json::Object *code = reader.object(*entry, "epilogue"))
      budget.epilogue = reader.loop(*code);
  if (llvm::Error error = reader.takeError())
    return std::move(error);
  return budget;
}
