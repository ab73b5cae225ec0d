//===- RegisterUses.cpp - Which instructions have a register --------------===//

#include "RegisterUses.h"

using namespace mlir::attn::sim;

RegisterUses::RegisterUses(const ProgramImpl &program)
    : first(program.regMetas + 1) {
  auto forOperands = [&](auto &&fn) {
    for (size_t i = 0; i < program.code.size(); ++i)
      for (const Operand &o :
           llvm::ArrayRef(program.code[i].ops, program.code[i].numOps))
        if (o.cls != RegClass::Sink)
          fn(o.meta, uint32_t(i));
  };
  forOperands([&](uint32_t meta, uint32_t) { ++first[meta]; });
  uint32_t sum = 0;
  for (uint32_t &count : first)
    count = sum += count;
  uses.resize(sum);
  // From the end of each list to its start.
  forOperands(
      [&](uint32_t meta, uint32_t inst) { uses[--first[meta]] = inst; });
}
