//===- Teams.cpp - Teams of a CTA's warps ---------------------------------===//

#include "PartitionLowering.h"
#include "attn/Analysis/Memory/Footprint.h"
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

  /// Registers from `first` on, a multiple of kWidth.
  SmallVector<Value> load(size_t count, size_t first = 0) {
    SmallVector<Value> values;
    for (size_t end = first + count; first < end; first += kWidth) {
      size_t part = std::min<size_t>(kWidth, end - first);
      Value vector = LLVM::LoadOp::create(b, typeOf(part), address(first),
                                          /*alignment=*/4 * kWidth);
      for (size_t i = 0; i < part; ++i)
        values.push_back(
            LLVM::ExtractElementOp::create(b, vector, constant(i)));
    }
    return values;
  }

  /// The same registers of the team whose bytes are `distance` further on, i32.
  TeamRegisters at(Value distance) {
    return {b,
            LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                                ValueRange{distance}),
            lane};
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

/// The buffer has room for `count` registers of each thread.
template <typename Op>
static LogicalResult checkRoom(Op op, size_t count) {
  int64_t elements = op.getBuffer().getType().getShape()[0];
  int64_t needed = 32 * llvm::alignTo(count, kWidth);
  if (elements < needed)
    return op.emitOpError("expected a buffer of at least ")
           << needed << " elements for " << count
           << " registers of a thread, got " << elements;
  return success();
}

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
  if (failed(checkRoom(op, own.size())))
    return failure();

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

namespace {

/// A tile of those that teams divide.
struct SharedTile {
  /// Where its registers are among those of all tiles.
  size_t first;
  /// Its part.
  TileLayout part;
  /// For each register of the first team's part the tile's, and how much
  /// further on the next team's are; without any teams get all of the tile.
  SmallVector<unsigned> registers = {};
  unsigned step = 0;
};

} // namespace

/// Finds the parts of `whole`, which have `columns` columns each. False if
/// teams cannot read them alike, kWidth registers at a time.
static bool findParts(SharedTile &tile, const TileLayout &whole, int64_t teams,
                      int64_t columns) {
  for (int64_t team = 0; team < teams; ++team) {
    std::optional<SmallVector<unsigned>> from =
        matchSlice(tile.part, whole, team * columns);
    if (!from || from->size() % kWidth != 0)
      return false;
    if (team == 0)
      tile.registers = *from;
    if (team == 1)
      tile.step = from->front() - tile.registers.front();
    for (auto [i, reg] : llvm::enumerate(*from)) {
      unsigned group = tile.registers[i / kWidth * kWidth];
      if (reg != tile.registers[i] + team * tile.step ||
          tile.registers[i] != group + i % kWidth ||
          (tile.first + group) % kWidth != 0)
        return false;
    }
  }
  return tile.step % kWidth == 0;
}

template <>
LogicalResult PartitionLowering::lower(TeamShareOp op) {
  int64_t teams = kernel.teams;
  if (op.countTeams() != teams)
    return op.emitOpError("expected results of ")
           << teams << " teams, got those of " << op.countTeams();
  SmallVector<SharedTile, 0> tiles;
  SmallVector<Value> own;
  for (auto [value, result] : llvm::zip(op.getTiles(), op.getResults())) {
    FailureOr<TileValue> tile = this->tile(op, value);
    auto type = cast<RankedTensorType>(result.getType());
    FailureOr<TileLayout> layout = layoutOf(op, type);
    if (failed(tile) || failed(layout))
      return failure();
    SharedTile shared = {own.size(), *layout};
    if (type.getRank() == 2 &&
        !findParts(shared, tile->layout, teams, type.getShape().back()))
      return op.emitOpError("expected teams to divide a tile by ")
             << kWidth << " registers or a multiple of them, got "
             << tile->layout.str();
    llvm::append_range(own, tile->values);
    tiles.push_back(shared);
  }
  if (failed(checkRoom(op, own.size())))
    return failure();

  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto times = [&](Value x, int64_t factor) -> Value {
    return arith::MulIOp::create(b, x, constant(factor));
  };
  Value team = teams > 1 ? kernel.uniformWarp() : constant(0);
  TeamRegisters registers(b, kernel.buffers.lookup(op.getBuffer()).base,
                          lane());
  registers.store(own);
  gpu::BarrierOp::create(b);
  // What rows have stands in front of what is divided.
  size_t whole = 0;
  for (const SharedTile &each : tiles)
    if (each.registers.empty())
      whole = each.first + each.part.numRegisters();
  for (int64_t other = 0; other < teams; ++other) {
    Value distance = times(arith::SubIOp::create(b, constant(other), team),
                           getTeamBytes(kernel.func));
    TeamRegisters theirs = registers.at(distance);
    SmallVector<Value> rows = theirs.load(whole);
    for (auto [i, each] : llvm::enumerate(tiles)) {
      SmallVector<Value> part;
      if (each.registers.empty()) {
        part.append(rows.begin() + each.first,
                    rows.begin() + each.first + each.part.numRegisters());
      } else {
        TeamRegisters divided =
            theirs.at(times(team, int64_t(each.step) * 4 * 32));
        for (size_t reg = 0; reg < each.registers.size(); reg += kWidth)
          llvm::append_range(
              part, divided.load(kWidth, each.first + each.registers[reg]));
      }
      setTile(op.getResults()[other * tiles.size() + i], each.part, part);
    }
  }
  return success();
}

void lowering::addTeamLowerings(LoweringTable &table) {
  table.addReplaced<TeamIndexOp, TeamBarrierOp, TeamTakeOp, TeamShareOp>();
}
