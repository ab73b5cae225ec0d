//===- Device.cpp - A GPU that is simulated -------------------------------===//

#include "attn/Device/Device.h"
#include "attn/Support/HostMemory.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::formatv;
using llvm::StringRef;

Device::Device(const TargetRow &chip, FindingLog &log,
               const DeviceOptions &options)
    : chip(chip), options(options),
      memory(options.memory ? options.memory : getHostMemory() / 2),
      costs(chip.chip), log(log),
      defaultStream(makeStream(StreamKind::Default)) {}

Device::~Device() = default;

Expected<Module *> Device::loadModule(StringRef ptx, StringRef name) {
  Expected<std::unique_ptr<sim::Program>> program = sim::parsePTX(ptx, name);
  if (!program)
    return explainUnread(ptx, program.takeError());
  if (Error error = checkTarget((*program)->getTarget(), chip))
    return std::move(error);
  auto module = std::make_unique<Module>();
  module->program = std::move(*program);
  if (!options.recordings.empty() || options.estimates)
    module->ptx = ptx.str();
  auto place = [&](uint64_t bytes, StringRef variable, uint64_t align) {
    // Nothing of the device's memory has less than 512.
    return memory.allocate(std::max<uint64_t>(bytes, 1), variable,
                           MemoryKind::Variable);
  };
  if (Error error = sim::loadVariables(*module->program, memory.getMemory(),
                                       place, module->variables)) {
    for (const sim::ModuleVariable &variable : module->variables.variables)
      llvm::cantFail(
          memory.free(variable.address, MemoryKind::Variable, "loading"));
    return fail(Status::OutOfMemory, llvm::toString(std::move(error)));
  }
  return modules.emplace_back(std::move(module)).get();
}

Error Device::unloadModule(Module &module) {
  auto it = llvm::find_if(
      modules, [&](const auto &each) { return each.get() == &module; });
  if (it == modules.end())
    return fail(Status::InvalidHandle, "expected a module that is loaded");
  order.synchroniseAll();
  for (const sim::ModuleVariable &variable : module.variables.variables)
    llvm::cantFail(memory.free(variable.address, MemoryKind::Variable,
                               "unloading its module"));
  costs.forget(module.ptx);
  modules.erase(it);
  return Error::success();
}

Expected<Function> Device::getFunction(Module &module, StringRef name) const {
  const sim::KernelInfo *kernel = module.program->findKernel(name);
  if (!kernel) {
    std::string names;
    for (const sim::KernelInfo &each : module.program->getKernels())
      names += (names.empty() ? "'" : ", '") + each.name + "'";
    return fail(Status::NotFound,
                "expected a kernel of the module, which has " +
                    (names.empty() ? "none" : names) + ", got '" + name + "'");
  }
  // As the driver has it, more has to be asked for.
  constexpr uint32_t usual = 48 * 1024;
  return Function{&module, kernel,
                  usual - std::min(usual, kernel->staticShared), false};
}

Stream Device::makeStream(StreamKind kind) {
  return {order.addStream(kind), kind};
}

Stream Device::makeBranch(const OrderClock &before) {
  Stream branch{order.addStream(StreamKind::NonBlocking, before),
                StreamKind::NonBlocking};
  order.reset(branch.actor, before);
  return branch;
}

void Device::record(Event &event, const Stream &stream) {
  event.isRecorded = true;
  event.clock = order.record(stream.actor);
  event.seconds = seconds;
}

void Device::wait(Stream &stream, const Event &event) {
  order.wait(stream.actor, event.clock);
  stream.lastTurn = nullptr;
}

void Device::synchronise(const Event &event) {
  order.wait(StreamOrder::Host, event.clock);
}

void Device::note(const TurnRef &turn,
                  llvm::ArrayRef<sim::TouchedRange> touched) {
  std::vector<OrderRace> races;
  for (const sim::TouchedRange &range : touched)
    order.access(turn, range, races);
  for (const OrderRace &race : races) {
    const sim::Allocation *in = memory.find(race.begin);
    log.addRaces(race, in ? in->name : "");
  }
}

Error Device::copy(uint64_t to, uint64_t from, uint64_t bytes, Stream &stream,
                   StringRef site) {
  if (Error error = memory.copy(to, from, bytes))
    return error;
  stream.lastTurn = nullptr;
  TurnRef turn = order.begin(
      stream.actor,
      {formatv("copy {0} of {1} bytes", ++copies, bytes), site.str()});
  if (bytes)
    note(turn, {{from, from + bytes, sim::TouchedRange::Read},
                {to, to + bytes, sim::TouchedRange::Write}});
  return Error::success();
}

Error Device::fill(uint64_t to, uint32_t pattern, unsigned width,
                   uint64_t count, Stream &stream, StringRef site) {
  if (Error error = memory.fill(to, pattern, width, count))
    return error;
  uint64_t bytes = count * width;
  stream.lastTurn = nullptr;
  TurnRef turn = order.begin(
      stream.actor,
      {formatv("memset {0} of {1} bytes", ++copies, bytes), site.str()});
  if (bytes)
    note(turn, {{to, to + bytes, sim::TouchedRange::Write}});
  return Error::success();
}

Error Device::free(uint64_t address, Stream *stream, StringRef what,
                   StringRef site) {
  const sim::Allocation *found = memory.find(address, 0);
  uint64_t bytes = found ? found->size() : 0;
  if (!stream)
    order.synchroniseAll();
  std::string where = (what + (site.empty() ? "" : " at ") + site).str();
  if (Error error = memory.free(address, MemoryKind::Device, where))
    return error;
  if (stream) {
    stream->lastTurn = nullptr;
    note(order.begin(stream->actor, {what.str(), site.str()}),
         {{address, address + bytes, sim::TouchedRange::Write}});
  }
  order.forget(address, address + bytes);
  return Error::success();
}
