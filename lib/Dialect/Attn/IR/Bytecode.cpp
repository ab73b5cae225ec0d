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

//===----------------------------------------------------------------------===//
// Properties whose form has changed
//===----------------------------------------------------------------------===//

/// The attributes that attn.attention has had since version 0, in the order in
/// which bytecode holds them.
template <typename Properties>
static auto getFirstAttributes(Properties &properties) {
  return std::tie(properties.kv_splits, properties.mask,
                  properties.max_seqlen_q, properties.out_scale,
                  properties.page_size, properties.plan, properties.rope_dim,
                  properties.scale, properties.softcap);
}

/// The attributes that version 2 has added.
template <typename Properties>
static auto getSecondAttributes(Properties &properties) {
  return std::tie(properties.run_keys, properties.selected);
}

/// Those that version 3 has added.
template <typename Properties>
static auto getThirdAttributes(Properties &properties) {
  return std::tie(properties.scale_group);
}

LogicalResult AttentionOp::readProperties(DialectBytecodeReader &reader,
                                          OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  // Bytecode without a version is of version 0.
  auto version = reader.getDialectVersion<AttnDialect>();
  uint64_t number =
      succeeded(version)
          ? static_cast<const AttnBytecodeVersion *>(*version)->number
          : 0;
  if (number >= 1 && failed(reader.readOptionalAttribute(properties.kernel)))
    return failure();
  auto readAll = [&](auto &...attributes) {
    return success(
        (succeeded(reader.readOptionalAttribute(attributes)) && ...));
  };
  if (failed(std::apply(readAll, getFirstAttributes(properties))) ||
      (number >= 2 &&
       failed(std::apply(readAll, getSecondAttributes(properties)))) ||
      (number >= 3 &&
       failed(std::apply(readAll, getThirdAttributes(properties)))))
    return failure();
  return reader.readSparseArray(
      MutableArrayRef<int32_t>(properties.operandSegmentSizes));
}

/// What `op` says and bytecode of version `number` has no place for; empty if
/// that is nothing.
static StringRef findUnwritten(AttentionOp op, uint64_t number) {
  if (number < 1 && op.getProperties().kernel)
    return "kernel";
  if (number < 2 && op.getRunKeys())
    return "run_keys";
  if (number < 2 && op.getSelected())
    return "selected";
  if (number < 2 && op.getInitO())
    return "init";
  if (number < 3 && op.getScaleGroup())
    return "scale_group";
  if (number < 3 && op.getKRope())
    return "rope";
  return "";
}

void AttentionOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &properties = getProperties();
  uint64_t number = kBytecodeVersion;
  auto asked = writer.getDialectVersion(AttnDialect::getDialectNamespace());
  if (succeeded(asked))
    number = static_cast<const AttnBytecodeVersion *>(*asked)->number;
  // Writers cannot fail. What is written below is of another problem, of which
  // nobody shall hear only when it is read.
  if (StringRef name = findUnwritten(*this, number); !name.empty())
    emitOpError("has '") << name << "', which bytecode of version " << number
                         << " of the dialect 'attn' cannot say";
  if (number >= 1)
    writer.writeOptionalAttribute(properties.kernel);
  auto writeAll = [&](auto &...attributes) {
    (writer.writeOptionalAttribute(attributes), ...);
  };
  std::apply(writeAll, getFirstAttributes(properties));
  if (number >= 2)
    std::apply(writeAll, getSecondAttributes(properties));
  if (number >= 3)
    std::apply(writeAll, getThirdAttributes(properties));
  writer.writeSparseArray(ArrayRef<int32_t>(properties.operandSegmentSizes));
}

void AttnDialect::registerBytecode() { addInterfaces<AttnBytecodeInterface>(); }
