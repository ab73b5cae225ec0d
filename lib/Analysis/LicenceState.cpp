//===- LicenceState.cpp - What a partition holds --------------------------===//

#include "LicenceState.h"

using namespace mlir;
using namespace mlir::attn;

bool LicenceState::operator==(const LicenceState &other) const {
  return rights == other.rights &&
         llvm::equal(grants, other.grants,
                     [](const Grant &a, const Grant &b) {
                       return a.tie() == b.tie();
                     }) &&
         llvm::equal(groups, other.groups, [](const Group &a, const Group &b) {
           return a.tie() == b.tie();
         });
}

void LicenceState::tidy() {
  std::vector<int> renamed(grants.size(), -1);
  std::vector<Grant> kept;
  auto rename = [&](unsigned &grant) {
    if (renamed[grant] < 0) {
      renamed[grant] = kept.size();
      kept.push_back(grants[grant]);
    }
    grant = renamed[grant];
  };
  for (auto &[value, named] : rights)
    for (Right &right : named)
      rename(right.first);
  for (Group &group : groups)
    for (auto &access : group.accesses)
      rename(access.first);
  grants = std::move(kept);
}
