//===- attn-opt.cpp - Runs passes on attn IR ------------------------------===//

#include "attn/InitAll.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAllDialects(registry);
  mlir::attn::registerAllPasses();
  mlir::attn::registerAllPipelines();
  mlir::registerTransformsPasses();
  mlir::bufferization::registerOneShotBufferizePass();
  mlir::registerGpuModuleToBinaryPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "attn optimizer driver\n", registry));
}
