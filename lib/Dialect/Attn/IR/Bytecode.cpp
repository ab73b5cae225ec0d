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

/// Those that version 4 has added.
template <typename Properties>
static auto getFourthAttributes(Properties &properties) {
  return std::tie(properties.out_group);
}

/// Those that version 8 has added.
template <typename Properties>
static auto getFifthAttributes(Properties &properties) {
  return std::tie(properties.block_rows, properties.block_keys);
}

/// Those that version 9 has added.
template <typename Properties>
static auto getSixthAttributes(Properties &properties) {
  return std::tie(properties.row_state, properties.expected_keys);
}

/// Those that version 10 has added.
template <typename Properties>
static auto getSeventhAttributes(Properties &properties) {
  return std::tie(properties.added_page_size);
}

/// Where operands have `o_scales`, which versions in front of 4 do not know,
/// and `amax`, which those in front of 11 do not know.
static constexpr size_t kScalesSegment = 5, kAmaxSegment = 6;
/// Operands that version 10 has behind all others.
static constexpr size_t kAddedSegments = 4;

/// The version that a writer writes.
static uint64_t getWrittenVersion(DialectBytecodeWriter &writer) {
  auto asked = writer.getDialectVersion(AttnDialect::getDialectNamespace());
  return succeeded(asked)
             ? static_cast<const AttnBytecodeVersion *>(*asked)->number
             : kBytecodeVersion;
}

/// The version that is read. Bytecode without a version is of version 0.
static uint64_t getReadVersion(DialectBytecodeReader &reader) {
  auto version = reader.getDialectVersion<AttnDialect>();
  return succeeded(version)
             ? static_cast<const AttnBytecodeVersion *>(*version)->number
             : 0;
}

LogicalResult AttentionOp::readProperties(DialectBytecodeReader &reader,
                                          OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  uint64_t number = getReadVersion(reader);
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
       failed(std::apply(readAll, getThirdAttributes(properties)))) ||
      (number >= 4 &&
       failed(std::apply(readAll, getFourthAttributes(properties)))) ||
      (number >= 8 &&
       failed(std::apply(readAll, getFifthAttributes(properties)))) ||
      (number >= 9 &&
       failed(std::apply(readAll, getSixthAttributes(properties)))) ||
      (number >= 10 &&
       failed(std::apply(readAll, getSeventhAttributes(properties)))))
    return failure();
  auto &segments = properties.operandSegmentSizes;
  size_t unknown = (number < 4 ? 1 : 0) + (number < 11 ? 1 : 0);
  SmallVector<int32_t> known(segments.size() - unknown, 0);
  if (failed(reader.readSparseArray(MutableArrayRef<int32_t>(known))))
    return failure();
  if (number < 4)
    known.insert(known.begin() + kScalesSegment, 0);
  if (number < 11)
    known.insert(known.begin() + kAmaxSegment, 0);
  llvm::copy(known, segments.begin());
  return success();
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
  if (number < 4 && op.getOScales())
    return "out_scales";
  if (number < 4 && op.getQRope())
    return "q_rope";
  if (number < 6 && op.hasKeyRange())
    return "key_range";
  if (number < 7 && op.getOutMod())
    return "out_mod";
  if (number < 8 && op.getBlockCounts())
    return "blocks";
  if (number < 9 && op.getRowState())
    return "row_state";
  if (number < 9 && op.getExpectedKeys())
    return "expected_keys";
  if (number < 9 && op.getRopeDim() == 0)
    return "rope_dim = 0";
  if (number < 10 && op.getAddedK())
    return "added";
  if (number < 11 && op.getAmax())
    return "amax";
  return "";
}

void AttentionOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &properties = getProperties();
  uint64_t number = getWrittenVersion(writer);
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
  if (number >= 4)
    std::apply(writeAll, getFourthAttributes(properties));
  if (number >= 8)
    std::apply(writeAll, getFifthAttributes(properties));
  if (number >= 9)
    std::apply(writeAll, getSixthAttributes(properties));
  if (number >= 10)
    std::apply(writeAll, getSeventhAttributes(properties));
  SmallVector<int32_t> segments =
      llvm::to_vector(properties.operandSegmentSizes);
  // Readers of older versions know none of the last operands, which a dense
  // form would have all the same.
  if (number < 10)
    segments.truncate(segments.size() - kAddedSegments);
  if (number < 11)
    segments.erase(segments.begin() + kAmaxSegment);
  if (number < 4)
    segments.erase(segments.begin() + kScalesSegment);
  writer.writeSparseArray(ArrayRef<int32_t>(segments));
}

LogicalResult CombineOp::readProperties(DialectBytecodeReader &reader,
                                        OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  uint64_t number = getReadVersion(reader);
  if (failed(reader.readOptionalAttribute(properties.kernel)) ||
      (number >= 5 &&
       failed(reader.readOptionalAttribute(properties.out_group))) ||
      (number >= 4 &&
       failed(reader.readOptionalAttribute(properties.out_scale))) ||
      (number >= 11 && failed(reader.readOptionalAttribute(properties.amax))))
    return failure();
  return reader.readOptionalAttribute(properties.plan);
}

void CombineOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &properties = getProperties();
  uint64_t number = getWrittenVersion(writer);
  StringRef lost;
  if (number < 4 && properties.out_scale)
    lost = "out_scale";
  if (number < 5 && properties.out_group)
    lost = "out_group";
  if (number < 7 && getOutMod())
    lost = "out_mod";
  if (number < 11 && properties.amax)
    lost = "amax";
  if (!lost.empty())
    emitOpError("has '") << lost << "', which bytecode of version " << number
                         << " of the dialect 'attn' cannot say";
  writer.writeOptionalAttribute(properties.kernel);
  if (number >= 5)
    writer.writeOptionalAttribute(properties.out_group);
  if (number >= 4)
    writer.writeOptionalAttribute(properties.out_scale);
  if (number >= 11)
    writer.writeOptionalAttribute(properties.amax);
  writer.writeOptionalAttribute(properties.plan);
}

void AttnDialect::registerBytecode() { addInterfaces<AttnBytecodeInterface>(); }
