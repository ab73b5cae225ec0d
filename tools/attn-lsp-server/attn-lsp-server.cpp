//===- attn-lsp-server.cpp - Language server for attn IR ------------------===//

#include "Tool/Tool.h"
#include "attn/InitAll.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::attn::Tool tool(argc, argv, "attn-lsp-server");
  mlir::DialectRegistry registry;
  mlir::attn::registerAllDialects(registry);
  mlir::attn::hideOptionsOfLibraries();
  // The server makes its flags where it reads them.
  tool.prepare(/*more=*/true);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
