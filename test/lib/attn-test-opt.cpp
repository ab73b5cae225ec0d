//===- attn-test-opt.cpp - attn-opt with what only tests use --------------===//

#include "Dialect/TestAttn/TestAttnDialect.h"
#include "ExamplePass/ExamplePasses.h"
#include "ExampleSchedule/ExampleSchedule.h"
#include "TestPasses.h"
#include "attn/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAllDialects(registry);
  registry.insert<mlir::attn::test::TestAttnDialect,
                  mlir::attn::example::ExampleDialect>();
  // attn-plan makes attributes of the example's dialect.
  registry.addExtension(
      +[](mlir::MLIRContext *context, mlir::attn::AttnDialect *) {
        context->getOrLoadDialect<mlir::attn::example::ExampleDialect>();
      });
  llvm::cantFail(
      mlir::attn::registerSchedule(mlir::attn::example::getSchedule()));
  mlir::attn::registerAllPasses();
  mlir::attn::registerAllPipelines();
  mlir::attn::example::registerExamplePasses();
  mlir::attn::test::registerCheckLocationsPass();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "attn optimizer driver for tests\n", registry));
}
