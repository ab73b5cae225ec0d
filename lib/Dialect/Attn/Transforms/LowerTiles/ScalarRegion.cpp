//===- ScalarRegion.cpp - Regions inlined for each element ----------------===//

#include "ScalarRegion.h"
#include "FindKey.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Keys of a word, one for each lane.
static constexpr int64_t kWordKeys = TileLayout::numLanes;
/// Columns that a thread has of each word at least, so that its words take less
/// than to ask for each of its own keys.
static constexpr int64_t kLeastColumns = 4;

//===----------------------------------------------------------------------===//
// Operations of a region
//===----------------------------------------------------------------------===//

SmallVector<Operation *> lowering::listOperations(Block &block) {
  return llvm::map_to_vector(block.without_terminator(),
                             [](Operation &op) { return &op; });
}

LogicalResult lowering::inlineScalars(PartitionLowering &lowering,
                                      ImplicitLocOpBuilder &b,
                                      ArrayRef<Operation *> operations,
                                      IRMapping &mapping) {
  for (Operation *inner : operations) {
    if (inner->getNumOperands() == 1 && inner->getNumResults() == 1) {
      // Scalars take the same approximate instructions as tiles.
      Value operand = mapping.lookupOrDefault(inner->getOperand(0));
      Value value = lowerApproximate(b, inner, operand);
      if (!value)
        value = convertByte(b, *inner, operand,
                            lowering.kernel.someTargetLacks(Capability::Fp8));
      if (value) {
        mapping.map(inner->getResult(0), value);
        continue;
      }
    }
    Operation *copy = b.clone(*inner, mapping);
    if (auto find = dyn_cast<FindKeyOp>(copy)) {
      mapping.map(inner->getResult(0), emitFoundKey(find));
      copy->erase();
      continue;
    }
    for (Region &region : copy->getRegions())
      for (Block &block : region)
        if (failed(lowering.lowerBlock(block)))
          return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Bits of keys
//===----------------------------------------------------------------------===//

/// True if the operation reads memory, and does nothing else to it.
static bool readsOnly(Operation *op) {
  auto effects = getEffectsRecursively(op);
  return effects && !effects->empty() &&
         llvm::all_of(*effects, [](const MemoryEffects::EffectInstance &each) {
           return isa<MemoryEffects::Read>(each.getEffect());
         });
}

KeyBits::KeyBits(PartitionLowering &lowering, MapElementsOp op,
                 const TileLayout &layout, const ColumnKeys &keys)
    : lowering(lowering), op(op) {
  if (hasWholeWords(layout, keys))
    find();
  if (values.empty())
    others = listOperations(op.getBody().front());
}

bool KeyBits::hasWholeWords(const TileLayout &layout, const ColumnKeys &keys) {
  if (layout.rank() != 2 || layout.shape()[1] % kWordKeys != 0)
    return false;
  // Bits of keys in a word that come from the thread's number, each once, and
  // those that come from its registers.
  int64_t ofThread = 0, ofRegisters = 0;
  auto addBasis = [&](int64_t basis) {
    int64_t bits = basis * keys.threadStep % kWordKeys;
    bool isNew = (ofThread & bits) == 0;
    ofThread |= bits;
    return isNew;
  };
  for (int64_t basis : layout.laneBases(1))
    if (basis * keys.threadStep >= kWordKeys || !addBasis(basis))
      return false;
  for (int64_t basis : layout.warpBases(1))
    if (!addBasis(basis))
      return false;
  llvm::DenseSet<int64_t> columns;
  for (int64_t column : keys.registers) {
    ofRegisters |= column % kWordKeys;
    words[column / kWordKeys];
    columns.insert(column);
  }
  return (ofThread & ofRegisters) == 0 &&
         int64_t(columns.size()) >= kLeastColumns * int64_t(words.size());
}

void KeyBits::find() {
  Block &body = op.getBody().front();
  SmallVector<Operation *> all = listOperations(body);
  // Values that are the same in all rows: whether they depend on the key, and
  // whether they do through memory.
  struct Origin {
    bool isOfKey, isRead;
  };
  llvm::MapVector<Value, Origin> known;
  known[body.getArgument(2)] = {/*isOfKey=*/true, /*isRead=*/false};
  for (Operation *each : all) {
    bool reads = readsOnly(each);
    if (each->getNumRegions() != 0 || !(reads || isPure(each)))
      continue;
    Origin origin = {false, false};
    bool isAlone = llvm::all_of(each->getOperands(), [&](Value operand) {
      auto it = known.find(operand);
      if (it == known.end())
        return operand.getParentBlock() != &body;
      origin.isOfKey |= it->second.isOfKey;
      origin.isRead |= it->second.isRead;
      return true;
    });
    if (!isAlone)
      continue;
    origin.isRead |= reads && origin.isOfKey;
    alone.push_back(each);
    for (Value result : each->getResults())
      known[result] = origin;
  }
  auto isAlone = [&](Operation *user) {
    return llvm::is_contained(alone, user);
  };
  for (auto &[value, origin] : known)
    if (value.getType().isInteger(1) && origin.isRead &&
        !llvm::all_of(value.getUsers(), isAlone))
      values.push_back(value);

  // Each element needs the operands of others, each word those of bits.
  llvm::SmallPtrSet<Operation *, 16> needed = {body.getTerminator()}, ofBits;
  bool savesReads = false;
  for (Operation *each : llvm::reverse(all)) {
    bool isNeeded = !isAlone(each), isOfBits = false;
    for (Value result : each->getResults()) {
      bool isBit = llvm::is_contained(values, result);
      isOfBits |= isBit;
      for (Operation *user : result.getUsers()) {
        isNeeded |= !isBit && needed.contains(user);
        isOfBits |= ofBits.contains(user);
      }
    }
    if (isNeeded)
      needed.insert(each);
    if (isOfBits)
      ofBits.insert(each);
    savesReads |= !isNeeded && readsOnly(each);
  }
  if (!savesReads)
    return values.clear();
  llvm::copy_if(all, std::back_inserter(others),
                [&](Operation *each) { return needed.contains(each); });
  llvm::erase_if(alone,
                 [&](Operation *each) { return !ofBits.contains(each); });
}

LogicalResult KeyBits::emit(ImplicitLocOpBuilder &b, Value threadColumn) {
  if (values.empty())
    return success();
  auto number = [&](int64_t x) -> Value {
    return arith::ConstantIntOp::create(b, x, 32);
  };
  Value moved = arith::AndIOp::create(b, threadColumn, number(kWordKeys - 1));
  Value first = arith::AddIOp::create(
      b, arith::AddIOp::create(b, op.getColumn(), lowering.lane()),
      arith::SubIOp::create(b, threadColumn, moved));
  // All lanes ask before one waits for what another says.
  for (auto &[word, bits] : words) {
    IRMapping mapping;
    mapping.map(op.getBody().getArgument(2),
                arith::AddIOp::create(b, first, number(word * kWordKeys)));
    if (failed(inlineScalars(lowering, b, alone, mapping)))
      return failure();
    for (Value value : values)
      bits.push_back(mapping.lookup(value));
  }
  for (auto &[word, bits] : words)
    for (Value &bit : bits)
      bit = arith::ShRUIOp::create(
          b,
          NVVM::VoteSyncOp::create(b, b.getI32Type(), number(-1), bit,
                                   NVVM::VoteSyncKind::ballot),
          moved);
  return success();
}

void KeyBits::map(ImplicitLocOpBuilder &b, int64_t column, IRMapping &mapping) {
  if (values.empty())
    return;
  Value bit =
      arith::ConstantIntOp::create(b, int64_t(1) << column % kWordKeys, 32);
  Value zero = arith::ConstantIntOp::create(b, 0, 32);
  for (auto [value, word] :
       llvm::zip_equal(values, words.at(column / kWordKeys)))
    mapping.map(value, arith::CmpIOp::create(
                           b, arith::CmpIPredicate::ne,
                           arith::AndIOp::create(b, word, bit), zero));
}
