//===- ModuleVariables.cpp - Variables of a loaded module -----------------===//

#include "attn/Simulator/Machine/ModuleVariables.h"
#include "../PTX/ProgramImpl.h"
#include "attn/Support/HostMemory.h"
#include <cstring>

using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

const ModuleVariable *ModuleVariables::find(llvm::StringRef name) const {
  for (const ModuleVariable &variable : variables)
    if (variable.name == name)
      return &variable;
  return nullptr;
}

/// That the host has memory for them.
static Error checkSizes(const ProgramImpl &program, uint64_t limit) {
  uint64_t sum = 0;
  for (const GlobalVar &g : program.globals) {
    // With a byte beside each that says whether it was written.
    sum = llvm::SaturatingMultiplyAdd<uint64_t>(g.ast.bytes, 2, sum);
    if (sum > limit)
      return createStringError(
          "expected variables of the module that fit "
          "into " +
          mlir::attn::formatBytes(limit) + " of memory, got " +
          mlir::attn::formatBytes(sum) + " with '" + g.ast.name + "'");
  }
  return Error::success();
}

/// Writes the bytes that the text gives a variable.
static Error initialise(const AstVariable &v, uint64_t address,
                        Memory &memory) {
  // Module variables without an initialiser are zero.
  if (v.space != "const" && v.init.empty())
    return memory.fill(address, v.bytes, 0);
  std::vector<uint8_t> bytes = v.init;
  bytes.resize(v.bytes);
  return memory.write(address, bytes);
}

/// Writes the addresses of other variables into one.
static Error writeSymbols(const ProgramImpl &program, size_t index,
                          const ModuleVariables &loaded, Memory &memory) {
  const AstVariable &v = program.globals[index].ast;
  for (const AstVariable::SymbolInit &s : v.symbolInits) {
    auto it = program.globalIndex.find(s.name);
    if (it == program.globalIndex.end())
      return createStringError("expected the initialiser of '" + v.name +
                               "' to name a variable of the module, got '" +
                               s.name + "'");
    uint64_t value = loaded.variables[it->second].address + s.addend;
    uint8_t bytes[8];
    std::memcpy(bytes, &value, 8);
    if (Error e = memory.write(loaded.variables[index].address + s.offset,
                               llvm::ArrayRef(bytes, v.elementBytes)))
      return e;
  }
  return Error::success();
}

Error mlir::attn::sim::loadVariables(const Program &program, Memory &memory,
                                     PlaceVariable place,
                                     ModuleVariables &loaded,
                                     uint64_t memoryLimit) {
  const auto &impl = static_cast<const ProgramImpl &>(program);
  if (Error e = checkSizes(impl, memoryLimit ? memoryLimit
                                             : mlir::attn::getHostMemory()))
    return e;
  for (const GlobalVar &g : impl.globals) {
    Expected<uint64_t> address = place(g.ast.bytes, g.ast.name, g.ast.align);
    if (!address)
      return address.takeError();
    loaded.variables.push_back({g.ast.name.str(), *address, g.ast.bytes});
    if (Error e = initialise(g.ast, *address, memory))
      return e;
  }
  for (size_t i = 0; i < impl.globals.size(); ++i)
    if (Error e = writeSymbols(impl, i, loaded, memory))
      return e;
  return Error::success();
}

Expected<ModuleVariables> mlir::attn::sim::loadVariables(const Program &program,
                                                         Memory &memory,
                                                         uint64_t memoryLimit) {
  ModuleVariables loaded;
  auto place = [&](uint64_t bytes, llvm::StringRef name, uint64_t align) {
    return Expected<uint64_t>(memory.allocate(bytes, name, align));
  };
  if (Error e = loadVariables(program, memory, place, loaded, memoryLimit)) {
    unloadVariables(memory, loaded);
    return std::move(e);
  }
  return std::move(loaded);
}

void mlir::attn::sim::unloadVariables(Memory &memory,
                                      const ModuleVariables &loaded) {
  for (const ModuleVariable &variable : loaded.variables)
    llvm::cantFail(memory.release(variable.address, "unloading the module"));
}
