//===- SimMain.cpp - The program attn-sim
//-----------------------------------===//
//--------------------------------------===//

#include "Tool/Commands.h"

int main(int argc, char **argv) { return mlir::attn::runAttnSim(argc, argv); }
