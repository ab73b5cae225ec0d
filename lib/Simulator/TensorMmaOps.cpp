//===- TensorMmaOps.cpp - tcgen05.mma, commit, cp -------------------------===//
//
// Operations of one thread run in issue order as a stream of the engine
// (assumption A1). A commit is an operation of the same stream whose completion
// arrives on the mbarriers and publishes what the stream has done so far.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "EngineOps.h"
#include "FloatFormat.h"
#include "MatrixDescriptor.h"
#include "MbarrierState.h"
#include "TensorMemory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

void mlir::attn::sim::reportOutside(Cluster &cluster, const EngineOp &op) {
  Exec x(*cluster.machine, cluster);
  Finding f;
  f.kind = FindingKind::OutOfBounds;
  f.message = "a tcgen05 operand leaves the CTA's shared memory";
  f.second = x.siteOf(op.inst, op.issuer->cta, op.issuer->id, -1);
  cluster.machine->report(std::move(f));
  cluster.machine->stop = true;
}

void mlir::attn::sim::rememberIssue(Exec &x) {
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  w.issuedAfter = w.know;
  // The thread's own accesses are not ordered before its asynchronous
  // operations, and its streams publish themselves.
  for (Clock *clock :
       {&w.issuedAfter.generic, &w.issuedAfter.async, &w.issuedAfter.tensor})
    for (uint16_t actor : {w.actor, w.cpActor, w.bulkActor, w.bulkWriteActor,
                           w.mmaActor, w.tmemLdActor, w.tmemStActor})
      clock->set(actor, Component());
}

namespace {

struct TensorMmaAux {
  enum Kind { F16, TF32, F8, I8 } kind = F16;
  bool pair = false;
  bool aInTensorMemory = false;
  bool hasMask = false, hasScale = false;
  unsigned maskWords = 0;
  int64_t scale = 0;
  int64_t aDisplacement = 0;
};

/// Where row r and column n of D (or row r of A in tensor memory) are.
struct Place {
  unsigned cta, lane, column;
};

struct MmaShape {
  unsigned m, n, k;
  bool pair;
  unsigned baseLane;

  Place d(unsigned r, unsigned n0) const {
    if (pair && m == 256)
      return {r / 128, r % 128, n0};
    if (pair)
      return {r / 64, r % 64 + 64 * (n0 >= n / 2), n0 % (n / 2)};
    if (m == 64)
      return {0, 32 * (r / 16) + r % 16 + baseLane % 32, n0};
    return {0, r, n0};
  }
  Place aRow(unsigned r) const {
    if (pair && m == 256)
      return {r / 128, r % 128, 0};
    if (pair)
      return {r / 64, r % 64, 0};
    if (m == 64)
      return {0, 32 * (r / 16) + r % 16 + baseLane % 32, 0};
    return {0, r, 0};
  }
  /// Columns of D in each CTA's tensor memory.
  unsigned columns() const { return pair && m == 128 ? n / 2 : n; }
};

struct TensorMmaOp : EngineOp {
  const TensorMmaAux *aux = nullptr;
  Cta *ctas[2] = {};
  MmaShape shape;
  Type aType = Type::F16, bType = Type::F16, dType = Type::F32;
  bool negateA = false, negateB = false, transposeA = false, transposeB = false;
  uint32_t dColumn = 0, aColumn = 0;
  uint64_t aDesc = 0, bDesc = 0;
  bool accumulate = false;
  uint32_t mask[8] = {};
  bool dataRead = false;
  MatrixTile a[2], b[2];

  void readShared(Cluster &cluster);
  void complete(Cluster &cluster) override;
  std::string describe() const override { return "a tcgen05.mma"; }
  bool touches(const Cta *cta) const override {
    return ctas[0] == cta || ctas[1] == cta;
  }
};

void TensorMmaOp::readShared(Cluster &cluster) {
  if (dataRead)
    return;
  dataRead = true;
  unsigned parts = aux->pair ? 2 : 1;
  for (unsigned i = 0; i < parts; ++i) {
    if (!aux->aInTensorMemory &&
        !readMatrix(*ctas[i], MatrixDescriptor::tcgen05(aDesc), aType,
                    transposeA, 0, shape.m / parts, shape.k, a[i]))
      return reportOutside(cluster, *this);
    if (!readMatrix(*ctas[i], MatrixDescriptor::tcgen05(bDesc), bType,
                    transposeB, 0, shape.n / parts, shape.k, b[i]))
      return reportOutside(cluster, *this);
  }
}

void TensorMmaOp::complete(Cluster &cluster) {
  readShared(cluster);
  if (cluster.machine->stop)
    return;
  unsigned parts = aux->pair ? 2 : 1;
  unsigned rowsA = shape.m / parts, rowsB = shape.n / parts;
  // B transposed, so that the inner loop runs along columns.
  std::vector<float> bt(size_t(shape.k) * shape.n), row(shape.n);
  std::vector<uint8_t> bBad(shape.n);
  float sign = (negateA != negateB) ? -1.0f : 1.0f;
  for (unsigned j = 0; j < shape.n; ++j) {
    const MatrixTile &t = b[j / rowsB];
    for (unsigned i = 0; i < shape.k; ++i)
      bt[i * shape.n + j] = sign * t.values[(j % rowsB) * shape.k + i];
    bBad[j] = t.undefined[j % rowsB];
  }
  std::vector<float> aRow(shape.k);
  float inputScale = aux->hasScale ? std::ldexp(1.0f, -int(aux->scale)) : 1.0f;
  for (unsigned r = 0; r < shape.m; ++r) {
    bool aBad = false;
    if (aux->aInTensorMemory) {
      Place p = shape.aRow(r);
      TensorMemory &t = tensorMemoryOf(*ctas[p.cta]);
      unsigned bits = bitWidth(aType), perCell = 32 / bits;
      for (unsigned i = 0; i < shape.k; ++i) {
        unsigned cell = p.lane * TensorMemory::Columns + aColumn + i / perCell;
        uint32_t v = t.cells[cell] >> (bits * (i % perCell));
        if (bits < 32)
          v &= (1u << bits) - 1;
        aRow[i] = decodeMatrixElement(aType, v);
        aBad |= !t.valid[cell];
      }
    } else {
      const MatrixTile &t = a[r / rowsA];
      std::copy_n(&t.values[(r % rowsA) * shape.k], shape.k, aRow.begin());
      aBad = t.undefined[r % rowsA];
    }
    Place first = shape.d(r, 0);
    if (mask[first.lane / 32] >> (first.lane % 32) & 1)
      continue;
    auto cellOf = [&](unsigned n) {
      Place p = shape.d(r, n);
      return p.lane * TensorMemory::Columns + dColumn + p.column;
    };
    TensorMemory &t = tensorMemoryOf(*ctas[first.cta]);
    if (dType == Type::S32) {
      for (unsigned n = 0; n < shape.n; ++n) {
        int64_t sum = accumulate ? int32_t(t.cells[cellOf(n)]) : 0;
        for (unsigned i = 0; i < shape.k; ++i)
          sum += int64_t(aRow[i]) * int64_t(bt[i * shape.n + n]);
        t.cells[cellOf(n)] = uint32_t(sum);
        t.valid[cellOf(n)] =
            (!accumulate || t.valid[cellOf(n)]) && !aBad && !bBad[n];
      }
      continue;
    }
    for (unsigned n = 0; n < shape.n; ++n) {
      if (!accumulate) {
        row[n] = 0;
        continue;
      }
      uint32_t v = t.cells[cellOf(n)];
      row[n] = (dType == Type::F16 ? halfToFloat(v) : bitCast<float>(v)) *
               inputScale;
    }
    addProducts(row.data(), aRow.data(), bt.data(), shape.n, shape.k);
    for (unsigned n = 0; n < shape.n; ++n) {
      unsigned cell = cellOf(n);
      t.cells[cell] = dType == Type::F16 ? floatToHalf(row[n])
                                         : bitCast<uint32_t>(canonical(row[n]));
      t.valid[cell] = (!accumulate || t.valid[cell]) && !aBad && !bBad[n];
    }
  }
}

/// Decodes the instruction descriptor; false after a fault.
bool decodeInstruction(Exec &x, const TensorMmaAux &o, uint32_t d,
                       TensorMmaOp &op, int lane) {
  auto fail = [&](const Twine &message) {
    x.fault(FindingKind::InvalidOperation, "instruction descriptor: " + message,
            lane);
    return false;
  };
  if (d & 4)
    return fail("sparse products are not supported");
  unsigned dFormat = d >> 4 & 3, aFormat = d >> 7 & 7, bFormat = d >> 10 & 7;
  static const Type f16[] = {Type::F16, Type::BF16};
  static const Type f8[] = {Type::E4M3, Type::E5M2};
  switch (o.kind) {
  case TensorMmaAux::F16:
    if (aFormat > 1 || bFormat > 1)
      return fail("expected f16 or bf16 operands");
    op.aType = f16[aFormat];
    op.bType = f16[bFormat];
    op.shape.k = 16;
    break;
  case TensorMmaAux::TF32:
    if (aFormat != 2 || bFormat != 2)
      return fail("expected tf32 operands");
    op.aType = op.bType = Type::TF32;
    op.shape.k = 8;
    break;
  case TensorMmaAux::F8:
    if (aFormat > 1 || bFormat > 1)
      return fail("only e4m3 and e5m2 operands are supported");
    op.aType = f8[aFormat];
    op.bType = f8[bFormat];
    op.shape.k = 32;
    break;
  case TensorMmaAux::I8:
    op.aType = aFormat ? Type::S8 : Type::U8;
    op.bType = bFormat ? Type::S8 : Type::U8;
    op.shape.k = 32;
    break;
  }
  op.dType = dFormat == 0 ? Type::F16 : dFormat == 1 ? Type::F32 : Type::S32;
  if ((op.dType == Type::S32) != (o.kind == TensorMmaAux::I8) || dFormat == 3)
    return fail("expected an accumulator type of this kind");
  op.negateA = d >> 13 & 1;
  op.negateB = d >> 14 & 1;
  op.transposeA = d >> 15 & 1;
  op.transposeB = d >> 16 & 1;
  op.shape.n = (d >> 17 & 0x3f) << 3;
  op.shape.m = (d >> 24 & 0x1f) << 4;
  op.shape.pair = o.pair;
  bool mOk = o.pair ? op.shape.m == 128 || op.shape.m == 256
                    : op.shape.m == 64 || op.shape.m == 128;
  unsigned step = o.pair || op.shape.m == 128 ? 16 : 8;
  if (!mOk || op.shape.n < step || op.shape.n > 256 || op.shape.n % step)
    return fail("unsupported shape M=" + Twine(op.shape.m) +
                " N=" + Twine(op.shape.n));
  return true;
}

// ops: d address, a (descriptor or address), b descriptor, instruction
// descriptor, enable-input-d, mask words….
void execTensorMma(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const TensorMmaAux *>(I.aux);
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    for (unsigned i = 0; i < 5; ++i)
      if (x.poison[I.ops[i].meta] >> lane & 1)
        x.checkPoison(I.ops[i], "an operand of tcgen05.mma");
    auto op = std::make_unique<TensorMmaOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    op->aux = &o;
    op->stream = x.warp->index + 1;
    unsigned rank = x.cta->rank;
    if (o.pair) {
      if ((rank | 1) >= x.cluster.ctas.size())
        return x.fault(FindingKind::InvalidOperation,
                       "expected a pair of CTAs in the cluster", lane);
      op->ctas[0] = x.cluster.ctas[rank & ~1u].get();
      op->ctas[1] = x.cluster.ctas[rank | 1].get();
      if (op->ctas[0]->exited || op->ctas[1]->exited)
        return x.fault(FindingKind::ExitInFlight,
                       "the other CTA of the pair has exited", lane);
    } else {
      op->ctas[0] = x.cta;
    }
    uint32_t d = x.r32(I.ops[0])[lane] + uint32_t(I.imm);
    op->dColumn = d & 0xffff;
    op->shape.baseLane = d >> 16;
    if (!decodeInstruction(x, o, x.r32(I.ops[3])[lane], *op, lane))
      return;
    op->bDesc = x.r64(I.ops[2])[lane];
    if (o.aInTensorMemory) {
      uint32_t a = x.r32(I.ops[1])[lane] + uint32_t(o.aDisplacement);
      op->aColumn = a & 0xffff;
    } else {
      op->aDesc = x.r64(I.ops[1])[lane];
      if (!MatrixDescriptor::tcgen05(op->aDesc).valid)
        return x.fault(FindingKind::InvalidOperation,
                       "the matrix descriptor of A is malformed", lane);
    }
    if (!MatrixDescriptor::tcgen05(op->bDesc).valid)
      return x.fault(FindingKind::InvalidOperation,
                     "the matrix descriptor of B is malformed", lane);
    op->accumulate = x.pred(I.ops[4]) >> lane & 1;
    for (unsigned i = 0; i < o.maskWords; ++i)
      op->mask[i] = x.r32(I.ops[5 + i])[lane];
    unsigned parts = o.pair ? 2 : 1;
    unsigned aColumns =
        o.aInTensorMemory ? op->shape.k * bitWidth(op->aType) / 32 : 0;
    for (unsigned i = 0; i < parts; ++i) {
      TensorMemory &t = tensorMemoryOf(*op->ctas[i]);
      if (!t.isAllocated(op->dColumn, op->shape.columns()) ||
          (aColumns && !t.isAllocated(op->aColumn, aColumns)))
        return x.fault(FindingKind::TensorMemoryMisuse,
                       "tcgen05.mma uses columns that the CTA has not "
                       "allocated",
                       lane);
    }
    Warp &w = *x.warp;
    uint32_t epoch = ++w.mmaEpoch;
    if (x.sanitizing()) {
      if (!x.machine.config.assumes(Assumption::MmaOrder)) {
        w.pipelines.resize(epoch + 1);
        w.pipelines[epoch] = uint64_t(1) << 63 | uint64_t(o.kind) << 56 |
                             uint64_t(o.pair) << 55 |
                             uint64_t(op->shape.m) << 44 |
                             uint64_t(op->shape.n) << 33 | d;
      }
      Stamp stamp = x.stampHere(lane);
      stamp.actor = w.mmaActor;
      stamp.epoch = epoch;
      stamp.flags = Stamp::Async | Stamp::AsyncProxy;
      Stamp tensor = stamp;
      tensor.flags = Stamp::Async | Stamp::Tensor;
      tensor.lane = Stamp::AllLanes;
      for (unsigned i = 0; i < parts; ++i) {
        auto touch = [&](uint32_t offset) {
          if (offset + 16 > op->ctas[i]->shared.size())
            return;
          MemRef ref;
          ref.space = Space::Shared;
          ref.cta = op->ctas[i];
          ref.offset = offset;
          ref.address = offset + SharedBase;
          x.trackAs(stamp, w.know.async, ref, 16, false);
        };
        if (!o.aInTensorMemory)
          forChunks(MatrixDescriptor::tcgen05(op->aDesc),
                    bitWidth(op->aType) / 8, op->transposeA, 0,
                    op->shape.m / parts, op->shape.k, touch);
        forChunks(MatrixDescriptor::tcgen05(op->bDesc), bitWidth(op->bType) / 8,
                  op->transposeB, 0, op->shape.n / parts, op->shape.k, touch);
      }
      for (unsigned r = 0; r < op->shape.m; ++r) {
        if (aColumns) {
          Place p = op->shape.aRow(r);
          trackTensor(x, *op->ctas[p.cta], tensor, w.know.tensor, p.lane,
                      op->aColumn, aColumns, false);
        }
        Place p = op->shape.d(r, 0);
        trackTensor(x, *op->ctas[p.cta], tensor, w.know.tensor, p.lane,
                    op->dColumn, op->shape.columns(), true);
        if (o.pair && op->shape.m == 128)
          trackTensor(x, *op->ctas[p.cta], tensor, w.know.tensor, p.lane + 64,
                      op->dColumn, op->shape.columns(), true);
      }
    }
    rememberIssue(x);
    ++x.cluster.counters.mmaInstructions;
    x.cluster.counters.mmaFlops +=
        2ull * op->shape.m * op->shape.n * op->shape.k;
    const LaunchConfig &config = x.machine.config;
    if (decideNow(x.cluster, config.asyncReads))
      op->readShared(x.cluster);
    if (config.asyncWrites == AsyncTiming::Issue)
      op->complete(x.cluster);
    else
      x.cluster.engine.push_back(std::move(op));
  });
}

} // namespace

namespace mlir::attn::sim {

Error decodeTensorMma(Decoding &c) {
  const auto &ops = c.ast.ops;
  c.take("mma");
  auto *o = c.makeAux<TensorMmaAux>();
  if (c.take("sp") || c.take("ws"))
    return c.error("sparse and weight-stationary products are not supported");
  o->pair = c.take("cta_group::2");
  if (!o->pair && !c.take("cta_group::1"))
    return c.error("expected '.cta_group'");
  StringRef kind =
      c.takeAny({"kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8"});
  if (kind.empty())
    return c.error("unsupported kind");
  o->kind = kind == "kind::f16"      ? TensorMmaAux::F16
            : kind == "kind::tf32"   ? TensorMmaAux::TF32
            : kind == "kind::f8f6f4" ? TensorMmaAux::F8
                                     : TensorMmaAux::I8;
  for (StringRef use : {"collector::a::fill", "collector::a::use",
                        "collector::a::lastuse", "collector::a::discard"})
    c.take(use);
  ATTN_SIM_TRY(c.expectOps(5, 7));
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  o->aInTensorMemory = ops[1].kind == AstOperand::Address;
  if (o->aInTensorMemory)
    ATTN_SIM_TRY(c.address(ops[1], o->aDisplacement));
  else
    ATTN_SIM_TRY(c.src(ops[1], Type::B64));
  ATTN_SIM_TRY(c.src(ops[2], Type::B64));
  ATTN_SIM_TRY(c.src(ops[3], Type::B32));
  size_t next = 4;
  const AstOperand *mask = nullptr;
  if (ops[next].kind == AstOperand::Vector)
    mask = &ops[next++];
  if (next >= ops.size())
    return c.error("expected the accumulation switch");
  ATTN_SIM_TRY(c.srcPred(ops[next++]));
  if (mask) {
    o->hasMask = true;
    o->maskWords = mask->elems.size();
    if (o->maskWords != (o->pair ? 8u : 4u))
      return c.error("expected " + Twine(o->pair ? 8 : 4) + " mask words");
    ATTN_SIM_TRY(c.srcVector(*mask, Type::B32, o->maskWords));
  }
  if (next < ops.size()) {
    o->hasScale = true;
    ATTN_SIM_TRY(c.immediate(ops[next++], o->scale));
  }
  if (next != ops.size())
    return c.error("too many operands");
  return c.set(execTensorMma, InstClass::Tcgen05);
}

} // namespace mlir::attn::sim
