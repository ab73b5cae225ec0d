//===- RunOptions.cpp - The flags that run a kernel -----------------------===//

#include "RunOptions.h"
#include "Tool/Tool.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using llvm::StringRef;
namespace cl = llvm::cl;

/// Seconds of --check-ptx alone.
static constexpr double kMostSeconds = 60;

RunOptions::RunOptions(cl::OptionCategory &category)
    : verify("Run the kernel on the simulator and compare it with the "
             "reference:",
             category),
      checkPTX("check-ptx", cl::ValueOptional, cl::value_desc("seconds"),
               cl::init(kMostSeconds),
               cl::desc("Run the kernel on the simulator and hold its PTX "
                        "against what is proved, if that takes at most 60 "
                        "seconds, or as many as given"),
               cl::cat(category)),
      seed("seed", cl::init(0),
           cl::desc("Seed of the inputs and of the simulator's schedule"),
           cl::cat(category)),
      corners("corners",
              cl::desc("Also run every corner of schedule and timing"),
              cl::cat(category)),
      loseBets("lose-bets",
               cl::desc("Also run on scores that grow from block to block "
                        "(default: where the run is short)"),
               cl::cat(category)),
      inputs("in", cl::value_desc("tensor=file.npy"),
             cl::desc("Contents of an input; random without"),
             cl::cat(category)),
      sizes("size", cl::value_desc("q.dim2=300"),
            cl::desc("A size or stride that the problem leaves open"),
            cl::cat(category)) {}

std::optional<double> RunOptions::getCheckPTX() const {
  if (checkPTX.getNumOccurrences() == 0)
    return std::nullopt;
  // Alone it has no value.
  return checkPTX == 0 ? kMostSeconds : checkPTX.getValue();
}

llvm::Error RunOptions::check(bool isOfMany) const {
  if (checkPTX.getNumOccurrences() != 0 && !(checkPTX >= 0))
    return llvm::createStringError(
        "--check-ptx: expected a number of seconds, got " +
        llvm::Twine(llvm::formatv("{0}", checkPTX.getValue()).str()));
  if (verify.isGiven())
    return llvm::Error::success();
  for (auto [isGiven, name] :
       {std::pair(corners.getValue(), "corners"),
        std::pair(loseBets.getNumOccurrences() != 0, "lose-bets")})
    if (isGiven)
      return llvm::createStringError("--%s needs --verify", name);
  bool runs = getCheckPTX().has_value();
  for (auto [isGiven, name] :
       {std::pair(!inputs.empty(), "in"), std::pair(!sizes.empty(), "size"),
        std::pair(seed.getNumOccurrences() != 0, "seed")}) {
    if (isGiven && !runs)
      return llvm::createStringError("--%s needs --verify or --check-ptx",
                                     name);
    if (isGiven && isOfMany)
      return llvm::createStringError("--%s is for one kernel, and --autotune "
                                     "writes many",
                                     name);
  }
  return llvm::Error::success();
}

/// Splits `name=value`.
static llvm::Expected<std::pair<StringRef, StringRef>>
splitPair(StringRef flag, StringRef text) {
  auto [name, value] = text.split('=');
  if (name.empty() || value.empty())
    return llvm::createStringError("--" + flag +
                                   ": expected NAME=VALUE, got '" + text + "'");
  return std::pair(name, value);
}

llvm::Expected<sim::HarnessOptions> RunOptions::get() const {
  if (llvm::Error error = checkNamesDiffer("in", inputs))
    return error;
  if (llvm::Error error = checkNamesDiffer("size", sizes))
    return error;
  sim::HarnessOptions options;
  verify.apply(options);
  options.seed = seed;
  options.config.seed = seed;
  options.corners = corners;
  if (loseBets != cl::boolOrDefault::BOU_UNSET)
    options.losesBets = loseBets == cl::boolOrDefault::BOU_TRUE;
  for (StringRef text : inputs) {
    auto parts = splitPair("in", text);
    if (!parts)
      return parts.takeError();
    llvm::Expected<sim::NpyArray> array = sim::readNpy(parts->second);
    if (!array)
      return array.takeError();
    options.inputs[parts->first] = std::move(*array);
  }
  for (StringRef text : sizes) {
    auto parts = splitPair("size", text);
    if (!parts)
      return parts.takeError();
    int64_t value;
    if (parts->second.getAsInteger(10, value))
      return llvm::createStringError("--size: expected an integer, got '" +
                                     parts->second + "'");
    if (value < 0 || value > std::numeric_limits<int32_t>::max())
      return llvm::createStringError(
          "--size: expected a size below 2^31, got '" + text + "'");
    options.sizes[parts->first] = value;
  }
  return options;
}
