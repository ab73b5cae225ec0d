//===- Mask.cpp - Which keys a query attends to ---------------------------===//

#include "attn/Problem/Mask.h"
#include "llvm/ADT/StringSwitch.h"

#include "attn/Problem/MaskEnums.cpp.inc"
