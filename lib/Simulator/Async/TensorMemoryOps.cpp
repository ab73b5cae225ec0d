//===- TensorMemoryOps.cpp - tcgen05 but for its MMA ----------------------===//
//
// Loads and stores of tensor memory, waits, fences. A load delivers its
// registers at once but counts as running until wait::ld (under assumption A3:
// until a register of it has been used). A store counts as running until
// wait::st.
//
//===----------------------------------------------------------------------===//

#include "../Instructions/MemoryTraffic.h"
#include "../Instructions/WarpSync.h"
#include "../Sanitizer/Ordering.h"
#include "../Sanitizer/PartPoison.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "TensorOperations.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

TensorMemory &mlir::attn::sim::tensorMemoryOf(Cta &cta) {
  if (!cta.tmem) {
    cta.tmem = std::make_shared<TensorMemory>();
    if (cta.cluster->machine->config.sanitize)
      cta.tmem->shadow.init(TensorMemory::Columns);
  }
  return *cta.tmem;
}

/// Checks an access against a shadow of the CTA's tensor memory, and records it
/// there.
static void trackIn(RowShadow &shadow, Exec &x, Cta &cta, const Stamp &stamp,
                    const Clock &clock, RowShadow::Rows lanes, unsigned column,
                    unsigned count, bool write) {
  ShadowAccess access(stamp, write, clock);
  shadow.access(
      lanes, column, count, access,
      [&](const Stamp &earlier, bool wasWrite, unsigned lane, unsigned at) {
        MemRef ref;
        ref.space = Space::Tensor;
        ref.cta = &cta;
        ref.offset = lane * TensorMemory::Columns + column;
        ref.address = lane << 16 | column;
        reportRace(x, earlier, wasWrite, stamp, write, clock, ref,
                   lane * TensorMemory::Columns + at, count);
      });
}

void mlir::attn::sim::trackTensor(Exec &x, Cta &cta, const Stamp &stamp,
                                  const Clock &clock, RowShadow::Rows lanes,
                                  unsigned column, unsigned count, bool write) {
  if (x.sanitizing())
    trackIn(tensorMemoryOf(cta).shadow, x, cta, stamp, clock, lanes, column,
            count, write);
}

void mlir::attn::sim::checkTensorUses(Exec &x, Cta &cta, RowShadow &shadow,
                                      const Stamp &stamp, const Clock &clock,
                                      unsigned column, unsigned count) {
  trackIn(shadow, x, cta, stamp, clock,
          RowShadow::range(0, TensorMemory::Lanes), column, count,
          /*write=*/true);
}

namespace {

struct TmemAux {
  enum Shape { S32x32, S16x64, S16x128, S16x256, S16x32x2 } shape = S32x32;
  unsigned repeat = 1, regs = 1;
  bool pack = false;
  bool store = false;
  int64_t split = 0; ///< 16x32bx2: columns to the second half
  unsigned firstReg = 0;
  bool reduce = false, reduceMax = false, reduceAbs = false, reduceNaN = false;
  Type reduceType = Type::F32;
};

/// Lane and column of register r in lane l, relative to the address. A packed
/// register takes two columns.
std::pair<unsigned, unsigned> cellOf(const TmemAux &o, unsigned l, unsigned r) {
  unsigned width = o.pack ? 2 : 1;
  switch (o.shape) {
  case TmemAux::S32x32:
    return {l, r * width};
  case TmemAux::S16x64:
    return {l / 4 + 8 * (l & 1), (2 * r + (l >> 1 & 1)) * width};
  case TmemAux::S16x128:
    return {l / 4 + 8 * (r & 1), (4 * (r >> 1) + l % 4) * width};
  case TmemAux::S16x256:
    return {l / 4 + 8 * (r >> 1 & 1),
            (8 * (r >> 2) + 2 * (l % 4) + (r & 1)) * width};
  case TmemAux::S16x32x2:
    return {l % 16, r * width + (l >= 16 ? unsigned(o.split) : 0)};
  }
  return {0, 0};
}

bool tensorAddress(Exec &x, const Operand &base, int64_t displacement,
                   uint32_t &lane, uint32_t &column) {
  uint64_t address = x.uniform(base, "a tensor-memory address");
  if (x.action == Action::Fault)
    return false;
  address += displacement;
  lane = uint32_t(address) >> 16;
  column = address & 0xffff;
  return true;
}

/// Cells that an instruction covers.
struct TmemRange {
  uint32_t lane = 0, column = 0;
  unsigned columns = 0;
  unsigned columnsPerReg = 1;
};

/// Finds the cells and checks that the warp may access them; false after a
/// fault.
bool findCells(Exec &x, const Inst &I, const TmemAux &o, TmemRange &range) {
  if (!tensorAddress(x, I.ops[0], I.imm, range.lane, range.column))
    return false;
  auto fail = [&](const Twine &message) {
    x.fault(FindingKind::TensorMemoryMisuse, message);
    return false;
  };
  const Warp &w = *x.warp;
  if (w.live != ~0u)
    return fail("a warp with exited lanes accesses tensor memory");
  unsigned partition = w.id % 4 * 32;
  if (range.lane != partition &&
      (o.shape == TmemAux::S32x32 || range.lane != partition + 16))
    return fail(llvm::formatv("warp {0} can access the lanes from {1} on, "
                              "got lane {2}",
                              w.id, partition, range.lane));
  range.columnsPerReg = o.pack ? 2 : 1;
  for (unsigned l : {0u, 3u, 31u})
    range.columns = std::max(range.columns, cellOf(o, l, o.regs - 1).second +
                                                range.columnsPerReg);
  return checkAllocated(x, *x.cta, range.column, range.columns,
                        llvm::formatv("{0} columns [{1}, {2})",
                                      o.store ? "stores to" : "loads from",
                                      range.column,
                                      range.column + range.columns));
}

void trackCells(Exec &x, const TmemAux &o, const TmemRange &range) {
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  Stream &stream = o.store ? w.tcgen05.stores : w.tcgen05.loads;
  Stamp stamp = x.stampHere(-1);
  stamp.flags = Stamp::Tensor;
  stamp.actor = stream.actor;
  stamp.epoch = ++stream.epoch;
  // The warp's own products are in order among themselves (A1), not with
  // its loads and stores: of those it knows what it has waited for.
  Clock clock = w.order.know.tensor;
  clock.dropPart(w.mma.actor);
  // Shapes of 16 lanes interleave registers along columns; they cover whole
  // rows of cells between them.
  RowShadow::Rows rows =
      RowShadow::range(range.lane, o.shape == TmemAux::S32x32 ? 32 : 16);
  auto touch = [&](unsigned column, unsigned columns) {
    trackTensor(x, *x.cta, stamp, clock, rows, column, columns, o.store);
  };
  if (o.shape == TmemAux::S16x32x2) {
    unsigned columns = o.regs * range.columnsPerReg;
    touch(range.column, columns);
    touch(range.column + o.split, columns);
  } else {
    touch(range.column, range.columns);
  }
  if (o.store)
    return;
  w.tcgen05.pendingLoads.push_back({x.pc, stamp.epoch, o.regs});
  if (!x.machine.config.assumes(Assumption::LoadUse))
    w.tcgen05.loading.push_back(x.pc);
}

/// Moves register r between its lanes and the cells.
void moveRegister(Exec &x, const TmemAux &o, const TmemRange &range,
                  const Operand &reg, unsigned r) {
  TensorMemory &t = tensorMemoryOf(*x.cta);
  uint32_t *v = x.r32(reg);
  uint32_t poisoned = 0;
  PartPoison parts = partsOf(x, reg);
  for (unsigned l = 0; l < 32; ++l) {
    auto [dl, dc] = cellOf(o, l, r);
    for (unsigned h = 0; h < range.columnsPerReg; ++h) {
      unsigned cell =
          (range.lane + dl) * TensorMemory::Columns + range.column + dc + h;
      if (o.store) {
        t.cells[cell] = o.pack ? v[l] >> (16 * h) & 0xffff : v[l];
        t.valid[cell] = 0;
        for (unsigned byte = 0; byte < 4; ++byte)
          t.valid[cell] |=
              !((o.pack ? x.poison[reg.meta] : parts[byte]) >> l & 1) << byte;
        continue;
      }
      if (t.valid[cell] != TensorMemory::AllBytes)
        poisoned |= 1u << l;
      if (o.pack)
        v[l] =
            h ? (v[l] & 0xffff) | t.cells[cell] << 16 : t.cells[cell] & 0xffff;
      else
        v[l] = t.cells[cell];
    }
  }
  if (!o.store)
    x.setPoison(reg, poisoned, x.pc + 1);
}

/// The least or largest of what one lane has loaded.
uint32_t reduceLane(Exec &x, const Inst &I, const TmemAux &o, unsigned lane) {
  int64_t best = 0;
  bool first = true, nan = false;
  for (unsigned r = 0; r < o.regs; ++r) {
    uint32_t bits = x.r32(I.ops[1 + r])[lane];
    if (o.reduceAbs)
      bits &= 0x7fffffff;
    int64_t key = bits;
    if (o.reduceType == Type::S32)
      key = int32_t(bits);
    // Signed magnitude as an ordered integer; -0 is below +0.
    if (o.reduceType == Type::F32) {
      int64_t magnitude = bits & 0x7fffffff;
      if (magnitude > 0x7f800000) {
        nan = true;
        continue;
      }
      key = bits >> 31 ? -magnitude - 1 : magnitude;
    }
    if (first || (o.reduceMax ? key > best : key < best))
      best = key;
    first = false;
  }
  if (o.reduceType == Type::F32 && best < 0)
    best = (-best - 1) | 0x80000000;
  return first || (nan && o.reduceNaN) ? 0x7fffffff : uint32_t(best);
}

void execTmemLdSt(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const TmemAux *>(I.aux);
  TmemRange range;
  if (!findCells(x, I, o, range))
    return;
  trackCells(x, o, range);
  for (unsigned r = 0; r < o.regs; ++r)
    moveRegister(x, o, range, I.ops[1 + r], r);
  if (!o.reduce)
    return;
  const Operand &red = I.ops[1 + o.regs];
  uint32_t poisoned = 0;
  for (unsigned r = 0; r < o.regs; ++r)
    poisoned |= x.poison[I.ops[1 + r].meta];
  for (unsigned lane = 0; lane < 32; ++lane)
    x.r32(red)[lane] = reduceLane(x, I, o, lane);
  x.setPoison(red, poisoned, x.pc + 1);
}

void execTmemWait(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  if (I.flags) {
    w.order.know.tensor.raise(w.tcgen05.stores.actor, w.tcgen05.stores.epoch);
  } else {
    w.order.know.tensor.raise(w.tcgen05.loads.actor, w.tcgen05.loads.epoch);
    w.tcgen05.pendingLoads.clear();
    w.tcgen05.loading.clear();
  }
}

/// flags: 0 before_thread_sync, 1 after_thread_sync.
void execTmemFence(Exec &x, const Inst &I) {
  Warp &w = *x.warp;
  if (I.flags) {
    w.order.know.tensor.join(w.tcgen05.acquired);
    w.tcgen05.acquired.clear();
  } else {
    retireUsedLoads(x);
    w.tcgen05.fencedLoads = w.order.know.tensor.fullOf(w.tcgen05.loads.actor);
    w.tcgen05.fencedStores = w.order.know.tensor.fullOf(w.tcgen05.stores.actor);
  }
}

Error decodeLdSt(Decoding &c, bool store) {
  auto *o = c.makeAux<TmemAux>();
  o->store = store;
  o->reduce = c.take("red");
  if (!c.take("sync") || !c.take("aligned"))
    return c.error("expected '.sync.aligned'");
  static const std::pair<StringRef, TmemAux::Shape> shapes[] = {
      {"32x32b", TmemAux::S32x32},
      {"16x64b", TmemAux::S16x64},
      {"16x128b", TmemAux::S16x128},
      {"16x256b", TmemAux::S16x256},
      {"16x32bx2", TmemAux::S16x32x2}};
  bool found = false;
  for (const auto &[name, shape] : shapes)
    if (c.take(name)) {
      o->shape = shape;
      found = true;
    }
  if (!found)
    return c.error("expected a shape");
  found = false;
  for (unsigned n = 1; n <= 128; n *= 2)
    if (c.take("x" + std::to_string(n))) {
      o->repeat = n;
      found = true;
    }
  if (!found)
    return c.error("expected a repeat count");
  o->pack = c.take(store ? "unpack::16b" : "pack::16b");
  if (o->reduce) {
    o->reduceMax = c.take("max");
    if (!o->reduceMax && !c.take("min"))
      return c.error("expected '.min' or '.max'");
    o->reduceAbs = c.take("abs");
    o->reduceNaN = c.take("NaN");
    o->reduceType = c.takeType();
    bool isFloat = o->reduceType == Type::F32;
    if (!isFloat && o->reduceType != Type::S32 && o->reduceType != Type::U32)
      return c.error("expected '.f32', '.s32' or '.u32'");
    if ((o->reduceAbs || o->reduceNaN) && !isFloat)
      return c.error("expected '.abs' and '.NaN' with '.f32' only");
  } else if (!c.take("b32")) {
    return c.error("expected '.b32'");
  }
  unsigned factor = o->shape == TmemAux::S16x128   ? 2
                    : o->shape == TmemAux::S16x256 ? 4
                                                   : 1;
  o->regs = o->repeat * factor;
  const auto &ops = c.ast.ops;
  bool split = o->shape == TmemAux::S16x32x2;
  size_t want = 2 + split + o->reduce;
  ATTN_SIM_TRY(c.expectOps(want, want));
  size_t addressAt = store ? 0 : 1 + o->reduce;
  size_t valueAt = store ? 1 + split : 0;
  if (ops[addressAt].kind != AstOperand::Address)
    return c.error("expected an address in brackets");
  ATTN_SIM_TRY(c.address(ops[addressAt], c.inst.imm));
  if (split)
    ATTN_SIM_TRY(c.immediate(ops[addressAt + 1], o->split));
  ATTN_SIM_TRY(store ? c.srcVector(ops[valueAt], Type::B32, o->regs)
                     : c.dstVector(ops[valueAt], Type::B32, o->regs));
  if (o->reduce)
    ATTN_SIM_TRY(c.dst(ops[1], Type::B32));
  return c.set(execTmemLdSt, store ? InstClass::TmemSt : InstClass::TmemLd);
}

Error decodeTcgen05(Decoding &c) {
  c.program().usesAsyncProxy = true;
  if (c.take("ld"))
    return decodeLdSt(c, false);
  if (c.take("st"))
    return decodeLdSt(c, true);
  if (llvm::is_contained(c.mods, "mma"))
    return decodeTensorMma(c);
  if (llvm::is_contained(c.mods, "commit"))
    return decodeTensorCommit(c);
  if (llvm::is_contained(c.mods, "cp"))
    return decodeTensorCopy(c);
  if (llvm::is_contained(c.mods, "shift"))
    return decodeTensorShift(c);
  bool ld = c.take("wait::ld"), st = c.take("wait::st");
  if (ld || st) {
    if (!c.take("sync") || !c.take("aligned"))
      return c.error("expected '.sync.aligned'");
    c.inst.flags = st;
    return c.set(execTmemWait, InstClass::Tcgen05);
  }
  if (StringRef fence =
          c.takeAny({"fence::before_thread_sync", "fence::after_thread_sync"});
      !fence.empty()) {
    c.inst.flags = fence == "fence::after_thread_sync";
    return c.set(execTmemFence, InstClass::Tcgen05);
  }
  return decodeTensorAllocation(c);
}

} // namespace

void mlir::attn::sim::registerTensorMemoryOps(DecodeTable &table) {
  table["tcgen05"] = decodeTcgen05;
}
