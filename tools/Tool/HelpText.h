//===- HelpText.h - LLVM's help texts for terminals -------------*- C++ -*-===//

#ifndef ATTN_TOOLS_TOOL_HELPTEXT_H
#define ATTN_TOOLS_TOOL_HELPTEXT_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::attn {

/// Columns of a help text.
inline constexpr unsigned kHelpColumns = 80;

/// Returns the text of LLVM's --help in lines of at most kHelpColumns: what an
/// option does stands in one column, below a name that reaches into it. A word
/// that is longer than a line stays whole.
std::string wrapHelp(llvm::StringRef text);

} // namespace mlir::attn

#endif // ATTN_TOOLS_TOOL_HELPTEXT_H
