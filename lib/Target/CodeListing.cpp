//===- CodeListing.cpp - PTX and machine code as lists of code ------------===//

#include "attn/Target/CodeListing.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::attn;
using llvm::StringRef;
using Flow = CodeInstruction::Flow;

/// Cuts the guard "@!P0 " off the front of `code`.
static std::string takeGuard(StringRef &code) {
  if (!code.consume_front("@"))
    return "";
  auto [guard, rest] = code.split(' ');
  code = rest.ltrim();
  return guard.str();
}

//===----------------------------------------------------------------------===//
// Machine code
//===----------------------------------------------------------------------===//

/// The label in "`(.L_x_0)", whatever stands before it.
static StringRef getSassTarget(StringRef operands) {
  return operands.rsplit("`(").second.split(')').first;
}

static void setSassFlow(CodeInstruction &inst) {
  StringRef base = inst.getBase();
  if (base == "EXIT" || base == "RET" || base == "BRX" || base == "JMX") {
    inst.flow = Flow::End;
    inst.conditional = !inst.guard.empty();
    return;
  }
  StringRef target = getSassTarget(inst.operands);
  // ptxas leaves loops by calls of their ends, which never return.
  bool isBranch = base == "BRA" || base == "JMP" ||
                  (base == "CALL" && target.starts_with(".L_"));
  if (!isBranch)
    return;
  inst.flow = Flow::Branch;
  inst.target = target.str();
  // "BRA.U !UP0, `(.L_x_0)" and "BRA.DIV UR4, `(.L_x_0)".
  StringRef condition = StringRef(inst.operands).split("`(").first.trim(", ");
  if (inst.guard.empty())
    inst.guard = condition.str();
  inst.conditional = !inst.guard.empty();
}

/// Reads "/* 0x000eb00000000200 */", the upper half of an instruction's word,
/// of which the bits from 41 on tell the scheduler what to do: 4 bits of
/// cycles, 1 of yielding, 3 each of the scoreboards for results and for
/// operands (7: none), 6 of those to wait for.
static std::optional<CodeScoreboards> parseScoreboards(StringRef row) {
  uint64_t word = 0;
  if (!row.consume_front("/* 0x") || row.consumeInteger(16, word) ||
      row.trim() != "*/")
    return std::nullopt;
  uint64_t control = word >> 41;
  CodeScoreboards boards;
  if (unsigned written = (control >> 5) & 7; written < 6)
    boards.written = written;
  boards.awaited = (control >> 11) & 0x3f;
  return boards;
}

llvm::Expected<CodeListing> mlir::attn::parseSassListing(StringRef text,
                                                         StringRef kernel) {
  CodeListing listing;
  unsigned line = 0;
  bool inKernel = false, found = false;
  while (!text.empty()) {
    auto [raw, rest] = text.split('\n');
    text = rest;
    StringRef row = raw.trim();
    if (row.starts_with(".section") || row.starts_with("//-----"))
      inKernel = false;
    StringRef name = row;
    if (!found && name.consume_front(".text.") && name.consume_back(":") &&
        (kernel.empty() || name == kernel)) {
      inKernel = found = true;
      listing.kernel = name.str();
    }
    if (!inKernel)
      continue;
    if (row.starts_with("//##")) {
      row.split(", line ").second.consumeInteger(10, line);
      continue;
    }
    if (row.ends_with(":")) {
      listing.labels[row.drop_back()] = listing.instructions.size();
      continue;
    }
    if (!listing.instructions.empty())
      if (auto boards = parseScoreboards(row)) {
        listing.instructions.back().scoreboards = boards;
        continue;
      }
    if (!row.consume_front("/*"))
      continue;
    CodeInstruction inst;
    inst.line = line;
    if (row.consumeInteger(16, inst.place) || !row.consume_front("*/"))
      continue;
    StringRef code = row.split(';').first.trim();
    inst.guard = takeGuard(code);
    auto [opcode, operands] = code.split(' ');
    inst.opcode = opcode.str();
    inst.operands = operands.trim().str();
    if (opcode.empty())
      continue;
    setSassFlow(inst);
    listing.instructions.push_back(std::move(inst));
  }
  if (found)
    return std::move(listing);
  if (kernel.empty())
    return llvm::createStringError(
        "expected a kernel in the listing of nvdisasm, got none");
  return llvm::createStringError("expected a kernel \"" + kernel +
                                 "\" in the listing of nvdisasm, got none");
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

namespace {

/// Splits PTX at semicolons, braces and labels.
class PTXReader {
public:
  PTXReader(StringRef text, StringRef wanted) : text(text), wanted(wanted) {}
  llvm::Expected<CodeListing> read();

private:
  /// Takes a line and cuts its comment off.
  bool nextLine(StringRef &row);
  void readBody();
  void add(StringRef statement, unsigned line);

  StringRef text, wanted;
  unsigned line = 0;
  CodeListing listing;
};

} // namespace

bool PTXReader::nextLine(StringRef &row) {
  if (text.empty())
    return false;
  auto [raw, rest] = text.split('\n');
  text = rest;
  ++line;
  row = raw.split("//").first.trim();
  return true;
}

llvm::Expected<CodeListing> PTXReader::read() {
  StringRef row;
  while (nextLine(row)) {
    StringRef name = row.split(".entry ").second.ltrim();
    name = name.take_while(
        [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; });
    if (name.empty() || (!wanted.empty() && name != wanted))
      continue;
    listing.kernel = name.str();
    while (!row.ends_with("{") && nextLine(row)) {
    }
    readBody();
    return std::move(listing);
  }
  if (wanted.empty())
    return llvm::createStringError("expected a kernel in the PTX, got none");
  return llvm::createStringError("expected a kernel \"" + wanted +
                                 "\" in the PTX, got none");
}

void PTXReader::readBody() {
  unsigned depth = 1, start = 0;
  std::string statement;
  StringRef row;
  while (depth != 0 && nextLine(row)) {
    // Debug lines have no semicolon.
    if (statement.empty() && (row.starts_with(".loc ") || row.empty()))
      continue;
    while (!row.empty()) {
      if (statement.empty()) {
        row = row.ltrim();
        start = line;
        if (row.consume_front("{")) {
          ++depth;
          continue;
        }
        if (row.consume_front("}")) {
          if (--depth == 0)
            return;
          continue;
        }
        StringRef label = row.take_while(
            [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; });
        if (!label.empty() && row.drop_front(label.size()).starts_with(":")) {
          listing.labels[label] = listing.instructions.size();
          row = row.drop_front(label.size() + 1);
          continue;
        }
      }
      auto [piece, rest] = row.split(';');
      statement += piece;
      statement += ' ';
      if (!row.contains(';'))
        break;
      add(StringRef(statement).trim(), start);
      statement.clear();
      row = rest;
    }
  }
}

void PTXReader::add(StringRef statement, unsigned start) {
  if (statement.empty() || statement.starts_with("."))
    return;
  CodeInstruction inst;
  inst.place = inst.line = start;
  size_t end = statement.starts_with("@") ? statement.find_first_of(" \t") : 0;
  if (end != 0 && end != StringRef::npos) {
    inst.guard = statement.substr(1, end - 1).str();
    statement = statement.drop_front(end).ltrim();
  }
  size_t space = statement.find_first_of(" \t");
  inst.opcode = statement.take_front(space).str();
  if (space != StringRef::npos)
    inst.operands = statement.drop_front(space).trim().str();
  StringRef base = inst.getBase();
  if (base == "bra" || base == "ret" || base == "exit" || base == "trap") {
    inst.flow = base == "bra" ? Flow::Branch : Flow::End;
    inst.conditional = !inst.guard.empty();
    if (base == "bra")
      inst.target = inst.operands;
  }
  listing.instructions.push_back(std::move(inst));
}

llvm::Expected<CodeListing> mlir::attn::parsePTXListing(StringRef text,
                                                        StringRef kernel) {
  return PTXReader(text, kernel).read();
}
