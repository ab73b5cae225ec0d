//===- Report.cpp - What a simulated launch found and counted -------------===//

#include "attn/Simulator/Machine/Report.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

using namespace mlir::attn::sim;
using llvm::raw_ostream;
using llvm::StringRef;

StringRef mlir::attn::sim::stringifyFindingKind(FindingKind kind) {
  switch (kind) {
  case FindingKind::Race:
    return "race";
  case FindingKind::UninitialisedRead:
    return "uninitialised-read";
  case FindingKind::OutOfBounds:
    return "out-of-bounds";
  case FindingKind::UseAfterFree:
    return "use-after-free";
  case FindingKind::Misaligned:
    return "misaligned";
  case FindingKind::ReadOnlyWrite:
    return "read-only-write";
  case FindingKind::BarrierMisuse:
    return "barrier-misuse";
  case FindingKind::MbarrierMisuse:
    return "mbarrier-misuse";
  case FindingKind::PhaseSlip:
    return "phase-slip";
  case FindingKind::EarlyWait:
    return "early-wait";
  case FindingKind::Deadlock:
    return "deadlock";
  case FindingKind::StepLimit:
    return "step-limit";
  case FindingKind::EndlessLoop:
    return "endless-loop";
  case FindingKind::Trap:
    return "trap";
  case FindingKind::InvalidOperation:
    return "invalid-operation";
  case FindingKind::ExitInFlight:
    return "exit-in-flight";
  case FindingKind::TensorMemoryMisuse:
    return "tensor-memory-misuse";
  case FindingKind::RegisterPool:
    return "register-pool";
  }
  llvm_unreachable("all kinds handled");
}

StringRef mlir::attn::sim::stringifySeverity(Severity severity) {
  switch (severity) {
  case Severity::Error:
    return "error";
  case Severity::HwOnly:
    return "hw-only";
  case Severity::Note:
    return "note";
  }
  llvm_unreachable("all severities handled");
}

static llvm::json::Value toJSON(const Site &site) {
  llvm::json::Object o{
      {"ptx_line", site.ptxLine},
      {"text", site.text},
      {"cta", llvm::json::Array{site.cta[0], site.cta[1], site.cta[2]}},
      {"warp", site.warp},
      {"lane", site.lane}};
  if (!site.file.empty()) {
    o["file"] = site.file;
    o["line"] = site.line;
  }
  return o;
}

llvm::json::Value Finding::toJSON() const {
  llvm::json::Object o{{"kind", stringifyFindingKind(kind)},
                       {"severity", stringifySeverity(severity)},
                       {"message", message},
                       {"occurrences", occurrences}};
  if (!hint.empty())
    o["hint"] = hint;
  if (first)
    o["first"] = ::toJSON(*first);
  if (second)
    o["second"] = ::toJSON(*second);
  if (!space.empty()) {
    o["space"] = space;
    o["offset"] = offset;
    o["address"] = address;
    o["bytes"] = bytes;
  }
  if (!buffer.empty())
    o["buffer"] = buffer;
  if (!actors.empty())
    o["actors"] = actors;
  if (!notes.empty()) {
    llvm::json::Array list;
    for (const FindingNote &note : notes)
      list.push_back(llvm::json::Object{{"message", note.message},
                                        {"site", ::toJSON(note.site)}});
    o["notes"] = std::move(list);
  }
  return o;
}

static void printSource(raw_ostream &os, const Site &site) {
  if (!site.file.empty())
    os << " (" << site.file << ':' << site.line << ')';
}

static void printSite(raw_ostream &os, const Site &site) {
  if (!site.text.empty())
    os << '\'' << site.text << "' ";
  os << llvm::formatv("by CTA ({0},{1},{2})", site.cta[0], site.cta[1],
                      site.cta[2]);
  if (site.warp >= 0)
    os << " warp " << site.warp;
  if (site.lane >= 0)
    os << " lane " << site.lane;
  printSource(os, site);
}

static raw_ostream &printSeverity(raw_ostream &os, Severity severity) {
  switch (severity) {
  case Severity::Error:
    return llvm::WithColor::error(os);
  case Severity::HwOnly:
    llvm::WithColor(os, llvm::HighlightColor::Warning)
        << stringifySeverity(severity) << ": ";
    return os;
  case Severity::Note:
    return llvm::WithColor::note(os);
  }
  llvm_unreachable("all severities handled");
}

void Finding::print(raw_ostream &os, StringRef file) const {
  auto place = [&](const std::optional<Site> &site) -> raw_ostream & {
    llvm::WithColor(os, raw_ostream::SAVEDCOLOR, /*Bold=*/true).get()
        << file << ':';
    if (site && site->ptxLine)
      os << site->ptxLine << ':';
    return os << ' ';
  };
  auto note = [&](const std::optional<Site> &site) -> raw_ostream & {
    return llvm::WithColor::note(place(site));
  };
  printSeverity(place(second), severity)
      << stringifyFindingKind(kind) << ": " << message;
  if (!space.empty()) {
    os << " [" << space;
    if (!buffer.empty())
      os << " '" << buffer << '\'';
    os << llvm::formatv(" offset {0}, {1} bytes, address {2:x}]", offset, bytes,
                        address);
  }
  if (occurrences > 1)
    os << " (" << occurrences << " times)";
  os << '\n';
  for (const FindingNote &each : notes) {
    note(each.site) << each.message;
    printSource(os, each.site);
    os << '\n';
  }
  if (second && notes.empty()) {
    printSite(note(second) << "at ", *second);
    os << '\n';
  }
  if (first) {
    printSite(note(first) << "earlier ", *first);
    os << '\n';
  }
  if (!actors.empty())
    note(second) << "the same by " << actors << '\n';
  if (!hint.empty())
    note(std::nullopt) << hint << '\n';
}

void L2Traffic::add(const L2Traffic &other) {
  readBytes += other.readBytes;
  deliveredBytes += other.deliveredBytes;
  writtenBytes += other.writtenBytes;
  atomicBytes += other.atomicBytes;
}

llvm::json::Value L2Traffic::toJSON() const {
  return llvm::json::Object{{"read_bytes", readBytes},
                            {"delivered_bytes", deliveredBytes},
                            {"written_bytes", writtenBytes},
                            {"atomic_bytes", atomicBytes}};
}

void Counters::add(const Counters &other) {
  warpInstructions += other.warpInstructions;
  laneInstructions += other.laneInstructions;
  for (const auto &[name, count] : other.classes)
    classes[name] += count;
  for (const auto &[name, traffic] : other.shared) {
    SharedTraffic &mine = shared[name];
    mine.instructions += traffic.instructions;
    mine.wavefronts += traffic.wavefronts;
    mine.conflicts += traffic.conflicts;
    mine.bytes += traffic.bytes;
  }
  globalLoadInstructions += other.globalLoadInstructions;
  globalStoreInstructions += other.globalStoreInstructions;
  globalLoadSectors += other.globalLoadSectors;
  globalStoreSectors += other.globalStoreSectors;
  globalLoadBytes += other.globalLoadBytes;
  globalStoreBytes += other.globalStoreBytes;
  bulkLoadBytes += other.bulkLoadBytes;
  bulkStoreBytes += other.bulkStoreBytes;
  l2.add(other.l2);
  for (const auto &[name, count] : other.waits) {
    waits[name].waits += count.waits;
    waits[name].stalled += count.stalled;
  }
  mmaInstructions += other.mmaInstructions;
  mmaFlops += other.mmaFlops;
  ex2Lanes += other.ex2Lanes;
  barriers += other.barriers;
}

llvm::json::Value Counters::toJSON() const {
  llvm::json::Object byClass, byShared, byWait;
  for (const auto &[name, count] : waits)
    byWait[name] =
        llvm::json::Object{{"waits", count.waits}, {"stalled", count.stalled}};
  for (const auto &[name, count] : classes)
    byClass[name] = count;
  for (const auto &[name, traffic] : shared)
    byShared[name] = llvm::json::Object{{"instructions", traffic.instructions},
                                        {"wavefronts", traffic.wavefronts},
                                        {"conflicts", traffic.conflicts},
                                        {"bytes", traffic.bytes}};
  return llvm::json::Object{
      {"warp_instructions", warpInstructions},
      {"lane_instructions", laneInstructions},
      {"classes", std::move(byClass)},
      {"shared", std::move(byShared)},
      {"global_load_instructions", globalLoadInstructions},
      {"global_store_instructions", globalStoreInstructions},
      {"global_load_sectors", globalLoadSectors},
      {"global_store_sectors", globalStoreSectors},
      {"global_load_bytes", globalLoadBytes},
      {"global_store_bytes", globalStoreBytes},
      {"bulk_load_bytes", bulkLoadBytes},
      {"bulk_store_bytes", bulkStoreBytes},
      {"l2", l2.toJSON()},
      {"waits", std::move(byWait)},
      {"mma_instructions", mmaInstructions},
      {"mma_flops", mmaFlops},
      {"ex2_lanes", ex2Lanes},
      {"barriers", barriers}};
}

bool RunReport::isClean() const {
  if (!completed)
    return false;
  for (const Finding &finding : findings)
    if (finding.severity == Severity::Error)
      return false;
  return true;
}

uint64_t RunReport::countErrors(FindingKind kind) const {
  uint64_t count = 0;
  for (const Finding &finding : findings)
    count += finding.kind == kind && finding.severity == Severity::Error;
  return count;
}

llvm::json::Value RunReport::toJSON() const {
  llvm::json::Array list;
  for (const Finding &finding : findings)
    list.push_back(finding.toJSON());
  llvm::json::Object object{{"version", 1},
                            {"completed", completed},
                            {"clean", isClean()},
                            {"findings", std::move(list)},
                            {"findings_dropped", findingsDropped},
                            {"counters", counters.toJSON()},
                            {"seconds", seconds}};
  if (!printed.empty())
    object["printed"] = llvm::json::fixUTF8(printed);
  return object;
}

void RunReport::print(raw_ostream &os, StringRef file) const {
  os << printed;
  if (printedDropped)
    os << file << ": note: " << printedDropped << " more bytes were printed\n";
  for (const Finding &finding : findings)
    finding.print(os, file);
  if (findingsDropped)
    llvm::WithColor::note(os << file << ": ")
        << findingsDropped << " more findings\n";
  if (!completed)
    llvm::WithColor::error(os << file << ": ")
        << "the launch did not complete\n";
}
