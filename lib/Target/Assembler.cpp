//===- Assembler.cpp - Runs ptxas and reads what it says ------------------===//

#include "attn/Target/Assembler.h"
#include "ToolFiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Program.h"

using namespace mlir::attn;

using Severity = AssemblerMessage::Severity;

bool AssemblerLog::hasErrors() const {
  return llvm::any_of(messages, [](const AssemblerMessage &message) {
    return message.severity == Severity::Error;
  });
}

/// Reads "<number> <what>" from the comma-separated `text`; 0 if it is absent.
static unsigned readCount(llvm::StringRef text, llvm::StringRef what) {
  while (!text.empty()) {
    auto [item, rest] = text.split(',');
    text = rest;
    item = item.trim();
    item.consume_front("Used ");
    item.consume_front("used ");
    unsigned count = 0;
    if (!item.consumeInteger(10, count) && item.trim() == what)
      return count;
  }
  return 0;
}

/// The text between the first pair of single quotes.
static llvm::StringRef getQuoted(llvm::StringRef text) {
  return text.split('\'').second.split('\'').first;
}

namespace {

class LogReader {
public:
  AssemblerLog read(llvm::StringRef text) {
    while (!text.empty()) {
      auto [line, rest] = text.split('\n');
      text = rest;
      readLine(line.rtrim());
    }
    return std::move(log);
  }

private:
  void readLine(llvm::StringRef line) {
    if (line.starts_with("    ") && !log.functions.empty()) {
      readProperties(line.trim());
      return;
    }
    if (!line.consume_front("ptxas "))
      return;
    AssemblerMessage message;
    // "ptxas FILE, line N; error   : TEXT"
    if (size_t place = line.find(", line "); place != llvm::StringRef::npos) {
      llvm::StringRef rest = line.drop_front(place + strlen(", line "));
      if (!rest.consumeInteger(10, message.line) && rest.consume_front("; "))
        line = rest;
      else
        message.line = 0;
    }
    auto [kind, body] = line.split(':');
    kind = kind.trim();
    body = body.trim();
    if (kind == "error" || kind == "fatal")
      message.severity = Severity::Error;
    else if (kind == "warning")
      message.severity = Severity::Warning;
    else if (kind != "info")
      return;
    if (body.starts_with("(C")) {
      auto [code, rest] = body.drop_front().split(')');
      message.code = code.str();
      body = rest.trim();
    }
    if (message.severity == Severity::Info && message.code.empty()) {
      readInfo(body);
      return;
    }
    // Registers spilled, or one of the numbered losses (C7508 to C7519).
    if (body.starts_with("Registers are spilled") ||
        (message.severity != Severity::Error &&
         llvm::StringRef(message.code).starts_with("C75")))
      message.severity = Severity::Performance;
    message.function = body.contains("in function '")
                           ? getQuoted(body.split("in function ").second).str()
                           : function;
    message.text = body.str();
    log.messages.push_back(std::move(message));
  }

  /// What stands after "ptxas info : " without a number.
  void readInfo(llvm::StringRef body) {
    if (body.starts_with("Compiling entry function ")) {
      function = getQuoted(body).str();
      return;
    }
    if (body.consume_front("Function properties for ")) {
      FunctionResources resources;
      resources.name = body.str();
      log.functions.push_back(std::move(resources));
      return;
    }
    if (!body.starts_with("Used ") || log.functions.empty())
      return;
    FunctionResources &resources = log.functions.back();
    resources.registers = readCount(body, "registers");
    resources.barriers = readCount(body, "barriers");
    resources.sharedBytes = readCount(body, "bytes smem");
  }

  void readProperties(llvm::StringRef body) {
    FunctionResources &resources = log.functions.back();
    resources.stackBytes = readCount(body, "bytes stack frame");
    resources.spillStoreBytes = readCount(body, "bytes spill stores");
    resources.spillLoadBytes = readCount(body, "bytes spill loads");
  }

  AssemblerLog log;
  /// Entry function that is being compiled.
  std::string function;
};

} // namespace

AssemblerLog mlir::attn::parseAssemblerLog(llvm::StringRef text) {
  return LogReader().read(text);
}

llvm::Expected<std::string> mlir::attn::findPtxas() {
  return findCudaProgram("ptxas");
}

/// Runs a program with its output and messages in `log`; its exit status.
static llvm::Expected<int> runProgram(llvm::ArrayRef<llvm::StringRef> arguments,
                                      const TemporaryFile &log) {
  std::string message;
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""),
                                                log.getPath(), log.getPath()};
  int status = llvm::sys::ExecuteAndWait(
      arguments.front(), arguments, /*Env=*/std::nullopt, redirects,
      /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status < 0)
    return llvm::createStringError("cannot run " + arguments.front() + ": " +
                                   message);
  return status;
}

llvm::Expected<std::string> mlir::attn::getPtxasVersion() {
  llvm::Expected<std::string> program = findPtxas();
  if (!program)
    return program.takeError();
  TemporaryFile log;
  if (llvm::Error error = log.create("log"))
    return std::move(error);
  llvm::Expected<int> status = runProgram({*program, "--version"}, log);
  if (!status)
    return status.takeError();
  // The last line names the build, such as "Build cuda_13.0.r13.0/...".
  std::string text = log.read();
  llvm::StringRef line = llvm::StringRef(text).trim().rsplit('\n').second;
  if (*status != 0 || line.empty())
    return llvm::createStringError("expected a version from " + *program +
                                   " --version, got \"" + text + "\"");
  return line.trim().str();
}

llvm::Expected<AssemblerResult>
mlir::attn::assemblePTX(llvm::StringRef ptx, const AssemblerOptions &options) {
  std::string program = options.ptxas;
  if (program.empty()) {
    llvm::Expected<std::string> found = findPtxas();
    if (!found)
      return found.takeError();
    program = *found;
  }
  TemporaryFile input, output, log;
  for (auto [file, suffix] :
       {std::pair(&input, "ptx"), {&output, "cubin"}, {&log, "log"}})
    if (llvm::Error error = file->create(suffix))
      return std::move(error);
  if (llvm::Error error = input.write(ptx))
    return std::move(error);
  std::string arch = "-arch=" + options.chip;
  std::vector<llvm::StringRef> arguments = {
      program,         arch, "-v", "--warn-on-spills", input.getPath(), "-o",
      output.getPath()};
  llvm::append_range(arguments, options.arguments);
  llvm::Expected<int> status = runProgram(arguments, log);
  if (!status)
    return status.takeError();
  AssemblerResult result;
  std::string text = log.read();
  result.log = parseAssemblerLog(text);
  if (*status == 0)
    result.cubin = output.read();
  else if (!result.log.hasErrors())
    return llvm::createStringError(program + " failed with status " +
                                   std::to_string(*status) + ": " + text);
  return result;
}
