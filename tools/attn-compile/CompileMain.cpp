//===- CompileMain.cpp - The program attn-compile
//---------------------------===//
//----------------------------------===//

#include "Tool/Commands.h"

int main(int argc, char **argv) {
  return mlir::attn::runAttnCompile(argc, argv);
}
