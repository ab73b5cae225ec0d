//===- Exec.cpp - What an instruction works on ----------------------------===//

#include "Exec.h"

using namespace mlir::attn::sim;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Sites and findings
//===----------------------------------------------------------------------===//

Site Exec::siteOf(uint32_t inst, const Cta *c, int warpId, int lane) const {
  Site s;
  const ProgramImpl &p = machine.program;
  if (inst < p.code.size()) {
    const Inst &I = p.code[inst];
    s.ptxLine = I.line;
    s.text = I.text.str();
    const AstLoc &loc = p.ast.locs[I.loc];
    if (loc.line) {
      auto it = p.ast.files.find(loc.file);
      if (it != p.ast.files.end()) {
        s.file = it->second;
        s.line = loc.line;
      }
    }
  }
  if (c)
    s.cta = c->id;
  s.warp = warpId;
  s.lane = lane;
  return s;
}

Site Exec::siteOf(const Stamp &stamp) const {
  Site s = siteOf(stamp.inst, nullptr,
                  stamp.warp == Stamp::NoWarp ? -1 : int(stamp.warp),
                  stamp.lane < 32 ? int(stamp.lane) : -1);
  const auto &n = machine.clusters;
  const auto &size = machine.config.cluster;
  uint32_t c = stamp.cluster, rank = stamp.rank;
  s.cta = {c % n[0] * size[0] + rank % size[0],
           c / n[0] % n[1] * size[1] + rank / size[0] % size[1],
           c / n[0] / n[1] * size[2] + rank / size[0] / size[1]};
  return s;
}

void Exec::report(Finding finding) { machine.report(std::move(finding)); }

void Exec::report(FindingKind kind, Severity severity, const Twine &message,
                  int lane, StringRef hint) {
  Finding f;
  f.kind = kind;
  f.severity = severity;
  f.message = message.str();
  f.hint = hint.str();
  f.second = here(lane);
  report(std::move(f));
}

void Exec::fault(Finding finding) {
  report(std::move(finding));
  action = Action::Fault;
  machine.stop = true;
}

void Exec::fault(FindingKind kind, const Twine &message, int lane) {
  Finding f;
  f.kind = kind;
  f.message = message.str();
  f.second = here(lane);
  fault(std::move(f));
}

void Exec::propagateOrigin(const Inst &I, unsigned n) {
  for (unsigned i = 1; i <= n; ++i)
    if (poison[I.ops[i].meta] & active) {
      origin[I.ops[0].meta] = derive(origin[I.ops[i].meta]);
      return;
    }
}

void Exec::checkPoison(const Operand &o, StringRef what) {
  uint32_t lanes = poison[o.meta] & active;
  if (!lanes || !sanitizing())
    return;
  Finding f;
  f.kind = FindingKind::UninitialisedRead;
  uint32_t from = origin[o.meta];
  int lane = llvm::countr_zero(lanes);
  f.second = here(lane);
  if (from & InFlightOrigin) {
    f.kind = FindingKind::InvalidOperation;
    f.message =
        (what + " depends on an accumulator that is still in flight").str();
    f.first = siteOf((from & ~(InFlightOrigin | DerivedOrigin)) - 1, cta,
                     warp->id, -1);
    // Not reported once more as one that was overwritten.
    origin[o.meta] = 0;
    f.hint = "wgmma.wait_group has to come before the accumulator is read";
  } else if (from) {
    f.message = (what + " depends on memory that was never written").str();
    f.first = siteOf(from - 1, cta, warp->id, lane);
    f.hint = "initialise the memory that the earlier instruction reads, or "
             "mask its value before use";
  } else {
    // Compilers use undefined registers where the value cannot matter.
    f.severity = Severity::Note;
    f.message = (what + " depends on a register that was never written").str();
  }
  // One report for each value.
  poison[o.meta] &= ~active;
  report(std::move(f));
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Stamp Exec::stampHere(int lane) const {
  Stamp stamp;
  stamp.epoch = warp->order.epoch;
  stamp.inst = pc;
  stamp.cluster = cluster.linear;
  stamp.rank = cta->rank;
  stamp.actor = warp->order.actor;
  stamp.warp = warp->id;
  stamp.lane = lane < 0 ? Stamp::AllLanes : lane;
  return stamp;
}

bool Exec::converge(uint32_t need) {
  need &= warp->live;
  if ((need & ~splitMask) == 0)
    return true;
  block(BlockKind::Converge);
  return false;
}

uint64_t Exec::uniform(const Operand &o, StringRef what) {
  checkPoison(o, what);
  unsigned first = llvm::countr_zero(active);
  uint64_t value = read(o, first);
  forLanes(active, [&](unsigned lane) {
    if (action != Action::Fault && read(o, lane) != value)
      fault(FindingKind::InvalidOperation,
            what + " differs between the lanes of a warp", lane);
  });
  return value;
}
