//===- attn-reduce.cpp - Shrinks IR that shows a bug ----------------------===//

#include "attn/InitAll.h"
#include "attn/Reduce/Reduce.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAllDialects(registry);
  mlir::attn::registerReductions(registry);
  mlir::attn::registerAllPasses();
  mlir::attn::registerAllPipelines();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
