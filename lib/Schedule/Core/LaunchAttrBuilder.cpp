//===- LaunchAttrBuilder.cpp - The launch record of a kernel --------------===//

#include "attn/Schedule/Core/Outline.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Builds dictionaries in the order in which they read best.
class Fields {
public:
  explicit Fields(Builder &b) : b(b) {}
  Fields &add(StringRef name, Attribute value) {
    fields.push_back(b.getNamedAttr(name, value));
    return *this;
  }
  Fields &add(StringRef name, StringRef value) {
    return add(name, Attribute(b.getStringAttr(value)));
  }
  Fields &add(StringRef name, int64_t value) {
    return add(name, Attribute(b.getI64IntegerAttr(value)));
  }
  Fields &addBool(StringRef name, bool value) {
    return add(name, Attribute(b.getBoolAttr(value)));
  }
  Fields &add(StringRef name, ArrayRef<int64_t> values) {
    return add(name, Attribute(b.getDenseI64ArrayAttr(values)));
  }
  DictionaryAttr get() { return b.getDictionaryAttr(fields); }

private:
  Builder &b;
  SmallVector<NamedAttribute> fields;
};

} // namespace

/// A type as the record names it; an i1 in memory is a byte.
static std::string getTypeName(Type type) {
  if (type.isInteger(1))
    return "i8";
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static DictionaryAttr describeTensor(Builder &b, const TensorFacts &tensor) {
  auto known = [](ArrayRef<int64_t> extents) {
    SmallVector<int64_t> result;
    for (int64_t extent : extents)
      result.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
    return result;
  };
  return Fields(b)
      .add("name", tensor.name)
      .add("dtype", getTypeName(tensor.elementType))
      .add("shape", known(tensor.shape))
      .add("strides", known(tensor.strides))
      .add("access", tensor.written ? "write" : "read")
      .get();
}

static StringRef stringifyView(TensorMapView view) {
  switch (view) {
  case TensorMapView::Whole:
    return "whole";
  case TensorMapView::Transposed:
    return "transposed";
  case TensorMapView::Quads:
    return "quads";
  case TensorMapView::Packed:
    return "packed";
  }
  llvm_unreachable("unknown view");
}

/// Map dimension 0 is the last one of the tensor in the map's view.
static DictionaryAttr describeTensorMap(Builder &b, const TensorFacts &tensor,
                                        const TensorMapArg &map) {
  TensorMapType type = map.type;
  int64_t swizzle = type.getSwizzle();
  Fields fields(b);
  fields.add("kind", "tensor_map")
      .add("tensor", tensor.name)
      .add("rank", type.getRank())
      .add("box", llvm::to_vector(llvm::reverse(type.getBox())))
      .add("swizzle", swizzle == 0 ? "none" : std::to_string(swizzle) + "B")
      .add("element", getTypeName(type.getElementType()));
  if (map.view != TensorMapView::Whole)
    fields.add("view", stringifyView(map.view));
  return fields.get();
}

DictionaryAttr attn::buildLaunchAttr(KernelContext &context, StringRef kernel,
                                     const KernelShape &shape) {
  Builder &b = context.b;
  const ProblemFacts &facts = context.facts;
  SmallVector<Attribute> tensors, args, grid, workspaces;
  for (const TensorFacts &tensor : context.tensors)
    tensors.push_back(describeTensor(b, tensor));
  for (const TensorFacts &tensor : context.tensors)
    args.push_back(
        Fields(b).add("kind", "pointer").add("tensor", tensor.name).get());
  for (const DescriptorArg &arg : context.descriptorArgs)
    args.push_back(Fields(b)
                       .add("kind", arg.isStride ? "stride" : "size")
                       .add("tensor", context.tensors[arg.tensor].name)
                       .add("dim", int64_t(arg.dim))
                       .add("type", arg.isStride ? "i64" : "i32")
                       .get());
  for (auto [index, scalar] : llvm::enumerate(facts.scalars)) {
    Type type = scalar.getType();
    args.push_back(Fields(b)
                       .add("kind", "scalar")
                       .add("name", "scalar" + std::to_string(index))
                       .add("type", type.isIndex() ? "i64" : getTypeName(type))
                       .get());
  }
  for (auto [index, workspace] : llvm::enumerate(context.workspaceArgs)) {
    args.push_back(
        Fields(b).add("kind", "workspace").add("index", int64_t(index)).get());
    Fields fields(b);
    fields.add("bytes", std::to_string(workspace.bytes))
        .addBool("zeroed", workspace.zeroed);
    if (workspace.restored)
      fields.addBool("restored", true);
    workspaces.push_back(fields.get());
  }
  for (const TensorMapArg &arg : context.tensorMapArgs)
    args.push_back(describeTensorMap(b, context.tensors[arg.tensor], arg));
  for (const SizeExpr &extent : shape.grid)
    grid.push_back(b.getStringAttr(extent.getText()));
  DictionaryAttr targetAttr =
      Fields(b)
          .add("chip", context.target.chip)
          .add("ptx", int64_t(context.target.defaultPTX))
          .get();
  Fields record(b);
  record.add("version", int64_t(1))
      .add("kernel", kernel)
      .add("target", targetAttr)
      .add("grid", b.getArrayAttr(grid))
      .add("block", ArrayRef<int64_t>{shape.threads, 1, 1})
      .add("cluster", ArrayRef<int64_t>{shape.cluster, 1, 1})
      .add("shared_bytes", int64_t(0))
      .add("tensors", b.getArrayAttr(tensors))
      .add("args", b.getArrayAttr(args))
      .add("workspace", b.getArrayAttr(workspaces));
  // The reference needs the numbers of heads; with dynamic ones there is none.
  if (!ShapedType::isDynamic(facts.heads) &&
      !ShapedType::isDynamic(facts.kvHeads))
    record.add("problem", buildProblemAttr(b, facts));
  return record.get();
}
