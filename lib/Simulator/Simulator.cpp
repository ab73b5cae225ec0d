//===- Simulator.cpp - Launching a kernel ---------------------------------===//

#include "attn/Simulator/Simulator.h"
#include "Machine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Expected;

Program::~Program() = default;

const KernelInfo *Program::findKernel(llvm::StringRef name) const {
  for (const KernelInfo &kernel : getKernels())
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

Expected<std::unique_ptr<Program>>
mlir::attn::sim::parsePTX(llvm::StringRef text, llvm::StringRef name) {
  auto program = std::make_unique<ProgramImpl>();
  program->name = name.str();
  program->text = text.str();
  Expected<AstModule> module = parseModule(program->text, program->name);
  if (!module)
    return module.takeError();
  program->ast = std::move(*module);
  if (Error e = decodeProgram(*program))
    return std::move(e);
  return std::unique_ptr<Program>(std::move(program));
}

static Error fail(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

/// Puts module variables into global memory, with their initial values.
static Error placeGlobals(Machine &machine, const ProgramImpl &program,
                          Memory &memory) {
  for (const GlobalVar &g : program.globals) {
    const AstVariable &v = g.ast;
    uint64_t address = memory.allocate(v.bytes, v.name, v.align);
    machine.globalAddresses.push_back(address);
    if (v.space == "const" || !v.init.empty()) {
      std::vector<uint8_t> bytes = v.init;
      bytes.resize(v.bytes);
      if (Error e = memory.write(address, bytes))
        return e;
    } else if (Error e = memory.fill(address, v.bytes, 0)) {
      // Module variables without an initialiser are zero.
      return e;
    }
  }
  for (size_t i = 0; i < program.globals.size(); ++i)
    for (const AstVariable::SymbolInit &s :
         program.globals[i].ast.symbolInits) {
      auto it = program.globalIndex.find(s.name);
      if (it == program.globalIndex.end())
        return fail("expected the initialiser of '" +
                    program.globals[i].ast.name +
                    "' to name a variable of the module, got '" + s.name + "'");
      uint64_t value = machine.globalAddresses[it->second] + s.addend;
      uint8_t bytes[8];
      std::memcpy(bytes, &value, 8);
      if (Error e = memory.write(
              machine.globalAddresses[i] + s.offset,
              llvm::ArrayRef(bytes, program.globals[i].ast.elementBytes)))
        return e;
    }
  return Error::success();
}

Expected<RunReport> mlir::attn::sim::run(const Program &program, Memory &memory,
                                         const LaunchConfig &config) {
  const auto &impl = static_cast<const ProgramImpl &>(program);
  const KernelInfo *kernel = nullptr;
  if (config.kernel.empty()) {
    if (impl.kernels.size() != 1)
      return fail("expected the name of one of the module's " +
                  llvm::Twine(impl.kernels.size()) + " kernels, got none");
    kernel = &impl.kernels.front();
  } else {
    kernel = program.findKernel(config.kernel);
    if (!kernel)
      return fail("expected a kernel of the module, got '" + config.kernel +
                  "'");
  }
  if (config.params.size() != kernel->paramBytes)
    return fail("expected " + llvm::Twine(kernel->paramBytes) +
                " parameter bytes, got " + llvm::Twine(config.params.size()));
  Machine machine(impl, memory, config, *kernel);
  machine.entry = impl.kernelEntry.at(kernel->name);
  machine.params = config.params;
  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (!config.grid[i] || !config.block[i] || !config.cluster[i])
      return fail("expected positive launch sizes, got zero");
    if (config.grid[i] % config.cluster[i])
      return fail("expected the grid to be a multiple of the cluster, got " +
                  llvm::Twine(config.grid[i]) + " and " +
                  llvm::Twine(config.cluster[i]));
    machine.clusters[i] = config.grid[i] / config.cluster[i];
    threads *= config.block[i];
    if (kernel->reqntid[0] && kernel->reqntid[i] != config.block[i])
      return fail("expected the block that '.reqntid' asks for, " +
                  llvm::Twine(kernel->reqntid[i]) + " in dimension " +
                  llvm::Twine(i) + ", got " + llvm::Twine(config.block[i]));
    if (kernel->reqnctapercluster[0] &&
        kernel->reqnctapercluster[i] != config.cluster[i])
      return fail("expected the cluster that '.reqnctapercluster' asks for, " +
                  llvm::Twine(kernel->reqnctapercluster[i]) + " in dimension " +
                  llvm::Twine(i) + ", got " + llvm::Twine(config.cluster[i]));
  }
  if (threads > 1024)
    return fail("expected at most 1024 threads a CTA, got " +
                llvm::Twine(threads));
  if (kernel->maxntid[0] && threads > uint64_t(kernel->maxntid[0]) *
                                          kernel->maxntid[1] *
                                          kernel->maxntid[2])
    return fail("expected no more threads than '.maxntid' allows, got " +
                llvm::Twine(threads));
  uint64_t ctas =
      uint64_t(config.cluster[0]) * config.cluster[1] * config.cluster[2];
  if (ctas > 16)
    return fail("expected at most 16 CTAs a cluster, got " + llvm::Twine(ctas));
  uint64_t shared = uint64_t(kernel->staticShared) + config.dynamicShared;
  if (shared > 227 * 1024)
    return fail("expected at most 232448 bytes of shared memory, got " +
                llvm::Twine(shared));
  machine.threadsPerCta = threads;
  machine.warpsPerCta = (threads + 31) / 32;
  if (Error e = placeGlobals(machine, impl, memory))
    return std::move(e);
  RunReport report = machine.run();
  for (uint64_t address : machine.globalAddresses)
    llvm::cantFail(memory.release(address));
  return report;
}
