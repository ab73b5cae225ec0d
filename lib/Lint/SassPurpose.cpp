//===- SassPurpose.cpp - What machine instructions are for ----------------===//

#include "attn/Lint/SassLint.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir::attn;
using llvm::StringRef;

StringRef mlir::attn::getSassPurpose(const CodeInstruction &inst) {
  StringRef base = inst.getBase();
  StringRef opcode = inst.opcode;
  if (base.ends_with("MMA"))
    return "tensor";
  // Copies in the shape of arithmetic.
  if (opcode.starts_with("IMAD.MOV") || opcode.starts_with("HFMA2.MMA") ||
      opcode.starts_with("IMAD.U32"))
    return "move";
  StringRef known =
      llvm::StringSwitch<StringRef>(base)
          .Case("MUFU", "mufu")
          .Cases({"FADD", "FMUL", "FFMA", "FMNMX", "FSETP", "FSEL", "FSET"},
                 "fp32")
          .Cases({"FADD2", "FMUL2", "FFMA2", "FMNMX3", "FCHK"}, "fp32")
          .Cases({"HADD2", "HMUL2", "HFMA2", "HMNMX2", "HSETP2"}, "fp32")
          .Cases({"F2F", "F2FP", "F2I", "I2F", "I2FP", "FRND"}, "convert")
          .Cases({"LDS", "LDSM", "STS", "STSM", "ATOMS"}, "shared")
          .Cases({"LDG", "LDGSTS", "STG", "RED", "ATOM", "ATOMG", "LD", "ST"},
                 "global")
          .Cases({"LDL", "STL"}, "local")
          .Cases({"SHFL", "VOTE", "VOTEU", "MATCH", "REDUX"}, "exchange")
          .Cases({"MOV", "CS2R", "S2R", "S2UR", "R2UR", "P2R", "R2P", "B2R"},
                 "move")
          .Cases({"LDC", "LDCU", "ULDC"}, "constant")
          .Cases({"BAR", "SYNCS", "DEPBAR", "LDGDEPBAR", "WARPGROUP", "MEMBAR",
                  "FENCE", "ERRBAR", "WARPSYNC", "UCGABAR_ARV", "UCGABAR_WAIT",
                  "CGAERRBAR", "CCTL"},
                 "sync")
          .Cases({"BRA", "BRX", "JMP", "JMX", "EXIT", "CALL", "RET", "BSSY",
                  "BSYNC", "NOP", "YIELD", "ELECT", "USETMAXREG", "NANOSLEEP"},
                 "control")
          .Cases({"IADD3", "IMAD", "IMNMX", "IABS", "ISETP", "LEA", "LOP3"},
                 "integer")
          .Cases({"SHF", "SEL", "PRMT", "SGXT", "BMSK", "POPC", "FLO", "BREV",
                  "PLOP3", "VIADD", "VIADDMNMX", "VIMNMX", "VIMNMX3", "I2I"},
                 "integer")
          .Default("");
  if (!known.empty())
    return known;
  if (base.starts_with("UTMA") || base.starts_with("UBLK"))
    return "global";
  return base.starts_with("U") ? "uniform" : "other";
}
