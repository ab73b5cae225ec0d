//===- DebugLines.cpp - Scopes for .loc lines -----------------------------===//

#include "DebugLines.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/Path.h"

using namespace mlir;

/// The first file location inside `loc`, or none.
static FileLineColLoc findFileLoc(Location loc) {
  FileLineColLoc result;
  loc->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner)) {
      result = file;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return result;
}

void mlir::attn::addDebugScopes(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    Location loc = func.getLoc();
    if (func.isExternal() ||
        loc->findInstanceOf<FusedLocWith<LLVM::DISubprogramAttr>>())
      continue;
    StringRef path = "<unknown>";
    unsigned line = 1;
    if (FileLineColLoc file = findFileLoc(loc)) {
      path = file.getFilename().getValue();
      line = file.getLine();
    }
    auto fileAttr =
        LLVM::DIFileAttr::get(context, llvm::sys::path::filename(path),
                              llvm::sys::path::parent_path(path));
    auto unit = LLVM::DICompileUnitAttr::get(
        DistinctAttr::create(UnitAttr::get(context)), llvm::dwarf::DW_LANG_C,
        fileAttr, StringAttr::get(context, "attn"), /*isOptimized=*/true,
        LLVM::DIEmissionKind::DebugDirectivesOnly);
    auto type =
        LLVM::DISubroutineTypeAttr::get(context, ArrayRef<LLVM::DITypeAttr>());
    StringAttr name = func.getSymNameAttr();
    auto subprogram = LLVM::DISubprogramAttr::get(
        context, DistinctAttr::create(UnitAttr::get(context)), unit, fileAttr,
        name, name, fileAttr, line, line,
        LLVM::DISubprogramFlags::Definition |
            LLVM::DISubprogramFlags::Optimized,
        type, /*retainedNodes=*/{}, /*annotations=*/{});
    func->setLoc(FusedLoc::get(context, {loc}, subprogram));
  }
}
