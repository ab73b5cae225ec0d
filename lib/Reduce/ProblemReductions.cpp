//===- ProblemReductions.cpp - Reductions of attn.attention ---------------===//
//
// First what the problem can do without, then its extents: each is set to 1 or
// 8, or halved, in all operands that share it, as long as these are arguments
// of the function.
//
//===----------------------------------------------------------------------===//

#include "Reductions.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

/// A dimension of an operand.
using OperandDim = std::pair<Value, unsigned>;

/// Adapts a reduction of one op class.
template <typename Fn>
static Reduction onAttention(Fn fn) {
  return [fn](Operation *op, RewriterBase &rewriter) {
    return fn(cast<AttentionOp>(op), rewriter);
  };
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// Removes attributes; failure if there are none.
static Reduction dropAttributes(ArrayRef<StringRef> names) {
  return onAttention(
      [names = llvm::to_vector(names)](AttentionOp op, RewriterBase &rewriter) {
        bool any = false;
        rewriter.modifyOpInPlace(op, [&] {
          for (StringRef name : names)
            any |= static_cast<bool>(op->removeAttr(name));
        });
        return success(any);
      });
}

static Reduction dropRegion(unsigned index) {
  return onAttention([index](AttentionOp op, RewriterBase &rewriter) {
    Region &region = op->getRegion(index);
    if (region.empty())
      return failure();
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&region.front()); });
    return success();
  });
}

using GetOperands = SmallVector<MutableOperandRange> (*)(AttentionOp);

/// Removes optional operands, and attributes that only have a meaning with
/// them.
static Reduction dropOperands(GetOperands operands,
                              ArrayRef<StringRef> attributes = {}) {
  return onAttention([operands, attributes = llvm::to_vector(attributes)](
                         AttentionOp op, RewriterBase &rewriter) {
    bool any = false;
    rewriter.modifyOpInPlace(op, [&] {
      for (MutableOperandRange range : operands(op))
        if (!range.empty()) {
          any = true;
          range.clear();
        }
      for (StringRef name : attributes)
        op->removeAttr(name);
    });
    return success(any);
  });
}

/// Removes the arguments of the function around `op` that have no uses.
static LogicalResult dropUnusedArguments(AttentionOp op,
                                         RewriterBase &rewriter) {
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (!function || function.isExternal())
    return failure();
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument argument : function.getArguments())
    unused[argument.getArgNumber()] = argument.use_empty();
  if (unused.none())
    return failure();
  LogicalResult result = success();
  rewriter.modifyOpInPlace(function,
                           [&] { result = function.eraseArguments(unused); });
  return result;
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

/// The dimensions that share an extent, by the roles of the operands. Partial
/// results have a leading dimension.
static SmallVector<SmallVector<OperandDim>> sharedExtents(AttentionOp op) {
  unsigned lead = op.getKvSplits() ? 1 : 0;
  SmallVector<OperandDim> batch, heads, kvHeads, queries, keys, d, dv;
  Value lse = op.getLse();
  for (Value value : {op.getQ(), op.getK(), op.getV()})
    batch.push_back({value, 0});
  batch.push_back({op.getO(), lead});
  heads = {{op.getQ(), 1}, {op.getO(), lead + 1}};
  kvHeads = {{op.getK(), 1}, {op.getV(), 1}};
  queries = {{op.getQ(), 2}, {op.getO(), lead + 2}};
  keys = {{op.getK(), 2}, {op.getV(), 2}};
  d = {{op.getQ(), 3}, {op.getK(), 3}};
  dv = {{op.getV(), 3}, {op.getO(), lead + 3}};
  if (lse) {
    batch.push_back({lse, lead});
    heads.push_back({lse, lead + 1});
    queries.push_back({lse, lead + 2});
  }
  if (Value sinks = op.getSinks())
    heads.push_back({sinks, 0});
  SmallVector<OperandDim> allHeads = heads;
  llvm::append_range(allHeads, kvHeads);
  SmallVector<OperandDim> allDims = d;
  llvm::append_range(allDims, dv);
  return {batch, allHeads, heads, kvHeads, queries, keys, allDims, d, dv};
}

using ChangeExtent = int64_t (*)(int64_t);

/// Changes one extent of an operand; failure unless it is static and gets
/// smaller, and the operand is a memref that the function takes.
static LogicalResult setExtent(OperandDim place, RewriterBase &rewriter,
                               ChangeExtent change) {
  auto [value, dim] = place;
  auto type = dyn_cast<MemRefType>(value.getType());
  auto argument = dyn_cast<BlockArgument>(value);
  if (!type || !argument || dim >= type.getRank() || type.isDynamicDim(dim))
    return failure();
  Block *block = argument.getOwner();
  auto function = dyn_cast<FunctionOpInterface>(block->getParentOp());
  if (!function || !block->isEntryBlock())
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  int64_t extent = change(shape[dim]);
  if (extent >= shape[dim] || extent < 1)
    return failure();
  shape[dim] = extent;
  rewriter.modifyOpInPlace(function, [&] {
    argument.setType(MemRefType::get(shape, type.getElementType(),
                                     type.getLayout(), type.getMemorySpace()));
    function.setType(function.cloneTypeWith(block->getArgumentTypes(),
                                            function.getResultTypes()));
  });
  return success();
}

/// Changes the shared extent number `index`. An operand that takes two roles
/// (k and v may be one value) changes once.
static Reduction shrink(size_t index, ChangeExtent change) {
  return onAttention([index, change](AttentionOp op, RewriterBase &rewriter) {
    llvm::DenseSet<std::pair<Value, unsigned>> done;
    SmallVector<OperandDim> places = sharedExtents(op)[index];
    for (OperandDim place : places)
      if (done.insert(place).second &&
          failed(setExtent(place, rewriter, change)))
        return failure();
    return success();
  });
}

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

/// The number of groups that sharedExtents gives.
static constexpr size_t kNumSharedExtents = 9;

static SmallVector<Reduction> problemReductions() {
  SmallVector<Reduction> reductions = {
      dropRegion(0),
      dropRegion(1),
      dropAttributes({"mask"}),
      dropAttributes({"softcap"}),
      dropAttributes({"scale"}),
      dropAttributes({"out_scale"}),
      dropAttributes({"rope_dim"}),
      dropAttributes({"plan"}),
      dropOperands([](AttentionOp op) {
        return SmallVector<MutableOperandRange>{op.getSinksMutable()};
      }),
      dropOperands([](AttentionOp op) {
        return SmallVector<MutableOperandRange>{op.getLseMutable()};
      }),
      dropOperands(
          [](AttentionOp op) {
            return SmallVector<MutableOperandRange>{op.getCuSeqlensQMutable(),
                                                    op.getCuSeqlensKMutable()};
          },
          {"max_seqlen_q"}),
      dropOperands(
          [](AttentionOp op) {
            return SmallVector<MutableOperandRange>{op.getPageTableMutable()};
          },
          {"page_size"}),
      onAttention(dropUnusedArguments)};
  for (size_t index = 0; index < kNumSharedExtents; ++index) {
    reductions.push_back(shrink(index, [](int64_t) -> int64_t { return 1; }));
    reductions.push_back(shrink(index, [](int64_t) -> int64_t { return 8; }));
    reductions.push_back(
        shrink(index, [](int64_t extent) { return extent / 2; }));
  }
  return reductions;
}

namespace {
struct ReduceAttention : public OpRewritePattern<AttentionOp> {
  ReduceAttention(MLIRContext *context, const Tester &tester)
      : OpRewritePattern(context), tester(tester),
        reductions(problemReductions()) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (failed(reduceIfInteresting(op, rewriter, reductions, tester)))
      return failure();
    // Also after a change of the function alone the op gets another turn.
    rewriter.modifyOpInPlace(op, [] {});
    return success();
  }

  const Tester &tester;
  SmallVector<Reduction> reductions;
};
} // namespace

void attn::populateProblemReductions(RewritePatternSet &patterns,
                                     const Tester &tester) {
  patterns.add<ReduceAttention>(patterns.getContext(), tester);
}
