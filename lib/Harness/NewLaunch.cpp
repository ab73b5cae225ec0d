//===- NewLaunch.cpp - A draft of a launch record -------------------------===//
#include "attn/Harness/NewLaunch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using llvm::json::OStream;

/// The record's type of a scalar or element of a PTX type, or a question where
/// it may be several.
static StringRef guessType(StringRef type) {
  return llvm::StringSwitch<StringRef>(type)
      .Cases({"f16", "f16x2"}, "f16")
      .Cases({"bf16", "bf16x2"}, "bf16")
      .Case("f32", "f32")
      .Case("f64", "f64")
      .Case("s8", "i8")
      .Cases({"u8", "b8"}, "u8")
      .Case("s16", "i16")
      .Case("u16", "u16")
      // What C calls int is u32 in PTX.
      .Cases({"u32", "s32"}, "i32")
      .Cases({"u64", "s64"}, "i64")
      .Case("b16", "? f16, bf16, i16 or u16")
      .Case("b32", "? f32, i32 or u32")
      .Case("b64", "? f64, i64 or u64")
      .Default("? f16, f32, i32, ...");
}

static bool isMap(const KernelParam &param) {
  return param.type.empty() && param.size == 128;
}

/// That a record can give all parameters.
static Error checkParams(const KernelInfo &kernel) {
  for (const KernelParam &param : kernel.params)
    if (param.type.empty() && !isMap(param))
      return createStringError(
          "kernel \"" + kernel.name +
          "\": expected parameters that are numbers, addresses or the 128 "
          "bytes of a tensor map, as launch records have them, got " +
          Twine(param.size) + " bytes in \"" + param.name + "\"");
  return Error::success();
}

namespace {

/// Writes the draft of one kernel.
class Draft {
public:
  Draft(const Program &program, const KernelInfo &kernel, OStream &json)
      : program(program), kernel(kernel), json(json) {}
  void write();

private:
  bool hasTensor(const KernelParam &param) const {
    return param.isPointer || isMap(param);
  }
  std::string nameOf(unsigned index) const;
  void writeExtents(StringRef name, const std::array<uint32_t, 3> &known,
                    StringRef question);
  void writeTensor(unsigned index);
  void writeArg(unsigned index);

  const Program &program;
  const KernelInfo &kernel;
  OStream &json;
};

} // namespace

/// What compilers call `KERNEL_param_3` is arg3.
std::string Draft::nameOf(unsigned index) const {
  StringRef name = kernel.params[index].name;
  if (name.consume_front(kernel.name) && name.consume_front("_param_"))
    return ("arg" + name).str();
  return kernel.params[index].name;
}

void Draft::writeExtents(StringRef name, const std::array<uint32_t, 3> &known,
                         StringRef question) {
  json.attributeArray(name, [&] {
    if (!known[0])
      return json.value(question);
    for (uint32_t extent : known)
      json.value(int64_t(extent));
  });
}

void Draft::writeTensor(unsigned index) {
  const KernelParam &param = kernel.params[index];
  StringRef access = param.isWritten ? (param.isRead ? "update" : "write")
                     : param.isRead  ? "read"
                                     : "? read, write or update";
  json.object([&] {
    json.attribute("name", nameOf(index));
    json.attribute("dtype", guessType(param.element));
    json.attributeArray("shape", [&] { json.value("? elements"); });
    json.attribute("access", access);
  });
}

void Draft::writeArg(unsigned index) {
  const KernelParam &param = kernel.params[index];
  json.object([&] {
    if (isMap(param)) {
      json.attribute("kind", "tensor_map");
      json.attribute("tensor", nameOf(index));
      json.attribute("rank", "? 1 to 5");
      json.attributeArray("box",
                          [&] { json.value("? elements, innermost first"); });
      json.attribute("swizzle", "? none, 32B, 64B or 128B");
      json.attribute("element", guessType(""));
    } else if (param.isPointer) {
      json.attribute("kind", "pointer");
      json.attribute("tensor", nameOf(index));
    } else {
      json.attribute("kind", "scalar");
      json.attribute("name", nameOf(index));
      json.attribute("type", guessType(param.type));
      json.attribute("value", "? number");
    }
  });
}

void Draft::write() {
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("kernel", kernel.name);
    json.attributeObject("target", [&] {
      json.attribute("chip", program.getTarget());
      json.attribute("ptx", int64_t(program.getVersion()));
    });
    writeExtents("grid", {0, 0, 0}, "? CTAs");
    writeExtents("block", kernel.reqntid[0] ? kernel.reqntid : kernel.maxntid,
                 "? threads");
    if (kernel.reqnctapercluster[0])
      writeExtents("cluster", kernel.reqnctapercluster, "");
    if (kernel.usesDynamicShared)
      json.attribute("shared_bytes", "? bytes");
    json.attributeArray("tensors", [&] {
      for (unsigned index = 0; index < kernel.params.size(); ++index)
        if (hasTensor(kernel.params[index]))
          writeTensor(index);
    });
    json.attributeArray("args", [&] {
      for (unsigned index = 0; index < kernel.params.size(); ++index)
        writeArg(index);
    });
  });
}

Expected<std::string> mlir::attn::sim::draftLaunch(const Program &program,
                                                   StringRef name) {
  llvm::ArrayRef<KernelInfo> kernels = program.getKernels();
  std::string list =
      llvm::join(llvm::map_range(
                     kernels, [](const KernelInfo &each) { return each.name; }),
                 ", ");
  auto fail = [&](const Twine &got) {
    return createStringError(
        program.getName() + ": expected " +
        (kernels.empty() ? "a kernel" : "one of its kernels " + list) +
        ", got " + got);
  };
  if (kernels.empty() || (name.empty() && kernels.size() > 1))
    return fail("none");
  const KernelInfo *kernel =
      name.empty() ? &kernels.front() : program.findKernel(name);
  if (!kernel)
    return fail("\"" + name + "\"");
  if (Error error = checkParams(*kernel))
    return std::move(error);
  std::string text;
  llvm::raw_string_ostream os(text);
  {
    OStream json(os, /*IndentSize=*/2);
    Draft(program, *kernel, json).write();
  }
  return text + "\n";
}
