//===- Simulator.cpp - Launching a kernel ---------------------------------===//

#include "attn/Simulator/Simulator.h"
#include "InstructionSet.h"
#include "Scheduler.h"
#include "attn/Support/HostMemory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Expected;

Expected<std::unique_ptr<Program>>
mlir::attn::sim::parsePTX(llvm::StringRef text, llvm::StringRef name) {
  auto program = std::make_unique<ProgramImpl>();
  program->name = name.str();
  program->text = text.str();
  Expected<AstModule> module = parseModule(program->text, program->name);
  if (!module)
    return module.takeError();
  program->ast = std::move(*module);
  if (Error e = decodeProgram(*program, getInstructions()))
    return std::move(e);
  return std::unique_ptr<Program>(std::move(program));
}

static Error fail(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

/// Clusters of a launch that are there at the same time.
static uint64_t countAtOnce(const Machine &machine, uint64_t clusters) {
  const LaunchConfig &config = machine.config;
  uint64_t atOnce = machine.program.communicates ? config.residentClusters
                    : config.threads ? config.threads
                                     : std::thread::hardware_concurrency();
  return std::max<uint64_t>(std::min(atOnce, clusters), 1);
}

/// That the local memory of all CTAs that run at once fits into the host's.
static Error checkLocalMemory(const Machine &machine, uint64_t ctas,
                              uint64_t clusters) {
  uint64_t bytes = countAtOnce(machine, clusters) * ctas * machine.warpsPerCta *
                   32 * machine.program.localBytes * 2;
  if (bytes <= machine.memoryLimit)
    return Error::success();
  return fail(
      "expected local memory of the CTAs that run at once to fit into " +
      mlir::attn::formatBytes(machine.memoryLimit) + ", got " +
      mlir::attn::formatBytes(bytes) + " with " +
      llvm::Twine(machine.program.localBytes) + " bytes a thread");
}

/// That registers fit: the file of a CTA, of which what is used takes memory,
/// and what says of each register of all CTAs at once whether it is defined.
static Error checkRegisters(const Machine &machine, uint64_t ctas,
                            uint64_t clusters) {
  uint64_t registers = machine.program.regMetas;
  uint64_t file = (machine.program.regWords + 4 * registers) * 4;
  uint64_t bytes =
      machine.warpsPerCta *
      std::max(file, countAtOnce(machine, clusters) * ctas * registers * 8);
  if (bytes <= machine.memoryLimit)
    return Error::success();
  return fail("expected registers of the CTAs that run at once to fit into " +
              mlir::attn::formatBytes(machine.memoryLimit) + ", got " +
              mlir::attn::formatBytes(bytes) + " with " +
              llvm::Twine(registers) + " registers");
}

/// Runs the launch with the module's variables where they are.
static Expected<RunReport> runWith(Machine &machine,
                                   const ModuleVariables &loaded) {
  for (const ModuleVariable &variable : loaded.variables)
    machine.globalAddresses.push_back(variable.address);
  RunReport report = Scheduler(machine).run();
  for (const ModuleVariable &variable : loaded.variables) {
    if (!llvm::is_contained(machine.config.watched, variable.name))
      continue;
    std::vector<uint8_t> &bytes = report.variables[variable.name];
    bytes.resize(variable.bytes);
    llvm::cantFail(machine.memory.read(variable.address, bytes));
  }
  if (machine.config.progress)
    if (Error e = machine.config.progress->takeError())
      return std::move(e);
  return report;
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
  machine.memoryLimit =
      config.memoryLimit ? config.memoryLimit : mlir::attn::getHostMemory();
  uint64_t threads = 1;
  constexpr uint32_t gridLimits[] = {INT32_MAX, 65535, 65535};
  for (unsigned i = 0; i < 3; ++i) {
    if (!config.grid[i] || !config.block[i] || !config.cluster[i])
      return fail("expected positive launch sizes, got zero");
    // Products of what is left fit into 64 bits.
    if (config.grid[i] > gridLimits[i] || config.block[i] > 1024 ||
        config.cluster[i] > 16)
      return fail("expected at most " + llvm::Twine(gridLimits[i]) +
                  " CTAs, 1024 threads and clusters of 16 in dimension " +
                  llvm::Twine(i) + ", got " + llvm::Twine(config.grid[i]) +
                  ", " + llvm::Twine(config.block[i]) + " and " +
                  llvm::Twine(config.cluster[i]));
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
  uint64_t total =
      uint64_t(machine.clusters[0]) * machine.clusters[1] * machine.clusters[2];
  if (total > Stamp::MaxClusters)
    return fail("expected at most " + llvm::Twine(Stamp::MaxClusters) +
                " clusters in a simulated launch, got " + llvm::Twine(total));
  uint64_t shared = uint64_t(kernel->staticShared) + config.dynamicShared;
  if (shared > kMaxSharedBytes)
    return fail("expected at most " + llvm::Twine(kMaxSharedBytes) +
                " bytes of shared memory, got " + llvm::Twine(shared));
  machine.threadsPerCta = threads;
  machine.warpsPerCta = (threads + 31) / 32;
  if (Error e = checkLocalMemory(machine, ctas, total))
    return std::move(e);
  if (Error e = checkRegisters(machine, ctas, total))
    return std::move(e);
  if (config.variables) {
    if (config.variables->variables.size() != impl.globals.size())
      return fail("expected " + llvm::Twine(impl.globals.size()) +
                  " variables of the module, got " +
                  llvm::Twine(config.variables->variables.size()));
    return runWith(machine, *config.variables);
  }
  Expected<ModuleVariables> loaded =
      loadVariables(program, memory, machine.memoryLimit);
  if (!loaded)
    return loaded.takeError();
  Expected<RunReport> report = runWith(machine, *loaded);
  for (const ModuleVariable &variable : loaded->variables)
    llvm::cantFail(memory.forget(variable.address));
  return report;
}
