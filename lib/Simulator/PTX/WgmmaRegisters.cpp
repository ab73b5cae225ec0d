//===- WgmmaRegisters.cpp - Registers of products of wgmma ----------------===//

#include "Decoder.h"
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
  // Descriptors have 64 bits, so that those of 32 are accumulators and
  // fragments of A.
  llvm::BitVector used(program.regMetas);
  for (const Inst &inst : program.code)
    if (inst.cls == InstClass::Wgmma)
      for (const Operand &o : getOperands(inst))
        if (isRegister(o) && o.cls == RegClass::R32)
          used.set(o.meta);
  bool changes = used.any();
  while (changes) {
    changes = false;
    for (Inst &inst : program.code) {
      if (inst.cls == InstClass::Wgmma || inst.feedsProduct)
        continue;
      for (auto [i, o] : llvm::enumerate(getOperands(inst)))
        if (inst.writes(i) && isRegister(o) && used[o.meta])
          inst.feedsProduct = true;
      if (!inst.feedsProduct || inst.cls != InstClass::Move)
        continue;
      // What is moved to such a register counts as one.
      for (const Operand &o : getOperands(inst))
        if (isRegister(o) && !used[o.meta]) {
          used.set(o.meta);
          changes = true;
        }
    }
  }
}
