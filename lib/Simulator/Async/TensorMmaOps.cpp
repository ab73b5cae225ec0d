//===- TensorMmaOps.cpp - tcgen05.mma, commit, cp -------------------------===//
//
// Operations of one thread run in issue order as a stream of the engine
// (assumption A1). A commit is an operation of the same stream whose completion
// arrives on the mbarriers and publishes what the stream has done so far.
//
//===----------------------------------------------------------------------===//

#include "../PTX/Decoder.h"
#include "../Sanitizer/PhaseChecks.h"
#include "../Sanitizer/Races.h"
#include "TensorMma.h"
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

void mlir::attn::sim::rememberIssue(Exec &x, unsigned lane) {
  x.warp->tcgen05.issuers |= 1u << lane;
  if (!x.sanitizing())
    return;
  Warp &w = *x.warp;
  w.tcgen05.issuedAfter = w.order.know;
  // The thread's own accesses are not ordered before its asynchronous
  // operations, and its streams publish themselves.
  for (Clock *clock : w.tcgen05.issuedAfter.getStreams())
    for (uint16_t actor : {w.order.actor, w.cpAsync.stream.actor, w.bulk.actor,
                           w.bulk.writeActor, w.mma.actor,
                           w.tcgen05.loads.actor, w.tcgen05.stores.actor})
      clock->set(actor, Component());
}

void mlir::attn::sim::startOperation(Exec &x, std::unique_ptr<EngineOp> op) {
  if (x.machine.config.asyncWrites == AsyncTiming::Issue)
    op->complete(x.cluster);
  else
    x.cluster.engine.push_back(std::move(op));
}

namespace {

// ops: d address, a (descriptor or address), b descriptor, instruction
// descriptor, enable-input-d, then mask words, or addresses of scales, or a
// mask of zero columns.

/// What one lane asks for. Each step is false after a fault.
class ProductRequest {
public:
  ProductRequest(Exec &x, const Inst &I, unsigned lane);
  /// Checks the request and hands the product to the engine.
  void start();

private:
  bool fail(FindingKind kind, const Twine &message) {
    x.fault(kind, message, lane);
    return false;
  }
  bool findCtas();
  bool readShape();
  bool readOperands();
  bool checkColumns();
  void trackAll();
  /// What the CTA's shared memory and its scales hold of the operands.
  void trackOperands(Cta &cta, const Stamp &stamp, const Stamp &tensor);
  /// The rows of A and D in tensor memory.
  void trackRows(const Stamp &tensor);

  Exec &x;
  const Inst &I;
  const TensorMmaAux &aux;
  unsigned lane;
  uint32_t d; ///< address of D
  std::unique_ptr<TensorMmaOp> op = std::make_unique<TensorMmaOp>();
};

ProductRequest::ProductRequest(Exec &x, const Inst &I, unsigned lane)
    : x(x), I(I), aux(*static_cast<const TensorMmaAux *>(I.aux)), lane(lane),
      d(x.r32(I.ops[0])[lane] + uint32_t(I.imm)) {
  op->inst = x.pc;
  op->issuer = x.warp;
  op->aux = &aux;
  op->stream = x.warp->index + 1;
}

bool ProductRequest::findCtas() {
  if (!aux.pair) {
    op->ctas[0] = x.cta;
    return true;
  }
  unsigned rank = x.cta->rank;
  op->ctas[0] = x.cluster.ctas[rank & ~1u].get();
  op->ctas[1] = x.cluster.ctas[rank | 1].get();
  const Cta &peer = *op->ctas[rank % 2 ? 0 : 1];
  if (peer.exited)
    return fail(FindingKind::ExitInFlight,
                "the other CTA of the pair has exited: " + nameOf(peer));
  return true;
}

bool ProductRequest::readShape() {
  op->dColumn = d & 0xffff;
  op->shape.baseLane = d >> 16;
  if (Error error = op->decodeDescriptor(x.r32(I.ops[3])[lane]))
    return fail(FindingKind::InvalidOperation,
                llvm::toString(std::move(error)));
  if (aux.block) {
    // The upper bits may repeat the scale factor's ID.
    op->scaleA.column =
        (x.r32(I.ops[5])[lane] + uint32_t(aux.scaleADisplacement)) & 0xffff;
    op->scaleB.column =
        (x.r32(I.ops[6])[lane] + uint32_t(aux.scaleBDisplacement)) & 0xffff;
  }
  if (aux.hasZeroMask && x.r64(I.ops[5])[lane] >> 39 & 1)
    return fail(FindingKind::InvalidOperation,
                "masks of zero columns are not supported");
  return true;
}

bool ProductRequest::readOperands() {
  op->bDesc = x.r64(I.ops[2])[lane];
  if (aux.aInTensorMemory) {
    uint32_t a = x.r32(I.ops[1])[lane] + uint32_t(aux.aDisplacement);
    op->aColumn = a & 0xffff;
  } else {
    op->aDesc = x.r64(I.ops[1])[lane];
    if (!MatrixDescriptor::tcgen05(op->aDesc).valid)
      return fail(FindingKind::InvalidOperation,
                  "the matrix descriptor of A is malformed");
  }
  if (!MatrixDescriptor::tcgen05(op->bDesc).valid)
    return fail(FindingKind::InvalidOperation,
                "the matrix descriptor of B is malformed");
  op->accumulate = x.pred(I.ops[4]) >> lane & 1;
  for (unsigned i = 0; i < aux.maskWords; ++i)
    op->mask[i] = x.r32(I.ops[5 + i])[lane];
  return true;
}

bool ProductRequest::checkColumns() {
  unsigned aColumns = op->aColumns();
  auto check = [&](Cta &cta, uint32_t column, unsigned count) {
    return checkAllocated(x, cta, column, count, "tcgen05.mma uses columns",
                          lane);
  };
  for (unsigned i = 0; i < op->parts(); ++i) {
    Cta &cta = *op->ctas[i];
    if (!check(cta, op->dColumn, op->shape.columns()) ||
        (aColumns && !check(cta, op->aColumn, aColumns)))
      return false;
    for (const BlockScales *s : {&op->scaleA, &op->scaleB})
      if (aux.block && !check(cta, s->column, s->columns()))
        return false;
  }
  return true;
}

void ProductRequest::trackOperands(Cta &cta, const Stamp &stamp,
                                   const Stamp &tensor) {
  AsyncTracker reads(x, stamp, &cta, /*write=*/false);
  auto touch = [&](uint32_t offset) { reads.touchShared(offset, 16); };
  // Along K operands count as bytes, whatever their elements.
  auto operand = [&](uint64_t desc, Type type, bool transposed, unsigned rows) {
    forChunks(MatrixDescriptor::tcgen05(desc),
              transposed ? bitWidth(type) / 8 : 1, transposed, 0, rows,
              transposed ? op->shape.k : op->rowBytes(type), touch);
  };
  if (!aux.aInTensorMemory)
    operand(op->aDesc, op->aType, op->transposeA, op->shape.m / op->parts());
  operand(op->bDesc, op->bType, op->transposeB, op->shape.n / op->parts());
  for (const BlockScales *s : {&op->scaleA, &op->scaleB})
    if (aux.block)
      trackTensor(x, cta, tensor, x.warp->order.know.tensor,
                  RowShadow::range(0, TensorMemory::Lanes), s->column,
                  s->columns(), false);
}

void ProductRequest::trackRows(const Stamp &tensor) {
  const Clock &know = x.warp->order.know.tensor;
  unsigned aColumns = op->aColumns();
  RowShadow::Rows rowsOfA[2], rowsOfD[2];
  for (unsigned r = 0; r < op->shape.m; ++r) {
    TensorPlace p = op->shape.aRow(r);
    rowsOfA[p.cta].set(p.lane);
    if (aColumns && aux.shiftA && r % TensorMemory::Partition == 0)
      trackShift(x, *op->ctas[p.cta], tensor, p.lane, op->aColumn);
    for (unsigned n = 0; n < op->shape.n; n += op->shape.columns()) {
      p = op->shape.d(r, n);
      rowsOfD[p.cta].set(p.lane);
    }
  }
  for (unsigned i = 0; i < op->parts(); ++i) {
    if (aColumns && !aux.shiftA)
      trackTensor(x, *op->ctas[i], tensor, know, rowsOfA[i], op->aColumn,
                  aColumns, false);
    trackTensor(x, *op->ctas[i], tensor, know, rowsOfD[i], op->dColumn,
                op->shape.columns(), true);
  }
}

void ProductRequest::trackAll() {
  Warp &w = *x.warp;
  uint32_t epoch = ++w.mma.epoch;
  if (!x.sanitizing())
    return;
  if (!x.machine.config.assumes(Assumption::MmaOrder)) {
    w.tcgen05.pipelines.resize(epoch + 1);
    w.tcgen05.pipelines[epoch] = uint64_t(1) << 63 | uint64_t(aux.kind) << 56 |
                                 uint64_t(aux.pair) << 55 |
                                 uint64_t(op->shape.m) << 44 |
                                 uint64_t(op->shape.n) << 33 | d;
  }
  Stamp stamp = x.stampHere(lane);
  stamp.actor = w.mma.actor;
  stamp.epoch = epoch;
  stamp.flags = Stamp::Async | Stamp::AsyncProxy;
  Stamp tensor = stamp;
  tensor.flags = Stamp::Async | Stamp::Tensor;
  tensor.lane = Stamp::AllLanes;
  for (unsigned i = 0; i < op->parts(); ++i) {
    trackOperands(*op->ctas[i], stamp, tensor);
    noteTensorUse(x, *op->ctas[i]);
  }
  trackRows(tensor);
}

void ProductRequest::start() {
  if (!findCtas() || !readShape() || !readOperands() || !checkColumns())
    return;
  trackAll();
  rememberIssue(x, lane);
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * op->shape.m * op->shape.n * op->shape.k;
  if (decideNow(x.cluster, x.machine.config.asyncReads))
    op->readShared(x.cluster);
  startOperation(x, std::move(op));
}

void execTensorMma(Exec &x, const Inst &I) {
  bool isOfPair = static_cast<const TensorMmaAux *>(I.aux)->pair;
  if (!checkTensorGroup(x, isOfPair ? TensorGroup::Pair : TensorGroup::Cta))
    return;
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    for (unsigned i = 0; i < I.numOps; ++i)
      if (x.poison[I.ops[i].meta] >> lane & 1)
        x.checkPoison(I.ops[i], "an operand of tcgen05.mma");
    ProductRequest(x, I, lane).start();
  });
}

} // namespace

namespace mlir::attn::sim {

/// `.kind`, with the size of the blocks that share a scale.
static Error takeKind(Decoding &c, TensorMmaAux &o) {
  static const std::pair<StringRef, TensorMmaAux::Kind> kinds[] = {
      {"kind::f16", TensorMmaAux::F16},
      {"kind::tf32", TensorMmaAux::TF32},
      {"kind::f8f6f4", TensorMmaAux::F8F6F4},
      {"kind::i8", TensorMmaAux::I8},
      {"kind::mxf8f6f4", TensorMmaAux::MxF8F6F4},
      {"kind::mxf4", TensorMmaAux::MxF4},
      {"kind::mxf4nvf4", TensorMmaAux::MxF4NvF4}};
  const auto *kind = llvm::find_if(
      kinds, [&](const auto &entry) { return c.take(entry.first); });
  if (kind == std::end(kinds))
    return c.error("unsupported kind");
  o.kind = kind->second;
  bool scaled = o.kind >= TensorMmaAux::MxF8F6F4;
  if (c.take("block_scale") != scaled)
    return c.error("expected '.block_scale' with the mx kinds only");
  if (!scaled)
    return Error::success();
  StringRef size = c.takeAny({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X",
                              "block16", "block32"});
  bool nv = o.kind == TensorMmaAux::MxF4NvF4;
  bool eight = o.kind == TensorMmaAux::MxF8F6F4;
  bool by32 =
      size == "block32" || size == (eight ? "scale_vec::1X" : "scale_vec::2X");
  bool by16 = nv && (size == "block16" || size == "scale_vec::4X");
  if (!by16 && !by32 && (nv || !size.empty()))
    return c.error("expected a size of scaled blocks of this kind");
  o.block = by16 ? 16 : 32;
  return Error::success();
}

Error decodeTensorMma(Decoding &c) {
  const auto &ops = c.ast.ops;
  c.take("mma");
  auto *o = c.makeAux<TensorMmaAux>();
  if (c.take("sp"))
    return c.error("sparse products are not supported");
  o->weightStationary = c.take("ws");
  o->pair = c.take("cta_group::2");
  if (o->pair == c.take("cta_group::1"))
    return c.error("expected '.cta_group'");
  ATTN_SIM_TRY(takeKind(c, *o));
  if (o->weightStationary && (o->pair || o->block))
    return c.error("expected '.ws' with '.cta_group::1' and no scaled kind");
  o->shiftA = c.take("ashift");
  if (o->shiftA && (o->weightStationary || o->block))
    return c.error("expected '.ashift' without '.ws' and scaled blocks");
  if (o->shiftA && (llvm::is_contained(c.mods, "collector::a::fill") ||
                    llvm::is_contained(c.mods, "collector::a::use")))
    return c.error("expected '.ashift' without filling or using a collector");
  // Collectors are caches.
  for (StringRef use : {"fill", "use", "lastuse", "discard"})
    for (StringRef buffer : {"a", "b0", "b1", "b2", "b3"})
      if ((buffer != "a") == o->weightStationary)
        c.take(("collector::" + buffer + "::" + use).str());
  ATTN_SIM_TRY(c.expectOps(5, 7));
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  o->aInTensorMemory = ops[1].kind == AstOperand::Address;
  if (o->aInTensorMemory)
    ATTN_SIM_TRY(c.address(ops[1], o->aDisplacement));
  else if (o->shiftA)
    return c.error("expected A in tensor memory with '.ashift'");
  else
    ATTN_SIM_TRY(c.src(ops[1], Type::B64));
  ATTN_SIM_TRY(c.src(ops[2], Type::B64));
  ATTN_SIM_TRY(c.src(ops[3], Type::B32));
  if (o->block) {
    ATTN_SIM_TRY(c.expectOps(7, 7));
    ATTN_SIM_TRY(c.srcPred(ops[6]));
    ATTN_SIM_TRY(c.address(ops[4], o->scaleADisplacement));
    ATTN_SIM_TRY(c.address(ops[5], o->scaleBDisplacement));
    return c.set(execTensorMma, InstClass::Tcgen05);
  }
  size_t next = 4;
  const AstOperand *mask = nullptr;
  if (ops[next].kind == AstOperand::Vector && !o->weightStationary)
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
  if (next < ops.size() && o->weightStationary) {
    o->hasZeroMask = true;
    ATTN_SIM_TRY(c.src(ops[next++], Type::B64));
  } else if (next < ops.size()) {
    o->hasScale = true;
    ATTN_SIM_TRY(c.immediate(ops[next++], o->scale));
    if ((o->kind != TensorMmaAux::F16 && o->kind != TensorMmaAux::TF32) ||
        o->scale < 0 || o->scale > 15)
      return c.error("expected a scale between 0 and 15, of kind f16 or tf32");
  }
  if (next != ops.size())
    return c.error("too many operands");
  return c.set(execTensorMma, InstClass::Tcgen05);
}

} // namespace mlir::attn::sim
