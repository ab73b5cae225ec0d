//===- ProductRegisters.cpp - What wgmma.fence hands over -----------------===//

#include "ProductRegisters.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::noteProductWrite(Exec &x, const Inst &I) {
  WgmmaState &state = x.warp->wgmma;
  if (!x.sanitizing())
    return;
  if (state.written.empty())
    state.written.resize(x.machine.program.regMetas);
  RegisterWrite write{state.fences, x.pc};
  if (I.cls == InstClass::Move) {
    write = RegisterWrite();
    for (unsigned i = 0; i < I.numOps; ++i)
      if (!I.writes(i) && I.ops[i].cls != RegClass::Sink &&
          state.written[I.ops[i].meta].fences == state.fences)
        write = state.written[I.ops[i].meta];
  }
  // What a product in flight will write has a report of its own.
  for (unsigned i = 0; i < I.numOps; ++i)
    if (I.writes(i) && I.ops[i].cls != RegClass::Sink &&
        !(x.origin[I.ops[i].meta] & InFlightOrigin))
      state.written[I.ops[i].meta] = write;
}

void mlir::attn::sim::checkProductRegisters(Exec &x,
                                            llvm::ArrayRef<Operand> regs) {
  WgmmaState &state = x.warp->wgmma;
  // Without any fence there is another report.
  if (state.written.empty() || !state.fences)
    return;
  const RegisterWrite *found = nullptr;
  for (const Operand &reg : regs) {
    RegisterWrite &write = state.written[reg.meta];
    if (!found && write.fences == state.fences)
      found = &write;
  }
  if (!found)
    return;
  Finding f;
  f.kind = FindingKind::InvalidOperation;
  f.message = "a register of a wgmma was written after the last wgmma.fence";
  f.first = x.siteOf(found->inst, x.cta, x.warp->id, -1);
  f.second = x.here();
  f.hint = "wgmma.fence has to come between what writes the registers and the "
           "product";
  // One report for all of them.
  for (const Operand &reg : regs)
    state.written[reg.meta] = RegisterWrite();
  x.report(std::move(f));
}
