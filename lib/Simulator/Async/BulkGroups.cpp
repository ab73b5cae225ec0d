//===- BulkGroups.cpp - Commits of bulk stores and waits for them ---------===//

#include "BulkCopy.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::execBulkCommit(Exec &x, const Inst &) {
  for (auto &op : x.cluster.engine)
    if (auto *bulk = op->asBulkStore(x.warp))
      forLanes(x.active, [&](unsigned lane) {
        auto *b = static_cast<BulkOp *>(bulk);
        if (b->lane == lane && b->group == ~0u)
          b->group = x.warp->bulk.committed[lane];
      });
  forLanes(x.active, [&](unsigned lane) { ++x.warp->bulk.committed[lane]; });
}

void mlir::attn::sim::execBulkWait(Exec &x, const Inst &I) {
  // imm groups may stay; flags 1: `.read`.
  Warp &w = *x.warp;
  uint32_t known = w.bulk.epoch;
  bool anyLeft = false;
  auto &engine = x.cluster.engine;
  for (size_t i = 0; i < engine.size();) {
    auto *op = static_cast<BulkOp *>(engine[i]->asBulkStore(&w));
    if (!op || !(x.active >> op->lane & 1)) {
      ++i;
      continue;
    }
    bool finished =
        op->group != ~0u &&
        int64_t(op->group) < int64_t(w.bulk.committed[op->lane]) - I.imm;
    if (!finished) {
      anyLeft = true;
      ++i;
      continue;
    }
    if (I.flags & 1) {
      op->read(x.cluster);
      op->readWaited = true;
      ++i;
      continue;
    }
    std::unique_ptr<EngineOp> done = std::move(engine[i]);
    engine.erase(engine.begin() + i);
    done->complete(x.cluster);
  }
  x.cluster.advance();
  // Groups complete in order; with groups left nothing new is promised about
  // the newest ones. Epochs count operations, so be exact only without.
  if (anyLeft || !x.sanitizing()) {
    if (!anyLeft)
      return;
    uint32_t pending = 0;
    for (auto &e : engine)
      if (auto *op = static_cast<BulkOp *>(e->asBulkStore(&w)))
        pending +=
            x.active >> op->lane & 1 &&
            (op->group == ~0u ||
             int64_t(op->group) >= int64_t(w.bulk.committed[op->lane]) - I.imm);
    known -= std::min(known, pending);
  }
  for (Clock *clock : {&w.order.know.generic, &w.order.know.async,
                       &w.order.know.asyncGlobal}) {
    clock->setPart(w.bulk.actor, std::max(clock->get(w.bulk.actor).part, known),
                   0);
    if (!(I.flags & 1))
      clock->raise(w.bulk.writeActor, known);
  }
}
