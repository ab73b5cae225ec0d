//===- SassCounts.cpp - Machine instructions of a launch ------------------===//

#include "attn/Cost/SassCounts.h"
#include "attn/Target/Assembler.h"
#include "attn/Target/CodeListing.h"
#include "attn/Target/Disassembler.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;

llvm::StringRef mlir::attn::sim::getSassClass(StringRef name) {
  StringRef base = name.split('.').first;
  if (base.ends_with("GMMA") || base.ends_with("MMA"))
    return "tensor";
  if (base == "MUFU" || base == "I2F" || base == "F2I" || base == "F2F" ||
      base == "FRND" || base == "POPC" || base == "FLO" || base == "BREV")
    return "mufu";
  static const char *const fma[] = {"FFMA",  "FADD",  "FMUL",  "IMAD",
                                    "HFMA2", "HADD2", "HMUL2", "FFMA2",
                                    "FADD2", "FMUL2"};
  if (llvm::is_contained(fma, base))
    return "fma";
  if (base == "DFMA" || base == "DADD" || base == "DMUL" || base == "DSETP")
    return "fp64";
  for (StringRef prefix : {"LD", "ST", "ATOM", "RED", "SHFL", "SUTMA", "UTMA",
                           "UBLKCP", "SYNCS", "CCTL", "MATCH"})
    if (base.starts_with(prefix) && base != "REDUX")
      return "lsu";
  for (StringRef prefix :
       {"BRA",        "EXIT",   "BAR",     "BSSY",      "BSYNC",
        "WARP",       "NOP",    "CALL",    "RET",       "DEPBAR",
        "MEMBAR",     "ERRBAR", "YIELD",   "NANOSLEEP", "UCGABAR",
        "B2R",        "S2R",    "CS2R",    "S2UR",      "ELECT",
        "USETMAXREG", "FENCE",  "ACQBULK", "BMOV",      "BRX",
        "JMP",        "KILL",   "BPT",     "PREEXIT",   "ENDCOLLECTIVE"})
    if (base.starts_with(prefix))
      return "control";
  if (base.starts_with("U") && base != "UNPACK")
    return "uniform";
  return "alu";
}

std::string mlir::attn::sim::numberLines(StringRef ptx) {
  std::string result;
  llvm::raw_string_ostream os(result);
  unsigned number = 0;
  bool inBody = false, inSection = false, isContinued = false, hasFile = false;
  while (!ptx.empty()) {
    auto [line, rest] = ptx.split('\n');
    ptx = rest;
    ++number;
    StringRef text = line.split("//").first.trim();
    if (text.starts_with(".section"))
      inSection = true;
    StringRef directive = text.take_until(llvm::isSpace);
    if (inSection || directive == ".loc" || directive == ".file") {
      if (text == "}")
        inSection = false;
      continue;
    }
    if (text == "{")
      inBody = true;
    // A statement begins here, behind a label or brace of its own.
    StringRef head = text.ltrim("{} \t");
    if (inBody && !isContinued && !head.empty() && head[0] != '.' &&
        head[0] != ')' && !head.ends_with(":"))
      os << ".loc 1 " << number << " 1\n";
    os << line << "\n";
    if (!text.empty())
      isContinued =
          !StringRef(";{}:").contains(text.back()) && !text.starts_with(".");
    if (text.starts_with(".address_size") && !hasFile) {
      os << ".file 1 \"kernel.ptx\"\n";
      hasFile = true;
    }
  }
  return result;
}

namespace {

struct Line {
  std::string name;
  unsigned line = 0;
};

/// Instructions between labels and branches.
using Block = std::vector<Line>;

} // namespace

/// Each PTX instruction of these gives one machine instruction, so that their
/// copies tell how often ptxas has unrolled a loop.
static bool isAnchor(StringRef name) {
  StringRef base = name.split('.').first;
  return llvm::StringSwitch<bool>(base)
      .Cases({"LDG", "STG", "LDS", "STS", "LDSM", "STSM", "LDGSTS"}, true)
      .Cases({"HMMA", "IMMA", "HGMMA", "QGMMA", "IGMMA"}, true)
      .Cases({"BAR", "SHFL", "FFMA", "ATOMS", "ATOMG"}, true)
      .Default(false);
}

Expected<SassCounts>
mlir::attn::sim::countListing(StringRef listing, StringRef kernel,
                              const std::map<unsigned, uint64_t> &lines) {
  Expected<CodeListing> code = parseSassListing(listing, kernel);
  if (!code)
    return code.takeError();
  llvm::DenseSet<unsigned> labels;
  for (const auto &label : code->labels)
    labels.insert(label.second);
  std::vector<Block> blocks(1);
  for (const auto &[i, inst] : llvm::enumerate(code->instructions)) {
    if (labels.contains(i))
      blocks.emplace_back();
    blocks.back().push_back({inst.opcode, inst.line});
    if (inst.flow != CodeInstruction::Flow::Next)
      blocks.emplace_back();
  }
  std::map<std::pair<unsigned, std::string>, uint64_t> copies;
  for (const Block &block : blocks)
    for (const Line &inst : block)
      ++copies[{inst.line, inst.name}];
  SassCounts result;
  for (const Block &block : blocks) {
    std::vector<uint64_t> anchored, all;
    for (const Line &inst : block) {
      auto it = lines.find(inst.line);
      uint64_t count = it == lines.end() ? 0 : it->second;
      all.push_back(count);
      if (isAnchor(inst.name))
        anchored.push_back(count / copies[{inst.line, inst.name}]);
    }
    std::vector<uint64_t> &votes = anchored.empty() ? all : anchored;
    if (votes.empty())
      continue;
    auto middle = votes.begin() + votes.size() / 2;
    std::nth_element(votes.begin(), middle, votes.end());
    for (const Line &inst : block) {
      // ptxas pads functions behind their end.
      if (StringRef(inst.name) == "NOP")
        continue;
      result.classes[getSassClass(inst.name).str()] += *middle;
      result.total += *middle;
    }
  }
  return std::move(result);
}

/// Runs ptxas once; the error of PTX that it does not take is its first one.
static Expected<AssemblerResult>
assembleOnce(StringRef ptx, StringRef chip,
             const std::vector<std::string> &arguments) {
  AssemblerOptions options;
  options.chip = chip.str();
  options.arguments = arguments;
  Expected<AssemblerResult> result = assemblePTX(ptx, options);
  if (!result || !result->cubin.empty())
    return result;
  auto error =
      llvm::find_if(result->log.messages, [](const AssemblerMessage &message) {
        return message.severity == AssemblerMessage::Severity::Error;
      });
  assert(error != result->log.messages.end() && "assemblePTX promises one");
  return createStringError("ptxas: " + error->text);
}

/// Where ptxas does not know the version of the PTX, tries the one that it
/// knows: most kernels need nothing of a new one. `version` says which it was.
static Expected<AssemblerResult>
assemble(StringRef ptx, StringRef chip,
         const std::vector<std::string> &arguments, bool mayLowerVersion,
         std::string &version) {
  Expected<AssemblerResult> result = assembleOnce(ptx, chip, arguments);
  if (result || !mayLowerVersion)
    return result;
  std::string error = llvm::toString(result.takeError());
  // "Unsupported .version 9.4; current version is '9.0'"
  StringRef known =
      StringRef(error).split("current version is '").second.split('\'').first;
  size_t at = ptx.find(".version ");
  if (known.empty() || at == StringRef::npos)
    return createStringError(error);
  size_t end = ptx.find('\n', at);
  std::string lowered =
      (ptx.take_front(at) + ".version " + known + ptx.substr(end)).str();
  result = assembleOnce(lowered, chip, arguments);
  if (!result)
    return createStringError(error + "; as " + known + ": " +
                             llvm::toString(result.takeError()));
  version = known.str();
  return result;
}

Expected<RegisterCount> mlir::attn::sim::countRegisters(StringRef ptx,
                                                        StringRef kernel,
                                                        StringRef chip,
                                                        bool mayLowerVersion) {
  std::string version;
  Expected<AssemblerResult> result =
      assemble(ptx, chip, {}, mayLowerVersion, version);
  if (!result)
    return result.takeError();
  for (const FunctionResources &function : result->log.functions)
    if (function.name == kernel)
      return RegisterCount{function.registers,
                           version.empty() ? "ptxas"
                                           : "ptxas, as PTX " + version};
  return createStringError("expected ptxas to report on kernel \"" + kernel +
                           "\", got no line");
}

Expected<SassCounts>
mlir::attn::sim::countSass(StringRef ptx, StringRef kernel, StringRef chip,
                           const std::map<unsigned, uint64_t> &lines) {
  Expected<std::string> nvdisasm = findNvdisasm();
  if (!nvdisasm)
    return nvdisasm.takeError();
  std::string version;
  Expected<AssemblerResult> assembled =
      assemble(numberLines(ptx), chip, {"-lineinfo"},
               /*mayLowerVersion=*/true, version);
  if (!assembled)
    return assembled.takeError();
  Expected<std::string> listing = disassemble(assembled->cubin, *nvdisasm);
  if (!listing)
    return listing.takeError();
  Expected<SassCounts> result = countListing(*listing, kernel, lines);
  if (!result)
    return result;
  for (const FunctionResources &function : assembled->log.functions)
    if (function.name == kernel)
      result->registers = function.registers;
  return result;
}

llvm::json::Value SassCounts::toJSON() const {
  llvm::json::Object counts;
  for (const auto &[name, count] : classes)
    counts[name] = count;
  return llvm::json::Object{{"registers", registers},
                            {"total", total},
                            {"classes", std::move(counts)}};
}

void SassCounts::print(llvm::raw_ostream &os) const {
  os << llvm::formatv("machine code:    {0} warp instructions, {1} registers:",
                      total, registers);
  for (const auto &[name, count] : classes)
    os << llvm::formatv(" {0} {1}", name, count);
  os << "\n";
}
