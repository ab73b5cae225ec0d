//===- Recording.cpp - Launches that can be repeated ----------------------===//

#include "attn/Device/Recording.h"
#include "attn/Harness/Npy.h"
#include "attn/Support/Files.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir::attn;
using namespace mlir::attn::device;
using llvm::Error;
using llvm::StringRef;
namespace json = llvm::json;

namespace {
/// Memory of a launch, under the name that it has in the recording.
struct Recorded {
  std::string name;
  sim::Allocation *allocation;
  /// As the launch has left it.
  std::vector<uint8_t> bytes, valid;
};
} // namespace

/// The allocations that a launch has to do with; its module's variables are not
/// among them.
static std::vector<Recorded> listMemory(sim::Memory &memory,
                                        const sim::LaunchConfig &config,
                                        const sim::RunReport &report) {
  std::vector<Recorded> list;
  auto add = [&](uint64_t address) {
    sim::Allocation *found = memory.find(address);
    if (!found || llvm::any_of(list, [&](const Recorded &each) {
          return each.allocation == found;
        }))
      return;
    if (config.variables)
      for (const sim::ModuleVariable &variable : config.variables->variables)
        if (variable.address == found->address)
          return;
    Recorded each{llvm::formatv("memory{0}", list.size()), found, {}, {}};
    each.bytes = found->getBytes();
    if (found->storage.valid)
      each.valid.assign(found->storage.valid,
                        found->storage.valid + found->size());
    list.push_back(std::move(each));
  };
  for (size_t at = 0; at + 8 <= config.params.size(); at += 8)
    add(llvm::support::endian::read64le(&config.params[at]));
  for (const sim::TouchedRange &range : report.touched)
    add(range.begin);
  return list;
}

/// The parameters, with addresses of recorded memory as what they point to.
static json::Array describeParams(const sim::KernelInfo &kernel,
                                  const sim::LaunchConfig &config,
                                  llvm::ArrayRef<Recorded> list) {
  json::Array params;
  for (const sim::KernelParam &param : kernel.params) {
    auto bytes = llvm::ArrayRef(config.params).slice(param.offset, param.size);
    json::Array pointers;
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      uint64_t address = llvm::support::endian::read64le(&bytes[at]);
      for (const Recorded &each : list)
        if (each.allocation->contains(address, 1))
          pointers.push_back(
              json::Object{{"at", at},
                           {"tensor", each.name},
                           {"offset", address - each.allocation->address}});
    }
    json::Object entry{{"size", param.size},
                       {"hex", llvm::toHex(bytes, /*LowerCase=*/true)}};
    if (!pointers.empty())
      entry["pointers"] = std::move(pointers);
    params.push_back(std::move(entry));
  }
  return params;
}

static json::Array toArray(const std::array<uint32_t, 3> &sizes) {
  return json::Array{sizes[0], sizes[1], sizes[2]};
}

Error LaunchRecorder::write(StringRef folder, StringRef ptx,
                            const sim::KernelInfo &kernel,
                            const sim::LaunchConfig &config,
                            const sim::RunReport &report) {
  std::vector<Recorded> list = listMemory(memory, config, report);
  undo.restore();
  std::string data = (folder + "/data").str();
  if (std::error_code code = llvm::sys::fs::create_directories(data))
    return llvm::createStringError(code, data + ": " + code.message());
  Error error = Error::success();
  json::Object tensors;
  for (const Recorded &each : list) {
    const sim::Allocation &allocation = *each.allocation;
    bool isKnown =
        llvm::any_of(llvm::seq<uint64_t>(0, allocation.size()),
                     [&](uint64_t i) { return allocation.isValid(i); });
    tensors[each.name] =
        json::Object{{"shape", json::Array{int64_t(allocation.size())}},
                     {"dtype", "uint8"},
                     {"access", isKnown ? "update" : "write"},
                     {"named", json::fixUTF8(allocation.name)}};
    if (isKnown && !error)
      error =
          sim::writeNpy(data + "/" + each.name + ".npy", DType::U8,
                        {int64_t(allocation.size())}, allocation.getBytes());
  }
  json::Object launch{{"kernel", kernel.name},
                      {"chip", chip},
                      {"grid", toArray(config.grid)},
                      {"block", toArray(config.block)},
                      {"cluster", toArray(config.cluster)},
                      {"dynamic_shared_bytes", config.dynamicShared},
                      {"params", describeParams(kernel, config, list)},
                      {"tensors", std::move(tensors)}};
  // Memory becomes again what the launch has left.
  for (const Recorded &each : list) {
    llvm::copy(each.bytes, each.allocation->storage.bytes);
    if (each.allocation->storage.valid)
      llvm::copy(each.valid, each.allocation->storage.valid);
  }
  if (error)
    return error;
  if (Error failed = writeFile((folder + "/kernel.ptx").str(),
                               [&](llvm::raw_ostream &os) { os << ptx; }))
    return failed;
  return writeFile((folder + "/launch.json").str(), [&](llvm::raw_ostream &os) {
    os << llvm::formatv("{0:2}\n", json::Value(std::move(launch)));
  });
}
