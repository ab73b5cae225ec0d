//===- RowShadow.cpp - A shadow whose rows share their state --------------===//

#include "RowShadow.h"

using namespace mlir::attn::sim;

void RowShadow::init(unsigned columns) {
  groups.clear();
  groups.push_back(std::make_unique<Group>());
  Group &all = *groups.back();
  all.rows.set();
  all.shadow.init(columns, 1);
  groupOf.fill(&all);
}

RowShadow RowShadow::clone() const {
  RowShadow copy;
  for (const std::unique_ptr<Group> &group : groups) {
    copy.groups.push_back(std::make_unique<Group>());
    Group &part = *copy.groups.back();
    part.rows = group->rows;
    part.shadow = group->shadow.clone();
    for (unsigned row = 0; row < NumRows; ++row)
      if (part.rows.test(row))
        copy.groupOf[row] = &part;
  }
  return copy;
}

RowShadow::Group &RowShadow::takeGroup(unsigned row, const Rows &rows) {
  Group &group = *groupOf[row];
  Rows taken = group.rows & rows;
  if (taken == group.rows)
    return group;
  groups.push_back(std::make_unique<Group>());
  Group &part = *groups.back();
  part.rows = taken;
  part.shadow = group.shadow.clone();
  group.rows &= ~taken;
  for (unsigned r = row; r < NumRows; ++r)
    if (taken.test(r))
      groupOf[r] = &part;
  return part;
}

void RowShadow::reset(unsigned column, unsigned count) {
  for (const std::unique_ptr<Group> &group : groups)
    group->shadow.reset(column, count);
}
