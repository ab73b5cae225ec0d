//===- TileBalance.cpp - How evenly a static order deals tiles ------------===//

#include "TileBalance.h"
#include "RangeModel.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Planner/Facts/PlanModel.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

static constexpr Factor kTileBlocks{"balance.tile_blocks"};
static constexpr Factor kLossOutsideL2{"balance.loss_outside_l2"};
static constexpr Factor kListedL2{"balance.listed_l2"};
/// Groups that are tried.
static constexpr int64_t kMostGroups = 24;
/// Tiles of a head that are dealt one by one; of longer sequences, larger ones.
static constexpr int64_t kMostTiles = 4096;

/// The work of each tile of a head, in blocks.
static std::vector<double> getTileWork(const ProblemFacts &facts,
                                       int64_t blockM, int64_t blockN) {
  // So many tiles are even enough, and take too long to deal.
  while (facts.queries / blockM > kMostTiles)
    blockM *= 2;
  std::vector<double> work;
  RangeModel model(facts, facts.queries, facts.keys);
  for (int64_t row = 0; row < facts.queries; row += blockM) {
    BlockBoundsOf<int64_t> bounds = model.findBlocks(row, blockM, blockN);
    int64_t blocks =
        bounds.lastKey > bounds.firstKey ? bounds.end - bounds.begin : 0;
    work.push_back(blocks + kTileBlocks);
  }
  return work;
}

static bool isStatic(const ProblemFacts &facts) {
  return !facts.varlen &&
         !llvm::any_of(ArrayRef<int64_t>{facts.queries, facts.keys, facts.batch,
                                         facts.heads, facts.kvHeads},
                       ShapedType::isDynamic);
}

static double computeImbalance(ArrayRef<double> work, int64_t heads,
                               int64_t groupHeads, int64_t ctas) {
  // A group of more heads than there are is one of all.
  if (groupHeads == 0 || groupHeads > heads)
    groupHeads = heads;
  std::vector<double> load(ctas, 0);
  double total = 0;
  int64_t tiles = work.size(), groups = llvm::divideCeil(heads, groupHeads);
  // The next tile's place in a turn of all CTAs forwards and then backwards.
  int64_t turn = 2 * ctas, place = 0;
  auto dealGroup = [&](int64_t group) {
    int64_t count = std::min(groupHeads, heads - group * groupHeads);
    bool ascends = (groups - 1 - group) % 2 != 0;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      double each = work[ascends ? tile : tiles - 1 - tile];
      total += each * count;
      // Whole turns give every CTA as many.
      int64_t rest = count % turn;
      if (double own = each * double(2 * (count / turn)); own != 0)
        for (double &one : load)
          one += own;
      while (rest > 0) {
        bool backwards = place >= ctas;
        int64_t some = std::min(rest, (backwards ? turn : ctas) - place);
        int64_t first = backwards ? turn - place - some : place;
        for (double &one : MutableArrayRef(load).slice(first, some))
          one += each;
        place = (place + some) % turn;
        rest -= some;
      }
    }
  };
  // After an even number of whole groups that end where they began, the same
  // comes again.
  int64_t period = turn / std::gcd(groupHeads * tiles, turn);
  period *= 1 + period % 2;
  int64_t group = 0, repetitions = heads / groupHeads / period;
  if (repetitions > 1) {
    for (; group < period; ++group)
      dealGroup(group);
    assert(place == 0 && "expected turns that are complete");
    for (double &one : load)
      one *= repetitions;
    total *= repetitions;
    group = repetitions * period;
  }
  for (; group < groups; ++group)
    dealGroup(group);
  return *llvm::max_element(load) * ctas / total;
}

std::optional<double> attn::getImbalance(const ProblemFacts &facts,
                                         int64_t blockM, int64_t blockN,
                                         int64_t groupHeads, int64_t ctas) {
  if (!isStatic(facts) || facts.queries == 0 || facts.batch == 0)
    return std::nullopt;
  return computeImbalance(getTileWork(facts, blockM, blockN),
                          facts.batch * facts.heads, groupHeads, ctas);
}

double attn::countRounds(const ProblemFacts &facts, TileOrder order,
                         double waves, int64_t blockM, int64_t blockN,
                         int64_t groupHeads, int64_t ctas) {
  if (order == TileOrder::LongestFirst)
    if (std::optional<double> imbalance =
            getImbalance(facts, blockM, blockN, groupHeads, ctas))
      return waves * *imbalance;
  return std::ceil(waves);
}

/// Returns the heads whose keys take half of L2, for lengths that only the
/// launch knows: at packed sequences' mean length if that is known and at the
/// bound on their queries else, and at the assumed length of others.
static int64_t chooseOpenHeads(const ProblemFacts &facts,
                               const TargetRow &target) {
  if (ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.kvHeads))
    return 0;
  int64_t keys = facts.queries;
  if (!facts.varlen)
    keys = getAssumedExtent(facts.keys, kAssumedLength);
  else if (!ShapedType::isDynamic(facts.keys) &&
           !ShapedType::isDynamic(facts.batch) && facts.batch > 0)
    keys = llvm::divideCeil(facts.keys, facts.batch);
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t headBytes =
      std::max<int64_t>(1, keys * (facts.headDim + facts.valueDim) * bytes);
  int64_t fitting =
      std::max<int64_t>(1, int64_t(target.l2Bytes) / 2 / headBytes);
  return fitting * (facts.heads / facts.kvHeads);
}

bool attn::looksForKeys(const ProblemFacts &facts) {
  if (!facts.hasKeyRange())
    return false;
  Block &range = AttentionOp(facts.op).getKeyRange()->front();
  return !range.getOps<FindKeyOp>().empty();
}

int64_t attn::chooseGroupHeads(const ProblemFacts &facts,
                               const TargetRow &target, int64_t blockM,
                               int64_t blockN, int64_t ctas, bool isDealt) {
  bool isOpen = !isStatic(facts) && !facts.isServed();
  if (facts.varlen || isOpen)
    return chooseOpenHeads(facts, target);
  if (!isStatic(facts) || facts.queries == 0 || facts.keys == 0)
    return 0;
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t headBytes = facts.keys * (facts.headDim + facts.valueDim) * bytes;
  int64_t sharing = facts.heads / facts.kvHeads;
  int64_t kvHeads = facts.batch * facts.kvHeads;
  double fitting = double(target.l2Bytes) / 2 / headBytes;
  int64_t most = std::clamp<int64_t>(2 * fitting, 1, kvHeads);
  if (isDealt && looksForKeys(facts)) {
    // A head's tiles are of any length, its last ones too: heads go together as
    // far as the keys that their tiles have at a time stay in L2.
    std::vector<double> work = getTileWork(facts, blockM, blockN);
    double blocks = std::accumulate(work.begin(), work.end(), 0.0) /
                    std::max<size_t>(1, work.size());
    double share = std::min(1.0, blocks * blockN / facts.keys);
    int64_t size = std::clamp<int64_t>(fitting / share, 1, kvHeads);
    return size == kvHeads ? 0 : size * sharing;
  }
  if (isDealt) {
    int64_t tiles = llvm::divideCeil(facts.queries, blockM) * sharing;
    int64_t size = std::clamp<int64_t>(ctas / tiles, 1, most);
    return size == kvHeads ? 0 : size * sharing;
  }
  int64_t step = std::max<int64_t>(1, most / kMostGroups);
  std::vector<double> work = getTileWork(facts, blockM, blockN);
  int64_t best = most;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t size = most; size >= std::max<int64_t>(1, most / 4);
       size -= step) {
    double excess = std::max(0.0, size / fitting - 1);
    double loss =
        computeImbalance(work, kvHeads * sharing, size * sharing, ctas) +
        kLossOutsideL2 * excess * excess;
    if (loss < least) {
      least = loss;
      best = size;
    }
  }
  return best == kvHeads ? 0 : best * sharing;
}

int64_t attn::chooseListedHeads(const ProblemFacts &facts,
                                const TargetRow &target) {
  if (!isStatic(facts))
    return 0;
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t headBytes = std::max<int64_t>(
      1, facts.batch * facts.keys * (facts.headDim + facts.valueDim) * bytes);
  int64_t fitting =
      std::max<int64_t>(1, kListedL2 * double(target.l2Bytes) / headBytes);
  // The last group is no smaller than others: its longest tiles come late.
  int64_t groups = llvm::divideCeil(facts.kvHeads, fitting);
  int64_t size = llvm::divideCeil(facts.kvHeads, groups);
  return groups == 1 ? 0 : size * (facts.heads / facts.kvHeads);
}
