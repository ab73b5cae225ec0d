//===- attn-lsp-server.cpp - Language server for attn IR ------------------===//

#include "attn/InitAll.h"
#include "attn/Target/ToolMain.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::attn::registerAllDialects(registry);
  mlir::attn::setVersionPrinter();
  mlir::attn::hideOptionsOfLibraries();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
