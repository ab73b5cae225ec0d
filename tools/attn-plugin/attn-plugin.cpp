//===- attn-plugin.cpp - The dialect and its passes for other tools -------===//
//
// A shared library for `--load-dialect-plugin` and `--load-pass-plugin` of
// mlir-opt and of tools like it. The host must use the same libMLIR.so.
//
//===----------------------------------------------------------------------===//

#include "attn/InitAll.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {
      MLIR_PLUGIN_API_VERSION, "attn", LLVM_VERSION_STRING,
      [](DialectRegistry *registry) { attn::registerAllDialects(*registry); }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "attn", LLVM_VERSION_STRING, [] {
            attn::registerAllPasses();
            attn::registerAllPipelines();
          }};
}
