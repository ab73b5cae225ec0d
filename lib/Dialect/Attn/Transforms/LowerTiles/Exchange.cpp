//===- Exchange.cpp - Registers that lanes exchange -----------------------===//

#include "Exchange.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Returns a value of another lane, which moves as 32 bits.
static Value shuffle(ImplicitLocOpBuilder &b, Value value, Value lane,
                     NVVM::ShflKind kind) {
  Type type = value.getType();
  bool narrow = !type.isF32() && !type.isInteger(32);
  Value word =
      narrow ? LLVM::BitcastOp::create(b, b.getI32Type(), value).getResult()
             : value;
  Value all = arith::ConstantIntOp::create(b, -1, 32);
  Value clamp = arith::ConstantIntOp::create(b, 31, 32);
  Value moved = NVVM::ShflOp::create(b, word.getType(), all, word, lane, clamp,
                                     kind, UnitAttr());
  return narrow ? LLVM::BitcastOp::create(b, type, moved).getResult() : moved;
}

void lowering::exchangeRegisters(ImplicitLocOpBuilder &b,
                                 const ConversionPlan &plan, unsigned packing,
                                 Value lane, LaneNumber combine,
                                 MutableArrayRef<Value> registers) {
  for (const ShuffleRound &round : plan.rounds) {
    if (round.kind == ShuffleRound::Kind::Permute) {
      SmallVector<int64_t> constants(round.sourceLanes.begin(),
                                     round.sourceLanes.end());
      Value sourceLane = combine(constants);
      for (Value &value : registers)
        value = shuffle(b, value, sourceLane, NVVM::ShflKind::idx);
      continue;
    }
    unsigned bit = round.registerBit - llvm::Log2_32(packing);
    Value distance =
        arith::ConstantIntOp::create(b, int64_t(1) << round.laneBit, 32);
    Value isClear = arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq,
        arith::AndIOp::create(b, lane, distance).getResult(),
        arith::ConstantIntOp::create(b, 0, 32).getResult());
    for (unsigned low = 0; low < registers.size(); ++low) {
      unsigned high = low ^ (1u << bit);
      if (low > high)
        continue;
      Value lowValue = registers[low], highValue = registers[high];
      Value give = arith::SelectOp::create(b, isClear, highValue, lowValue);
      Value got = shuffle(b, give, distance, NVVM::ShflKind::bfly);
      registers[low] = arith::SelectOp::create(b, isClear, lowValue, got);
      registers[high] = arith::SelectOp::create(b, isClear, got, highValue);
    }
  }
}

/// Returns true if a layout's registers are pairs of neighbours, one behind the
/// other.
static bool holdsPairs(const TileLayout &layout) {
  auto pairs = findPairs(layout);
  for (auto [number, pair] : llvm::enumerate(pairs))
    if (pair != std::pair(unsigned(2 * number), unsigned(2 * number + 1)))
      return false;
  return !pairs.empty();
}

FailureOr<SmallVector<Value>>
lowering::exchangePairs(ImplicitLocOpBuilder &b, const ConversionPlan &plan,
                        const TileValue &source, const TileLayout &target,
                        Value lane, LaneNumber combine) {
  constexpr unsigned kElements = 2 * kWordBytes;
  unsigned count = plan.initialRegisters.size();
  if (plan.kind != ConversionKind::Shuffles || count % kElements != 0 ||
      !plan.movesPacks(kElements) || !holdsPairs(source.layout) ||
      !holdsPairs(target))
    return failure();
  SmallVector<Value> words;
  for (unsigned reg = 0; reg < count; reg += kElements)
    words.push_back(
        joinBytes(b, ArrayRef(source.values)
                         .slice(plan.initialRegisters[reg] / 2, kWordBytes)));
  exchangeRegisters(b, plan, kElements, lane, combine, words);
  SmallVector<SmallVector<Value>> ofWords;
  for (Value word : words)
    ofWords.push_back(splitWord(b, word));
  SmallVector<Value> bytes;
  for (unsigned reg = 0; reg < plan.finalRegisters.size(); reg += 2) {
    unsigned from = plan.finalRegisters[reg];
    if (from % 2 != 0 || plan.finalRegisters[reg + 1] != from + 1)
      return failure();
    bytes.push_back(ofWords[from / kElements][from % kElements / 2]);
  }
  return bytes;
}
