//===- RowMaxima.cpp - Maxima of rows from loads of tensor memory ---------===//

#include "attn/Dialect/Attn/IR/RowMaxima.h"

using namespace mlir;
using namespace mlir::attn;

/// True if the instructions of `load` can have the maxima of its rows.
static bool canReduce(TmemLoadOp load) {
  InFlightType type = load.getResult().getType();
  auto layout = dyn_cast_or_null<TmemRegsLayoutAttr>(type.getLayout());
  int64_t columns = type.getShape().back();
  return !load.getReduce() && layout &&
         layout.getShape() == TmemShape::S32x32b && layout.getWarps()[1] == 1 &&
         type.getElementType().isF32() && columns >= 2 && columns <= 128 &&
         llvm::isPowerOf2_64(columns);
}

/// The load whose tile `reduce` reduces, and nothing else; null if there is
/// none that can do it.
static TmemLoadOp findLoad(ReduceOp reduce) {
  auto wait = reduce.getSource().getDefiningOp<TmemWaitOp>();
  if (reduce.getKind() == ReduceKind::Add || !wait)
    return {};
  unsigned index = cast<OpResult>(reduce.getSource()).getResultNumber();
  auto load = wait.getSources()[index].getDefiningOp<TmemLoadOp>();
  if (!load || !canReduce(load) || !load.getResult().hasOneUse())
    return {};
  return load;
}

/// Gives `load` and the wait for it the maxima of its rows, and `reduce` away.
static void takeOver(TmemLoadOp load, ReduceOp reduce) {
  InFlightType type = load.getResult().getType();
  MLIRContext *context = load.getContext();
  auto rows = InFlightType::get(
      context, type.getShape().take_front(), type.getElementType(),
      SliceLayoutAttr::get(context, 1, type.getLayout()));
  OpBuilder builder(load);
  auto loaded =
      TmemLoadOp::create(builder, load.getLoc(), type, rows, load.getSource(),
                         ReduceKindAttr::get(context, reduce.getKind()));
  auto wait = cast<TmemWaitOp>(*load.getResult().user_begin());
  SmallVector<Value> sources = llvm::to_vector(wait.getSources());
  llvm::replace(sources, load.getResult(), loaded.getResult());
  sources.push_back(loaded.getRowValues());
  SmallVector<Type> types = llvm::to_vector(wait.getResultTypes());
  types.push_back(reduce.getType());
  builder.setInsertionPoint(wait);
  auto awaited = TmemWaitOp::create(builder, wait.getLoc(), types, sources);
  reduce.replaceAllUsesWith(awaited.getResults().back());
  reduce.erase();
  wait->replaceAllUsesWith(awaited.getResults().drop_back());
  wait.erase();
  load.erase();
}

bool attn::fuseRowMaximum(ReduceOp reduce) {
  TmemLoadOp load = findLoad(reduce);
  if (!load)
    return false;
  takeOver(load, reduce);
  return true;
}
