//===- Words.cpp - Words of shared memory that signals order --------------===//
//
// Single elements that one thread hands to others, tiles that CTAs send each
// other, clusters that one takes over, and the largest element of a tile, which
// joins a word of global memory.
//
//===----------------------------------------------------------------------===//

#include "Masks.h"
#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/WarpMax.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

Value lowering::addressOf(ImplicitLocOpBuilder &b, Value pointer) {
  return LLVM::PtrToIntOp::create(b, b.getI32Type(), pointer);
}

Value lowering::emitOrdered(ImplicitLocOpBuilder &b, Type result,
                            StringRef text, StringRef constraints,
                            ValueRange operands) {
  auto op = LLVM::InlineAsmOp::create(
      b, result ? TypeRange(result) : TypeRange(), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  return result ? op->getResult(0) : Value();
}

/// An access to `count` elements of 32 bits as PTX has it: ".v2.b32", and the
/// operands from number `first` on as "{$1, $2}".
static std::pair<std::string, std::string> formatWords(unsigned count,
                                                       unsigned first) {
  std::string words;
  for (unsigned i = 0; i < count; ++i)
    words += llvm::formatv("{0}${1}", i ? ", " : "", first + i);
  if (count == 1)
    return {".b32", words};
  return {llvm::formatv(".v{0}.b32", count), "{" + words + "}"};
}

/// As many constraints of registers for `type`, with `prefix` in front of each.
static std::string formatRegisters(unsigned count, Type type,
                                   StringRef prefix = "") {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (prefix + (type.isF32() ? "f," : "r,")).str();
  return text;
}

SmallVector<Value> lowering::loadSent(ImplicitLocOpBuilder &b, Value pointer,
                                      unsigned count, Type type) {
  auto [suffix, words] = formatWords(count, 0);
  Type result = type;
  if (count > 1)
    result = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                              SmallVector<Type>(count, type));
  Value loaded = emitOrdered(
      b, result,
      llvm::formatv("ld.shared{0} {1}, [${2}];", suffix, words, count).str(),
      formatRegisters(count, type, "=") + "r,~{memory}", addressOf(b, pointer));
  if (count == 1)
    return {loaded};
  SmallVector<Value> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  return values;
}

/// Elements of a word of 32 bits.
static unsigned getElementsPerWord(Type elementType) {
  return 32 / elementType.getIntOrFloatBitWidth();
}

/// The word that begins at each register of a tile whose elements are
/// `scalars`, where an access of `plan` needs one; failure where the elements
/// of a word are not neighbours.
static FailureOr<SmallVector<Value>> packWords(ImplicitLocOpBuilder &b,
                                               const TileValue &tile,
                                               ArrayRef<Value> scalars,
                                               const VectorPlan &plan) {
  unsigned perWord = getElementsPerWord(tile.elementType);
  if (perWord == 1)
    return llvm::to_vector(scalars);
  SmallVector<Value> words(scalars.size());
  for (const VectorAccess &access : plan.accesses) {
    ArrayRef<unsigned> registers = access.registers;
    if (registers.size() % perWord != 0)
      return failure();
    for (unsigned i = 0; i < registers.size(); i += perWord)
      words[registers[i]] = LLVM::BitcastOp::create(
          b, b.getI32Type(),
          gather(b, tile, scalars, registers.slice(i, perWord)));
  }
  return words;
}

template <>
LogicalResult PartitionLowering::lower(LocalSendOp op) {
  if (!op.getBarriers())
    return op.emitOpError("expected a barrier instead of a token; "
                          "attn-lower-channels makes it one");
  FailureOr<TileValue> source = tile(op, op.getValue());
  BufferValue buffer = kernel.buffers.lookup(op.getDest());
  FailureOr<SharedLayout> memory = layoutOf(op, buffer.type);
  if (failed(source) || failed(memory))
    return failure();
  llvm::Expected<VectorPlan> plan = planSharedAccess(source->layout, *memory);
  if (!plan)
    return op.emitOpError() << llvm::toString(plan.takeError());
  // Each warp sends as many bytes: those of its own rows.
  if (plan->warpBroadcastMask != 0)
    return op.emitOpError(
        "expected a tile of which each warp holds elements of "
        "its own, whose bytes count once");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  FailureOr<SmallVector<Value>> words =
      packWords(b, *source, unpack(b, *source), *plan);
  if (failed(words))
    return op.emitOpError(
        "expected two neighbours of a row in each thread, for "
        "words of 32 bits");
  if (Value predicate = copyPredicate(b, plan->laneBroadcastMask, 0)) {
    auto branch = scf::IfOp::create(b, predicate, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  Value rank = NVVM::ClusterId::create(b, b.getI32Type());
  Value other =
      arith::XOrIOp::create(b, rank, arith::ConstantIntOp::create(b, 1, 32));
  Value barrier = addressOf(
      b, remotePointer(b, barrierPointer(b, op.getBarriers(), op.getWhich()),
                       other));
  Value base = remotePointer(b, buffer.base, other);
  unsigned perWord = getElementsPerWord(source->elementType);
  for (const VectorAccess &access : plan->accesses) {
    unsigned count = access.registers.size() / perWord;
    auto [suffix, text] = formatWords(count, 1);
    SmallVector<Value> operands = {
        addressOf(b, address(b, base, plan->forms, access.address))};
    for (unsigned i = 0; i < count; ++i)
      operands.push_back((*words)[access.registers[i * perWord]]);
    Type type = operands[1].getType();
    operands.push_back(barrier);
    emitOrdered(
        b, Type(),
        llvm::formatv("st.async.shared::cluster.mbarrier::complete_tx::bytes"
                      "{0} [$0], {1}, [${2}];",
                      suffix, text, count + 1)
            .str(),
        "r," + formatRegisters(count, type) + "r,~{memory}", operands);
  }
  return success();
}

/// The pointer to an element of 4 bytes.
static Value scalarPointer(ImplicitLocOpBuilder &b, Value base, Value index) {
  return LLVM::GEPOp::create(b, base.getType(), b.getI32Type(), base,
                             ValueRange{index});
}

/// Nothing behind it is issued before a word is there, which a signal to
/// another CTA might overtake else: whether there is a fence depends on it. The
/// number is one that words have seldom.
static void awaitWord(ImplicitLocOpBuilder &b, Value word) {
  Value seldom = arith::ConstantIntOp::create(b, INT32_MIN, 32);
  Value isSeldom =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, word, seldom);
  emitOrdered(b, Type(), "@$0 fence.acq_rel.cta;", "b,~{memory}", isSeldom);
}

static bool isInCluster(gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  return size && llvm::any_of(*size, [](int32_t ctas) { return ctas > 1; });
}

/// The word is used at once. The shuffle alone is no use: ptxas drops it where
/// it sees that the address is the same in all lanes.
template <>
LogicalResult PartitionLowering::lower(ScalarLoadOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value address =
      addressOf(b, scalarPointer(b, kernel.buffers.lookup(op.getSource()).base,
                                 op.getIndex()));
  Value value = emitOrdered(b, b.getI32Type(), "ld.shared.b32 $0, [$1];",
                            "=r,r,~{memory}", address);
  if (!inElect) {
    // In this form ptxas sees that it is the same in all lanes.
    auto constant = [&](int64_t number) -> Value {
      return arith::ConstantIntOp::create(b, number, 32);
    };
    value = NVVM::ShflOp::create(b, b.getI32Type(), constant(-1), value,
                                 constant(0), constant(31), NVVM::ShflKind::idx,
                                 /*return_value_and_is_valid=*/UnitAttr());
  }
  if (inElect || isInCluster(kernel.func))
    awaitWord(b, value);
  op.replaceAllUsesWith(value);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(ScalarStoreOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value address =
      addressOf(b, scalarPointer(b, kernel.buffers.lookup(op.getDest()).base,
                                 op.getIndex()));
  emitOrdered(b, Type(), "st.shared.b32 [$0], $1;", "r,r,~{memory}",
              ValueRange{address, op.getValue()});
  return success();
}

template <>
LogicalResult PartitionLowering::lower(ScalarSendOp op) {
  if (!op.getBarriers())
    return op.emitOpError("expected a barrier instead of a token; "
                          "attn-lower-channels makes it one");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value element =
      scalarPointer(b, kernel.buffers.lookup(op.getDest()).base, op.getIndex());
  Value barrier = barrierPointer(b, op.getBarriers(), op.getWhich());
  // An address in shared::cta is one in shared::cluster too.
  forEachCTA(b, op.getCtas(), /*bits=*/std::nullopt, [&](auto inCTA) {
    emitOrdered(b, Type(),
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                "[$0], $1, [$2];",
                "r,r,r,~{memory}",
                ValueRange{addressOf(b, inCTA(element)), op.getValue(),
                           addressOf(b, inCTA(barrier))});
  });
  return success();
}

/// Returns the pointer to a response.
static Value responsePointer(ImplicitLocOpBuilder &b, Value base, Value index) {
  return LLVM::GEPOp::create(b, base.getType(), b.getIntegerType(128), base,
                             ValueRange{index});
}

template <>
LogicalResult PartitionLowering::lower(ClusterRequestOp op) {
  if (!op.getBarriers())
    return op.emitOpError("expected a barrier instead of a token; "
                          "attn-lower-channels makes it one");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  std::optional<int64_t> ctas = op.getCtas();
  std::optional<ArrayRef<int32_t>> size = kernel.func.getKnownClusterSize();
  int64_t all = size ? countLaunched(*size) : 1;
  if (ctas.value_or(1) != 1 && *ctas != all)
    return op.emitOpError("expected a response for all ")
           << all << " CTAs of the cluster, got one for " << *ctas;
  NVVM::ClusterLaunchControlTryCancelOp::create(
      b, /*multicast=*/ctas.has_value(),
      responsePointer(b, kernel.buffers.lookup(op.getDest()).base,
                      op.getIndex()),
      barrierPointer(b, op.getBarriers(), op.getWhich()));
  return success();
}

/// Asks what was taken over only where something was: else the answer
/// is undefined.
template <>
LogicalResult PartitionLowering::lower(ClusterResponseOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value address = addressOf(
      b, responsePointer(b, kernel.buffers.lookup(op.getSource()).base,
                         op.getIndex()));
  Value first = emitOrdered(
      b, b.getI32Type(),
      "{ .reg .pred %found; .reg .b128 %response; "
      "ld.shared.b128 %response, [$1]; mov.b32 $0, -1; "
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %found, "
      "%response; @%found clusterlaunchcontrol.query_cancel.get_first_ctaid::x."
      "b32.b128 $0, %response; }",
      "=&r,r,~{memory}", address);
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIntOp::create(b, number, 32);
  };
  if (!inElect)
    first = NVVM::ShflOp::create(b, b.getI32Type(), constant(-1), first,
                                 constant(0), constant(31), NVVM::ShflKind::idx,
                                 /*return_value_and_is_valid=*/UnitAttr());
  awaitWord(b, first);
  Value isNone =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, constant(-1));
  Value number = first;
  if (std::optional<ArrayRef<int32_t>> size = kernel.func.getKnownClusterSize();
      size && size->front() > 1)
    number = arith::DivUIOp::create(b, first, constant(size->front()));
  op.replaceAllUsesWith(
      arith::SelectOp::create(b, isNone, op.getNone(), number).getResult());
  return success();
}

template <>
LogicalResult PartitionLowering::lower(GlobalMaxOp op) {
  FailureOr<TileValue> source = tile(op, op.getValue());
  if (failed(source))
    return failure();
  const TileLayout &layout = source->layout;
  ViewValue view = kernel.views.lookup(op.getRows());
  Value threadRow = threadCoordinate(layout, 0), threadColumn;
  SmallVector<int64_t> rows = registerCoordinates(layout, 0);
  SmallVector<int64_t> columns(rows.size(), 0);
  int64_t end = 1, lastThreadColumn = 0;
  if (layout.rank() == 2) {
    threadColumn = threadCoordinate(layout, 1);
    columns = registerCoordinates(layout, 1);
    lastThreadColumn = getLastThreadColumn(layout);
    // Two columns of f4E2M1FN are a byte.
    end = view.type.getColumns() *
          (view.type.getElementType().isInteger(8) ? 2 : 1);
  }
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  };
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  // Elements of one row share its bound.
  llvm::MapVector<int64_t, Value> byRow;
  for (auto [scalar, row, column] :
       llvm::zip_equal(unpack(b, *source), rows, columns)) {
    Value size = math::AbsFOp::create(b, scalar);
    // The tile's last columns may be padding.
    if (column + lastThreadColumn >= end)
      size = arith::SelectOp::create(
          b, isBelow(threadColumn, number(end - column)), size, zero);
    Value &most = byRow[row];
    most = most ? arith::MaximumFOp::create(b, most, size).getResult() : size;
  }
  Value first = arith::AddIOp::create(b, op.getRow(), threadRow), all = zero;
  for (auto [row, most] : byRow) {
    Value position = arith::AddIOp::create(b, first, number(row)), exists;
    if (view.isScattered())
      exists =
          placeRow(b, view, position, /*column=*/Value(), view.inBounds).exists;
    else if (!view.inBounds)
      exists = isBelow(position, view.rows);
    if (exists)
      most = arith::SelectOp::create(b, exists, most, zero);
    all = arith::MaximumFOp::create(b, all, most);
  }
  // Nobody asks for what was there, which LLVM's atomics give.
  emitWarpMax(b, all, lane(), [&](Value bits) {
    emitOrdered(b, Type(), "red.relaxed.gpu.global.max.u32 [$0], $1;",
                "l,r,~{memory}", {op.getDest(), bits});
  });
  return success();
}

void lowering::addWordLowerings(LoweringTable &table) {
  table.addReplaced<LocalSendOp, ScalarLoadOp, ScalarStoreOp, ScalarSendOp,
                    ClusterRequestOp, ClusterResponseOp, GlobalMaxOp>();
}
