//===- LaunchAttrBuilder.cpp - The launch record of a kernel --------------===//

#include "attn/Schedule/Core/LaunchAttrBuilder.h"
#include "attn/Planner/Facts/RowPitch.h"

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
      .add("access", !tensor.written ? "read"
                     : tensor.reread ? "update"
                                     : "write")
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
  case TensorMapView::Bounded:
    return "bounded";
  case TensorMapView::ByRow:
    return "by_row";
  case TensorMapView::PackedByRow:
    return "packed_by_row";
  case TensorMapView::Rows:
    return "rows";
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
  if (map.view == TensorMapView::Rows)
    fields.add("pitch", getRowPitch(tensor));
  return fields.get();
}

/// What a parameter from a tensor's descriptor is. Of a workspace the launch
/// has no tensor, only what its extents follow from.
static DictionaryAttr describeDescriptor(Builder &b, const TensorFacts &tensor,
                                         const DescriptorArg &arg) {
  StringRef type = arg.isStride ? "i64" : "i32";
  if (tensor.isWorkspace()) {
    SizeExpr value = arg.isStride ? tensor.getStrideExpr(arg.dim)
                                  : tensor.getExtentExpr(arg.dim);
    return Fields(b)
        .add("kind", "expression")
        .add("value", value.getText())
        .add("type", type)
        .get();
  }
  return Fields(b)
      .add("kind", arg.isStride ? "stride" : "size")
      .add("tensor", tensor.name)
      .add("dim", int64_t(arg.dim))
      .add("type", type)
      .get();
}

namespace {

/// The tensors, parameters and workspaces of a kernel.
class LaunchLists {
public:
  LaunchLists(KernelFrame &frame, ArrayRef<TensorFacts> others)
      : frame(frame), b(frame.b), others(others) {}

  void build();
  SmallVector<Attribute> tensors, args, workspaces;

private:
  void addTensor(const TensorFacts &tensor);
  void addWorkspace(const TensorFacts &tensor);
  /// Adds the tensors of other steps whose extents an expression names.
  void addSymbols(const SizeExpr &expression);
  bool isListed(StringRef name) const;

  KernelFrame &frame;
  Builder &b;
  ArrayRef<TensorFacts> others;
};

} // namespace

bool LaunchLists::isListed(StringRef name) const {
  return llvm::any_of(tensors, [&](Attribute attr) {
    return cast<DictionaryAttr>(attr).getAs<StringAttr>("name") == name;
  });
}

void LaunchLists::addTensor(const TensorFacts &tensor) {
  if (!isListed(tensor.name))
    tensors.push_back(describeTensor(b, tensor));
}

void LaunchLists::addSymbols(const SizeExpr &expression) {
  for (const SizeSymbol &symbol : expression.getSymbols())
    for (const TensorFacts &tensor : others)
      if (tensor.name == symbol.tensor && !tensor.isWorkspace())
        addTensor(tensor);
}

void LaunchLists::addWorkspace(const TensorFacts &tensor) {
  Fields argument(b);
  argument.add("kind", "workspace").add("index", int64_t(workspaces.size()));
  if (!tensor.reread)
    argument.add("access", tensor.written ? "write" : "read");
  args.push_back(argument.get());
  workspaces.push_back(Fields(b)
                           .add("name", tensor.workspace)
                           .add("bytes", tensor.getBytesExpr().getText())
                           .addBool("zeroed", false)
                           .get());
}

void LaunchLists::build() {
  for (const TensorFacts &tensor : frame.tensors)
    if (!tensor.isWorkspace())
      addTensor(tensor);
  for (const TensorFacts &tensor : frame.tensors) {
    if (!tensor.isWorkspace()) {
      args.push_back(
          Fields(b).add("kind", "pointer").add("tensor", tensor.name).get());
      continue;
    }
    addWorkspace(tensor);
    for (const SizeExpr &extent : tensor.extents)
      addSymbols(extent);
  }
  for (const DescriptorArg &arg : frame.descriptorArgs)
    args.push_back(describeDescriptor(b, frame.tensors[arg.tensor], arg));
  for (auto [index, scalar] : llvm::enumerate(frame.hostScalars)) {
    Type type = scalar.getType();
    args.push_back(
        Fields(b)
            .add("kind", "scalar")
            .add("name", "scalar" + std::to_string(frame.firstScalar + index))
            .add("type", type.isIndex() ? "i64" : getTypeName(type))
            .get());
  }
  for (const WorkspaceArg &workspace : frame.workspaceArgs) {
    args.push_back(Fields(b)
                       .add("kind", "workspace")
                       .add("index", int64_t(workspaces.size()))
                       .get());
    Fields fields(b);
    fields.add("bytes", workspace.bytes.getText())
        .addBool("zeroed", workspace.zeroed);
    if (workspace.restored)
      fields.addBool("restored", true);
    workspaces.push_back(fields.get());
  }
  for (const TensorMapArg &arg : frame.tensorMapArgs)
    args.push_back(describeTensorMap(b, frame.tensors[arg.tensor], arg));
}

/// Returns whether only the launch knows the value of an expression.
static bool isOpen(const std::optional<SizeExpr> &expression,
                   ArrayRef<TensorFacts> tensors) {
  return expression &&
         llvm::any_of(expression->getSymbols(), [&](const SizeSymbol &symbol) {
           return llvm::any_of(tensors, [&](const TensorFacts &tensor) {
             return tensor.name == symbol.tensor &&
                    ShapedType::isDynamic(tensor.shape[symbol.index]);
           });
         });
}

LaunchAttr attn::buildLaunchAttr(KernelFrame &frame, const KernelShape &shape,
                                 DictionaryAttr problem,
                                 ArrayRef<TensorFacts> others) {
  Builder &b = frame.b;
  LaunchLists lists(frame, others);
  lists.build();
  SmallVector<Attribute> grid;
  for (const SizeExpr &extent : frame.getLaunchedGrid())
    grid.push_back(b.getStringAttr(extent.getText()));
  return LaunchAttr::get(
      b.getContext(), frame.target.chip, int64_t(frame.target.defaultPTX),
      b.getArrayAttr(grid), b.getDenseI64ArrayAttr({shape.threads, 1, 1}),
      shape.cluster > 1 ? b.getDenseI64ArrayAttr({shape.cluster, 1, 1})
                        : DenseI64ArrayAttr(),
      isOpen(shape.tiles, frame.tensors)
          ? b.getStringAttr(shape.tiles->getText())
          : StringAttr(),
      b.getArrayAttr(lists.tensors), b.getArrayAttr(lists.args),
      lists.workspaces.empty() ? ArrayAttr() : b.getArrayAttr(lists.workspaces),
      shape.cooperative, shape.programmatic, problem);
}
