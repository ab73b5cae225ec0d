//===- ProblemOptions.cpp - The flags that state a problem ----------------===//

#include "ProblemOptions.h"

using namespace mlir::attn;
namespace cl = llvm::cl;

template <typename T>
ProblemOptions::Flag<T> ProblemOptions::makeFlag(std::string name,
                                                 const OptionRow &row) {
  texts.push_back(std::move(name));
  auto flag = std::make_unique<cl::opt<T>>(
      llvm::StringRef(texts.back()), cl::desc(row.doc), cl::cat(category));
  if (!row.value.empty())
    flag->setValueStr(row.value);
  if (row.kind == OptionKind::Align)
    flag->setValueExpectedFlag(cl::ValueOptional);
  return flag;
}

ProblemOptions::ProblemOptions(cl::OptionCategory &category)
    : category(category) {
  auto row = getProblemOptions().begin();
#define ATTN_OPTION(ID, NAME, KIND, VALUE, CONSTRAINTS, DOC)                   \
  ID = makeFlag<OptionValue<OptionKind::KIND>::type>(row->getFlag(), *row);    \
  ++row;
#define ATTN_SWITCH(ID, NAME, DEFAULT, GIVEN, RECORD, CONSTRAINTS, DOC)        \
  ID = makeFlag<bool>(row->getFlag(), *row);                                   \
  ID->setInitialValue(DEFAULT);                                                \
  if (DEFAULT) {                                                               \
    negations.emplace_back(ID.get(),                                           \
                           makeFlag<bool>("no-" + row->getFlag(), *row));      \
    texts.push_back("Turns --" + row->getFlag() + " off");                     \
    negations.back().second->setDescription(texts.back());                     \
  }                                                                            \
  ++row;
#define ATTN_REGION(ID, NAME, GIVEN, RECORD, CONSTRAINTS, DOC) ++row;
#include "attn/Problem/Options.def"
}

ProblemFlags ProblemOptions::get() const {
  ProblemFlags flags;
#define ATTN_OPTION(ID, NAME, KIND, VALUE, CONSTRAINTS, DOC)                   \
  if (ID->getNumOccurrences() != 0)                                            \
    flags.ID = ID->getValue();
#include "attn/Problem/Options.def"
  for (const auto &[flag, negation] : negations)
    if (*negation)
      flags.forEach([&, name = flag->ArgStr](const OptionRow &row, auto &slot) {
        if constexpr (std::is_same_v<decltype(slot), std::optional<bool> &>)
          if (row.getFlag() == name)
            slot = false;
      });
  return flags;
}

llvm::Error ProblemOptions::check() const {
  for (const auto &[flag, negation] : negations)
    if (*negation && flag->getNumOccurrences() != 0 && *flag)
      return llvm::createStringError("--" + flag->ArgStr + " and --" +
                                     negation->ArgStr +
                                     " contradict each other");
  return llvm::Error::success();
}
