//===- Bytecode.cpp - Versions of the dialect in bytecode -----------------===//
//
// Types and attributes are written as MLIR writes those of a dialect that says
// nothing, as text; the version is what tells old text from new.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Bytecode.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

struct AttnBytecodeInterface : BytecodeDialectInterface {
  explicit AttnBytecodeInterface(Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const final {
    // A writer's configuration may name a version of its own.
    uint64_t number = kBytecodeVersion;
    auto asked = writer.getDialectVersion(AttnDialect::getDialectNamespace());
    if (succeeded(asked))
      number = static_cast<const AttnBytecodeVersion *>(*asked)->number;
    writer.writeVarInt(number);
  }

  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const final {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return nullptr;
    if (number > kBytecodeVersion) {
      reader.emitError() << "expected bytecode of the dialect 'attn' of at "
                            "most version "
                         << kBytecodeVersion << ", got version " << number;
      return nullptr;
    }
    return std::make_unique<AttnBytecodeVersion>(number);
  }
};

} // namespace

void AttnDialect::registerBytecode() { addInterfaces<AttnBytecodeInterface>(); }
