//===- AttnAttrs.cpp - Layouts of tiles, and roles ------------------------===//

#include "LayoutErrors.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Layout/NamedLayouts.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

#include "attn/Dialect/Attn/IR/AttnAttrInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"

void AttnDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "attn/Dialect/Attn/IR/AttnAttrs.cpp.inc"
      >();
}

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// Layouts of register tiles
//===----------------------------------------------------------------------===//

/// Checks an encoding by building its layout.
template <typename LayoutAttr>
static LogicalResult verifyTile(LayoutAttr layout, ArrayRef<int64_t> shape,
                                Type elementType, EmitErrorFn emitError) {
  // The parser has said that the type is missing, and asks all the same.
  if (!elementType)
    return failure();
  if (!elementType.isIntOrFloat())
    return emitError() << "expected a tile of integers or floats, got "
                       << elementType;
  unsigned bits = elementType.getIntOrFloatBitWidth();
  if (bits > 128)
    return emitError() << "expected elements of at most 128 bits, got " << bits;
  auto tile = layout.toTileLayout(shape, bits);
  if (!tile)
    return emitError() << llvm::toString(tile.takeError());
  return success();
}

RankedTensorType attn::getPartialSumsType(MLIRContext *context, int64_t rows) {
  return RankedTensorType::get(
      {rows, kRowOwners}, Float32Type::get(context),
      PartialLayoutAttr::get(context, AutoLayoutAttr::get(context)));
}

bool attn::isRegisters(Type type) {
  return isTile(type) || isa<InFlightType>(type);
}

bool attn::isAuto(Attribute layout) {
  if (auto partial = dyn_cast_or_null<PartialLayoutAttr>(layout))
    layout = partial.getParent();
  return isa_and_nonnull<AutoLayoutAttr>(layout);
}

bool attn::isWarpGrid(ArrayRef<int64_t> warps) {
  if (warps.size() != 2 || warps[0] < 1 || warps[1] < 1 ||
      warps[0] > kMaxWarps || warps[1] > kMaxWarps ||
      warps[0] * warps[1] > kMaxWarps)
    return false;
  return warps[1] == 1 ||
         (llvm::isPowerOf2_64(warps[0]) && llvm::isPowerOf2_64(warps[1]));
}

int64_t attn::countLaunched(ArrayRef<int32_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    if (llvm::MulOverflow(count, extent, count))
      return std::numeric_limits<int64_t>::max();
  return count;
}

LogicalResult MmaLayoutAttr::verify(EmitErrorFn emitError,
                                    ArrayRef<int64_t> warps, int64_t copies,
                                    bool columnRuns, bool columnQuads) {
  if (!isWarpGrid(warps))
    return emitError() << "expected warps to be two powers of two (rows, "
                          "columns), or any number of rows and 1, of at most "
                       << kMaxWarps << " warps, got [" << warps << "]";
  // Bits of a warp's number say its rows, its columns and its copy.
  if (copies != 1 &&
      (copies < 1 || copies > kMaxWarps || !llvm::isPowerOf2_64(copies) ||
       !llvm::isPowerOf2_64(warps[0]) ||
       warps[0] * warps[1] * copies > kMaxWarps))
    return emitError() << "expected copies to be a power of two beside powers "
                          "of two of warps, of at most "
                       << kMaxWarps << " warps, got " << copies << " of ["
                       << warps << "]";
  if (columnRuns && warps[1] == 1)
    return emitError() << "expected column_runs with several warps along the "
                          "columns, got 1";
  if (columnQuads && columnRuns)
    return emitError() << "expected column_runs or column_quads, got both";
  return success();
}

static WarpGrid gridOf(MmaLayoutAttr layout) { return layout.getGrid(); }

WarpGrid MmaLayoutAttr::getGrid() const {
  ArrayRef<int64_t> warps = getWarps();
  return {unsigned(warps[0]), unsigned(warps[1]), unsigned(getCopies()),
          getColumnRuns(), getColumnQuads()};
}

llvm::Expected<TileLayout> MmaLayoutAttr::toTileLayout(ArrayRef<int64_t> shape,
                                                       unsigned) const {
  if (shape.size() != 2)
    return makeError("expected a tile of rank 2 for #attn.mma, got rank " +
                     Twine(shape.size()));
  return mmaAccumulator(shape[0], shape[1], gridOf(*this));
}

LogicalResult MmaLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                            Type elementType,
                                            EmitErrorFn emitError) const {
  return verifyTile(*this, shape, elementType, emitError);
}

FailureOr<TmemShape> attn::parseTmemShape(AsmParser &parser) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  if (name.consume_front("shape_"))
    if (std::optional<TmemShape> shape = symbolizeTmemShape(name))
      return *shape;
  InFlightDiagnostic diag = parser.emitError(loc, "expected one of ");
  llvm::interleaveComma(getTmemShapes(), diag, [&](TmemShape shape) {
    diag << "shape_" << stringifyTmemShape(shape);
  });
  return failure();
}

/// Tells if two warps have the first halves of the rows' columns.
static bool hasHalves(TmemRegsLayoutAttr layout) {
  return layout.getWarps()[1] != 1;
}

LogicalResult TmemRegsLayoutAttr::verify(EmitErrorFn emitError, TmemShape shape,
                                         ArrayRef<int64_t> warps) {
  if (warps == ArrayRef<int64_t>({kWarpgroupWarps / 2, 2})) {
    if (shape == TmemShape::S32x32b)
      return success();
    return emitError() << "expected shape_32x32b with warps = [2, 2], got "
                          "shape_"
                       << stringifyTmemShape(shape);
  }
  if (warps != ArrayRef<int64_t>({kWarpgroupWarps, 1}))
    return emitError() << "expected warps = [4, 1] or [2, 2], which reach all "
                          "lanes of tensor memory, got ["
                       << warps << "]";
  return success();
}

/// Returns the registers of a tile of TMEM loads.
static llvm::Expected<TileLayout> getRegisters(TmemRegsLayoutAttr layout,
                                               int64_t rows, int64_t columns) {
  if (!hasHalves(layout))
    return tmemRegisters(layout.getShape(), rows, columns);
  if (rows != kTmemLanes / 2)
    return makeError("expected " + Twine(kTmemLanes / 2) +
                     " rows in halves, got " + Twine(rows));
  return tmemHalfRegisters(columns);
}

llvm::Expected<TileLayout>
TmemRegsLayoutAttr::toTileLayout(ArrayRef<int64_t> shape, unsigned) const {
  if (shape.size() != 2)
    return makeError("expected a tile of rank 2 for #attn.tmem_regs, got "
                     "rank " +
                     Twine(shape.size()));
  return getRegisters(*this, shape[0], shape[1]);
}

LogicalResult TmemRegsLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                                 Type elementType,
                                                 EmitErrorFn emitError) const {
  return verifyTile(*this, shape, elementType, emitError);
}

LogicalResult OperandLayoutAttr::verify(EmitErrorFn emitError, int64_t index,
                                        Attribute parent, bool depthQuads) {
  if (index != 0 && index != 1)
    return emitError() << "expected operand index 0 (A) or 1 (B), got "
                       << index;
  if (!isa<MmaLayoutAttr>(parent))
    return emitError() << "expected the parent to be #attn.mma, got " << parent;
  if (depthQuads && index != 0)
    return emitError() << "expected depth_quads of operand index 0, got "
                       << index;
  return success();
}

llvm::Expected<TileLayout>
OperandLayoutAttr::toTileLayout(ArrayRef<int64_t> shape,
                                unsigned elementBits) const {
  if (shape.size() != 2)
    return makeError("expected a tile of rank 2 for #attn.operand, got rank " +
                     Twine(shape.size()));
  WarpGrid grid = gridOf(cast<MmaLayoutAttr>(getParent()));
  if (getDepthQuads() && elementBits == 8)
    return makeError("expected no elements of 8 bits with depth_quads");
  if (getDepthQuads())
    return mmaQuadOperandA(shape[0], shape[1], grid);
  int64_t k = shape[getIndex() == 0 ? 1 : 0];
  unsigned shapeK = mmaShapeK(k, elementBits);
  if (shapeK == 0)
    return makeError("expected the contraction extent to be a multiple of " +
                     Twine(elementBits == 8 ? 16 : 8) + ", got " + Twine(k));
  return getIndex() == 0
             ? mmaOperandA(shape[0], shape[1], elementBits, shapeK, grid)
             : mmaOperandB(shape[0], shape[1], elementBits, shapeK, grid);
}

LogicalResult OperandLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                                Type elementType,
                                                EmitErrorFn emitError) const {
  return verifyTile(*this, shape, elementType, emitError);
}

LogicalResult SliceLayoutAttr::verify(EmitErrorFn emitError, int64_t dim,
                                      Attribute parent) {
  if (dim != 0 && dim != 1)
    return emitError() << "expected dim 0 or 1, got " << dim;
  if (!isa<MmaLayoutAttr, TmemRegsLayoutAttr>(parent))
    return emitError() << "expected the parent to be #attn.mma or "
                          "#attn.tmem_regs, got "
                       << parent;
  return success();
}

/// The least tile of `rows` rows that the registers of TMEM loads can hold.
static llvm::Expected<TileLayout> getLeastTile(TmemRegsLayoutAttr layout,
                                               int64_t rows) {
  constexpr int64_t columnsOfEachShape = 8;
  return getRegisters(layout, rows,
                      hasHalves(layout) ? kHalvedColumns : columnsOfEachShape);
}

llvm::Expected<TileLayout>
SliceLayoutAttr::toTileLayout(ArrayRef<int64_t> shape, unsigned) const {
  if (shape.size() != 1)
    return makeError("expected a tile of rank 1 for #attn.slice, got rank " +
                     Twine(shape.size()));
  if (auto regs = dyn_cast<TmemRegsLayoutAttr>(getParent())) {
    auto parent = getDim() == 1 ? getLeastTile(regs, shape[0])
                  : hasHalves(regs)
                      ? tmemHalfRegisters(shape[0])
                      : tmemRegisters(regs.getShape(), kTmemLanes, shape[0]);
    if (!parent)
      return parent.takeError();
    return parent->slice(getDim());
  }
  // The extent of the dropped dimension does not matter: the least one serves.
  WarpGrid grid = gridOf(cast<MmaLayoutAttr>(getParent()));
  grid.columnQuads &= getDim() == 0;
  auto parent = getDim() == 1 ? mmaAccumulator(shape[0], 8 * grid.n, grid)
                              : mmaAccumulator(16 * grid.m, shape[0], grid);
  if (!parent)
    return parent.takeError();
  return parent->slice(getDim());
}

LogicalResult SliceLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                              Type elementType,
                                              EmitErrorFn emitError) const {
  return verifyTile(*this, shape, elementType, emitError);
}

LogicalResult PartialLayoutAttr::verify(EmitErrorFn emitError,
                                        Attribute parent) {
  if (!isa<MmaLayoutAttr, TmemRegsLayoutAttr, AutoLayoutAttr>(parent))
    return emitError() << "expected the parent to be #attn.mma, "
                          "#attn.tmem_regs or #attn.auto, got "
                       << parent;
  return success();
}

/// Partial sums beside the registers of TMEM loads: rows as there, and one
/// column for each thread that shares a row.
static llvm::Expected<TileLayout> getPartialTile(TmemRegsLayoutAttr layout,
                                                 ArrayRef<int64_t> shape) {
  auto tile = getLeastTile(layout, shape[0]);
  if (!tile)
    return tile.takeError();
  unsigned ownerBits =
      tile->laneBitsAlong(1).size() + tile->warpBitsAlong(1).size();
  if (shape[1] != int64_t(1) << ownerBits)
    return makeError("expected " + Twine(1 << ownerBits) +
                     " columns, one for each owner of a row, got " +
                     Twine(shape[1]));
  auto unit =
      LinearLayout::get({{dimName(0), shape[0]}, {dimName(1), shape[1]}});
  if (!unit)
    return unit.takeError();
  // Each basis moves along one dimension alone.
  int64_t column = 1;
  SmallVector<Coords> registers, lanes, warps;
  for (unsigned bit = 0; 1u << bit < tile->numUnitRegisters(); ++bit)
    if (int64_t row = tile->unit().basisAlong(kRegisterAxis, bit, dimName(0)))
      registers.push_back({row, 0});
  for (unsigned bit = 0; bit < TileLayout::laneBits; ++bit) {
    int64_t row = tile->laneBasis(bit)[0];
    lanes.push_back({row, row == 0 ? column : 0});
    column *= row == 0 ? 2 : 1;
  }
  for (unsigned bit = 0; bit < tile->warpBits(); ++bit) {
    int64_t row = tile->warpBasis(bit)[0];
    warps.push_back({row, row == 0 ? column : 0});
    column *= row == 0 ? 2 : 1;
  }
  if (auto error = unit->addAxis(kRegisterAxis, registers))
    return std::move(error);
  if (auto error = unit->addAxis(kLaneAxis, lanes))
    return std::move(error);
  if (auto error = unit->addAxis(kWarpAxis, warps))
    return std::move(error);
  return TileLayout::get(*unit, {});
}

llvm::Expected<TileLayout>
PartialLayoutAttr::toTileLayout(ArrayRef<int64_t> shape, unsigned) const {
  if (shape.size() != 2)
    return makeError("expected a tile of rank 2 for #attn.partial, got rank " +
                     Twine(shape.size()));
  if (auto regs = dyn_cast<TmemRegsLayoutAttr>(getParent()))
    return getPartialTile(regs, shape);
  auto parent = dyn_cast<MmaLayoutAttr>(getParent());
  if (!parent)
    return makeError("the parent's layout is not known yet");
  WarpGrid grid = gridOf(parent);
  int64_t owners = kRowOwners * grid.n;
  if (shape[1] != owners)
    return makeError("expected " + Twine(owners) +
                     " columns, one for each owner of a row, got " +
                     Twine(shape[1]));
  if (shape[0] % (16 * grid.m) != 0)
    return makeError("expected the rows to be a multiple of " +
                     Twine(16 * grid.m) + ", got " + Twine(shape[0]));
  // Lane l owns column l % 4 (of its warp's four) of rows l / 4 and l / 4 + 8.
  auto row = [](int64_t r) { return Coords{r, 0}; };
  auto column = [](int64_t c) { return Coords{0, c}; };
  SmallVector<Coords> warps;
  int64_t unitRows = 16;
  for (; unitRows < 16 * int64_t(grid.m); unitRows *= 2)
    warps.push_back(row(unitRows));
  for (unsigned bit = 0; (1u << bit) < grid.n; ++bit)
    warps.push_back(column(int64_t(4) << bit));
  for (unsigned bit = 0; (1u << bit) < grid.copies; ++bit)
    warps.push_back(row(0));
  auto unit = LinearLayout::get({{dimName(0), unitRows}, {dimName(1), owners}});
  if (!unit)
    return unit.takeError();
  if (auto error = unit->addAxis(kRegisterAxis, {row(8)}))
    return std::move(error);
  if (auto error = unit->addAxis(
          kLaneAxis, {column(1), column(2), row(1), row(2), row(4)}))
    return std::move(error);
  if (auto error = unit->addAxis(kWarpAxis, warps))
    return std::move(error);
  return TileLayout::get(*unit, {{0, shape[0] / (16 * grid.m)}},
                         grid.getWarps());
}

LogicalResult PartialLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                                Type elementType,
                                                EmitErrorFn emitError) const {
  if (isAuto(*this)) {
    if (shape.size() != 2)
      return emitError() << "expected a tile of rank 2 for #attn.partial, got "
                            "rank "
                         << shape.size();
    return success();
  }
  return verifyTile(*this, shape, elementType, emitError);
}

LogicalResult RunsLayoutAttr::verify(EmitErrorFn emitError, Attribute parent) {
  auto layout = dyn_cast<MmaLayoutAttr>(parent);
  if (!layout)
    return emitError() << "expected the parent to be #attn.mma, got " << parent;
  if (layout.getWarps()[1] != 1 && !layout.getColumnRuns())
    return emitError() << "expected one warp along the columns or column_runs";
  if (layout.getCopies() != 1)
    return emitError() << "expected one copy, got " << layout.getCopies();
  return success();
}

llvm::Expected<TileLayout>
RunsLayoutAttr::toTileLayout(ArrayRef<int64_t> shape,
                             unsigned elementBits) const {
  if (shape.size() != 2)
    return makeError("expected a tile of rank 2 for #attn.runs, got rank " +
                     Twine(shape.size()));
  WarpGrid grid = gridOf(cast<MmaLayoutAttr>(getParent()));
  int64_t rows = 16 * int64_t(grid.m), run = 128 / elementBits;
  int64_t unitColumns = 4 * run * grid.n;
  if (shape[0] % rows != 0 || shape[1] % unitColumns != 0)
    return makeError("expected multiples of " + Twine(rows) + " x " +
                     Twine(unitColumns) + " for #attn.runs, got " +
                     Twine(shape[0]) + " x " + Twine(shape[1]));
  SmallVector<Coords> registers, warps;
  for (int64_t column = 1; column < run; column *= 2)
    registers.push_back({0, column});
  registers.push_back({8, 0});
  int64_t height = 16, width = 4 * run;
  for (; height < rows; height *= 2)
    warps.push_back({height, 0});
  // Warps along the columns keep runs of the row.
  int64_t own = grid.n == 1 ? width : shape[1] / grid.n;
  for (; width < own; width *= 2)
    registers.push_back({0, width});
  if (width != own)
    return makeError("expected a power of two of columns a warp, got " +
                     Twine(own));
  for (; width < own * grid.n; width *= 2)
    warps.push_back({0, width});
  SmallVector<Coords> lanes = {{0, run}, {0, 2 * run}, {1, 0}, {2, 0}, {4, 0}};
  auto unit = LinearLayout::get({{dimName(0), height}, {dimName(1), width}});
  if (!unit)
    return unit.takeError();
  for (auto [axis, bases] :
       {std::pair(kRegisterAxis, registers), std::pair(kLaneAxis, lanes),
        std::pair(kWarpAxis, warps)})
    if (auto error = unit->addAxis(axis, bases))
      return std::move(error);
  return TileLayout::get(*unit, {{1, shape[1] / width}, {0, shape[0] / rows}},
                         grid.getWarps());
}

LogicalResult RunsLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                             Type elementType,
                                             EmitErrorFn emitError) const {
  return verifyTile(*this, shape, elementType, emitError);
}

LogicalResult BlockedLayoutAttr::verify(EmitErrorFn emitError,
                                        ArrayRef<int64_t> perThread,
                                        int64_t warps,
                                        ArrayRef<int64_t> order) {
  if (perThread.size() != order.size())
    return emitError() << "expected per_thread and order of one rank, got "
                       << perThread.size() << " and " << order.size();
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  for (auto [index, dim] : llvm::enumerate(sorted))
    if (dim != static_cast<int64_t>(index))
      return emitError() << "expected order to be a permutation of the "
                            "dimensions";
  for (int64_t count : perThread)
    if (count < 1 || !llvm::isPowerOf2_64(count))
      return emitError() << "expected powers of two for per_thread, got "
                         << count;
  if (warps < 1 || warps > kMaxWarps || !llvm::isPowerOf2_64(warps))
    return emitError() << "expected a power of two up to " << kMaxWarps
                       << " of warps, got " << warps;
  return success();
}

llvm::Expected<TileLayout>
BlockedLayoutAttr::toTileLayout(ArrayRef<int64_t> shape, unsigned) const {
  if (shape.size() != getPerThread().size())
    return makeError("expected a tile of rank " + Twine(getPerThread().size()) +
                     " for #attn.blocked, got rank " + Twine(shape.size()));
  SmallVector<unsigned> order(getOrder());
  return blocked(shape, getPerThread(), getWarps(), order);
}

LogicalResult BlockedLayoutAttr::verifyEncoding(ArrayRef<int64_t> shape,
                                                Type elementType,
                                                EmitErrorFn emitError) const {
  return verifyTile(*this, shape, elementType, emitError);
}

//===----------------------------------------------------------------------===//
// Layouts of types
//===----------------------------------------------------------------------===//

llvm::Expected<TileLayout> attn::getTileLayout(RankedTensorType type) {
  auto layout =
      dyn_cast_if_present<TileLayoutAttrInterface>(type.getEncoding());
  if (!layout)
    return makeError("expected a tile whose layout is chosen");
  return layout.toTileLayout(type.getShape(), type.getElementTypeBitWidth());
}

bool attn::isTile(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() &&
         isa_and_nonnull<TileLayoutAttrInterface, AutoLayoutAttr>(
             tensor.getEncoding());
}

//===----------------------------------------------------------------------===//
// Roles of channels
//===----------------------------------------------------------------------===//

bool RoleAttr::hasPartition(StringRef name) const {
  return llvm::any_of(getPartitions(), [&](StringAttr partition) {
    return partition.getValue() == name;
  });
}

/// Parts of a slot: a CTA has at most as many warpgroups, of which each may
/// have one.
static constexpr size_t kMostParts = 16;

/// The first name that stands twice, or null.
static StringAttr findTwin(ArrayRef<StringAttr> names) {
  for (auto [index, name] : llvm::enumerate(names))
    if (llvm::is_contained(names.take_front(index), name))
      return name;
  return {};
}

LogicalResult RoleAttr::verify(EmitErrorFn emitError, StringRef name,
                               SignalKind, ArrayRef<StringAttr> partitions,
                               ArrayRef<StringAttr> parts) {
  if (name.empty())
    return emitError() << "expected a role with a name, got none";
  if (partitions.empty())
    return emitError() << "expected at least one partition for role '" << name
                       << "', got none";
  if (StringAttr twin = findTwin(partitions))
    return emitError() << "expected partitions of different names for role '"
                       << name << "', got " << twin << " twice";
  if (parts.size() == 1 || parts.size() > kMostParts)
    return emitError() << "expected from 2 to " << kMostParts
                       << " parts of role '" << name << "', got "
                       << parts.size();
  if (StringAttr twin = findTwin(parts))
    return emitError() << "expected parts of different names for role '" << name
                       << "', got " << twin << " twice";
  return success();
}

Attribute RoleAttr::parse(AsmParser &parser, Type) {
  std::string name;
  SmallVector<StringAttr> partitions, parts;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseString(&name))
    return {};
  auto parseNames = [&](SmallVectorImpl<StringAttr> &names) -> ParseResult {
    return parser.parseCommaSeparatedList(
        AsmParser::Delimiter::Square, [&]() -> ParseResult {
          std::string text;
          if (parser.parseString(&text))
            return failure();
          names.push_back(StringAttr::get(parser.getContext(), text));
          return success();
        });
  };
  if (failed(parser.parseOptionalKeyword("in")))
    partitions.push_back(StringAttr::get(parser.getContext(), name));
  else if (parseNames(partitions))
    return {};
  FailureOr<SignalKind> signal = failure();
  if (parser.parseComma() ||
      failed(signal = FieldParser<SignalKind>::parse(parser)))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("parts") || parser.parseEqual() ||
       parseNames(parts)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<RoleAttr>(loc, parser.getContext(), name, *signal,
                                     partitions, parts);
}

void RoleAttr::print(AsmPrinter &printer) const {
  auto printNames = [&](ArrayRef<StringAttr> names) {
    printer << "[";
    llvm::interleaveComma(names, printer,
                          [&](StringAttr name) { printer << name; });
    printer << "]";
  };
  printer << "<";
  printer.printString(getName());
  if (getPartitions().size() != 1 || !hasPartition(getName())) {
    printer << " in ";
    printNames(getPartitions());
  }
  printer << ", " << stringifySignalKind(getSignal());
  if (!getParts().empty()) {
    printer << ", parts = ";
    printNames(getParts());
  }
  printer << ">";
}
