//===- WgmmaRegisters.cpp - Registers of products of wgmma ----------------===//

#include "Decoder.h"
#include "RegisterUses.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir::attn::sim;

/// Whether an operand is a register of 32 or 64 bits; constants have no number.
static bool isRegister(const Operand &o) {
  return o.meta && (o.cls == RegClass::R32 || o.cls == RegClass::R64);
}

void mlir::attn::sim::markProductRegisters(ProgramImpl &program) {
  auto getOperands = [](const Inst &inst) {
    return llvm::ArrayRef(inst.ops, inst.numOps);
  };
  llvm::BitVector used(program.regMetas);
  std::vector<uint32_t> pending;
  auto use = [&](const Operand &o) {
    if (!isRegister(o) || used[o.meta])
      return;
    used.set(o.meta);
    pending.push_back(o.meta);
  };
  // Descriptors have 64 bits, so that those of 32 are accumulators and
  // fragments of A.
  for (const Inst &inst : program.code)
    if (inst.cls == InstClass::Wgmma)
      for (const Operand &o : getOperands(inst))
        if (o.cls == RegClass::R32)
          use(o);
  if (pending.empty())
    return;
  RegisterUses uses(program);
  while (!pending.empty()) {
    uint32_t meta = pending.back();
    pending.pop_back();
    for (uint32_t i : uses.get(meta)) {
      Inst &inst = program.code[i];
      bool writes = llvm::any_of(
          llvm::enumerate(getOperands(inst)), [&](const auto &each) {
            return each.value().meta == meta && inst.writes(each.index());
          });
      if (inst.cls == InstClass::Wgmma || inst.feedsProduct || !writes)
        continue;
      inst.feedsProduct = true;
      // What is moved to such a register counts as one.
      if (inst.cls == InstClass::Move)
        llvm::for_each(getOperands(inst), use);
    }
  }
}
