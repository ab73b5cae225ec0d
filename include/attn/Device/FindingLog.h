//===- FindingLog.h - What a program's launches were found to do -*- C++ -*-==//
//
// Collects the findings of all launches: what has one cause, the same lines of
// the same kernel, is one finding however many launches show it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DEVICE_FINDINGLOG_H
#define ATTN_DEVICE_FINDINGLOG_H

#include "attn/Device/LaunchCosts.h"
#include "attn/Device/StreamOrder.h"
#include "attn/Simulator/Machine/Report.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::attn::device {

/// A finding, and the launches that have shown it.
struct LoggedFinding {
  /// Empty for operations of streams.
  std::string kernel;
  sim::Finding finding;
  /// The first launch, counted from 1, and how many there were.
  uint64_t firstLaunch = 0, launches = 1;
  /// The caller's line at the first one, where it has said so, and of
  /// operations of streams that at the earlier one.
  std::string site, earlierSite;
  /// Why it does not count; empty: it counts.
  std::string suppressed;
};

/// All launches of a kernel.
struct KernelSummary {
  uint64_t launches = 0, warpInstructions = 0, findings = 0;
  double seconds = 0; ///< of the host
  /// Estimates of all launches; the last one's limiter, or why there is none.
  double microseconds = 0;
  std::string limiter, refusal;
};

/// One line of a file of suppressions.
struct Suppression {
  std::string kernel; ///< with '*' for anything
  std::string kind;   ///< as stringifyFindingKind, or '*'
  std::string place;  ///< the end of "file:line", or '*'
  std::string reason;
};

/// Reads suppressions: "kernel kind place: reason" on each line, '#' for
/// comments. The error names the line.
llvm::Expected<std::vector<Suppression>>
parseSuppressions(llvm::StringRef text, llvm::StringRef path);

/// Forms of a report.
enum class ReportForm { Text, JSON, SARIF, GitHub };
/// Returns the form of that name ("text", "json", "sarif" or "github").
llvm::Expected<ReportForm> parseReportForm(llvm::StringRef name);
/// Returns the form that the end of a file's name says; text is what others
/// are.
ReportForm getReportForm(llvm::StringRef path);

class FindingLog {
public:
  void setSuppressions(std::vector<Suppression> list) {
    suppressions = std::move(list);
  }
  /// Sets what stands in front of the kernel in reports for people, as the chip
  /// does where several runs are put together.
  void setLabel(llvm::StringRef text) { label = text.str(); }

  /// Adds a launch of a kernel, and returns how many there are by then.
  uint64_t addLaunch(llvm::StringRef kernel, llvm::StringRef site,
                     const sim::RunReport &report,
                     const LaunchCost &cost = LaunchCost());
  /// Adds races between operations of streams.
  void addRaces(llvm::ArrayRef<OrderRace> races, llvm::StringRef buffer);

  llvm::ArrayRef<LoggedFinding> getFindings() const { return findings; }
  const std::map<std::string, KernelSummary> &getKernels() const {
    return kernels;
  }
  /// Returns the findings that count, of at least this severity.
  uint64_t count(sim::Severity least = sim::Severity::Error) const;

  /// Writes the report; `from` skips what was logged before.
  void print(llvm::raw_ostream &os, ReportForm form, size_t from = 0) const;
  /// Writes the table of kernels.
  void printTable(llvm::raw_ostream &os) const;

private:
  void add(LoggedFinding logged);
  void printText(llvm::raw_ostream &os, size_t from) const;
  llvm::json::Value toJSON(size_t from) const;
  llvm::json::Value toSARIF(size_t from) const;
  void printGitHub(llvm::raw_ostream &os, size_t from) const;
  /// Returns the message with its kernel and memory.
  std::string describe(const LoggedFinding &each) const;

  std::vector<Suppression> suppressions;
  std::string label;
  std::vector<LoggedFinding> findings;
  std::map<std::string, size_t> byCause;
  std::map<std::string, KernelSummary> kernels;
  uint64_t launches = 0;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_FINDINGLOG_H
