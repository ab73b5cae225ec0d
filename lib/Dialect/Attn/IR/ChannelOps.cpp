//===- ChannelOps.cpp - Hand-over between partitions ----------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

LogicalResult ChannelCreateOp::verify() {
  if (getRoles().size() < 2)
    return emitOpError("expected at least 2 roles, got ") << getRoles().size();
  for (auto [index, role] : llvm::enumerate(getRoles().getAsRange<RoleAttr>()))
    for (unsigned earlier = 0; earlier < index; ++earlier)
      if (getRole(earlier).getPartition() == role.getPartition())
        return emitOpError("expected one role for each partition, got two "
                           "for '")
               << role.getPartition() << "'";
  return success();
}

std::optional<unsigned> ChannelCreateOp::findRole(StringRef partition) {
  for (auto [index, role] : llvm::enumerate(getRoles().getAsRange<RoleAttr>()))
    if (role.getPartition() == partition)
      return index;
  return std::nullopt;
}
