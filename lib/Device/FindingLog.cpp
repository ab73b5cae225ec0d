//===- FindingLog.cpp - What a program's launches were found to do --------===//

#include "attn/Device/FindingLog.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::createStringError;
using llvm::Expected;
using llvm::formatv;
using llvm::StringRef;
namespace json = llvm::json;

/// The line of the source where there is one, else that of the PTX.
static std::string describePlace(const std::optional<sim::Site> &site) {
  if (!site)
    return "";
  if (site->file.empty())
    return formatv("ptx:{0}", site->ptxLine);
  return formatv("{0}:{1}", site->file, site->line);
}

/// Tells causes apart: kernels of several modules may have one name.
static std::string describeCause(const std::optional<sim::Site> &site) {
  std::string place = describePlace(site);
  return site && site->file.empty() ? place + ' ' + site->text : place;
}

Expected<std::vector<Suppression>>
mlir::attn::device::parseSuppressions(StringRef text, StringRef path) {
  std::vector<Suppression> list;
  unsigned number = 0;
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    ++number;
    line = line.split('#').first.trim();
    if (line.empty())
      continue;
    auto [what, reason] = line.split(": ");
    llvm::SmallVector<StringRef, 3> words;
    what.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    if (words.size() != 3 || reason.trim().empty())
      return createStringError(formatv(
          "{0}:{1}: expected a suppression 'kernel kind place: reason', got "
          "'{2}'",
          path, number, line));
    list.push_back(
        {words[0].str(), words[1].str(), words[2].str(), reason.trim().str()});
  }
  return list;
}

Expected<ReportForm> mlir::attn::device::parseReportForm(StringRef name) {
  if (name == "text")
    return ReportForm::Text;
  if (name == "json")
    return ReportForm::JSON;
  if (name == "sarif")
    return ReportForm::SARIF;
  if (name == "github")
    return ReportForm::GitHub;
  return createStringError("expected a report as text, json, sarif or github, "
                           "got '" +
                           name + "'");
}

ReportForm mlir::attn::device::getReportForm(StringRef path) {
  Expected<ReportForm> form = parseReportForm(path.rsplit('.').second);
  if (form)
    return *form;
  llvm::consumeError(form.takeError());
  return ReportForm::Text;
}

static bool matches(StringRef pattern, StringRef text) {
  Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  if (glob)
    return glob->match(text);
  llvm::consumeError(glob.takeError());
  return pattern == text;
}

void FindingLog::add(LoggedFinding logged) {
  const sim::Finding &finding = logged.finding;
  std::string first = describePlace(finding.first);
  std::string second = describePlace(finding.second);
  std::string cause = logged.kernel + '\n' +
                      sim::stringifyFindingKind(finding.kind).str() + '\n' +
                      finding.space + '\n' + describeCause(finding.second) +
                      '\n' + describeCause(finding.first);
  // Operations of streams have no lines of a kernel.
  if (logged.kernel.empty() || (second.empty() && first.empty()))
    cause += '\n' + finding.message;
  auto [it, isNew] = byCause.insert({cause, findings.size()});
  if (!isNew) {
    LoggedFinding &known = findings[it->second];
    known.finding.occurrences += finding.occurrences;
    known.launches += known.firstLaunch != logged.firstLaunch;
    // The worst of what one cause does is what counts.
    known.finding.severity = std::min(known.finding.severity, finding.severity);
    return;
  }
  for (const Suppression &each : suppressions) {
    bool isPlace = each.place == "*" ||
                   StringRef(second).ends_with(each.place) ||
                   StringRef(first).ends_with(each.place) ||
                   StringRef(logged.site).ends_with(each.place);
    if (isPlace && matches(each.kernel, logged.kernel) &&
        matches(each.kind, sim::stringifyFindingKind(finding.kind)))
      logged.suppressed = each.reason;
  }
  findings.push_back(std::move(logged));
}

uint64_t FindingLog::addLaunch(StringRef kernel, StringRef site,
                               const sim::RunReport &report,
                               const LaunchCost &cost) {
  ++launches;
  KernelSummary &summary = kernels[kernel.str()];
  ++summary.launches;
  summary.warpInstructions += report.counters.warpInstructions;
  summary.seconds += report.seconds;
  summary.microseconds += cost.microseconds;
  summary.limiter = cost.limiter;
  summary.refusal = cost.refusal;
  size_t before = findings.size();
  for (const sim::Finding &finding : report.findings)
    add({kernel.str(), finding, launches, 1, site.str(), "", ""});
  summary.findings += findings.size() - before;
  return launches;
}

void FindingLog::addRaces(llvm::ArrayRef<OrderRace> races, StringRef buffer) {
  for (const OrderRace &race : races) {
    sim::Finding finding;
    finding.kind = sim::FindingKind::Race;
    finding.space = "global";
    finding.buffer = buffer.str();
    finding.address = race.begin;
    finding.bytes = race.end - race.begin;
    auto name = [](const Operation &operation) {
      return operation.site.empty() ? operation.what
                                    : operation.what + " at " + operation.site;
    };
    finding.message =
        formatv("{0} {1} what {2} {3}, and nothing orders the two",
                name(race.later), race.laterWrites ? "writes" : "reads",
                name(race.earlier), race.earlierWrites ? "writes" : "reads");
    finding.hint = "an event that is recorded behind the earlier one and "
                   "waited for by the later one, or a wait of the host between "
                   "them, would order them";
    add({"", std::move(finding), 0, 1, race.later.site, race.earlier.site, ""});
  }
}

uint64_t FindingLog::count(sim::Severity least) const {
  return llvm::count_if(findings, [&](const LoggedFinding &each) {
    return each.suppressed.empty() && each.finding.severity <= least;
  });
}

void FindingLog::printText(llvm::raw_ostream &os, size_t from) const {
  for (const LoggedFinding &each : llvm::drop_begin(findings, from)) {
    if (!each.suppressed.empty())
      continue;
    std::string name = label.empty() ? "" : label + ": ";
    each.finding.print(os,
                       name + (each.kernel.empty() ? "streams" : each.kernel));
    if (each.firstLaunch)
      os << formatv("{0}: note: launch {1}{2}{3}{4}\n", each.kernel,
                    each.firstLaunch,
                    each.launches > 1
                        ? formatv(" and {0} others", each.launches - 1).str()
                        : "",
                    each.site.empty() ? "" : " at ", each.site);
  }
}

json::Value FindingLog::toJSON(size_t from) const {
  json::Array list, table;
  for (const LoggedFinding &each : llvm::drop_begin(findings, from)) {
    json::Value value = each.finding.toJSON();
    json::Object &object = *value.getAsObject();
    object["kernel"] = each.kernel;
    object["first_launch"] = each.firstLaunch;
    object["launches"] = each.launches;
    if (!each.site.empty())
      object["site"] = json::fixUTF8(each.site);
    if (!each.earlierSite.empty())
      object["earlier_site"] = json::fixUTF8(each.earlierSite);
    if (!each.suppressed.empty())
      object["suppressed"] = each.suppressed;
    list.push_back(std::move(value));
  }
  for (const auto &[name, summary] : kernels) {
    json::Object row{{"kernel", name},
                     {"launches", summary.launches},
                     {"warp_instructions", summary.warpInstructions},
                     {"findings", summary.findings},
                     {"seconds", summary.seconds}};
    if (!summary.limiter.empty()) {
      row["estimated_microseconds"] = summary.microseconds;
      row["limiter"] = summary.limiter;
    }
    if (!summary.refusal.empty())
      row["estimate_refused"] = json::fixUTF8(summary.refusal);
    table.push_back(std::move(row));
  }
  return json::Object{{"version", 1},
                      {"findings", std::move(list)},
                      {"kernels", std::move(table)}};
}

/// Levels of SARIF and commands of GitHub for severities.
static StringRef getLevel(sim::Severity severity) {
  switch (severity) {
  case sim::Severity::Error:
    return "error";
  case sim::Severity::HwOnly:
    return "warning";
  case sim::Severity::Note:
    return "note";
  }
  llvm_unreachable("all severities handled");
}

namespace {
/// A line of a file.
struct Place {
  std::string file;
  unsigned line = 1;
};
} // namespace

/// Takes "file:line" apart.
static Place parseSite(StringRef site) {
  auto [file, number] = site.rsplit(':');
  Place place{file.str(), 1};
  if (number.getAsInteger(10, place.line))
    place.file = site.str();
  return place;
}

/// Returns the line of a source, or else of the PTX.
static Place getPlace(const sim::Site &site) {
  bool isSource = !site.file.empty();
  return {isSource ? site.file : "kernel.ptx",
          std::max(1u, isSource ? site.line : site.ptxLine)};
}

/// Returns true where the line of a source is known.
static bool hasLine(const sim::Finding &finding) {
  return finding.second && !finding.second->file.empty();
}

/// Returns where a finding belongs: its line, that of the launch, or that of
/// the PTX.
static Place getPlace(const LoggedFinding &each) {
  if (!hasLine(each.finding) && !each.site.empty())
    return parseSite(each.site);
  return getPlace(each.finding.second.value_or(sim::Site()));
}

static json::Value locate(const Place &place) {
  return json::Object{
      {"physicalLocation",
       json::Object{{"artifactLocation",
                     json::Object{{"uri", json::fixUTF8(place.file)}}},
                    {"region", json::Object{{"startLine", place.line}}}}}};
}

std::string FindingLog::describe(const LoggedFinding &each) const {
  std::string text;
  for (StringRef name : {StringRef(label), StringRef(each.kernel)})
    if (!name.empty())
      text += name.str() + ": ";
  text += each.finding.message;
  if (!each.finding.buffer.empty())
    text += formatv(" ('{0}', offset {1})", each.finding.buffer,
                    each.finding.offset);
  return text;
}

json::Value FindingLog::toSARIF(size_t from) const {
  json::Array results;
  for (const LoggedFinding &each : llvm::drop_begin(findings, from)) {
    const sim::Finding &finding = each.finding;
    json::Object result{
        {"ruleId", sim::stringifyFindingKind(finding.kind)},
        {"level", getLevel(finding.severity)},
        {"message", json::Object{{"text", json::fixUTF8(describe(each))}}}};
    result["locations"] = json::Array{locate(getPlace(each))};
    json::Array related;
    if (finding.first)
      related.push_back(locate(getPlace(*finding.first)));
    for (StringRef site : {hasLine(finding) ? StringRef(each.site) : "",
                           StringRef(each.earlierSite)})
      if (!site.empty())
        related.push_back(locate(parseSite(site)));
    if (!related.empty())
      result["relatedLocations"] = std::move(related);
    if (!each.suppressed.empty())
      result["suppressions"] = json::Array{json::Object{
          {"kind", "external"}, {"justification", each.suppressed}}};
    results.push_back(std::move(result));
  }
  return json::Object{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       json::Array{json::Object{
           {"tool", json::Object{{"driver", json::Object{{"name", "attn"}}}}},
           {"results", std::move(results)}}}}};
}

void FindingLog::printGitHub(llvm::raw_ostream &os, size_t from) const {
  for (const LoggedFinding &each : llvm::drop_begin(findings, from)) {
    if (!each.suppressed.empty())
      continue;
    StringRef level = getLevel(each.finding.severity);
    Place place = getPlace(each);
    os << formatv("::{0} file={1},line={2},title={3}::{4}\n",
                  level == "note" ? "notice" : level, place.file, place.line,
                  sim::stringifyFindingKind(each.finding.kind), describe(each));
  }
}

void FindingLog::print(llvm::raw_ostream &os, ReportForm form,
                       size_t from) const {
  switch (form) {
  case ReportForm::Text:
    return printText(os, from);
  case ReportForm::JSON:
    os << formatv("{0:2}\n", toJSON(from));
    return;
  case ReportForm::SARIF:
    os << formatv("{0:2}\n", toSARIF(from));
    return;
  case ReportForm::GitHub:
    return printGitHub(os, from);
  }
}

void FindingLog::printTable(llvm::raw_ostream &os) const {
  os << formatv("{0,-40} {1,8} {2,18} {3,9} {4,8}\n", "kernel", "launches",
                "warp instructions", "seconds", "findings");
  for (const auto &[name, summary] : kernels)
    os << formatv("{0,-40} {1,8} {2,18} {3,9:F3} {4,8}\n", name,
                  summary.launches, summary.warpInstructions, summary.seconds,
                  summary.findings);
}
