//===- ProblemReductions.cpp - Reductions of attn.attention ---------------===//
//
// First what the problem can do without, then its extents: each is set to 1, 2
// or 8, or halved, in all operands that share it, as long as these are
// arguments of the function.
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

/// Removes the region that says which keys a mask leaves, or the one that
/// changes results: an op of fewer regions takes the place of the one that has
/// it.
static LogicalResult dropLate(AttentionOp op, RewriterBase &rewriter,
                              Region *dropped) {
  if (!dropped)
    return failure();
  rewriter.setInsertionPoint(op);
  OperationState state(op.getLoc(), op->getName(), op->getOperands(),
                       op->getResultTypes(),
                       op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addRegion();
  state.addRegion();
  for (Region &late : op.getLateRegions())
    if (&late != dropped || late.getRegionNumber() + 1 < op->getNumRegions())
      state.addRegion();
  Operation *smaller = rewriter.create(state);
  for (Region &region : op->getRegions())
    if (&region != dropped) {
      Region &place = smaller->getRegion(region.getRegionNumber());
      rewriter.inlineRegionBefore(region, place, place.end());
    }
  rewriter.replaceOp(op, smaller);
  return success();
}

static LogicalResult dropKeyRange(AttentionOp op, RewriterBase &rewriter) {
  return dropLate(op, rewriter, op.getKeyRange());
}

static LogicalResult dropOutMod(AttentionOp op, RewriterBase &rewriter) {
  return dropLate(op, rewriter, op.getOutMod());
}

using GetOperand = MutableOperandRange (*)(AttentionOp);

/// Removes optional operands, and attributes that only have a meaning with
/// them.
static Reduction dropOperands(ArrayRef<GetOperand> operands,
                              ArrayRef<StringRef> attributes = {}) {
  return onAttention([operands = llvm::to_vector(operands),
                      attributes = llvm::to_vector(attributes)](
                         AttentionOp op, RewriterBase &rewriter) {
    bool any = false;
    rewriter.modifyOpInPlace(op, [&] {
      for (GetOperand get : operands) {
        // Removing one operand moves the others.
        MutableOperandRange range = get(op);
        if (range.empty())
          continue;
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
  Value q = op.getQ(), k = op.getK(), v = op.getV(), o = op.getO();
  Value pages = op.getPageTable();
  SmallVector<OperandDim> batch = {{q, 0}, {o, lead}};
  SmallVector<OperandDim> heads = {{q, 1}, {o, lead + 1}};
  SmallVector<OperandDim> queries = {{q, 2}, {o, lead + 2}};
  if (Value lse = op.getLse()) {
    batch.push_back({lse, lead});
    heads.push_back({lse, lead + 1});
    queries.push_back({lse, lead + 2});
  }
  for (Value init : {op.getInitO(), op.getInitLse()})
    if (init) {
      batch.push_back({init, 0});
      heads.push_back({init, 1});
      queries.push_back({init, 2});
    }
  for (Value lists : {op.getBlockCounts(), op.getBlockIndices()})
    if (lists) {
      batch.push_back({lists, 0});
      heads.push_back({lists, 1});
    }
  if (Value sinks = op.getSinks())
    heads.push_back({sinks, 0});
  // With packed sequences the first extent follows the lengths'.
  bool varlen = op.isVariableLength();
  if (Value descale = op.getQDescale()) {
    heads.push_back({descale, 1});
    if (!varlen)
      for (Value each : {descale, op.getKDescale(), op.getVDescale()})
        batch.push_back({each, 0});
  }
  SmallVector<SmallVector<OperandDim>> extents;
  // The first extents of k and v are the batch, or the pool of pages.
  SmallVector<OperandDim> pool = {{k, 0}, {v, 0}};
  SmallVector<OperandDim> kvHeads = {{k, 1}, {v, 1}}, rows = {{k, 2}, {v, 2}};
  for (Value part : {op.getKScales(), op.getVScales(), op.getKRope()})
    if (part) {
      pool.push_back({part, 0});
      kvHeads.push_back({part, 1});
      rows.push_back({part, 2});
    }
  for (Value part : {op.getAddedK(), op.getAddedV()})
    if (part)
      kvHeads.push_back({part, 1});
  for (Value part : {op.getAddedTable(), op.getAddedLengths()})
    if (part)
      batch.push_back({part, 0});
  if (pages) {
    // A list of pages has no row for each batch.
    if (!op.getPageIndptr())
      batch.push_back({pages, 0});
    extents.push_back({{pages, op.getPageIndptr() ? 0 : 1}});
    extents.push_back(pool);
  } else {
    llvm::append_range(batch, pool);
  }
  if (Value lengths = op.getKvLengths(); lengths && !varlen)
    batch.push_back({lengths, 0});
  extents.push_back(batch);
  if (varlen && op.getCuSeqlensK())
    extents.push_back({{op.getCuSeqlensQ(), 0}, {op.getCuSeqlensK(), 0}});

  if (op.getQDescale())
    kvHeads.append({{op.getKDescale(), 1}, {op.getVDescale(), 1}});
  SmallVector<OperandDim> allHeads = heads;
  llvm::append_range(allHeads, kvHeads);
  SmallVector<OperandDim> d = {{q, 3}, {k, 3}}, dv = {{v, 3}, {o, lead + 3}};
  if (Value init = op.getInitO())
    dv.push_back({init, 3});
  if (Value added = op.getAddedK())
    d.push_back({added, 3});
  if (Value added = op.getAddedV())
    dv.push_back({added, 3});
  SmallVector<OperandDim> allDims = d;
  llvm::append_range(allDims, dv);
  llvm::append_range(
      extents, SmallVector<SmallVector<OperandDim>>{
                   allHeads, heads, kvHeads, queries, rows, allDims, d, dv});
  return extents;
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
    auto extents = sharedExtents(op);
    if (index >= extents.size())
      return failure();
    for (OperandDim place : extents[index])
      if (done.insert(place).second &&
          failed(setExtent(place, rewriter, change)))
        return failure();
    return success();
  });
}

/// Leaves one of several partial results.
static LogicalResult dropSplits(AttentionOp op, RewriterBase &rewriter) {
  if (op.getKvSplits().value_or(1) == 1 || !op.getLse())
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.setKvSplits(1);
    op.removeRunKeysAttr();
  });
  for (Value result : {op.getO(), op.getLse()})
    if (failed(setExtent({result, 0}, rewriter,
                         [](int64_t) -> int64_t { return 1; })))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The pattern
//===----------------------------------------------------------------------===//

/// The most groups that sharedExtents gives.
static constexpr size_t kMaxSharedExtents = 12;

static SmallVector<Reduction> problemReductions() {
  SmallVector<Reduction> reductions = {
      dropRegion(0),
      // It stands beside the next one only.
      onAttention(dropKeyRange), onAttention(dropOutMod), dropRegion(1),
      dropAttributes({"mask"}),
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  dropAttributes({NAME}),
#include "attn/Problem/Options.def"
      dropAttributes({"rope_dim"}), dropAttributes({"plan"}),
      dropOperands({[](AttentionOp op) { return op.getSinksMutable(); }}),
      dropOperands({[](AttentionOp op) { return op.getInitOMutable(); },
                    [](AttentionOp op) { return op.getInitLseMutable(); }}),
      dropOperands({[](AttentionOp op) { return op.getQDescaleMutable(); },
                    [](AttentionOp op) { return op.getKDescaleMutable(); },
                    [](AttentionOp op) { return op.getVDescaleMutable(); }}),
      dropOperands({[](AttentionOp op) { return op.getKScalesMutable(); },
                    [](AttentionOp op) { return op.getVScalesMutable(); }},
                   {"scale_group"}),
      dropOperands({[](AttentionOp op) { return op.getLseMutable(); }}),
      dropOperands({[](AttentionOp op) { return op.getCuSeqlensQMutable(); },
                    [](AttentionOp op) { return op.getCuSeqlensKMutable(); }},
                   {"max_seqlen_q"}),
      dropOperands({[](AttentionOp op) { return op.getPageTableMutable(); },
                    [](AttentionOp op) { return op.getPageIndptrMutable(); }},
                   {"page_size", "selected"}),
      dropAttributes({"selected"}),
      dropOperands({[](AttentionOp op) { return op.getKvLengthsMutable(); }}),
      dropOperands({[](AttentionOp op) { return op.getBlockCountsMutable(); },
                    [](AttentionOp op) { return op.getBlockIndicesMutable(); }},
                   {"block_rows", "block_keys"}),
      dropOperands({[](AttentionOp op) { return op.getAddedKMutable(); },
                    [](AttentionOp op) { return op.getAddedVMutable(); },
                    [](AttentionOp op) { return op.getAddedTableMutable(); },
                    [](AttentionOp op) { return op.getAddedLengthsMutable(); }},
                   {"added_page_size"}),
      dropAttributes({"run_keys"}), onAttention(dropSplits),
      onAttention(dropUnusedArguments)};
  for (size_t index = 0; index < kMaxSharedExtents; ++index) {
    reductions.push_back(shrink(index, [](int64_t) -> int64_t { return 1; }));
    reductions.push_back(shrink(index, [](int64_t) -> int64_t { return 2; }));
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
