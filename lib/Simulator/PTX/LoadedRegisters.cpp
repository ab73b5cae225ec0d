//===- LoadedRegisters.cpp - Registers that loads write -------------------===//

#include "Decoder.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::markLoadedRegisters(ProgramImpl &program) {
  auto getOperands = [](const Inst &inst) {
    return llvm::ArrayRef(inst.ops, inst.numOps);
  };
  llvm::BitVector loaded(program.regMetas);
  auto isLoaded = [&](const Operand &o) {
    return o.cls != RegClass::Sink && loaded[o.meta];
  };
  bool changes = true;
  while (changes) {
    changes = false;
    for (Inst &inst : program.code) {
      bool isLoad = inst.cls == InstClass::LdShared ||
                    inst.cls == InstClass::LdGlobal ||
                    inst.cls == InstClass::LdMatrix;
      bool touches = isLoad || llvm::any_of(getOperands(inst), isLoaded);
      if (!touches || inst.touchesLoaded)
        continue;
      inst.touchesLoaded = true;
      // Copies may be left out when a program is assembled.
      if (!isLoad && inst.cls != InstClass::Move)
        continue;
      for (auto [i, o] : llvm::enumerate(getOperands(inst)))
        if (o.cls != RegClass::Sink && inst.writes(i) && !loaded[o.meta]) {
          loaded.set(o.meta);
          changes = true;
        }
    }
  }
}
