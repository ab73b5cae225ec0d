//===- ModuleVariables.h - Variables of a loaded module ---------*- C++ -*-===//

#ifndef ATTN_SIMULATOR_MACHINE_MODULEVARIABLES_H
#define ATTN_SIMULATOR_MACHINE_MODULEVARIABLES_H

#include "attn/Simulator/Machine/GlobalMemory.h"
#include "attn/Simulator/PTX/Program.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::attn::sim {

/// A `.global` or `.const` variable and its place in memory.
struct ModuleVariable {
  std::string name;
  uint64_t address = 0, bytes = 0;
};

/// All of a module's, in the order of its text.
struct ModuleVariables {
  std::vector<ModuleVariable> variables;

  /// Returns the variable of that name, or null.
  const ModuleVariable *find(llvm::StringRef name) const;
};

/// Reserves memory for a variable; what it returns is an allocation of the
/// memory that the module is loaded into.
using PlaceVariable = llvm::function_ref<llvm::Expected<uint64_t>(
    uint64_t bytes, llvm::StringRef name, uint64_t align)>;

/// Puts the variables of a module into memory, with their initial values. They
/// stay until their places are released, and keep what launches leave in them.
/// `memoryLimit` is what they may take of the host's memory, 0: all of it.
/// After an error those that `place` has reserved are in `loaded`.
llvm::Error loadVariables(const Program &program, Memory &memory,
                          PlaceVariable place, ModuleVariables &loaded,
                          uint64_t memoryLimit = 0);
/// Does so in places that the memory chooses, with none left after an error.
llvm::Expected<ModuleVariables>
loadVariables(const Program &program, Memory &memory, uint64_t memoryLimit = 0);
/// Takes them out again.
void unloadVariables(Memory &memory, const ModuleVariables &loaded);

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_MACHINE_MODULEVARIABLES_H
