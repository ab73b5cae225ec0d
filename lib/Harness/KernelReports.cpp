//===- KernelReports.cpp - What instrumented kernels report ---------------===//
//
// Records of attn_reports as docs/Instrument.md has them.
//
//===----------------------------------------------------------------------===//

#include "KernelReports.h"
#include "attn/Support/ReportLayout.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cstring>

using namespace mlir::attn::reports;
using namespace mlir::attn::sim;
using llvm::StringRef;

namespace {

/// A record that was filled.
struct Record {
  uint32_t count, cta, warp, slot;
  int32_t expected, seen;
  uint32_t other;
};

} // namespace

static std::string describe(const llvm::json::Object &site,
                            const Record &record) {
  auto text = [&](StringRef name) { return site.getString(name).value_or(""); };
  StringRef check = text("check");
  std::string barrier =
      llvm::formatv("'{0}'[{1}]", text("barrier"), record.slot);
  std::string place = llvm::formatv("'{0}'[{1}]", text("buffer"), record.slot);
  std::string who =
      llvm::formatv("warp {0} of CTA {1}", record.warp, record.cta);
  if (check == "slip")
    return llvm::formatv("{0} sees phase {1} of {2} when {3} phases are "
                         "complete",
                         who, record.expected, barrier, record.seen);
  if (check == "hang")
    return llvm::formatv("{0} waits for phase {1} of {2}, which has {3} "
                         "signals, and gives up",
                         who, record.expected, barrier, record.seen);
  if (check == "signal in the wrong phase")
    return llvm::formatv("signal {0} of {1} to {2} counts in phase {3}",
                         record.expected, who, barrier, record.seen);
  if (check == "signal of another slot")
    return llvm::formatv("{0} copies to {1} and signals slot {2} of '{3}'", who,
                         place, record.seen, text("barrier"));
  if (check == "write to a slot in use")
    return llvm::formatv("{0} writes {1}, which is free after phase {2} of "
                         "{3}, and has waited for phase {4}",
                         who, place, record.expected, barrier, record.seen);
  if (check == "read of a slot not waited for")
    return llvm::formatv("{0} reads {1}, which is written in phase {2} of {3}, "
                         "and has waited for phase {4}",
                         who, place, record.expected, barrier, record.seen);
  return llvm::formatv("{0} reads {1} after its signal {2} to {3}", who, place,
                       record.seen - 1, barrier);
}

std::vector<std::string>
mlir::attn::sim::readKernelReports(const RunReport &run) {
  std::vector<std::string> texts;
  auto words = run.variables.find(kReportsName.str());
  auto sites = run.variables.find(kSitesName.str());
  if (words == run.variables.end() || sites == run.variables.end())
    return texts;
  StringRef json(reinterpret_cast<const char *>(sites->second.data()),
                 sites->second.size());
  llvm::Expected<llvm::json::Value> parsed =
      llvm::json::parse(json.take_until([](char c) { return c == 0; }));
  const llvm::json::Array *list = parsed ? parsed->getAsArray() : nullptr;
  if (!list) {
    if (!parsed)
      llvm::consumeError(parsed.takeError());
    return {"variable attn_report_sites: expected a JSON list"};
  }
  auto placeOf = [&](uint32_t index) -> std::string {
    const llvm::json::Object *site =
        index < list->size() ? (*list)[index].getAsObject() : nullptr;
    if (!site)
      return "?";
    StringRef location = site->getString("location").value_or("");
    StringRef op = site->getString("op").value_or("");
    return location.empty()
               ? llvm::formatv("{0} of partition '{1}'", op,
                               site->getString("partition").value_or(""))
               : location.str();
  };
  for (size_t index = 0; index < list->size(); ++index) {
    Record record;
    size_t begin = 4 * (kHeaderWords + index * kRecordWords);
    if (begin + sizeof record > words->second.size())
      break;
    std::memcpy(&record, words->second.data() + begin, sizeof record);
    const llvm::json::Object *site = (*list)[index].getAsObject();
    if (record.count == 0 || !site)
      continue;
    std::string text = llvm::formatv("{0}: {1}: {2}", placeOf(index),
                                     site->getString("check").value_or(""),
                                     describe(*site, record));
    if (record.other != 0)
      text += "; the last signal came from " + placeOf(record.other - 1);
    if (record.count > 1)
      text += llvm::formatv(" ({0} times)", record.count);
    texts.push_back(std::move(text));
  }
  return texts;
}
