//===- BarrierReport.cpp - What the check of barriers has found -----------===//

#include "attn/Analysis/Barriers/BarrierReport.h"
#include "attn/Support/Assumption.h"

using namespace mlir;
using namespace mlir::attn;

StringRef attn::stringifyBarrierFault(BarrierFault fault) {
  switch (fault) {
  case BarrierFault::Attribution:
    return "signal in the wrong phase";
  case BarrierFault::Count:
    return "wrong count";
  case BarrierFault::Slip:
    return "phase slip";
  case BarrierFault::EarlyWait:
    return "early wait";
  case BarrierFault::Generation:
    return "arrival in the wrong generation";
  case BarrierFault::Deadlock:
    return "deadlock";
  case BarrierFault::Race:
    return "race";
  case BarrierFault::Proxy:
    return "missing proxy fence";
  case BarrierFault::TensorFence:
    return "missing tensor fence";
  case BarrierFault::InFlight:
    return "result in flight";
  case BarrierFault::Lifetime:
    return "lifetime";
  case BarrierFault::Unwritten:
    return "unwritten tensor memory";
  case BarrierFault::Exit:
    return "exit in flight";
  case BarrierFault::Request:
    return "request after a denial";
  }
  llvm_unreachable("all faults handled");
}

std::string attn::describeAssumptions(uint32_t bits) {
  std::string text;
  for (unsigned number = 1; number <= numAssumptions; ++number)
    if (bits >> number & 1)
      text += (text.empty() ? "A" : " A") + std::to_string(number);
  return text.empty() ? "none" : text;
}
