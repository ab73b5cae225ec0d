//===- KernelRunner.cpp - Kernels from the barrier rung, executed ---------===//

#include "KernelRunner.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Simulator/Async/TensorMap.h"
#include "attn/Target/Assembler.h"
#include "attn/Target/PTX/Driver.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include <random>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::testing;

/// Different inputs in each run of the tests, and the seed in the output.
static std::mt19937 &getRandom() {
  static std::mt19937 random = [] {
    unsigned seed = std::random_device()();
    ::testing::Test::RecordProperty("seed", std::to_string(seed));
    return std::mt19937(seed);
  }();
  return random;
}

HostTensor HostTensor::random(DType dtype, ArrayRef<int64_t> shape) {
  HostTensor result = output(dtype, shape);
  result.isOutput = false;
  std::normal_distribution<double> distribution;
  unsigned width = getByteWidth(dtype);
  for (size_t i = 0; i < result.bytes.size(); i += width)
    encodeElement(dtype, distribution(getRandom()), &result.bytes[i]);
  return result;
}

HostTensor HostTensor::output(DType dtype, ArrayRef<int64_t> shape) {
  HostTensor result;
  result.dtype = dtype;
  result.shape.assign(shape.begin(), shape.end());
  result.bytes.resize(llvm::product_of(shape) * getByteWidth(dtype));
  result.isOutput = true;
  return result;
}

/// C75xx and spills: a kernel that ptxas slows down is not what was written.
static void expectAssembles(StringRef ptx, StringRef chip) {
  llvm::Expected<std::string> ptxas = findPtxas();
  if (!ptxas) {
    llvm::consumeError(ptxas.takeError());
    return;
  }
  AssemblerOptions options;
  options.chip = chip.str();
  options.ptxas = *ptxas;
  llvm::Expected<AssemblerResult> result = assemblePTX(ptx, options);
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return;
  }
  for (const AssemblerMessage &message : result->log.messages)
    if (message.severity != AssemblerMessage::Severity::Info)
      ADD_FAILURE() << "ptxas: " << message.code << " " << message.text;
}

KernelRunner::KernelRunner(const std::string &text, bool isaOnly)
    : isaOnly(isaOnly) {
  DialectRegistry registry;
  registerAttnDialect(registry);
  registerPTXTranslations(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module) {
    ADD_FAILURE() << "the test's kernel does not parse:\n" << text;
    return;
  }
  for (auto kernels : module->getOps<gpu::GPUModuleOp>())
    if (ArrayAttr targets = kernels.getTargetsAttr())
      chip = cast<TargetAttr>(targets[0]).getChip().str();
  PassManager passes(&context);
  passes.addPass(createAttnShardCGAPass());
  OpPassManager &kernels = passes.nest<gpu::GPUModuleOp>();
  kernels.addPass(createAttnLowerTileLoopsPass());
  kernels.addPass(createAttnVerifyTokensPass());
  kernels.addPass(createAttnInferLayoutsPass());
  kernels.addPass(createAttnAllocateTmemPass());
  kernels.addPass(createAttnMaterializeScratchPass());
  kernels.addPass(createAttnLowerChannelsPass());
  AttnAllocateSharedPassOptions shared;
  shared.chip = chip;
  kernels.addPass(createAttnAllocateSharedPass(shared));
  kernels.addPass(createAttnInsertFencesPass());
  AttnLowerTilesPassOptions tiles;
  tiles.clusterScope = isaOnly;
  kernels.addPass(createAttnLowerTilesPass(tiles));
  kernels.addPass(createCSEPass());
  kernels.addPass(createConvertAttnToNVVMPass());
  PTXOptions options;
  options.chip = chip;
  FailureOr<std::string> result = failure();
  if (succeeded(passes.run(*module)))
    result =
        translateToPTX(*module->getOps<gpu::GPUModuleOp>().begin(), options);
  if (failed(result)) {
    ADD_FAILURE() << "the test's kernel does not compile:\n" << text;
    return;
  }
  ptx = *result;
  module->walk([&](LLVM::LLVMFuncOp kernel) {
    if (auto bytes =
            kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr))
      neededBytes = bytes.getInt();
  });
  expectAssembles(ptx, chip);
  llvm::Expected<std::unique_ptr<sim::Program>> parsed =
      sim::parsePTX(ptx, "kernel.ptx");
  if (!parsed) {
    ADD_FAILURE() << llvm::toString(parsed.takeError()) << "\n" << ptx;
    return;
  }
  program = std::move(*parsed);
}

void KernelRunner::pass(HostTensor &tensor) {
  Parameter parameter;
  parameter.tensor = &tensor;
  parameters.push_back(parameter);
}

void KernelRunner::pass(int32_t value) {
  Parameter parameter;
  parameter.value = value;
  parameters.push_back(parameter);
}

void KernelRunner::passMap(HostTensor &tensor, ArrayRef<int64_t> box,
                           unsigned swizzle) {
  Parameter parameter;
  parameter.tensor = &tensor;
  parameter.box.assign(box.begin(), box.end());
  parameter.swizzle = swizzle;
  parameters.push_back(parameter);
}

/// The map of a tensor, dimensions innermost first.
static sim::TensorMapInfo describe(const HostTensor &tensor, uint64_t address,
                                   ArrayRef<int64_t> box, unsigned swizzle) {
  sim::TensorMapInfo info;
  info.address = address;
  info.element = tensor.dtype == DType::F16    ? sim::TensorMapElement::F16
                 : tensor.dtype == DType::BF16 ? sim::TensorMapElement::BF16
                 : tensor.dtype == DType::F32  ? sim::TensorMapElement::F32
                                               : sim::TensorMapElement::U8;
  info.rank = tensor.shape.size();
  info.swizzleBytes = swizzle;
  uint64_t stride = getByteWidth(tensor.dtype);
  for (unsigned i = 0; i < info.rank; ++i) {
    unsigned dim = info.rank - 1 - i;
    info.dims[i] = tensor.shape[dim];
    info.box[i] = box[dim];
    if (i > 0)
      info.strides[i] = stride;
    stride *= tensor.shape[dim];
  }
  return info;
}

bool KernelRunner::runOnce(sim::LaunchConfig config, bool partial, bool first) {
  const sim::KernelInfo &kernel = program->getKernels().front();
  if (kernel.params.size() != parameters.size()) {
    ADD_FAILURE() << "expected " << kernel.params.size() << " parameters, got "
                  << parameters.size();
    return false;
  }
  sim::Memory memory;
  std::map<HostTensor *, uint64_t> addresses;
  config.kernel = kernel.name;
  if (isaOnly)
    config.profile = sim::Profile::Isa;
  config.assumptions = assumptions;
  config.params.assign(kernel.paramBytes, 0);
  for (auto [parameter, place] : llvm::zip(parameters, kernel.params)) {
    uint8_t *bytes = config.params.data() + place.offset;
    if (!parameter.tensor) {
      memcpy(bytes, &parameter.value, sizeof(parameter.value));
      continue;
    }
    HostTensor &tensor = *parameter.tensor;
    uint64_t &address = addresses[&tensor];
    if (address == 0) {
      address = memory.allocate(tensor.bytes.size(), "tensor");
      if (!tensor.isOutput) {
        llvm::cantFail(memory.write(address, tensor.bytes));
        llvm::cantFail(memory.setAccess(address, sim::Access::Read));
      }
    }
    if (parameter.box.empty()) {
      memcpy(bytes, &address, sizeof(address));
      continue;
    }
    EXPECT_EQ(place.align, 64u);
    auto map = sim::encodeTensorMap(
        describe(tensor, address, parameter.box, parameter.swizzle));
    if (!map || place.size != map->size()) {
      ADD_FAILURE() << "bad tensor map: " << llvm::toString(map.takeError());
      return false;
    }
    memcpy(bytes, map->data(), map->size());
  }
  llvm::Expected<sim::RunReport> report = sim::run(*program, memory, config);
  if (!report) {
    ADD_FAILURE() << llvm::toString(report.takeError());
    return false;
  }
  if (!report->isClean()) {
    std::string findings;
    llvm::raw_string_ostream os(findings);
    report->print(os, "kernel.ptx");
    ADD_FAILURE() << findings << "\n" << ptx;
    return false;
  }
  for (auto [tensor, address] : addresses) {
    if (!tensor->isOutput)
      continue;
    uint64_t bytes = tensor->bytes.size();
    if (!partial)
      EXPECT_EQ(llvm::cantFail(memory.countUninitialised(address, bytes)), 0u);
    std::vector<uint8_t> result(bytes);
    llvm::cantFail(memory.read(address, result));
    if (!first)
      EXPECT_EQ(tensor->bytes, result) << "outputs differ between schedules";
    tensor->bytes = result;
  }
  return true;
}

void KernelRunner::run(unsigned threads, unsigned sharedBytes, bool partial) {
  if (!program)
    return;
  sim::LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = {grid, 1, 1};
  config.cluster = {cluster, 1, 1};
  config.dynamicShared = std::max(sharedBytes, neededBytes);
  using Timing = sim::AsyncTiming;
  if (!runOnce(config, partial, /*first=*/true))
    return;
  config.schedule = sim::Schedule::Random;
  config.adversarial = true;
  for (auto [reads, writes] :
       {std::pair(Timing::Completion, Timing::Completion),
        std::pair(Timing::Completion, Timing::Issue),
        std::pair(Timing::Random, Timing::Random)}) {
    config.seed = getRandom()();
    config.asyncReads = reads;
    config.asyncWrites = writes;
    if (!runOnce(config, partial, /*first=*/false))
      return;
  }
}
