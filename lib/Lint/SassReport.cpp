//===- SassReport.cpp - What was found in machine code --------------------===//

#include "attn/Lint/SassLint.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using llvm::formatv;

bool SassReport::hasErrors() const {
  return llvm::any_of(
      findings, [](const SassFinding &finding) { return finding.isError; });
}

unsigned SassReport::countLoopSpills() const {
  unsigned count = 0;
  if (blockLoops)
    for (const BlockLoop &loop : *blockLoops)
      count += loop.countSpills();
  return count;
}

llvm::json::Object BlockLoop::toJSON() const {
  return llvm::json::Object{
      {"begin", begin},
      {"end", end},
      {"work", getWork()},
      {"instructions", instructions},
      {"tensor", tensor},
      {"exponentials", exponentials},
      {"spill_stores", spillStores},
      {"spill_loads", spillLoads},
  };
}

llvm::json::Object HotLoop::toJSON() const {
  llvm::json::Object counts, byOpcode;
  for (const auto &[purpose, count] : purposes)
    counts[purpose] = count;
  for (const auto &[opcode, count] : moves)
    byOpcode[opcode] = count;
  llvm::json::Array all;
  for (const CodeWait &wait : waits)
    all.push_back(llvm::json::Object{{"work", wait.work},
                                     {"pending", wait.pending},
                                     {"exponentials", wait.exponentials}});
  return llvm::json::Object{
      {"begin", begin},
      {"end", end},
      {"instructions", instructions},
      {"tensor", tensor},
      {"exponentials", exponentials},
      {"purposes", std::move(counts)},
      {"moves", std::move(byOpcode)},
      {"waits", std::move(all)},
      {"rare_inside", rareInside},
      {"rare_outside", rareOutside},
  };
}

llvm::json::Value SassReport::toJSON() const {
  llvm::json::Array found, left;
  for (const SassFinding &finding : findings)
    found.push_back(
        llvm::json::Object{{"severity", finding.isError ? "error" : "warning"},
                           {"text", finding.text}});
  for (const std::string &text : notChecked)
    left.push_back(text);
  llvm::json::Object object{
      {"kernel", kernel},
      {"registers", registers},
      {"spill_bytes", spillBytes},
      {"local", localStores + localLoads},
      {"findings", std::move(found)},
      {"not_checked", std::move(left)},
  };
  if (blockLoops) {
    llvm::json::Array loops;
    for (const BlockLoop &each : *blockLoops)
      loops.push_back(each.toJSON());
    object["block_loops"] = std::move(loops);
  }
  if (loop)
    object["hot_loop"] = loop->toJSON();
  if (softmaxLoop)
    object["softmax_loop"] = softmaxLoop->toJSON();
  if (epilogue)
    object["epilogue"] = epilogue->toJSON();
  if (remote)
    object["remote_arrivals"] =
        llvm::json::Object{{"arrivals", remote->arrivals},
                           {"sends", remote->sends},
                           {"loads", remote->loads},
                           {"early", remote->early.size()}};
  if (ptxLoop) {
    object["ptx_loop"] = ptxLoop->toJSON();
    object["ptx_loop"].getAsObject()->erase("purposes");
    object["ptx_loop"].getAsObject()->erase("moves");
  }
  return object;
}

static void printWaits(llvm::raw_ostream &os, const HotLoop &loop) {
  llvm::interleave(
      loop.waits, os,
      [&](const CodeWait &wait) {
        os << wait.work << " " << wait.pending << " behind "
           << wait.exponentials;
      },
      ", ");
  if (loop.waits.empty())
    os << "none";
}

static void printCounts(llvm::raw_ostream &os, llvm::StringRef name,
                        const HotLoop &loop) {
  os << formatv("{0}  {1:x} to {2:x}, {3} instructions\n", name, loop.begin,
                loop.end, loop.instructions);
  for (const auto &[purpose, count] : loop.purposes)
    os << formatv("  {0,-12} {1}\n", purpose, count);
}

void SassReport::print(llvm::raw_ostream &os) const {
  os << "kernel:        " << kernel << "\n";
  if (registers != 0)
    os << formatv("registers:     {0}, {1} bytes spilled\n", registers,
                  spillBytes);
  if (loop) {
    os << formatv("local memory:  {0} stores, {1} loads\n", localStores,
                  localLoads);
    printCounts(os, "hot loop:    ", *loop);
    os << "waits:         ";
    printWaits(os, *loop);
    os << " exponentials\n";
    if (ptxLoop) {
      os << "  in the PTX:  ";
      printWaits(os, *ptxLoop);
      os << " exponentials\n";
    }
    os << formatv("rare path:     {0} instructions inside of the hot loop, {1} "
                  "outside\n",
                  loop->rareInside, loop->rareOutside);
  }
  if (softmaxLoop)
    printCounts(os, "softmax loop:", *softmaxLoop);
  if (epilogue)
    printCounts(os, "epilogue:    ", *epilogue);
  if (blockLoops && !blockLoops->empty()) {
    os << "loops over blocks of keys:\n";
    for (const BlockLoop &each : *blockLoops)
      os << formatv(
          "  {0:x} to {1:x}, {2}: {3} instructions, {4} spill stores, "
          "{5} spill loads\n",
          each.begin, each.end, each.getWork(), each.instructions,
          each.spillStores, each.spillLoads);
  }
  if (remote)
    os << formatv("other CTAs:    {0} arrivals, {1} sends, {2} behind loads on "
                  "their way, of {3} from shared memory\n",
                  remote->arrivals, remote->sends, remote->early.size(),
                  remote->loads);
  for (const std::string &text : notChecked)
    os << "not checked:   " << text << "\n";
  for (const SassFinding &finding : findings)
    os << (finding.isError ? "error: " : "warning: ") << finding.text << "\n";
}
