//===- VerifyFlag.h - The flag that compares a kernel -----------*- C++ -*-===//

#ifndef ATTN_TOOLS_TOOL_VERIFYFLAG_H
#define ATTN_TOOLS_TOOL_VERIFYFLAG_H

#include "attn/Harness/HarnessOptions.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::attn {

/// --verify, or --verify=quick.
class VerifyFlag {
public:
  VerifyFlag(const char *description, llvm::cl::OptionCategory &category)
      : flag("verify", llvm::cl::ValueOptional, llvm::cl::desc(description),
             llvm::cl::values(
                 clEnumValN(Kind::Whole, "", "the whole launch"),
                 clEnumValN(Kind::Whole, "whole", "the same"),
                 clEnumValN(Kind::Whole, "true", "the same"),
                 clEnumValN(Kind::None, "false", "nothing"),
                 clEnumValN(Kind::Quick, "quick",
                            "64 CTAs, drawn at random, and their rows")),
             llvm::cl::init(Kind::None), llvm::cl::cat(category)) {}

  bool isGiven() const { return flag != Kind::None; }
  bool isQuick() const { return flag == Kind::Quick; }
  void apply(sim::HarnessOptions &options) const {
    options.verify = isGiven();
    options.sampledCTAs = isQuick() ? sim::kSampledCTAs : 0;
  }

private:
  enum class Kind { None, Whole, Quick };
  llvm::cl::opt<Kind> flag;
};

} // namespace mlir::attn

#endif // ATTN_TOOLS_TOOL_VERIFYFLAG_H
