//===- ShardPairs.cpp - Products that pairs of CTAs make together ---------===//
//
// A pair makes a product where both CTAs multiply rows of their own by the same
// b: then each needs half of b's columns only. What is the same follows from
// coordinates of loads. All products of a kernel are of pairs or none is.
//
//===----------------------------------------------------------------------===//

#include "ShardPairs.h"
#include "ClusterTable.h"
#include "attn/Analysis/Memory/SharedAccess.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::attn;

/// The bits of the rank in which no number differs.
static uint32_t findEqualBits(ArrayRef<int64_t> at) {
  uint32_t equal = 0;
  for (size_t bit = 1; bit < at.size(); bit *= 2) {
    bool isEqual = true;
    for (size_t rank = 0; rank < at.size(); ++rank)
      isEqual &= at[rank] == at[rank ^ bit];
    equal |= isEqual ? bit : 0;
  }
  return equal;
}

bool PairSharder::isAlongX() {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  return !size || ((*size)[1] == 1 && (*size)[2] == 1);
}

void PairSharder::findSame(ClusterBuffer &buffer) {
  buffer.same = buffer.loads.empty() ? 0 : ctas - 1;
  auto differ = [&](uint32_t equal, Operation *source, std::string what) {
    if ((buffer.same & ~equal & 1) != 0) {
      buffer.source = source;
      buffer.difference =
          llvm::formatv("{0} depends on {1}", what, source->getName());
    }
    buffer.same &= equal;
  };
  for (BulkCopyOpInterface load : buffer.loads) {
    if (Operation *source = uniformity.getControlSource(load))
      differ(0, source, "whether its load runs");
    for (auto [index, coordinate] : llvm::enumerate(load.getBoxStart()))
      if (Operation *source = uniformity.getSource(coordinate)) {
        auto at = values.getDifferences(coordinate);
        differ(at ? findEqualBits(*at) : 0, source,
               llvm::formatv("coordinate {0} of its load", index));
      }
  }
}

/// The blocks of a load's destination, from the steps of its coordinates.
std::optional<CGABases> PairSharder::findSteps(BulkCopyOpInterface load) const {
  ArrayRef<int64_t> shape =
      cast<BufferType>(load.getCopiedBuffer().getType()).getShape();
  size_t rank = load.getBoxStart().size();
  CGABases bases(llvm::Log2_64(ctas), SmallVector<int64_t>(2));
  if (load.getStackedBoxes() != 1 || shape.size() != 2)
    return std::nullopt;
  for (auto [index, coordinate] : llvm::enumerate(load.getBoxStart())) {
    auto at = values.getDifferences(coordinate);
    if (!at)
      return std::nullopt;
    for (size_t number = 0; number < at->size(); ++number) {
      int64_t sum = 0;
      for (size_t bit = 0; bit < bases.size(); ++bit)
        sum += number >> bit & 1 ? (*at)[1 << bit] : 0;
      if (sum != (*at)[number])
        return std::nullopt;
    }
    for (size_t bit = 0; bit < bases.size(); ++bit) {
      int64_t step = (*at)[1 << bit];
      if (step == 0)
        continue;
      // Only the last two coordinates step along the slot.
      if (index + 2 < rank || step % shape[index + 2 - rank] != 0)
        return std::nullopt;
      bases[bit][index + 2 - rank] = step / shape[index + 2 - rank];
    }
  }
  return bases;
}

void PairSharder::findBlocks(ClusterBuffer &buffer) {
  kernel.walk([&](BulkCopyOpInterface copy) {
    if (copy.isBulkLoad() &&
        findAlloc(copy.getCopiedBuffer()) == buffer.alloc &&
        findRingView(copy.getCopiedBuffer()) == buffer.view)
      buffer.loads.push_back(copy);
  });
  if (!hasBits())
    return;
  findSame(buffer);
  for (auto [index, load] : llvm::enumerate(buffer.loads)) {
    std::optional<CGABases> steps = findSteps(load);
    if (index == 0)
      buffer.steps = steps;
    else if (steps != buffer.steps)
      buffer.steps = std::nullopt;
  }
  if (buffer.steps && findFault(*buffer.steps).empty())
    buffer.bases = buffer.steps;
}

ClusterBuffer *PairSharder::getBuffer(Value view) {
  AllocOp alloc = findAlloc(view);
  if (!alloc)
    return nullptr;
  ReinterpretOp ring = findRingView(view);
  std::unique_ptr<ClusterBuffer> &buffer =
      buffers[ring ? ring.getOperation() : alloc.getOperation()];
  if (!buffer) {
    buffer = std::make_unique<ClusterBuffer>();
    buffer->alloc = alloc;
    buffer->view = ring;
    findBlocks(*buffer);
  }
  return buffer.get();
}

void PairSharder::collect() {
  kernel.walk([&](TensorGroupOpInterface op) {
    auto product = dyn_cast<ProductOpInterface>(op.getOperation());
    if (!product)
      return;
    ClusterProduct found{op, product};
    found.a = getBuffer(product.getA());
    found.b = getBuffer(product.getB());
    found.dimN = isTransposed(product.getB()) ? 0 : 1;
    products.push_back(found);
  });
}

//===----------------------------------------------------------------------===//
// Products and layouts that are given
//===----------------------------------------------------------------------===//

/// Notes at the loads of a buffer.
static void noteLoads(InFlightDiagnostic &diag, ClusterBuffer &buffer) {
  if (buffer.getCga())
    diag.attachNote(buffer.getHolder()->getLoc())
        << "its layout is " << buffer.getCga();
  diag.attachNote(buffer.loads.front()->getLoc())
      << "it is loaded here"
      << (buffer.same & 1 ? ", at coordinates that are the same in both" : "");
  if (buffer.source)
    diag.attachNote(buffer.source->getLoc()) << "they differ by this";
}

LogicalResult PairSharder::checkGiven() {
  for (ClusterProduct product : products) {
    ClusterBuffer *a = product.a, *b = product.b;
    if (a && !a->loads.empty() && (a->same & 1) != 0) {
      InFlightDiagnostic diag =
          product.group->emitOpError("expected the CTAs of a pair to have rows "
                                     "of their own of 'a', got the same '")
          << getBufferName(a->alloc) << "' in both";
      noteLoads(diag, *a);
      return diag;
    }
    if (!b || b->loads.empty())
      continue;
    bool isSame = (b->same & 1) != 0;
    SmallVector<int64_t> half(2);
    half[product.dimN] = 1;
    if (!isSame && (!b->steps || b->steps->front() == half))
      continue;
    InFlightDiagnostic diag =
        product.group->emitOpError("expected each CTA of a pair to have half "
                                   "of the columns of 'b', got ");
    if (isSame)
      diag << "the same '" << getBufferName(b->alloc) << "' in both";
    else
      diag << "blocks of '" << getBufferName(b->alloc) << "' that lie ["
           << b->steps->front() << "] apart in the slot's rows and columns";
    noteLoads(diag, *b);
    return diag;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Which products are of pairs
//===----------------------------------------------------------------------===//

/// Somebody who does something else with the buffer than to load it, or to
/// multiply by it.
static Operation *findOtherUse(Value buffer) {
  for (OpOperand &use : buffer.getUses()) {
    Operation *user = use.getOwner();
    if (isa<SlotOp, TransposeOp>(user)) {
      if (Operation *other = findOtherUse(user->getResult(0)))
        return other;
      continue;
    }
    auto copy = dyn_cast<BulkCopyOpInterface>(user);
    auto product = dyn_cast<ProductOpInterface>(user);
    bool isKnown = (copy && copy.isBulkLoad()) ||
                   (product && isa<TensorGroupOpInterface>(user) &&
                    product.getB() == buffer && product.getA() != buffer);
    if (!isKnown)
      return user;
  }
  return nullptr;
}

/// Why b cannot be halved along N; empty if it can.
std::string PairSharder::findHalvingReason(ClusterProduct product) {
  ClusterBuffer &b = *product.b;
  if (Operation *other = findOtherUse(b.alloc.getResult()))
    return llvm::formatv("'{0}' is used by {1} too", getBufferName(b.alloc),
                         other->getName());
  auto d = cast<BufferType>(product.product.getProduct().getType());
  auto factor = cast<BufferType>(product.product.getB().getType());
  auto [first, depth] = product.product.getContracted().value_or(
      std::pair(int64_t(0), factor.getShape()[0]));
  auto instruction =
      choosePairInstruction(d.getShape()[0], d.getShape()[1], depth,
                            factor.getElementType().getIntOrFloatBitWidth());
  if (!instruction)
    return llvm::toString(instruction.takeError());
  for (BulkCopyOpInterface load : b.loads) {
    if (load.getMulticastCTAs() || load.getStackedBoxes() != 1 ||
        !load.canMulticast())
      return llvm::formatv("{0} of '{1}' is of several boxes or CTAs already",
                           load->getName(), getBufferName(b.alloc));
    if (std::string reason = maps.findReason(load.getMap()); !reason.empty())
      return reason;
    auto map = cast<TensorMapType>(load.getMap().getType());
    int64_t extent = cast<BufferType>(load.getCopiedBuffer().getType())
                         .getShape()[product.dimN];
    bool isWhole = product.dimN == 0
                       ? map.getBox()[map.getRank() - 2] == extent &&
                             extent % (2 * kRowsOfSwizzle) == 0
                       : extent / 2 % map.getColumns() == 0;
    if (!isWhole)
      return llvm::formatv("half of the {0} {1} of '{2}' is no whole number "
                           "of {3}",
                           extent, product.dimN == 0 ? "rows" : "columns",
                           getBufferName(b.alloc),
                           product.dimN == 0 ? "eight" : "boxes");
  }
  return "";
}

/// Why the partition of a product cannot be that of one CTA of two.
std::string PairSharder::findPartitionReason(Operation *product) {
  std::pair<WarpSpecializeOp, unsigned> place = getPartition(product);
  WarpSpecializeOp parent = place.first;
  unsigned index = place.second;
  if (!parent)
    return "a product stands in no partition";
  if (product->getParentOfType<ClusterLeaderOp>())
    return "a product is the leader's already";
  std::string reason;
  parent->getRegion(index).walk([&](Operation *op) {
    auto user = dyn_cast<ChannelUserOpInterface>(op);
    bool isSignal = user && user.getChannelUse() != ChannelUse::Fill;
    if (isSignal || op->getNumRegions() != 0 || isMemoryEffectFree(op) ||
        op->hasTrait<OpTrait::IsTerminator>() ||
        isa<TensorGroupOpInterface>(op))
      return WalkResult::advance();
    reason = llvm::formatv(
        "partition '{0}' does more than to multiply: {1}",
        cast<StringAttr>(parent.getNames()[index]).getValue(), op->getName());
    return WalkResult::interrupt();
  });
  return reason;
}

std::string PairSharder::findReason(ClusterProduct product) {
  ClusterBuffer *a = product.a, *b = product.b;
  if (Operation *source = uniformity.getControlSource(product.product))
    return llvm::formatv("whether a product runs depends on {0}",
                         source->getName());
  // Slots are handed on alike in all CTAs.
  for (Value operand : product.product->getOperands())
    if (Operation *source = uniformity.getSource(operand);
        source && operand.getType().isSignlessInteger())
      return llvm::formatv("a number that a product takes depends on {0}",
                           source->getName());
  if (a && !a->loads.empty() && (a->same & 1) != 0)
    return llvm::formatv("'{0}', whose rows they multiply, is the same in "
                         "both CTAs of a pair",
                         getBufferName(a->alloc));
  if (!b || b->loads.empty())
    return "no bulk load fills the second factor";
  if ((b->same & 1) == 0)
    return llvm::formatv("'{0}' differs between the CTAs of a pair: {1}",
                         getBufferName(b->alloc), b->difference);
  if (std::string reason = findHalvingReason(product); !reason.empty())
    return reason;
  return findPartitionReason(product.product);
}

/// Somebody else's loads need the box as it is.
bool PairSharder::isMapShared(const ClusterBuffer &buffer) const {
  for (BulkCopyOpInterface load : buffer.loads)
    for (Operation *user : load.getMap().getUsers()) {
      auto copy = dyn_cast<BulkCopyOpInterface>(user);
      if (!copy ||
          (copy.getCopiedBuffer() && !llvm::is_contained(buffer.loads, copy)))
        return true;
    }
  return false;
}

/// The parts that the rows of a map's box are divided into, and in `multicasts`
/// the CTAs that share loads.
int64_t PairSharder::planParts(ClusterBuffer &buffer, unsigned dim,
                               bool isHalved) {
  int64_t halves = isHalved && dim == 0 ? 2 : 1;
  uint32_t bits = buffer.same & (ctas - 1) & ~1u;
  int64_t parts = int64_t(1) << llvm::popcount(bits);
  for (BulkCopyOpInterface load : buffer.loads) {
    auto map = cast<TensorMapType>(load.getMap().getType());
    int64_t rows = map.getRows();
    if (!load.canMulticast() || load.getMulticastCTAs() ||
        load.getStackedBoxes() != 1 ||
        !maps.findReason(load.getMap()).empty() ||
        map.getBox()[map.getRank() - 2] != rows ||
        rows % (halves * parts * kRowsOfSwizzle) != 0)
      bits = 0;
  }
  if (bits == 0 || isMapShared(buffer))
    return halves;
  multicasts[&buffer] = bits;
  return halves * parts;
}

/// Releases that would have to arrive where they cannot be counted.
std::string PairSharder::findSignalReason(const ChannelAnalysis &channels) {
  SmallVector<unsigned> partitions;
  for (ClusterProduct product : products)
    partitions.push_back(getPartition(product.product).second);
  for (auto [key, known] : channels.getChannels()) {
    ChannelCreateOp channel = key;
    ChannelInfo info = known;
    for (auto [index, role] : llvm::enumerate(info.roles)) {
      unsigned inside = llvm::count_if(
          role.participants, [&](const Participant &participant) {
            return llvm::is_contained(partitions, participant.partition);
          });
      if (inside != 0 && inside != role.participants.size())
        return llvm::formatv("role '{0}' runs where products are made and "
                             "elsewhere",
                             channel.getRole(index).getName());
      if (inside != 0)
        role.leaderBits = 1;
    }
    for (auto [buffer, bits] : multicasts)
      for (BulkCopyOpInterface load : buffer->loads) {
        auto fill = dyn_cast<ChannelUserOpInterface>(load.getOperation());
        auto owner =
            fill && fill.getUsedHandle()
                ? channels.getOwners().find(fill.getUsedHandle()->get())
                : channels.getOwners().end();
        if (owner != channels.getOwners().end() &&
            owner->second.channel == channel)
          info.roles[owner->second.role].multicastBits |= bits;
      }
    if (std::optional<unsigned> role = info.findUncounted(channel))
      return llvm::formatv(
          "role '{0}' signals by {1}, which is not counted in other CTAs",
          channel.getRole(*role).getName(),
          stringifySignalKind(channel.getRole(*role).getSignal()));
  }
  return "";
}

std::string PairSharder::findReason(const ChannelAnalysis &channels) {
  if (!hasBits())
    return llvm::formatv("pairs are of clusters of {0}",
                         isAlongX() ? "2, 4 or 8 CTAs, not of " + Twine(ctas)
                                    : Twine("CTAs along x"));
  for (ClusterProduct product : products)
    if (std::string reason = findReason(product); !reason.empty())
      return reason;
  for (ClusterProduct product : products)
    for (ClusterProduct other : products)
      if (other.b == product.b && other.dimN != product.dimN)
        return llvm::formatv("'{0}' is multiplied as it lies and turned",
                             getBufferName(product.b->alloc));
  for (ClusterProduct product : products)
    if (isMapShared(*product.b))
      return llvm::formatv("something else uses the tensor map of '{0}'",
                           getBufferName(product.b->alloc));
  return "";
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Gives a buffer, and all views of it, half of the extent along `dim`.
static void halveType(Value buffer, unsigned dim) {
  auto type = cast<BufferType>(buffer.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[shape.size() - 2 + dim] /= 2;
  buffer.setType(BufferType::get(type.getContext(), shape,
                                 type.getElementType(), type.getLayout(),
                                 type.getSpace()));
  for (Operation *user : buffer.getUsers())
    if (isa<SlotOp, TransposeOp>(user))
      halveType(user->getResult(0), isa<TransposeOp>(user) ? 1 - dim : dim);
}

/// Halves b: its buffer, and where its loads begin.
void PairSharder::halve(ClusterProduct product) {
  ClusterBuffer &b = *product.b;
  auto type = cast<BufferType>(b.alloc.getType());
  int64_t half = type.getSlotShape()[product.dimN] / 2;
  halveType(b.alloc.getResult(), product.dimN);
  ImplicitLocOpBuilder entry(kernel.getLoc(), kernel.getContext());
  entry.setInsertionPointToStart(&kernel.getBody().front());
  Value id = gpu::ClusterBlockIdOp::create(entry, gpu::Dimension::x);
  Value rank = arith::IndexCastOp::create(entry, entry.getI32Type(), id);
  if (ctas > 2)
    rank = arith::AndIOp::create(entry, rank,
                                 arith::ConstantIntOp::create(entry, 1, 32));
  Value offset = arith::MulIOp::create(
      entry, rank, arith::ConstantIntOp::create(entry, half, 32));
  for (BulkCopyOpInterface load : b.loads) {
    OperandRange start = load.getBoxStart();
    unsigned index =
        start.getBeginOperandIndex() + start.size() - 2 + product.dimN;
    OpBuilder builder(load);
    load->setOperand(index,
                     arith::AddIOp::create(builder, load->getLoc(),
                                           load->getOperand(index), offset));
  }
}

/// Lets the first CTA of those that differ in `bits` run a partition.
static void wrapInLeader(Region &region, IntegerAttr bits) {
  Block &block = region.front();
  OpBuilder builder = OpBuilder::atBlockBegin(&block);
  auto leader = ClusterLeaderOp::create(builder, region.getLoc(), bits);
  Block *body = builder.createBlock(&leader.getBody());
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(std::next(leader->getIterator()),
                            block.getTerminator()->getIterator())))
    op.moveBefore(body, body->end());
  builder.setInsertionPointToEnd(body);
  YieldOp::create(builder, region.getLoc(), ValueRange());
}

void PairSharder::setMulticasts() {
  Builder b(kernel.getContext());
  for (auto [buffer, bits] : multicasts)
    for (BulkCopyOpInterface load : buffer->loads)
      load.setMulticastCTAs(int64_t(1) << llvm::popcount(bits),
                            b.getI64IntegerAttr(bits));
}

void PairSharder::makePairs() {
  Builder b(kernel.getContext());
  DenseSet<ClusterBuffer *> halved;
  llvm::SetVector<Region *> partitions;
  for (ClusterProduct product : products) {
    if (halved.insert(product.b).second)
      halve(product);
    TensorGroupOpInterface(product.group).setOfPair();
    auto [parent, index] = getPartition(product.product);
    partitions.insert(&parent->getRegion(index));
  }
  setMulticasts();
  for (Region *region : partitions)
    wrapInLeader(*region, ctas == 2 ? IntegerAttr() : b.getI64IntegerAttr(1));
  maps.rewrite();
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

LogicalResult PairSharder::report() {
  ChannelAnalysis channels(kernel);
  if (failed(channels.run()))
    return failure();
  remark::passed(kernel.getLoc(), remark::RemarkOpts::name("cga")
                                      .category("attn.shard-cga")
                                      .function(kernel.getName()))
      << remark::add("{0}", describeCluster(channels, ctas));
  return success();
}

/// Lets CTAs that hold the same half of a factor of given products load it
/// together, where that can be counted.
LogicalResult PairSharder::shareGiven(const ChannelAnalysis &channels) {
  if (!hasBits() || ctas == 2)
    return success();
  for (ClusterProduct product : products)
    for (ClusterBuffer *factor : {product.b, product.a})
      if (factor && !factor->loads.empty())
        planParts(*factor, product.dimN, /*isHalved=*/false);
  if (!findSignalReason(channels).empty())
    multicasts.clear();
  for (auto [buffer, bits] : multicasts)
    for (BulkCopyOpInterface load : buffer->loads)
      if (failed(maps.add(load.getMap(), int64_t(1) << llvm::popcount(bits))))
        return failure();
  isShared = !multicasts.empty();
  setMulticasts();
  maps.rewrite();
  return success();
}

LogicalResult PairSharder::run(const ChannelAnalysis &channels) {
  collect();
  if (hasBits() && failed(checkLayouts()))
    return failure();
  if (products.empty())
    return success();
  if (products.front().group.isOfPair()) {
    SmallVector<FoundLayout> layouts = findLayouts(Products::Given);
    if (failed(checkGiven()) || failed(checkSums(layouts)) ||
        failed(shareGiven(channels)))
      return failure();
    setLayouts(layouts);
    return report();
  }
  std::string reason = findReason(channels);
  llvm::MapVector<ClusterBuffer *, int64_t> parts;
  if (reason.empty()) {
    for (ClusterProduct product : products) {
      parts[product.b] = planParts(*product.b, product.dimN, /*isHalved=*/true);
      if (product.a)
        parts[product.a] = planParts(*product.a, 0, /*isHalved=*/false);
    }
    reason = findSignalReason(channels);
  }
  SmallVector<FoundLayout> layouts =
      findLayouts(reason.empty() ? Products::Found : Products::Own);
  if (failed(checkSums(layouts)))
    return failure();
  if (!reason.empty()) {
    remark::analysis(products.front().product.getLoc(),
                     remark::RemarkOpts::name("own-products")
                         .category("attn.shard-cga")
                         .function(kernel.getName()))
        << remark::add("each CTA makes its products for itself")
        << remark::reason("{0}", reason);
    return success();
  }
  for (auto [buffer, count] : parts)
    for (BulkCopyOpInterface load : buffer->loads)
      if (count != 1 && failed(maps.add(load.getMap(), count)))
        return failure();
  isMade = true;
  makePairs();
  setLayouts(layouts);
  return report();
}
