//===- use-dialect.cpp - Uses the dialect of an installed Attn ------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

/// Reads the file that its argument names, and prints and verifies it.
int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  mlir::MLIRContext context;
  context.loadDialect<mlir::attn::AttnDialect, mlir::func::FuncDialect>();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  if (!module || mlir::failed(mlir::verify(*module)))
    return 1;
  int64_t problems = 0;
  module->walk([&](mlir::attn::AttentionOp) { ++problems; });
  module->print(llvm::outs());
  return problems == 1 ? 0 : 1;
}
