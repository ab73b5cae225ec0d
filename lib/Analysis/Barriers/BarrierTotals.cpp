//===- BarrierTotals.cpp - What is said of tiles that differ --------------===//
//
// Bounds of a loop over tiles, as they follow from the place of the CTA.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "LaunchNumbers.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Longer expressions are cut off.
static constexpr unsigned kMostDepth = 8;
/// Of more tiles the first ones are named.
static constexpr int64_t kMostNamed = 4;

static std::string print(Value value, unsigned depth = 0) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return std::to_string(constant.getSExtValue());
  Operation *def = value.getDefiningOp();
  if (!def || depth == kMostDepth)
    return "...";
  if (isa<gpu::BlockIdOp>(def))
    return "block";
  if (isa<gpu::GridDimOp>(def))
    return "grid";
  StringRef name = def->getName().stripDialect();
  if (def->getNumOperands() == 1 &&
      (name.starts_with("index_cast") || name.starts_with("ext") ||
       name.starts_with("trunc")))
    return print(def->getOperand(0), depth + 1);
  StringRef sign = llvm::StringSwitch<StringRef>(name)
                       .Case("addi", "+")
                       .Case("subi", "-")
                       .Case("muli", "*")
                       .Cases({"divui", "divsi"}, "/")
                       .Cases({"remui", "remsi"}, "%")
                       .Default("");
  if (!sign.empty())
    return llvm::formatv("({0} {1} {2})", print(def->getOperand(0), depth + 1),
                         sign, print(def->getOperand(1), depth + 1));
  std::string text = name.str() + "(";
  llvm::ListSeparator comma;
  for (Value operand : def->getOperands())
    text +=
        llvm::formatv("{0}{1}", StringRef(comma), print(operand, depth + 1));
  return text + ")";
}

std::string barriers::describeTiles(scf::ForOp loop, const WalkedTiles &tiles,
                                    int64_t block) {
  std::string text = llvm::formatv(
      "CTA {0} walks {1} tiles in this loop, from {2} to {3} by {4}", block,
      tiles.count, print(loop.getLowerBound()), print(loop.getUpperBound()),
      print(loop.getStep()));
  if (tiles.count == 0)
    return text;
  std::vector<int64_t> first = tiles.getFirst(kMostNamed);
  text += llvm::formatv(": {0:$[, ]}",
                        llvm::make_range(first.begin(), first.end()));
  return tiles.count > kMostNamed ? text + ", ..." : text;
}
