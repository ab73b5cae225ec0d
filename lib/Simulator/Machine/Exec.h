//===- Exec.h - What an instruction works on --------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_EXEC_H
#define ATTN_LIB_SIMULATOR_MACHINE_EXEC_H

#include "../PTX/ProgramImpl.h"
#include "AddressSpace.h"
#include "Cluster.h"
#include "Machine.h"
#include "attn/Simulator/Machine/GlobalMemory.h"

namespace mlir::attn::sim {

/// Set in Warp::origin for registers that an operation in flight will write.
constexpr uint32_t InFlightOrigin = 0x80000000;
/// Set beside it in what an instruction has made of such a register.
constexpr uint32_t DerivedOrigin = InFlightOrigin >> 1;

/// What an instruction asks of the main loop.
enum class Action : uint8_t {
  None,
  Branch,
  Indirect,
  Block,
  Exit,
  Fault,
  Yield
};

/// Context in which decoded instructions run.
struct Exec {
  Machine &machine;
  Cluster &cluster;
  Cta *cta = nullptr;
  Warp *warp = nullptr;
  uint32_t *regs = nullptr;
  uint32_t *poison = nullptr;
  uint32_t *origin = nullptr;
  uint32_t active = 0;    ///< lanes that pass the guard
  uint32_t splitMask = 0; ///< lanes at this place
  uint32_t pc = 0;
  bool resumed = false;
  Action action = Action::None;
  uint32_t branchTarget = 0;
  const uint32_t *laneTargets = nullptr;
  Split *split = nullptr;
  Allocation *lastAllocation = nullptr;

  Exec(Machine &m, Cluster &c) : machine(m), cluster(c) {}

  // Register access.
  uint32_t *r32(const Operand &o) const { return regs + o.off; }
  uint64_t *r64(const Operand &o) const {
    return reinterpret_cast<uint64_t *>(regs + o.off);
  }
  /// A predicate as a mask of lanes, negation applied.
  uint32_t pred(const Operand &o) const {
    return o.negated ? ~regs[o.off] : regs[o.off];
  }
  void setPred(const Operand &o, uint32_t value) {
    if (o.cls == RegClass::Sink)
      return;
    regs[o.off] = (regs[o.off] & ~active) | (value & active);
  }
  uint64_t read(const Operand &o, unsigned lane) const {
    return o.cls == RegClass::R64 ? r64(o)[lane] : r32(o)[lane];
  }
  void write(const Operand &o, unsigned lane, uint64_t v) const {
    if (o.cls == RegClass::R64)
      r64(o)[lane] = v;
    else if (o.cls == RegClass::R32)
      r32(o)[lane] = v;
  }

  // Poison: lanes whose register holds an undefined value.
  uint32_t poisonOf(const Operand &o) const { return poison[o.meta] & active; }
  void setPoison(const Operand &d, uint32_t lanes, uint32_t from = 0) {
    poison[d.meta] = (poison[d.meta] & ~active) | lanes;
    if (lanes)
      origin[d.meta] = derive(from);
  }
  template <unsigned N>
  void propagate(const Inst &I) {
    uint32_t p = 0;
    for (unsigned i = 1; i <= N; ++i)
      p |= poison[I.ops[i].meta];
    p &= active;
    const Operand &d = I.ops[0];
    poison[d.meta] = (poison[d.meta] & ~active) | p;
    if (p)
      propagateOrigin(I, N);
  }
  void propagateOrigin(const Inst &I, unsigned n);
  static uint32_t derive(uint32_t from) {
    return from & InFlightOrigin ? from | DerivedOrigin : from;
  }

  // Memory.
  /// Finds the bytes of an address; faults where there are none.
  bool resolve(Space space, uint64_t address, uint64_t bytes, unsigned align,
               bool write, int lane, MemRef &ref);
  /// A stamp of the executing warp.
  Stamp stampHere(int lane) const;

  // Findings.
  Site siteOf(uint32_t inst, const Cta *cta, int warp, int lane) const;
  Site here(int lane = -1) const { return siteOf(pc, cta, warp->id, lane); }
  Site siteOf(const Stamp &stamp) const;
  void report(FindingKind kind, Severity severity, const llvm::Twine &message,
              int lane = -1, llvm::StringRef hint = "");
  void report(Finding finding);
  /// Reports an error and stops the launch.
  void fault(FindingKind kind, const llvm::Twine &message, int lane = -1);
  void fault(Finding finding);
  /// A value that steers the program comes from memory that nobody wrote.
  void checkPoison(const Operand &o, llvm::StringRef what);

  /// Counts a wait of a kind of WaitCounts.
  void countWait(const char *kind, bool stalled) {
    WaitCounts &c = cluster.counters.waits[kind];
    ++c.waits;
    c.stalled += stalled;
  }

  // Blocking.
  void block(BlockKind kind, uint64_t arg = 0, uint64_t generation = 0) {
    action = Action::Block;
    split->block = kind;
    split->arg = arg;
    split->generation = generation;
  }
  /// True when `need` lanes are here; else blocks until they arrive.
  bool converge(uint32_t need);

  bool sanitizing() const { return machine.config.sanitize; }
  /// Value of an operand that all active lanes have to agree on.
  uint64_t uniform(const Operand &o, llvm::StringRef what);
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_EXEC_H
