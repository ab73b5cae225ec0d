//===- TensorLoads.cpp - Registers that tcgen05.ld may still write --------===//

#include "TensorLoads.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::checkTensorLoads(Exec &x, const Inst &I) {
  auto touches = [&](uint32_t pc) {
    const Inst &load = x.machine.program.code[pc];
    llvm::ArrayRef<Operand> loaded(load.ops + 1, load.numOps - 1);
    return llvm::any_of(llvm::ArrayRef(I.ops, I.numOps), [&](const Operand &o) {
      return o.meta && llvm::any_of(loaded, [&](const Operand &l) {
               return l.meta == o.meta;
             });
    });
  };
  auto &loading = x.warp->tcgen05.loading;
  auto found = llvm::find_if(loading, touches);
  if (found == loading.end())
    return;
  Finding f;
  f.kind = FindingKind::InvalidOperation;
  f.message = "touches a register of a tcgen05.ld that no tcgen05.wait::ld has "
              "waited for";
  f.first = x.siteOf(*found, x.cta, x.warp->id, -1);
  f.second = x.here();
  f.hint = "tcgen05.wait::ld has to come before the register is used, unless "
           "assumption A3 is granted: hardware waits for it";
  // One report for each load.
  loading.erase(found);
  x.report(std::move(f));
}
