//===- ChannelReport.cpp - What the check of channels has found -----------===//

#include "attn/Analysis/Channels/ChannelReport.h"

using namespace mlir;
using namespace mlir::attn;

StringRef attn::stringifyChannelFault(ChannelFault fault) {
  switch (fault) {
  case ChannelFault::Licence:
    return "licence";
  case ChannelFault::Balance:
    return "balance";
  case ChannelFault::Order:
    return "order";
  }
  llvm_unreachable("covered switch");
}
