//===- CodeFlow.cpp - Basic blocks and loops of a listing -----------------===//

#include "attn/Target/CodeFlow.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using Flow = CodeInstruction::Flow;

CodeFlow::CodeFlow(const CodeListing &listing) {
  findBlocks(listing);
  findDominators();
  findLoops();
}

bool CodeFlow::dominates(unsigned a, unsigned b) const {
  return !dominators[b].empty() && dominators[b].test(a);
}

void CodeFlow::findBlocks(const CodeListing &listing) {
  const std::vector<CodeInstruction> &code = listing.instructions;
  std::vector<unsigned> starts = {0};
  for (const auto &label : listing.labels)
    starts.push_back(label.second);
  for (auto [i, inst] : llvm::enumerate(code))
    if (inst.flow != Flow::Next)
      starts.push_back(i + 1);
  llvm::sort(starts);
  starts.erase(llvm::unique(starts), starts.end());
  while (!starts.empty() && starts.back() >= code.size())
    starts.pop_back();
  for (auto [i, begin] : llvm::enumerate(starts)) {
    CodeBlock block;
    block.begin = begin;
    block.end = i + 1 == starts.size() ? code.size() : starts[i + 1];
    blocks.push_back(std::move(block));
  }
  auto connect = [&](unsigned from, unsigned to) {
    if (llvm::is_contained(blocks[from].successors, to))
      return;
    blocks[from].successors.push_back(to);
    blocks[to].predecessors.push_back(from);
  };
  for (unsigned i = 0; i != blocks.size(); ++i) {
    const CodeInstruction &last = code[blocks[i].end - 1];
    if ((last.flow == Flow::Next || last.conditional) && i + 1 != blocks.size())
      connect(i, i + 1);
    if (last.flow != Flow::Branch)
      continue;
    auto label = listing.labels.find(last.target);
    if (label == listing.labels.end() || label->second >= code.size())
      continue;
    auto start = llvm::lower_bound(starts, label->second);
    connect(i, start - starts.begin());
  }
}

void CodeFlow::findDominators() {
  dominators.resize(blocks.size());
  if (blocks.empty())
    return;
  // Kernels have some hundred blocks, so that bit vectors are fast enough.
  llvm::BitVector reached(blocks.size());
  llvm::SmallVector<unsigned> todo = {0};
  reached.set(0);
  while (!todo.empty())
    for (unsigned next : blocks[todo.pop_back_val()].successors)
      if (!reached.test(next)) {
        reached.set(next);
        todo.push_back(next);
      }
  for (unsigned i : reached.set_bits())
    dominators[i].resize(blocks.size(), /*t=*/i != 0);
  dominators[0].set(0);
  for (bool changed = true; changed;) {
    changed = false;
    for (unsigned i : reached.set_bits()) {
      if (i == 0)
        continue;
      llvm::BitVector common(blocks.size(), true);
      for (unsigned before : blocks[i].predecessors)
        if (reached.test(before))
          common &= dominators[before];
      common.set(i);
      if (common == dominators[i])
        continue;
      dominators[i] = std::move(common);
      changed = true;
    }
  }
}

void CodeFlow::findLoops() {
  for (unsigned header = 0; header != blocks.size(); ++header) {
    CodeLoop loop;
    loop.header = header;
    loop.blocks.resize(blocks.size());
    llvm::SmallVector<unsigned> todo;
    for (unsigned from : blocks[header].predecessors) {
      if (!dominates(header, from))
        continue;
      todo.push_back(from);
      loop.latch = std::max(loop.latch, from);
    }
    if (todo.empty())
      continue;
    loop.blocks.set(header);
    while (!todo.empty()) {
      unsigned block = todo.pop_back_val();
      if (loop.blocks.test(block))
        continue;
      loop.blocks.set(block);
      for (unsigned from : blocks[block].predecessors)
        if (!dominators[from].empty())
          todo.push_back(from);
    }
    loops.push_back(std::move(loop));
  }
}
