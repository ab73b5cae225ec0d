//===- TensorCommitOps.cpp - tcgen05.commit and tcgen05.cp ----------------===//
//
// A commit is an operation of its thread's stream. When its turn comes it sends
// a signal to each mbarrier, which publishes what the stream had done by then.
// Signals to one CTA arrive in issue order (assumption A2), those to different
// CTAs in any; without A2 they come as late as possible, the newest first.
//
//===----------------------------------------------------------------------===//

#include "../PTX/Decoder.h"
#include "../Sanitizer/PhaseChecks.h"
#include "../Sanitizer/Races.h"
#include "EngineOps.h"
#include "MbarrierOps.h"
#include "SharedMatrix.h"
#include "TensorOperations.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

/// The signal of a commit to one mbarrier.
struct CommitSignal : EngineOp {
  Cta *cta = nullptr;
  uint32_t offset = 0;
  uint32_t epoch = 0;
  uint32_t number = 0; ///< among the commits of the warp to this CTA
  std::shared_ptr<const Knowledge> issuedAfter;

  void complete(Cluster &cluster) override;
  std::string describe() const override { return "a tcgen05.commit"; }
  bool touches(const Cta *other) const override { return other == cta; }
};

void CommitSignal::complete(Cluster &cluster) {
  Exec x(*cluster.machine, cluster);
  x.warp = issuer;
  x.cta = issuer->cta;
  x.pc = inst;
  auto it = cta->mbarriers.find(offset);
  if (it == cta->mbarriers.end() || cta->exited)
    return signalBytes(cluster, *this, cta, offset, 0);
  Mbarrier &b = it->second;
  // A commit has cluster scope, so it publishes to someone.
  Knowledge &to = *gatheringOf(b, *cta, *issuer->cta, /*clusterScope=*/true);
  to.join(*issuedAfter);
  for (Clock *clock : to.getStreams()) {
    clock->cluster = cluster.linear;
    clock->raise(issuer->mma.actor, epoch);
  }
  if (control) {
    b.gathering.control.join(*control);
    noteTensorCompletion(x, b, epoch);
    noteSignal(x, b, *cta, PhaseEvent::Commit, *control, number);
  }
  arriveOn(x, b, 1, -1);
}

struct CommitOp : EngineOp {
  struct Barrier {
    Cta *cta;
    uint32_t offset, number;
  };
  llvm::SmallVector<Barrier, 2> barriers;
  uint32_t epoch = 0;
  std::shared_ptr<const Knowledge> issuedAfter;

  void complete(Cluster &cluster) override;
  std::string describe() const override { return "a tcgen05.commit"; }
  TraceWork getWork() const override {
    TraceWork work;
    work.kind = TraceWork::Commit;
    return work;
  }
  bool touches(const Cta *cta) const override {
    return llvm::any_of(barriers,
                        [&](const Barrier &b) { return b.cta == cta; });
  }
};

void CommitOp::complete(Cluster &cluster) {
  const LaunchConfig &config = cluster.machine->config;
  bool inOrder = config.assumes(Assumption::CommitOrder);
  // Signals to several CTAs travel on their own when the schedule is random.
  bool travels = config.asyncWrites != AsyncTiming::Issue &&
                 (!inOrder || config.schedule == Schedule::Random);
  for (auto [cta, offset, number] : barriers) {
    auto signal = std::make_unique<CommitSignal>();
    signal->inst = inst;
    signal->issuer = issuer;
    signal->cta = cta;
    signal->offset = offset;
    signal->epoch = epoch;
    signal->number = number;
    signal->control = control;
    signal->issuedAfter = issuedAfter;
    if (!travels) {
      signal->complete(cluster);
      continue;
    }
    signal->deferred = !inOrder;
    if (inOrder)
      signal->stream = signalStream(*issuer, *cta);
    cluster.engine.push_back(std::move(signal));
  }
}

// ops: barrier, mask or none. flags 1: of a pair.
void execTensorCommit(Exec &x, const Inst &I) {
  if (!checkTensorGroup(x, I.flags ? TensorGroup::Pair : TensorGroup::Cta))
    return;
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint64_t address = x.read(I.ops[0], lane) + I.imm;
    if (address >= SharedWindow && address < SharedWindow + WindowSize)
      address -= SharedWindow;
    Cta *owner = nullptr;
    if (!findMbarrier(x, uint32_t(address), lane, &owner))
      return;
    uint32_t offset = (uint32_t(address) & 0xffffff) - SharedBase;
    auto op = std::make_unique<CommitOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    // It covers what its own thread has started.
    if (x.warp->tcgen05.issuers >> lane & 1) {
      op->stream = x.warp->index + 1;
      op->epoch = x.warp->mma.epoch;
    }
    op->issuedAfter = std::make_shared<Knowledge>(x.warp->tcgen05.issuedAfter);
    op->control = controlOf(x);
    auto add = [&](Cta *cta) {
      op->barriers.push_back(
          {cta, offset, ++x.warp->mbarriers.commits[cta->rank]});
    };
    if (I.ops[1].cls == RegClass::Sink) {
      add(owner);
    } else {
      forLanes(x.r32(I.ops[1])[lane] & 0xffff, [&](unsigned rank) {
        if (x.action == Action::Fault)
          return;
        if (rank >= x.cluster.ctas.size())
          return x.fault(FindingKind::OutOfBounds,
                         "the multicast mask names a CTA that the cluster "
                         "does not have",
                         lane);
        add(x.cluster.ctas[rank].get());
      });
      if (x.action == Action::Fault)
        return;
    }
    if (x.machine.config.asyncWrites == AsyncTiming::Issue) {
      op->complete(x.cluster);
      x.cluster.advance();
    } else {
      x.cluster.engine.push_back(std::move(op));
    }
  });
}

//===----------------------------------------------------------------------===//
// cp
//===----------------------------------------------------------------------===//

struct TensorCopyAux {
  unsigned rows = 128, bytes = 16;
  bool pair = false;
  bool refresh = false;    ///< row r goes to one lane of partition r
  unsigned sourceBits = 8; ///< 4 or 6: elements become bytes
  /// Lanes that receive row r: r + each of these.
  llvm::SmallVector<std::array<unsigned, 3>, 4> spread; ///< {first, last, add}
};

struct TensorCopyOp : EngineOp {
  const TensorCopyAux *aux = nullptr;
  llvm::SmallVector<Cta *, 2> ctas;
  uint32_t column = 0;
  unsigned lane = 0; ///< that row 0 goes to
  uint64_t desc = 0;

  void complete(Cluster &cluster) override {
    MatrixDescriptor d = MatrixDescriptor::tcgen05(desc);
    for (Cta *cta : ctas) {
      TensorMemory &t = tensorMemoryOf(*cta);
      for (unsigned r = 0; r < aux->rows; ++r)
        for (unsigned b = 0; b < aux->bytes; b += 16) {
          uint32_t offset = d.kMajor(r, b) - SharedBase;
          if (offset + 16 > cta->shared.size())
            return reportOutside(cluster, *this);
          std::array<uint8_t, 16> bytes, valid;
          std::memcpy(bytes.data(), cta->shared.data() + offset, 16);
          std::memcpy(valid.data(), cta->sharedValid.data() + offset, 16);
          if (aux->sourceBits < 8)
            widen(bytes, valid);
          for (unsigned i = 0; i < 4; ++i)
            for (const auto &[first, last, add] : aux->spread)
              if (r >= first && r < last) {
                unsigned cell = (lane + r + add) * TensorMemory::Columns +
                                column + b / 4 + i;
                std::memcpy(&t.cells[cell], &bytes[4 * i], 4);
                t.valid[cell] = 0;
                for (unsigned byte = 0; byte < 4; ++byte)
                  t.valid[cell] |= (valid[4 * i + byte] != 0) << byte;
              }
        }
    }
  }
  /// Sixteen elements without their padding become bytes: four bits in the
  /// middle, six at the bottom.
  void widen(std::array<uint8_t, 16> &bytes,
             std::array<uint8_t, 16> &valid) const {
    std::array<uint8_t, 17> from{}, ok{};
    std::copy(bytes.begin(), bytes.end(), from.begin());
    std::copy(valid.begin(), valid.end(), ok.begin());
    unsigned bits = aux->sourceBits;
    for (unsigned i = 0; i < 16; ++i) {
      unsigned first = i * bits / 8, last = (i * bits + bits - 1) / 8;
      unsigned v = (from[first] | from[first + 1] << 8) >> (i * bits % 8) &
                   ((1u << bits) - 1);
      bytes[i] = bits == 4 ? v << 2 : v;
      valid[i] = ok[first] && ok[last];
    }
  }
  std::string describe() const override { return "a tcgen05.cp"; }
  TraceWork getWork() const override {
    TraceWork work;
    for (const Cta *cta : ctas)
      work.ranks.push_back(cta->rank);
    work.sharedBytes = aux->rows * aux->bytes;
    return work;
  }
  bool touches(const Cta *cta) const override {
    return llvm::is_contained(ctas, cta);
  }
};

void execTensorCopy(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const TensorCopyAux *>(I.aux);
  if (!checkTensorGroup(x, o.pair ? TensorGroup::Pair : TensorGroup::Cta))
    return;
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    auto op = std::make_unique<TensorCopyOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    op->stream = x.warp->index + 1;
    op->aux = &o;
    uint32_t address = x.r32(I.ops[0])[lane] + uint32_t(I.imm);
    op->column = address & 0xffff;
    if (o.refresh) {
      op->lane = address >> 16;
      if (op->lane >= TensorMemory::Partition)
        return x.fault(FindingKind::TensorMemoryMisuse,
                       "expected a lane below 32 for a copy of one lane of "
                       "each partition, got lane " +
                           llvm::Twine(op->lane),
                       lane);
    }
    op->desc = x.r64(I.ops[1])[lane];
    unsigned rank = x.cta->rank;
    op->ctas.push_back(x.cluster.ctas[o.pair ? rank & ~1u : rank].get());
    if (o.pair)
      op->ctas.push_back(x.cluster.ctas[rank | 1].get());
    MatrixDescriptor d = MatrixDescriptor::tcgen05(op->desc);
    if (!d.valid)
      return x.fault(FindingKind::InvalidOperation,
                     "the matrix descriptor is malformed", lane);
    Warp &w = *x.warp;
    uint32_t epoch = ++w.mma.epoch;
    if (!x.machine.config.assumes(Assumption::MmaOrder))
      w.tcgen05.pipelines.resize(epoch + 1, o.refresh
                                                ? Tcgen05State::RefreshPipeline
                                                : Tcgen05State::CopyPipeline);
    Stamp stamp = x.stampHere(lane);
    stamp.actor = w.mma.actor;
    stamp.epoch = epoch;
    stamp.flags = Stamp::Async | Stamp::AsyncProxy;
    Stamp tensor = stamp;
    tensor.flags = Stamp::Async | Stamp::Tensor;
    tensor.lane = Stamp::AllLanes;
    for (Cta *cta : op->ctas) {
      if (!checkAllocated(x, *cta, op->column, o.bytes / 4,
                          "tcgen05.cp writes columns", lane))
        return;
      noteTensorUse(x, *cta);
      AsyncTracker reads(x, stamp, cta, /*write=*/false);
      RowShadow::Rows written;
      for (unsigned r = 0; r < o.rows; ++r) {
        for (unsigned b = 0; b < o.bytes; b += 16)
          reads.touchShared(uint32_t(d.kMajor(r, b) - SharedBase), 16);
        for (const auto &[first, last, add] : o.spread)
          if (r >= first && r < last)
            written.set(op->lane + r + add);
      }
      trackTensor(x, *cta, tensor, w.order.know.tensor, written, op->column,
                  o.bytes / 4, true);
    }
    rememberIssue(x, lane);
    startOperation(x, std::move(op));
  });
}

} // namespace

namespace mlir::attn::sim {

Error decodeTensorCommit(Decoding &c) {
  const auto &ops = c.ast.ops;
  c.take("commit");
  c.inst.flags = c.take("cta_group::2");
  if ((!c.inst.flags && !c.take("cta_group::1")) ||
      !c.take("mbarrier::arrive::one"))
    return c.error("expected '.cta_group' and '.mbarrier::arrive::one'");
  c.takeAny({"shared::cluster", "shared::cta"});
  bool multicast = c.take("multicast::cluster");
  c.take("b64");
  ATTN_SIM_TRY(c.expectOps(multicast ? 2 : 1, multicast ? 2 : 1));
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  if (multicast)
    ATTN_SIM_TRY(c.srcWide(ops[1], Type::B16));
  else
    c.none();
  return c.set(execTensorCommit, InstClass::Tcgen05);
}

Error decodeTensorCopy(Decoding &c) {
  c.take("cp");
  auto *o = c.makeAux<TensorCopyAux>();
  o->pair = c.take("cta_group::2");
  if (!o->pair && !c.take("cta_group::1"))
    return c.error("expected '.cta_group'");
  if (c.take("128x256b")) {
    o->bytes = 32;
    o->spread = {{0, 128, 0}};
  } else if (c.take("128x128b")) {
    o->spread = {{0, 128, 0}};
  } else if (c.take("32x128b") && c.take("warpx4")) {
    o->rows = 32;
    o->spread = {{0, 32, 0}, {0, 32, 32}, {0, 32, 64}, {0, 32, 96}};
  } else if (c.take("warpx2::02_13") && c.take("64x128b")) {
    o->rows = 64;
    o->spread = {{0, 64, 0}, {0, 64, 64}};
  } else if (c.take("warpx2::01_23") && c.take("64x128b")) {
    o->rows = 64;
    o->spread = {{0, 32, 0}, {0, 32, 32}, {32, 64, 32}, {32, 64, 64}};
  } else if (c.take("4x256b")) {
    o->rows = 4;
    o->bytes = 32;
    o->refresh = true;
    o->spread = {{0, 1, 0}, {1, 2, 31}, {2, 3, 62}, {3, 4, 93}};
  } else {
    return c.error("unsupported shape");
  }
  StringRef source = c.takeAny({"b6x16_p32", "b4x16_p64"});
  if (c.take("b8x16") == source.empty())
    return c.error("expected '.b8x16' with '.b6x16_p32' or '.b4x16_p64'");
  if (!source.empty())
    o->sourceBits = source == "b6x16_p32" ? 6 : 4;
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], Type::B64));
  return c.set(execTensorCopy, InstClass::Tcgen05);
}

} // namespace mlir::attn::sim
