//===- Teams.cpp - Teams of a CTA's warps ---------------------------------===//

#include "PartitionLowering.h"
#include "attn/Analysis/Footprint.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Registers that a thread moves at a time, 16 bytes.
static constexpr int64_t kWidth = 4;

template <>
LogicalResult PartitionLowering::lower(TeamIndexOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value index = kernel.teams > 1
                    ? kernel.uniformWarp()
                    : arith::ConstantIntOp::create(b, 0, 32).getResult();
  op.getResult().replaceAllUsesWith(index);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TeamBarrierOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::SyncWarpOp::create(b, arith::ConstantIntOp::create(b, -1, 32));
  return success();
}

namespace {

/// What teams give each other: the registers of several tiles, kWidth of a
/// thread at a time, so that a warp's threads write 512 bytes in a row.
class TeamRegisters {
public:
  TeamRegisters(ImplicitLocOpBuilder &b, Value base, Value lane)
      : b(b), base(base), lane(lane) {}

  void store(ArrayRef<Value> values) {
    for (size_t first = 0; first < values.size(); first += kWidth) {
      ArrayRef<Value> part = values.slice(first).take_front(kWidth);
      Value vector = LLVM::PoisonOp::create(b, typeOf(part.size()));
      for (auto [i, value] : llvm::enumerate(part))
        vector = LLVM::InsertElementOp::create(b, vector, value, constant(i));
      LLVM::StoreOp::create(b, vector, address(first), 4 * kWidth);
    }
  }

  SmallVector<Value> load(size_t count) {
    SmallVector<Value> values;
    for (size_t first = 0; first < count; first += kWidth) {
      size_t part = std::min<size_t>(kWidth, count - first);
      Value vector = LLVM::LoadOp::create(b, typeOf(part), address(first),
                                          /*alignment=*/4 * kWidth);
      for (size_t i = 0; i < part; ++i)
        values.push_back(
            LLVM::ExtractElementOp::create(b, vector, constant(i)));
    }
    return values;
  }

private:
  Type typeOf(size_t count) {
    return VectorType::get(static_cast<int64_t>(count), b.getF32Type());
  }
  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value address(size_t first) {
    Value offset = arith::AddIOp::create(
        b, arith::MulIOp::create(b, lane, constant(4 * kWidth)),
        constant(static_cast<int64_t>(first) * 4 * 32));
    return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                               ValueRange{offset});
  }

  ImplicitLocOpBuilder &b;
  Value base, lane;
};

} // namespace

template <>
LogicalResult PartitionLowering::lower(TeamTakeOp op) {
  SmallVector<TileValue, 0> tiles;
  SmallVector<Value> own;
  for (Value value : op.getTiles()) {
    FailureOr<TileValue> tile = this->tile(op, value);
    if (failed(tile))
      return failure();
    llvm::append_range(own, tile->values);
    tiles.push_back(*tile);
  }
  int64_t elements = op.getBuffer().getType().getShape()[0];
  int64_t needed = 32 * llvm::alignTo(own.size(), kWidth);
  if (elements < needed)
    return op.emitOpError("expected a buffer of at least ")
           << needed << " elements for " << own.size()
           << " registers of a thread, got " << elements;

  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto isBelow = [&](Value x, int64_t bound) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x,
                                 constant(bound));
  };
  int64_t from = op.getFrom(), teams = kernel.teams;
  int64_t takers = std::max<int64_t>(0, std::min(from, teams - from));
  Value team = teams > 1 ? kernel.uniformWarp() : constant(0);
  Value base = kernel.buffers.lookup(op.getBuffer()).base;
  Value gives = isBelow(arith::SubIOp::create(b, team, constant(from)), takers);
  auto giver = scf::IfOp::create(b, gives, /*withElseRegion=*/false);
  {
    ImplicitLocOpBuilder inner(op.getLoc(), giver.getThenBodyBuilder());
    TeamRegisters(inner, base, lane()).store(own);
  }
  gpu::BarrierOp::create(b);
  auto taker =
      scf::IfOp::create(b, ValueRange(own).getTypes(), isBelow(team, takers),
                        /*withElseRegion=*/true);
  {
    ImplicitLocOpBuilder inner(op.getLoc(), taker.getThenBodyBuilder());
    Value theirs =
        LLVM::GEPOp::create(inner, base.getType(), inner.getI8Type(), base,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(
                                from * getTeamBytes(kernel.func))});
    scf::YieldOp::create(inner,
                         TeamRegisters(inner, theirs, lane()).load(own.size()));
    inner.setInsertionPointToStart(taker.elseBlock());
    scf::YieldOp::create(inner, own);
  }
  ValueRange taken = taker.getResults();
  for (auto [tile, result] : llvm::zip(tiles, op.getResults())) {
    setTile(result, tile.layout,
            SmallVector<Value>(taken.take_front(tile.values.size())));
    taken = taken.drop_front(tile.values.size());
  }
  return success();
}

void lowering::addTeamLowerings(LoweringTable &table) {
  table.addReplaced<TeamIndexOp, TeamBarrierOp, TeamTakeOp>();
}
