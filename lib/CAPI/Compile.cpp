//===- Compile.cpp - Compilation through the C interface ------------------===//

#include "Handles.h"
#include "Request.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// One message with the notes below it.
struct Record {
  AttnSeverity severity = AttnSeverityError;
  std::string message, file;
  unsigned line = 0, column = 0;
  std::vector<Record> notes;
};

} // namespace

struct AttnResult {
  bool succeeded = false;
  CompileResult compiled;
  std::vector<std::string> launches;
  std::vector<Record> diagnostics;
  std::string diagnosticText;

  /// An error that has no place in the problem.
  void addError(const std::string &message) {
    Record record;
    record.message = message;
    diagnostics.push_back(std::move(record));
    diagnosticText += "error: " + message + "\n";
  }
};

static const AttnResult &get(const AttnResult *result) {
  return Handles<AttnResult>::read(result);
}

static AttnSeverity convertSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return AttnSeverityNote;
  case DiagnosticSeverity::Warning:
    return AttnSeverityWarning;
  case DiagnosticSeverity::Error:
    return AttnSeverityError;
  case DiagnosticSeverity::Remark:
    return AttnSeverityRemark;
  }
  llvm_unreachable("unknown severity");
}

static Record makeRecord(const Diagnostic &diagnostic) {
  Record record;
  record.severity = convertSeverity(diagnostic.getSeverity());
  record.message = diagnostic.str();
  if (auto place =
          diagnostic.getLocation()->findInstanceOf<FileLineColRange>()) {
    record.file = place.getFilename().str();
    record.line = place.getStartLine();
    record.column = place.getStartColumn();
  }
  for (const Diagnostic &note : diagnostic.getNotes())
    record.notes.push_back(makeRecord(note));
  return record;
}

namespace {

/// Collects diagnostics as records and as text.
class Collector : public SourceMgrDiagnosticHandler {
public:
  Collector(llvm::SourceMgr &sources, MLIRContext *context,
            std::vector<Record> &records, llvm::raw_ostream &text)
      : SourceMgrDiagnosticHandler(sources, context, text) {
    setHandler([this, &records](Diagnostic &diagnostic) {
      records.push_back(makeRecord(diagnostic));
      emitDiagnostic(diagnostic);
    });
  }
};

} // namespace

/// Lets the passes' remarks come as diagnostics.
static LogicalResult enableRemarks(MLIRContext &context) {
  remark::RemarkCategories categories;
  // Kinds without a pattern of their own stay off.
  categories.passed = categories.missed = categories.analysis =
      categories.failed = "attn.*";
  return remark::enableOptimizationRemarks(
      context, /*streamer=*/nullptr,
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories,
      /*printAsEmitRemarks=*/true);
}

static void compileInto(const AttnRequest &request, AttnResult &result) {
  llvm::Expected<ParsedRequest> parsed = parseRequest(request);
  if (!parsed)
    return result.addError(llvm::toString(parsed.takeError()));
  DialectRegistry registry;
  registerCompileDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // The op that an error is about stands in the caller's text.
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  llvm::raw_string_ostream text(result.diagnosticText);
  Collector collector(sources, &context, result.diagnostics, text);
  if (failed(enableRemarks(context)))
    return;
  OwningOpRef<ModuleOp> module = makeModule(request, *parsed, context, sources);
  if (!module)
    return;
  DefaultTimingManager timingManager;
  TimingScope timing = timingManager.getRootScope();
  if (failed(compile(*module, parsed->compile, timing, result.compiled)))
    return;
  for (const LaunchRecord &launch : result.compiled.launches)
    result.launches.push_back(llvm::formatv("{0:2}", toJSON(launch)).str());
  result.succeeded = true;
}

AttnRequest *attnRequestCreate(void) { return Handles<AttnRequest>::make(); }

void attnRequestDestroy(AttnRequest *request) {
  Handles<AttnRequest>::destroy(request);
}

void attnRequestSetText(AttnRequest *request, AttnStringRef text,
                        AttnStringRef fileName) {
  if (!Handles<AttnRequest>::find(request))
    return;
  request->text = copyString(text);
  request->fileName = copyString(fileName);
}

void attnRequestSetOption(AttnRequest *request, AttnStringRef name,
                          AttnStringRef value) {
  if (!Handles<AttnRequest>::find(request))
    return;
  request->options.emplace_back(copyString(name), copyString(value));
}

AttnResult *attnCompile(const AttnRequest *request) {
  auto *result = Handles<AttnResult>::make();
  if (!Handles<AttnRequest>::find(request)) {
    result->addError(request ? "expected a request, got one that was destroyed"
                             : "expected a request, got NULL");
    return result;
  }
  std::optional<std::string> fatal =
      runSafely([&] { compileInto(*request, *result); });
  if (fatal) {
    result->succeeded = false;
    result->addError("fatal error in the compiler: " + *fatal);
  }
  return result;
}

void attnResultDestroy(AttnResult *result) {
  Handles<AttnResult>::destroy(result);
}

bool attnResultSucceeded(const AttnResult *result) {
  return get(result).succeeded;
}

AttnStringRef attnResultGetOutput(const AttnResult *result) {
  return toC(get(result).compiled.output);
}

AttnStringRef attnResultGetPTX(const AttnResult *result) {
  return toC(get(result).compiled.ptx);
}

/// An element, or nothing for an index out of range.
static AttnStringRef getElement(const std::vector<std::string> &texts,
                                size_t index) {
  return index < texts.size() ? toC(texts[index]) : AttnStringRef{"", 0};
}

size_t attnResultGetNumPlans(const AttnResult *result) {
  return get(result).compiled.plans.size();
}

AttnStringRef attnResultGetPlan(const AttnResult *result, size_t index) {
  return getElement(get(result).compiled.plans, index);
}

size_t attnResultGetNumLaunches(const AttnResult *result) {
  return get(result).launches.size();
}

AttnStringRef attnResultGetLaunch(const AttnResult *result, size_t index) {
  return getElement(get(result).launches, index);
}

AttnStringRef attnResultGetDiagnosticText(const AttnResult *result) {
  return toC(get(result).diagnosticText);
}

size_t attnResultGetNumDiagnostics(const AttnResult *result) {
  return get(result).diagnostics.size();
}

static AttnDiagnostic toC(const std::vector<Record> &records, size_t index) {
  static const Record empty;
  const Record &record = index < records.size() ? records[index] : empty;
  return {record.severity, toC(record.message), toC(record.file),
          record.line,     record.column,       record.notes.size()};
}

AttnDiagnostic attnResultGetDiagnostic(const AttnResult *result, size_t index) {
  return toC(get(result).diagnostics, index);
}

AttnDiagnostic attnResultGetNote(const AttnResult *result, size_t diagnostic,
                                 size_t note) {
  if (diagnostic >= get(result).diagnostics.size())
    return toC(get(result).diagnostics, diagnostic);
  return toC(get(result).diagnostics[diagnostic].notes, note);
}
