//===- Options.cpp - The options of an attention problem ------------------===//

#include "attn/Problem/Options.h"
#include <algorithm>

using namespace mlir::attn;
using llvm::StringRef;
namespace json = llvm::json;

// What the column RECORD holds.
static constexpr bool InRecord = true, NotInRecord = false;

static constexpr OptionRow kRows[] = {
#define ATTN_OPTION(ID, NAME, KIND, VALUE, CONSTRAINTS, DOC)                   \
  {OptionKind::KIND, NAME, VALUE, CONSTRAINTS, DOC},
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  {OptionKind::Factor,  NAME,  VALUE,           CONSTRAINTS, DOC,              \
   /*isRecorded=*/true, false, FactorSign::SIGN},
#define ATTN_SWITCH(ID, NAME, DEFAULT, GIVEN, RECORD, CONSTRAINTS, DOC)        \
  {OptionKind::Switch, NAME, "", CONSTRAINTS, DOC, RECORD, DEFAULT},
#define ATTN_LENGTHS(ID, NAME, VALUE, GIVEN, RECORD, CONSTRAINTS, DOC)         \
  {OptionKind::Lengths, NAME, VALUE, CONSTRAINTS, DOC, RECORD},
#define ATTN_NUMBERS(ID, NAME, VALUE, GIVEN, RECORD, CONSTRAINTS, DOC)         \
  {OptionKind::Numbers, NAME, VALUE, CONSTRAINTS, DOC, RECORD},
#define ATTN_REGION(ID, NAME, GIVEN, RECORD, CONSTRAINTS, DOC)                 \
  {OptionKind::Region, NAME, "", CONSTRAINTS, DOC, RECORD},
#include "attn/Problem/Options.def"
};

std::string OptionRow::getFlag() const {
  std::string flag = name.str();
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

StringRef mlir::attn::stringifyOptionKind(OptionKind kind) {
  switch (kind) {
  case OptionKind::Shape:
    return "shape";
  case OptionKind::Size:
    return "size";
  case OptionKind::Count:
    return "count";
  case OptionKind::Natural:
    return "natural";
  case OptionKind::Align:
    return "align";
  case OptionKind::Window:
    return "window";
  case OptionKind::Factor:
    return "factor";
  case OptionKind::Type:
    return "type";
  case OptionKind::Order:
    return "order";
  case OptionKind::Lengths:
    return "lengths";
  case OptionKind::Numbers:
    return "numbers";
  case OptionKind::Switch:
    return "switch";
  case OptionKind::Region:
    return "region";
  }
  llvm_unreachable("covered switch");
}

llvm::ArrayRef<OptionRow> mlir::attn::getProblemOptions() { return kRows; }

json::Value mlir::attn::describeOptions() {
  json::Array rows;
  for (const OptionRow &row : kRows) {
    llvm::SmallVector<StringRef> constraints;
    StringRef(row.constraints).split(constraints, ' ', -1, /*KeepEmpty=*/false);
    json::Object object{{"name", row.name},
                        {"kind", stringifyOptionKind(row.kind)},
                        {"value", row.value},
                        {"recorded", row.isRecorded},
                        {"constraints", json::Array(constraints)},
                        {"doc", row.doc}};
    object["flag"] = row.kind == OptionKind::Region
                         ? json::Value(nullptr)
                         : json::Value(row.getFlag());
    if (row.kind == OptionKind::Switch)
      object["default"] = row.isOn;
    if (row.kind == OptionKind::Factor)
      object["sign"] = row.sign == FactorSign::Positive ? "positive" : "any";
    rows.push_back(std::move(object));
  }
  return rows;
}
