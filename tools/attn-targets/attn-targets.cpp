//===- attn-targets.cpp - Prints the target table and the form table ------===//

#include "Tool/Tool.h"
#include "attn/Target/CycleTable.h"
#include "attn/Target/FormTable.h"
#include "attn/Target/ToolMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::attn;
namespace cl = llvm::cl;

enum class Format { Markdown, JSON };

/// One line of the target table: what it is called, its key in JSON, its value.
struct Fact {
  llvm::StringRef title;
  llvm::StringRef key;
  double value;
};

static std::vector<Fact> getFacts(const TargetRow &row) {
  return {
      {"Compute capability of its instructions, times ten",
       "instruction_capability", double(row.instructionCapability)},
      {"Shared memory per SM (bytes)", "shared_bytes_per_sm",
       double(row.sharedBytesPerSM)},
      {"Shared memory per CTA (bytes)", "shared_bytes_per_cta",
       double(row.sharedBytesPerCTA)},
      {"Shared memory reserved per CTA (bytes)", "shared_bytes_reserved",
       double(row.sharedBytesReserved)},
      {"Registers per SM", "registers_per_sm", double(row.registersPerSM)},
      {"Registers per thread", "registers_per_thread",
       double(row.registersPerThread)},
      {"Register allocation unit", "register_allocation_unit",
       double(row.registerAllocationUnit)},
      {"Threads per CTA", "max_threads_per_cta", double(row.maxThreadsPerCTA)},
      {"Threads per SM", "max_threads_per_sm", double(row.maxThreadsPerSM)},
      {"Warps per SM", "max_warps_per_sm", double(row.maxWarpsPerSM)},
      {"CTAs per SM", "max_ctas_per_sm", double(row.maxCTAsPerSM)},
      {"CTAs per cluster", "max_cluster_size", double(row.maxClusterSize)},
      {"TMEM columns", "tmem_columns", double(row.tmemColumns)},
      {"Named barriers per CTA", "named_barriers", double(row.namedBarriers)},
      {"Tensor FLOP per clock, 16 bits", "tensor_flop_f16",
       double(row.tensorFlopF16)},
      {"Tensor FLOP per clock, fp8", "tensor_flop_fp8",
       double(row.tensorFlopFp8)},
      {"Tensor FLOP per clock, mma.sync", "mma_sync_flop_f16",
       double(row.mmaSyncFlopF16)},
      {"Tensor FLOP per clock, mma.sync on fp8 (0: converted)",
       "mma_sync_flop_fp8", double(row.mmaSyncFlopFp8)},
      {"Exponentials per clock", "exp_per_clock", double(row.expPerClock)},
      {"FMA per clock", "fma_per_clock", double(row.fmaPerClock)},
      {"Warp instructions per clock", "issue_per_clock",
       double(row.issuePerClock)},
      {"Shared memory bytes per clock", "shared_bytes_per_clock",
       double(row.sharedBytesPerClock)},
      {"L2 bytes per clock", "l2_bytes_per_clock", double(row.l2BytesPerClock)},
      {"SMs", "sm_count", double(row.smCount)},
      {"SMs in clusters of 2 (0: not known)", "sm_count_in_pairs",
       double(row.smCountInPairs)},
      {"SMs in clusters of 4 (0: not known)", "sm_count_in_fours",
       double(row.smCountInFours)},
      {"Clock (MHz)", "clock_mhz", double(row.clockMHz)},
      {"Device memory (GB/s)", "dram_gb_per_second",
       double(row.dramGBPerSecond)},
      {"L2 (MiB)", "l2_mib", double(row.l2Bytes >> 20)},
      {"Power limit (W)", "power_watts", double(row.powerWatts)},
      {"Energy per tensor FLOP (pJ)", "picojoule_per_flop",
       row.picojoulePerFlop},
      {"Energy per lane instruction (pJ)", "picojoule_per_lane_instruction",
       row.picojoulePerLaneInstruction},
      {"Energy per L2 byte (pJ)", "picojoule_per_l2_byte",
       row.picojoulePerL2Byte},
  };
}

static std::string formatValue(double value) {
  return value == uint64_t(value) ? std::to_string(uint64_t(value))
                                  : llvm::formatv("{0:f2}", value).str();
}

/// Prints one row of a Markdown table: `title`, then a cell for each target.
template <typename Cell>
static void printRow(llvm::raw_ostream &os, llvm::StringRef title, Cell cell) {
  os << "| " << title;
  for (const TargetRow &row : getTargets())
    os << " | " << cell(row);
  os << " |\n";
}

static void printHeader(llvm::raw_ostream &os, llvm::StringRef title) {
  printRow(os, title, [](const TargetRow &row) { return row.chip; });
  os << "|---";
  for (size_t i = 0; i != getTargets().size(); ++i)
    os << "|---";
  os << "|\n";
}

static bool isSame(const CycleEntry &a, const CycleEntry &b) {
  return a.value == b.value && a.evidence == b.evidence &&
         a.source == b.source && a.others == b.others;
}

/// A line for each number and each group of chips for which the same is known.
static void printCycleNumbers(llvm::raw_ostream &os) {
  os << "\n## Numbers of the cycle model\n\n"
        "| Number | Key | Chips | Value | Known | Or | Source |\n"
        "|---|---|---|---|---|---|---|\n";
  for (unsigned i = 0; i != numCycleNumbers; ++i) {
    auto number = static_cast<CycleNumber>(i);
    std::vector<std::pair<const CycleEntry *, std::string>> groups;
    for (const TargetRow &row : getTargets()) {
      const CycleEntry &entry = getCycleTable(row)[number];
      if (entry.isAbsent())
        continue;
      auto known = llvm::find_if(groups, [&](const auto &group) {
        return isSame(*group.first, entry);
      });
      if (known == groups.end())
        groups.emplace_back(&entry, row.chip.str());
      else
        known->second += ", " + row.chip.str();
    }
    for (const auto &[entry, chips] : groups) {
      std::vector<std::string> others;
      for (double other : entry->others)
        others.push_back(formatValue(other));
      os << llvm::formatv("| {0} | {1} | {2} | {3} | {4} | {5} | {6} |\n",
                          getCycleTitle(number), getCycleKey(number), chips,
                          formatValue(entry->value),
                          getEvidenceName(entry->evidence),
                          llvm::join(others, ", "), entry->source);
    }
  }
}

static void printMarkdown(llvm::raw_ostream &os) {
  os << "## Targets\n\n";
  printHeader(os, "");
  printRow(os, "Board", [](const TargetRow &row) { return row.board; });
  printRow(os, "Least PTX version",
           [](const TargetRow &row) { return formatPTXVersion(row.minPTX); });
  printRow(os, "Default PTX version", [](const TargetRow &row) {
    return formatPTXVersion(row.defaultPTX);
  });
  std::vector<Fact> titles = getFacts(getTargets().front());
  for (size_t i = 0; i != titles.size(); ++i)
    printRow(os, titles[i].title, [&](const TargetRow &row) {
      return formatValue(getFacts(row)[i].value);
    });
  printCycleNumbers(os);
  os << "\n## Capabilities\n\n";
  printHeader(os, "Capability");
  for (unsigned i = 0; i != numCapabilities; ++i) {
    auto capability = static_cast<Capability>(i);
    printRow(os, getCapabilityName(capability), [&](const TargetRow &row) {
      return row.has(capability) ? "yes" : "";
    });
  }
  os << "\n## Instruction forms\n\n";
  printHeader(os, "Form");
  for (const Form &form : getForms())
    printRow(os, form.name, [&](const TargetRow &row) {
      return isAvailable(form, row) ? formatPTXVersion(getLeastPTX(form, row))
                                    : "";
    });
}

static void printCycleEntry(llvm::json::OStream &json, const TargetRow &row,
                            CycleNumber number) {
  const CycleEntry &entry = getCycleTable(row)[number];
  json.attributeObject(getCycleKey(number), [&] {
    json.attribute("value", entry.value);
    json.attribute("known", getEvidenceName(entry.evidence));
    json.attribute("source", entry.source);
    json.attributeArray("others", [&] {
      for (double other : entry.others)
        json.value(other);
    });
  });
}

static void printJSON(llvm::raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attributeArray("targets", [&] {
      for (const TargetRow &row : getTargets())
        json.object([&] {
          json.attribute("chip", row.chip);
          json.attribute("board", row.board);
          json.attribute("min_ptx", row.minPTX);
          json.attribute("default_ptx", row.defaultPTX);
          for (const Fact &fact : getFacts(row))
            json.attribute(fact.key, fact.value);
          json.attributeObject("cycle_numbers", [&] {
            for (unsigned i = 0; i != numCycleNumbers; ++i)
              printCycleEntry(json, row, static_cast<CycleNumber>(i));
          });
          json.attributeArray("capabilities", [&] {
            for (unsigned i = 0; i != numCapabilities; ++i)
              if (row.capabilities[i])
                json.value(getCapabilityName(static_cast<Capability>(i)));
          });
        });
    });
    json.attributeArray("forms", [&] {
      for (const Form &form : getForms())
        json.object([&] {
          json.attribute("name", form.name);
          json.attribute("needs", getCapabilityName(form.needs));
          json.attribute("chips", getCapabilityChips(form.needs));
          json.attribute("ptx", form.ptx);
        });
    });
  });
  os << "\n";
}

int main(int argc, char **argv) {
  Tool tool(argc, argv, "attn-targets");
  cl::OptionCategory category("Output");
  cl::opt<Format> format(
      "format", cl::cat(category), cl::desc("How to print"),
      cl::init(Format::Markdown),
      cl::values(clEnumValN(Format::Markdown, "markdown", "Markdown tables"),
                 clEnumValN(Format::JSON, "json", "JSON")));
  tool.addValues(format);
  tool.parse("attn-targets - what is known about the targets, and which "
             "instruction form needs which PTX version on each of them\n",
             &category, /*withLibraries=*/false);
  if (format == Format::JSON)
    printJSON(llvm::outs());
  else
    printMarkdown(llvm::outs());
  llvm::Error error = flushOutput();
  if (!error)
    return 0;
  llvm::WithColor::error(llvm::errs(), "attn-targets")
      << llvm::toString(std::move(error)) << "\n";
  return 1;
}
