//===- WarpgroupOps.cpp - wgmma and setmaxnreg ----------------------------===//
//
// Each warp of a warpgroup computes its own sixteen rows; the four warps need
// nothing from each other. An operation's result comes when its group is waited
// for: until then its registers count as in flight. Sums are f32 in the order
// of k.
//
//===----------------------------------------------------------------------===//

#include "../Instructions/WarpSync.h"
#include "../Numerics/FloatFormat.h"
#include "../Numerics/MatrixMath.h"
#include "../PTX/Decoder.h"
#include "../Sanitizer/ProductRegisters.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "EngineOps.h"
#include "SharedMatrix.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {

struct WgmmaAux {
  unsigned n = 8, k = 16;
  Type d = Type::F32, a = Type::BF16, b = Type::BF16;
  bool aInRegisters = false;
  bool transposeA = false, transposeB = false;
  bool saturate = false;
  int scaleA = 1, scaleB = 1;
  unsigned dRegs = 4, aRegs = 0;
};

/// One warp's part of a wgmma in flight.
struct WarpgroupProduct : WarpProduct {
  const Inst *inst = nullptr;
  uint32_t pc = 0;
  uint32_t epoch = 0;
  uint32_t group = ~0u;
  uint64_t aDesc = 0, bDesc = 0;
  bool accumulate = true;
  bool dataRead = false;
  bool finished = false; ///< before its wait
  MatrixTile a, b;
  /// Poison of the accumulator before. An operation in flight before this one
  /// fills it in when it finishes.
  std::vector<uint32_t> before;

  bool writes(uint32_t meta) const override {
    for (unsigned r = 0; r < before.size(); ++r)
      if (inst->ops[r].meta == meta)
        return true;
    return false;
  }
  void finish(Exec &x) override;

private:
  /// Row i of the warp's sixteen; `row` is space for its sums.
  void addRow(Exec &x, unsigned i, std::vector<float> &row);
  void addIntegerRow(Exec &x, unsigned i);
};

WarpgroupProduct &get(const std::shared_ptr<WarpProduct> &product) {
  return static_cast<WarpgroupProduct &>(*product);
}

void readOperands(Exec &x, WarpgroupProduct &op) {
  if (op.dataRead)
    return;
  op.dataRead = true;
  const auto &o = *static_cast<const WgmmaAux *>(op.inst->aux);
  Cta &cta = *x.warp->cta;
  unsigned firstRow = x.warp->id % 4 * 16;
  auto outside = [&] {
    x.fault(FindingKind::OutOfBounds,
            "a wgmma operand leaves the CTA's shared memory");
  };
  if (o.aInRegisters) {
    op.a.rows = 16;
    op.a.k = o.k;
    op.a.values.assign(16 * o.k, 0);
    op.a.undefined.assign(16, 0);
    unsigned bits = bitWidth(o.a), perReg = 32 / bits;
    for (unsigned r = 0; r < o.aRegs; ++r) {
      const Operand &reg = op.inst->ops[o.dRegs + r];
      const uint32_t *v = x.r32(reg);
      for (unsigned l = 0; l < 32; ++l) {
        unsigned row = l / 4 + 8 * (r & 1);
        if (x.poison[reg.meta] >> l & 1)
          op.a.undefined[row] = op.a.anyUndefined = true;
        for (unsigned e = 0; e < perReg; ++e)
          op.a.values[row * o.k + l % 4 * perReg + e + 4 * perReg * (r >> 1)] =
              decodeMatrixElement(o.a, bits == 32 ? v[l]
                                                  : v[l] >> (bits * e) &
                                                        ((1u << bits) - 1));
      }
    }
  } else if (!readMatrix(cta, MatrixDescriptor::wgmma(op.aDesc), o.a,
                         o.transposeA, firstRow, 16, o.k, op.a,
                         TileOrder::ByRow)) {
    return outside();
  }
  // The inner loop of the product runs along columns.
  if (!readMatrix(cta, MatrixDescriptor::wgmma(op.bDesc), o.b, o.transposeB, 0,
                  o.n, o.k, op.b, TileOrder::ByK))
    return outside();
  float sign = o.scaleA * o.scaleB;
  if (sign != 1)
    for (float &value : op.b.values)
      value *= sign;
}

/// Gives the poison of a finished accumulator register to the next operation in
/// flight that adds to it; false when there is none.
bool passToNext(Warp &w, uint32_t meta, unsigned r, uint32_t poisoned) {
  size_t first = 0;
  while (first < w.wgmma.products.size() &&
         get(w.wgmma.products[first]).finished)
    ++first;
  for (size_t i = first; i < w.wgmma.products.size(); ++i) {
    WarpgroupProduct &next = get(w.wgmma.products[i]);
    unsigned count = next.before.size(), at = r;
    if (r >= count || next.inst->ops[r].meta != meta)
      for (at = 0; at < count && next.inst->ops[at].meta != meta;)
        ++at;
    if (at == count)
      continue;
    next.before[at] = poisoned;
    return true;
  }
  return false;
}

/// Row i of the sixteen lies in four lanes from `firstLane` on. Calls
/// fn(column, register, half, values) for each register of the row: of it,
/// these lanes hold the columns `column`, + 2, + 4 and + 6. Results of 16 bits
/// are two halves of a register.
template <typename Fn>
static void forRow(const Exec &x, const Operand *d, const WgmmaAux &o,
                   unsigned i, Fn &&fn) {
  unsigned firstLane = i % 8 * 4;
  for (unsigned j = 0; j < o.n; j += 8)
    for (unsigned h = 0; h < 2; ++h) {
      unsigned r =
          o.d == Type::F16 ? j / 8 * 2 + i / 8 : j / 8 * 4 + i / 8 * 2 + h;
      fn(j + h, r, h, x.r32(d[r]) + firstLane);
    }
}

void WarpgroupProduct::addRow(Exec &x, unsigned i, std::vector<float> &row) {
  const auto &o = *static_cast<const WgmmaAux *>(inst->aux);
  const Operand *d = inst->ops;
  bool half = o.d == Type::F16;
  if (!accumulate)
    std::fill(row.begin(), row.end(), 0.0f);
  else
    forRow(x, d, o, i,
           [&](unsigned j, unsigned, unsigned h, const uint32_t *v) {
             for (unsigned q = 0; q < 4; ++q)
               row[j + 2 * q] =
                   half ? halfToFloat(v[q] >> (16 * h)) : bitCast<float>(v[q]);
           });
  addProducts(row.data(), &a.values[i * o.k], b.values.data(), o.n, o.k);
  forRow(x, d, o, i, [&](unsigned j, unsigned, unsigned h, uint32_t *v) {
    for (unsigned q = 0; q < 4; ++q) {
      float sum = row[j + 2 * q];
      if (half)
        v[q] = (v[q] & (h ? 0xffffu : 0xffff0000u)) | uint32_t(floatToHalf(sum))
                                                          << (16 * h);
      else
        v[q] = bitCast<uint32_t>(canonical(sum));
    }
  });
}

void WarpgroupProduct::addIntegerRow(Exec &x, unsigned i) {
  const auto &o = *static_cast<const WgmmaAux *>(inst->aux);
  forRow(x, inst->ops, o, i, [&](unsigned j, unsigned, unsigned, uint32_t *v) {
    for (unsigned q = 0; q < 4; ++q) {
      int64_t s = accumulate ? int32_t(v[q]) : 0;
      for (unsigned k = 0; k < o.k; ++k)
        s += int64_t(a.values[i * o.k + k]) *
             int64_t(b.values[k * o.n + j + 2 * q]);
      if (o.saturate)
        s = std::min<int64_t>(std::max<int64_t>(s, INT32_MIN), INT32_MAX);
      v[q] = uint32_t(s);
    }
  });
}

/// Whether an instruction has written a register that a product in flight will
/// write too.
bool isOverwritten(const Exec &x, uint32_t meta) {
  uint32_t origin = x.origin[meta];
  return (origin & InFlightOrigin) &&
         ((origin & DerivedOrigin) || x.poison[meta] != ~0u);
}

/// Reports the first register of the accumulator `d` that is, with the product
/// that will write it.
void checkRegisters(Exec &x, llvm::ArrayRef<Operand> d) {
  if (!x.sanitizing())
    return;
  const WarpgroupProduct *product = nullptr;
  for (const Operand &reg : d) {
    if (!isOverwritten(x, reg.meta))
      continue;
    for (const auto &other : x.warp->wgmma.products)
      if (!product && !get(other).finished && other->writes(reg.meta))
        product = &get(other);
    // One report for all.
    if (product)
      x.origin[reg.meta] = 0;
  }
  if (!product)
    return;
  Finding f;
  f.kind = FindingKind::InvalidOperation;
  f.message = "an accumulator was written while it was still in flight";
  f.first = x.siteOf(product->pc, x.cta, x.warp->id, -1);
  f.second = x.here();
  f.hint = "wgmma.wait_group has to come before the accumulator is written";
  x.report(std::move(f));
}

void WarpgroupProduct::finish(Exec &x) {
  if (finished)
    return;
  checkRegisters(x, {inst->ops, before.size()});
  finished = true;
  readOperands(x, *this);
  if (x.action == Action::Fault)
    return;
  const auto &o = *static_cast<const WgmmaAux *>(inst->aux);
  const Operand *d = inst->ops;
  bool integer = o.d == Type::S32;
  std::vector<float> row(o.n);
  std::vector<uint32_t> poisoned(o.dRegs, 0);
  for (unsigned i = 0; i < 16; ++i) {
    uint32_t firstLane = i % 8 * 4, lanes = 15u << firstLane;
    forRow(x, d, o, i, [&](unsigned j, unsigned r, unsigned, const uint32_t *) {
      uint32_t bad = accumulate ? before[r] : 0;
      if (a.undefined[i])
        bad = lanes;
      for (unsigned q = 0; b.anyUndefined && q < 4; ++q)
        bad |= uint32_t(b.undefined[j + 2 * q]) << (firstLane + q);
      poisoned[r] |= bad & lanes;
    });
    if (integer)
      addIntegerRow(x, i);
    else
      addRow(x, i, row);
  }
  for (unsigned r = 0; r < o.dRegs; ++r)
    if (!passToNext(*x.warp, d[r].meta, r, poisoned[r])) {
      x.poison[d[r].meta] = poisoned[r];
      x.origin[d[r].meta] = pc + 1;
    }
}

/// `.aligned` is about all warps of a warpgroup: each executes the same
/// instructions in the same order.
void checkSameInWarpgroup(Exec &x) {
  Warp &w = *x.warp;
  if (!x.sanitizing() || w.wgmma.steps == ~0u)
    return;
  std::vector<uint32_t> &steps = x.cta->wgmmaSteps[w.id / 4];
  if (w.wgmma.steps == steps.size())
    steps.push_back(x.pc);
  if (steps[w.wgmma.steps++] == x.pc)
    return;
  // What follows would differ too.
  w.wgmma.steps = ~0u;
  x.report(FindingKind::InvalidOperation, Severity::Error,
           "another warp of the warpgroup executes another wgmma instruction "
           "in its place",
           -1,
           "branches around wgmma instructions have to be the same in all "
           "warps of a warpgroup");
}

void execWgmma(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  checkSameInWarpgroup(x);
  const auto &o = *static_cast<const WgmmaAux *>(I.aux);
  // ops: d…, a… or descriptor, b descriptor, scale-d.
  const Operand &aOp = I.ops[o.dRegs];
  const Operand &bOp = I.ops[o.dRegs + (o.aInRegisters ? o.aRegs : 1)];
  const Operand &scale = I.ops[o.dRegs + (o.aInRegisters ? o.aRegs : 1) + 1];
  auto op = std::make_shared<WarpgroupProduct>();
  op->inst = &I;
  op->pc = x.pc;
  if (!o.aInRegisters)
    op->aDesc = x.uniform(aOp, "a matrix descriptor");
  if (x.action == Action::Fault)
    return;
  op->bDesc = x.uniform(bOp, "a matrix descriptor");
  if (x.action == Action::Fault)
    return;
  x.checkPoison(scale, "the accumulation switch of a wgmma");
  op->accumulate = x.pred(scale) & 1;
  Warp &w = *x.warp;
  op->epoch = ++w.mma.epoch;
  if (x.sanitizing()) {
    if (!w.wgmma.isFenced)
      x.report(FindingKind::InvalidOperation, Severity::Error,
               "no wgmma.fence comes before the first wgmma of the warp", -1,
               "wgmma.fence hands the registers over");
    w.wgmma.isFenced = true;
    checkProductRegisters(x, {I.ops, o.dRegs + o.aRegs});
    Stamp stamp = x.stampHere(-1);
    stamp.actor = w.mma.actor;
    stamp.epoch = op->epoch;
    stamp.flags = Stamp::Async | Stamp::AsyncProxy;
    AsyncTracker reads(x, stamp, x.cta, /*write=*/false);
    auto touch = [&](uint32_t offset) { reads.touchShared(offset, 16); };
    if (!o.aInRegisters)
      forChunks(MatrixDescriptor::wgmma(op->aDesc), bitWidth(o.a) / 8,
                o.transposeA, w.id % 4 * 16, 16, o.k, touch);
    forChunks(MatrixDescriptor::wgmma(op->bDesc), bitWidth(o.b) / 8,
              o.transposeB, 0, o.n, o.k, touch);
  }
  if (decideNow(x.cluster, x.machine.config.asyncReads))
    readOperands(x, *op);
  if (x.action == Action::Fault)
    return;
  // The marks of those in flight are overwritten by those of this one.
  checkRegisters(x, {I.ops, o.dRegs});
  for (unsigned r = 0; r < o.dRegs; ++r) {
    uint32_t meta = I.ops[r].meta;
    op->before.push_back(x.poison[meta]);
    x.poison[meta] = ~0u;
    x.origin[meta] = (x.pc + 1) | InFlightOrigin;
  }
  w.wgmma.products.push_back(std::move(op));
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * 16 * o.n * o.k;
}

void execWgmmaFence(Exec &x, const Inst &) {
  if (!gatherWarp(x))
    return;
  checkSameInWarpgroup(x);
  x.warp->wgmma.isFenced = true;
  ++x.warp->wgmma.fences;
}

void execWgmmaCommit(Exec &x, const Inst &) {
  if (!gatherWarp(x))
    return;
  checkSameInWarpgroup(x);
  Warp &w = *x.warp;
  for (auto &op : w.wgmma.products)
    if (get(op).group == ~0u)
      get(op).group = w.wgmma.groups;
  ++w.wgmma.groups;
}

void execWgmmaWait(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  if (!x.machine.config.assumes(Assumption::OwnWait))
    checkSameInWarpgroup(x);
  Warp &w = *x.warp;
  uint32_t done = 0;
  while (!w.wgmma.products.empty() && x.action != Action::Fault) {
    WarpgroupProduct &op = get(w.wgmma.products.front());
    if (op.group == ~0u || int64_t(op.group) >= int64_t(w.wgmma.groups) - I.imm)
      break;
    op.finish(x);
    done = op.epoch;
    w.wgmma.products.pop_front();
  }
  if (!done || !x.sanitizing())
    return;
  for (Clock *clock :
       {&w.order.know.generic, &w.order.know.async, &w.order.know.asyncGlobal})
    clock->raise(w.mma.actor, done);
}

Error decodeWgmma(Decoding &c) {
  c.program().usesAsyncProxy = true;
  const auto &ops = c.ast.ops;
  if (c.take("fence")) {
    if (!c.take("sync") || !c.take("aligned"))
      return c.error("expected '.sync.aligned'");
    return c.set(execWgmmaFence, InstClass::Wgmma);
  }
  if (c.take("commit_group")) {
    if (!c.take("sync") || !c.take("aligned"))
      return c.error("expected '.sync.aligned'");
    return c.set(execWgmmaCommit, InstClass::Wgmma);
  }
  if (c.take("wait_group")) {
    if (!c.take("sync") || !c.take("aligned"))
      return c.error("expected '.sync.aligned'");
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.immediate(ops[0], c.inst.imm));
    return c.set(execWgmmaWait, InstClass::Wgmma);
  }
  if (llvm::is_contained(c.mods, "sp"))
    return c.error("sparse products are not supported");
  if (!c.take("mma_async") || !c.take("sync") || !c.take("aligned"))
    return c.error("expected 'wgmma.mma_async.sync.aligned'");
  auto *o = c.makeAux<WgmmaAux>();
  StringRef shape;
  for (StringRef mod : c.mods)
    if (mod.starts_with("m64n"))
      shape = mod;
  c.take(shape);
  StringRef rest = shape;
  rest.consume_front("m64n");
  if (shape.empty() || rest.consumeInteger(10, o->n) ||
      !rest.consume_front("k") || rest.consumeInteger(10, o->k) ||
      !rest.empty() || o->n % 8 || o->n < 8 || o->n > 256)
    return c.error("expected a shape");
  bool satfinite = c.take("satfinite");
  o->d = c.takeType();
  o->a = c.takeType();
  o->b = c.takeType();
  switch (o->a) {
  case Type::F16:
  case Type::BF16:
  case Type::TF32:
  case Type::E4M3:
  case Type::E5M2:
  case Type::S8:
  case Type::U8:
    break;
  default:
    return c.error("unsupported operand type");
  }
  if (o->k * bitWidth(o->a) != 256 || bitWidth(o->a) != bitWidth(o->b))
    return c.error("unsupported shape for these types");
  bool integer = o->a == Type::S8 || o->a == Type::U8;
  o->saturate = satfinite;
  if (integer ? o->d != Type::S32
              : satfinite || (o->d != Type::F32 && o->d != Type::F16))
    return c.error("unsupported accumulator type");
  o->dRegs = o->n / (o->d == Type::F16 ? 4 : 2);
  if (ops.size() < 4)
    return c.error("expected a destination, two operands and a scale");
  o->aInRegisters = ops[1].kind == AstOperand::Vector;
  ATTN_SIM_TRY(c.dstVector(ops[0], Type::B32, o->dRegs));
  if (o->aInRegisters) {
    o->aRegs = 4;
    ATTN_SIM_TRY(c.srcVector(ops[1], Type::B32, 4));
  } else {
    ATTN_SIM_TRY(c.src(ops[1], Type::B64));
  }
  ATTN_SIM_TRY(c.src(ops[2], Type::B64));
  ATTN_SIM_TRY(c.srcPred(ops[3]));
  llvm::SmallVector<int64_t, 4> immediates;
  for (size_t i = 4; i < ops.size(); ++i) {
    int64_t v;
    ATTN_SIM_TRY(c.immediate(ops[i], v));
    immediates.push_back(v);
  }
  bool canTranspose = bitWidth(o->a) == 16;
  size_t want =
      integer ? 0 : 2 + (canTranspose ? (o->aInRegisters ? 1 : 2) : 0);
  if (immediates.size() != want)
    return c.error("expected " + Twine(want) + " immediates, got " +
                   Twine(immediates.size()));
  if (!integer) {
    for (int64_t scale : {immediates[0], immediates[1]})
      if (scale != 1 && scale != -1)
        return c.error("expected scales of 1 or -1");
    o->scaleA = immediates[0];
    o->scaleB = immediates[1];
  }
  if (canTranspose) {
    if (!o->aInRegisters)
      o->transposeA = immediates[2];
    o->transposeB = immediates.back();
  }
  c.program().sharedGranule = std::min(c.program().sharedGranule, 16u);
  return c.set(execWgmma, InstClass::Wgmma);
}

//===----------------------------------------------------------------------===//
// setmaxnreg
//===----------------------------------------------------------------------===//

void execSetMaxReg(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  Warp &w = *x.warp;
  // Without a bound on the launch's registers the instruction has no effect.
  if (!w.registers || !x.machine.config.replay.empty())
    return;
  uint32_t want = I.imm;
  if (I.flags) {
    if (want < w.registers)
      return x.fault(FindingKind::RegisterPool,
                     "setmaxnreg.inc asks for " + Twine(want) +
                         " registers, but the warp has " + Twine(w.registers));
    bool stalled = x.cta->freeRegisters < want - w.registers;
    if (!x.resumed)
      x.countWait("registers", stalled);
    if (stalled)
      return x.block(BlockKind::Registers, want - w.registers);
    x.cta->freeRegisters -= want - w.registers;
  } else {
    if (want > w.registers)
      return x.fault(FindingKind::RegisterPool,
                     "setmaxnreg.dec asks for " + Twine(want) +
                         " registers, but the warp has " + Twine(w.registers));
    x.cta->freeRegisters += w.registers - want;
    for (const auto &other : x.cta->warps)
      for (Split &s : other->splits)
        if (s.block == BlockKind::Registers)
          s.block = BlockKind::None;
  }
  w.registers = want;
  x.cluster.advance();
}

Error decodeSetMaxReg(Decoding &c) {
  c.inst.flags = c.take("inc");
  if (!c.inst.flags && !c.take("dec"))
    return c.error("expected '.inc' or '.dec'");
  if (!c.take("sync") || !c.take("aligned") || !c.take("u32"))
    return c.error("expected '.sync.aligned.u32'");
  ATTN_SIM_TRY(c.expectOps(1, 1));
  ATTN_SIM_TRY(c.immediate(c.ast.ops[0], c.inst.imm));
  if (c.inst.imm < 24 || c.inst.imm > 256 || c.inst.imm % 8)
    return c.error("expected a multiple of 8 between 24 and 256");
  return c.set(execSetMaxReg, InstClass::Other);
}

} // namespace

void mlir::attn::sim::registerWgmmaOps(DecodeTable &table) {
  table["wgmma"] = decodeWgmma;
  table["setmaxnreg"] = decodeSetMaxReg;
}
