//===- LoadedRegisters.cpp - Registers that loads write -------------------===//

#include "Decoder.h"
#include "RegisterUses.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::markLoadedRegisters(ProgramImpl &program) {
  RegisterUses uses(program);
  llvm::BitVector loaded(program.regMetas);
  auto isLoad = [](const Inst &inst) {
    return inst.cls == InstClass::LdShared || inst.cls == InstClass::LdGlobal ||
           inst.cls == InstClass::LdMatrix;
  };
  std::vector<uint32_t> pending;
  auto touch = [&](uint32_t inst) {
    if (!std::exchange(program.code[inst].touchesLoaded, true))
      pending.push_back(inst);
  };
  for (size_t i = 0; i < program.code.size(); ++i)
    if (isLoad(program.code[i]))
      touch(i);
  while (!pending.empty()) {
    const Inst &inst = program.code[pending.back()];
    pending.pop_back();
    // Copies may be left out when a program is assembled.
    if (!isLoad(inst) && inst.cls != InstClass::Move)
      continue;
    for (auto [i, o] : llvm::enumerate(llvm::ArrayRef(inst.ops, inst.numOps)))
      if (o.cls != RegClass::Sink && inst.writes(i) && !loaded[o.meta]) {
        loaded.set(o.meta);
        llvm::for_each(uses.get(o.meta), touch);
      }
  }
}

void mlir::attn::sim::markTensorLoadRegisters(ProgramImpl &program) {
  llvm::BitVector loaded(program.regMetas);
  for (const Inst &inst : program.code)
    if (inst.cls == InstClass::TmemLd)
      for (const Operand &o :
           llvm::ArrayRef(inst.ops, inst.numOps).drop_front())
        loaded.set(o.meta);
  if (loaded.none())
    return;
  for (Inst &inst : program.code)
    inst.touchesTensorLoad =
        llvm::any_of(llvm::ArrayRef(inst.ops, inst.numOps),
                     [&](const Operand &o) { return loaded[o.meta]; });
}
