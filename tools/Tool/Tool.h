//===- Tool.h - How each program begins and ends ----------------*- C++ -*-===//

#ifndef ATTN_TOOLS_TOOL_TOOL_H
#define ATTN_TOOLS_TOOL_TOOL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/InitLLVM.h"
#include <string>
#include <utility>
#include <vector>

namespace mlir::attn {

/// Keeps the options that exist so far, which are LLVM's own, out of --help;
/// --help-hidden has them.
void hideOptionsOfLibraries();

/// Returns an error where two flags, each with what it names, have one file to
/// write to. Devices are no files.
llvm::Error checkFilesDiffer(
    llvm::ArrayRef<std::pair<llvm::StringRef, llvm::StringRef>> outputs);

/// Returns an error where the values of a flag, NAME=VALUE each, have a name
/// twice.
llvm::Error checkNamesDiffer(llvm::StringRef flag,
                             llvm::ArrayRef<std::string> values);

/// Is the first thing that a program makes. It brings LLVM and the standard
/// streams into a known state: one that is closed fails when it is used, and
/// what cannot be written at the end, the help text too, is an error.
class Tool {
public:
  Tool(int &argc, char **&argv, llvm::StringRef name);

  /// Says which values a flag takes, for the error about another one.
  template <typename T>
  void addValues(llvm::cl::opt<T> &flag) {
    std::vector<std::string> &names = values[flag.ArgStr];
    for (unsigned i = 0; i < flag.getParser().getNumOptions(); ++i)
      names.push_back(flag.getParser().getOption(i).str());
  }

  /// Reads the flags, all that are not hidden. Ends the process after --help,
  /// --version and wrong flags, these with status 1.
  void parse(llvm::StringRef overview) const;
  /// The same where the flags are those of `own`; LLVM's options are flags too
  /// if the program does what they are about.
  void parse(llvm::StringRef overview,
             llvm::ArrayRef<const llvm::cl::OptionCategory *> own,
             bool withLibraries);
  /// Does what parse() does before LLVM reads the flags, for a program whose
  /// library reads them: prepares --help, and ends the process where a flag is
  /// none of the program's. Where the library makes `more` flags as it reads
  /// them, only such as LLVM takes for a -h are refused.
  void prepare(bool more = false) const;

private:
  /// What is wrong with a value of a flag, before LLVM reads it; empty if
  /// nothing is.
  std::string checkValue(const llvm::cl::Option &option,
                         llvm::StringRef value) const;
  /// Prints errors and ends the process.
  [[noreturn]] void failUsage(llvm::ArrayRef<std::string> messages) const;

  llvm::InitLLVM init;
  int argc;
  char **argv;
  llvm::StringRef name;
  llvm::StringMap<std::vector<std::string>> values;
  bool withLibraries = true;
};

} // namespace mlir::attn

#endif // ATTN_TOOLS_TOOL_TOOL_H
