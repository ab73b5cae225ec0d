//===- LaunchRecordReader.cpp - strict reader of launch records -----------===//
//
// Reads JSON field by field, straight through, and says all that is wrong. What
// people write by hand may leave out what has a default.
//
//===----------------------------------------------------------------------===//
#include "LaunchRecordNames.h"
#include "ObjectReader.h"
#include "ProblemJSON.h"
#include "attn/Launch/LaunchBinding.h"
#include "attn/Support/Assumption.h"
#include "attn/Support/JSON.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

namespace {

/// Reads the parts of a record in order; later parts refer to the tensors.
class RecordReader {
public:
  RecordReader(const json::Value &root) : root(root) {}

  Expected<LaunchRecord> run() {
    readRoot();
    if (failure)
      return failure.takeError();
    return std::move(record);
  }

private:
  void readRoot();
  void readAssembled(const json::Value &value);
  void readTarget(const json::Value &value);
  void readTensor(const json::Value &value, std::string path);
  /// The fields of a step, which stand in the record itself in version 1.
  void readStep(ObjectReader &reader);
  void readWorkspaces(ObjectReader &reader, StringRef field);
  SyncVerdict readProof(const json::Value &value, std::string path);
  void readArg(LaunchStep &step, const json::Value &value, std::string path);
  void readTensorMap(ObjectReader &reader, LaunchArg &arg);
  void readWorkspace(const json::Value &value, std::string path);
  bool takeFlag(ObjectReader &reader, StringRef field) {
    return reader.has(field) && reader.takeBool(field);
  }
  std::optional<unsigned> readTensorName(ObjectReader &reader);
  void readGrid(ObjectReader &reader, LaunchStep &step);
  SizeExpr toExtent(ObjectReader &reader, const json::Value &value,
                    const std::string &path);
  void checkSymbols(const SizeExpr &expression, StringRef path);
  std::optional<unsigned> find(StringRef name) const {
    auto found = tensorIndex.find(name);
    if (found == tensorIndex.end())
      return std::nullopt;
    return found->second;
  }

  const json::Value &root;
  Failure failure;
  int64_t version = 0;
  LaunchRecord record;
  llvm::StringMap<unsigned> tensorIndex;
  /// Names of workspaces.
  llvm::StringSet<> workspaceNames;
};

} // namespace

/// Hardware bounds the rank of a tensor map at 5; tensors get some room beyond.
static constexpr size_t maxRank = 8;

void RecordReader::readRoot() {
  if (!root.getAsObject())
    return failure.report("the whole",
                          "expected an object, got " + describeValue(root));
  ObjectReader reader(root, "", failure);
  // The version comes first: it decides what else can be understood.
  if (!reader.has("version"))
    return reader.fail("version", "missing field; this is no launch record");
  version = reader.takeInteger("version", 0);
  if (reader.failed())
    return;
  if (version < 1 || version > LaunchRecord::currentVersion)
    return reader.fail("version",
                       llvm::formatv("expected 1 to {0}, got {1}",
                                     LaunchRecord::currentVersion, version)
                           .str());

  if (const json::Value *target = reader.take("target"))
    readTarget(*target);
  reader.takeArray("tensors", [&](const json::Value &value, std::string path) {
    readTensor(value, std::move(path));
  });
  readWorkspaces(reader, version == 1 ? "workspace" : "workspaces");
  if (version == 1)
    readStep(reader);
  else
    reader.takeArray("steps", [&](const json::Value &value, std::string path) {
      ObjectReader step(value, std::move(path), failure);
      readStep(step);
      step.finish();
    });
  if (reader.has("steps") && record.steps.empty() && !reader.failed())
    reader.fail("steps", "expected at least one step, got none");
  if (reader.has("problem"))
    if (const json::Value *problem = reader.take("problem"))
      record.problem = readProblem(*problem, failure);
  if (reader.has("assembled"))
    if (const json::Value *assembled = reader.take("assembled"))
      readAssembled(*assembled);
  reader.finish();
}

void RecordReader::readWorkspaces(ObjectReader &reader, StringRef field) {
  if (!reader.has(field))
    return;
  reader.takeArray(field, [&](const json::Value &value, std::string path) {
    readWorkspace(value, std::move(path));
  });
}

/// An extent of a grid, which may be a plain number.
SizeExpr RecordReader::toExtent(ObjectReader &reader, const json::Value &value,
                                const std::string &path) {
  if (value.kind() == json::Value::Number)
    return cantFail(
        SizeExpr::parse(std::to_string(reader.toInteger(value, path, 0))));
  SizeExpr extent = reader.toExpression(value, path);
  checkSymbols(extent, path);
  return extent;
}

/// Calls `element` with each of up to three extents, or with the only one.
static void
takeExtents(ObjectReader &reader, StringRef field,
            llvm::function_ref<void(unsigned, const json::Value &, std::string)>
                element) {
  const json::Value *value = reader.take(field);
  if (!value)
    return;
  const json::Array *array = value->getAsArray();
  if (!array)
    return element(0, *value, reader.at(field));
  if (array->empty() || array->size() > 3)
    return reader.fail(field,
                       "expected 1 to 3 elements, got " + Twine(array->size()));
  for (auto [axis, item] : llvm::enumerate(*array))
    element(axis, item, reader.at(field) + "[" + std::to_string(axis) + "]");
}

void RecordReader::readGrid(ObjectReader &reader, LaunchStep &step) {
  step.grid.fill(cantFail(SizeExpr::parse("1")));
  takeExtents(reader, "grid",
              [&](unsigned axis, const json::Value &value, std::string path) {
                step.grid[axis] = toExtent(reader, value, path);
              });
}

void RecordReader::readStep(ObjectReader &reader) {
  LaunchStep step;
  step.kernel = reader.takeString("kernel");
  readGrid(reader, step);
  auto readExtents = [&](StringRef field, std::array<int64_t, 3> &extents) {
    takeExtents(reader, field,
                [&](unsigned axis, const json::Value &value, std::string path) {
                  extents[axis] = reader.toInteger(value, path, 1);
                });
  };
  readExtents("block", step.block);
  if (reader.has("cluster"))
    readExtents("cluster", step.cluster);
  // Limits of every target that the project knows (CUDA programming guide,
  // "Technical Specifications per Compute Capability").
  auto checkProduct = [&](StringRef field, ArrayRef<int64_t> extents,
                          int64_t limit) {
    int64_t product = 1;
    for (int64_t extent : extents)
      product =
          extent > limit ? limit + 1 : std::min(limit + 1, product * extent);
    if (product > limit)
      reader.fail(field, "expected a product of at most " + Twine(limit));
  };
  checkProduct("block", step.block, 1024);
  checkProduct("cluster", step.cluster, 16);
  if (reader.has("shared_bytes"))
    step.sharedBytes = reader.takeInteger("shared_bytes", 0, 1 << 20);
  reader.takeArray("args", [&](const json::Value &value, std::string path) {
    readArg(step, value, std::move(path));
  });
  if (version > 1) {
    step.cooperative = takeFlag(reader, "cooperative");
    step.programmatic = takeFlag(reader, "programmatic");
  }
  if (reader.has("tiles"))
    if (const json::Value *tiles = reader.take("tiles"))
      step.tiles = toExtent(reader, *tiles, reader.at("tiles"));
  if (reader.has("proof"))
    if (const json::Value *proof = reader.take("proof"))
      step.proof = readProof(*proof, reader.at("proof"));
  record.steps.push_back(std::move(step));
}

SyncVerdict RecordReader::readProof(const json::Value &value,
                                    std::string path) {
  SyncVerdict proof;
  ObjectReader reader(value, std::move(path), failure);
  proof.kind = reader.takeEnum("verdict", verdictNames);
  if (reader.failed())
    return proof;
  if (proof.kind != SyncVerdict::Kind::Unchecked) {
    proof.profile = getName(proofProfileNames,
                            reader.takeEnum("profile", proofProfileNames))
                        .str();
    reader.takeArray(
        "assumptions", [&](const json::Value &value, std::string path) {
          StringRef text = value.getAsString().value_or("");
          unsigned number = 0;
          if (!text.consume_front("A") || text.getAsInteger(10, number) ||
              number < 1 || number > numAssumptions)
            return failure.report(path, "expected \"A1\" to \"A" +
                                            std::to_string(numAssumptions) +
                                            "\", got " + describeValue(value));
          proof.assumptions |= 1u << number;
        });
  }
  if (proof.kind == SyncVerdict::Kind::Bounded)
    proof.tiles = reader.takeInteger("tiles", 0);
  if (proof.kind != SyncVerdict::Kind::Proved)
    proof.reason = reader.takeString("reason");
  reader.finish();
  return proof;
}

void RecordReader::readAssembled(const json::Value &value) {
  ObjectReader reader(value, "assembled", failure);
  AssembledPlan &assembled = record.assembled.emplace();
  assembled.ptxas = reader.takeString("ptxas");
  assembled.skipped = reader.takeInteger("skipped", 0);
  reader.finish();
}

void RecordReader::readTarget(const json::Value &value) {
  ObjectReader reader(value, "target", failure);
  record.chip = reader.takeString("chip");
  record.ptxVersion = reader.takeInteger("ptx", 10, 999);
  reader.finish();
}

void RecordReader::readTensor(const json::Value &value, std::string path) {
  ObjectReader reader(value, std::move(path), failure);
  LaunchTensor tensor;
  tensor.name = reader.takeString("name");
  if (!reader.failed() &&
      !tensorIndex.try_emplace(tensor.name, record.tensors.size()).second)
    reader.fail("name",
                "expected distinct names, got \"" + tensor.name + "\" twice");
  tensor.dtype = reader.takeEnum("dtype", dtypeNames);
  reader.takeIntegers("shape", tensor.shape, kDynamicSize);
  if (tensor.shape.size() > maxRank)
    reader.fail("shape", "expected at most " + Twine(maxRank) +
                             " dimensions, got " + Twine(tensor.shape.size()));
  // Strides of any sign exist; only -1 is taken, for "dynamic". Left out they
  // are as open as the shape, and row-major where nobody says more.
  if (reader.has("strides"))
    reader.takeIntegers("strides", tensor.strides, kDynamicSize,
                        tensor.shape.size());
  else if (llvm::is_contained(tensor.shape, kDynamicSize))
    tensor.strides.assign(tensor.shape.size(), kDynamicSize);
  else
    tensor.strides = getContiguousStrides(tensor.shape);
  tensor.access = reader.takeEnum("access", accessNames);
  reader.finish();
  record.tensors.push_back(std::move(tensor));
}

std::optional<unsigned> RecordReader::readTensorName(ObjectReader &reader) {
  std::string name = reader.takeString("tensor");
  if (name.empty())
    return std::nullopt;
  std::optional<unsigned> index = find(name);
  if (!index)
    reader.fail("tensor", "unknown tensor \"" + name + "\"");
  return index;
}

void RecordReader::readArg(LaunchStep &step, const json::Value &value,
                           std::string path) {
  ObjectReader reader(value, std::move(path), failure);
  LaunchArg arg;
  arg.kind = version == 1 ? reader.takeEnum("kind", argKindNamesOfVersion1)
                          : reader.takeEnum("kind", argKindNames);
  if (reader.failed())
    return;
  switch (arg.kind) {
  case ArgKind::Pointer:
    arg.tensor = readTensorName(reader).value_or(0);
    break;
  case ArgKind::Size:
  case ArgKind::Stride: {
    std::optional<unsigned> tensor = readTensorName(reader);
    if (!tensor)
      return;
    arg.tensor = *tensor;
    int64_t rank = record.tensors[arg.tensor].shape.size();
    arg.dim = reader.takeInteger("dim", 0, rank - 1);
    arg.type = reader.takeEnum("type", indexTypeNames);
    break;
  }
  case ArgKind::Scalar:
    arg.name = reader.takeString("name");
    arg.type = reader.takeEnum("type", dtypeNames);
    if (reader.has("value"))
      arg.value = reader.takeNumber("value");
    break;
  case ArgKind::TensorMap:
    readTensorMap(reader, arg);
    break;
  case ArgKind::Workspace:
    arg.workspace =
        reader.takeInteger("index", 0, int64_t(record.workspaces.size()) - 1);
    if (version > 1 && reader.has("access"))
      arg.access = reader.takeEnum("access", workspaceAccessNames);
    break;
  case ArgKind::Expression:
    if (const json::Value *text = reader.take("value")) {
      arg.expression = reader.toExpression(*text, reader.at("value"));
      checkSymbols(arg.expression, reader.at("value"));
    }
    arg.type = reader.takeEnum("type", indexTypeNames);
    break;
  }
  reader.finish();
  step.args.push_back(std::move(arg));
}

void RecordReader::readTensorMap(ObjectReader &reader, LaunchArg &arg) {
  std::optional<unsigned> tensor = readTensorName(reader);
  if (!tensor)
    return reader.giveUp();
  arg.tensor = *tensor;
  // Limits of cuTensorMapEncodeTiled in the CUDA driver API.
  int64_t rank = reader.takeInteger("rank", 1, 5);
  if (reader.has("view"))
    arg.view = reader.takeEnum("view", mapViewNames);
  size_t tensorRank = record.tensors[arg.tensor].shape.size();
  unsigned leastRank = 1;
  bool hasHeads = isPacked(arg.view) || isByRow(arg.view) ||
                  arg.view == TensorMapView::Bounded;
  if (arg.view != TensorMapView::Whole)
    leastRank = hasHeads ? 3 : 2;
  size_t mapRank = getMapRank(arg.view, tensorRank);
  if (!reader.failed() && tensorRank < leastRank)
    reader.fail("view", "expected a tensor of rank " + Twine(leastRank) +
                            " or more, got " + Twine(tensorRank));
  else if (!reader.failed() && size_t(rank) != mapRank)
    reader.fail("rank",
                (arg.view == TensorMapView::Rows ? "expected the rank of rows, "
                 : mapRank != tensorRank
                     ? "expected one more than the tensor's rank, "
                     : "expected the tensor's rank ") +
                    Twine(mapRank) + ", got " + Twine(rank));
  // No dimension of a tensor map steps further.
  if (!reader.failed() && arg.view == TensorMapView::Rows)
    arg.pitch = reader.takeInteger("pitch", 1, int64_t(1) << 40);
  // The box has to be of this rank.
  if (reader.failed())
    return reader.giveUp();
  reader.takeIntegers("box", arg.box, 1, rank);
  if (llvm::any_of(arg.box, [](int64_t extent) { return extent > 256; }))
    reader.fail("box", "expected extents of at most 256");
  arg.swizzle = reader.takeEnum("swizzle", swizzleNames);
  arg.element = reader.takeEnum("element", dtypeNames);
  if (reader.failed())
    return;
  int64_t inner = arg.box.front() * getByteWidth(arg.element);
  if (inner % 16)
    reader.fail("box", "expected an inner extent of a multiple of 16 bytes, "
                       "got " +
                           Twine(inner));
  unsigned span = getSwizzleBytes(arg.swizzle);
  if (span && inner > span)
    reader.fail("box", "expected an inner extent of at most the swizzle's " +
                           Twine(span) + " bytes, got " + Twine(inner));
}

void RecordReader::readWorkspace(const json::Value &value, std::string path) {
  ObjectReader reader(value, path, failure);
  LaunchWorkspace workspace;
  if (version > 1 && reader.has("name"))
    workspace.name = reader.takeString("name");
  if (!workspace.name.empty() && !workspaceNames.insert(workspace.name).second)
    reader.fail("name", "expected distinct names, got \"" + workspace.name +
                            "\" twice");
  if (const json::Value *bytes = reader.take("bytes")) {
    workspace.bytes = reader.toExpression(*bytes, reader.at("bytes"));
    checkSymbols(workspace.bytes, reader.at("bytes"));
  }
  workspace.zeroed = reader.takeBool("zeroed");
  workspace.restored = takeFlag(reader, "restored");
  workspace.persistent = version > 1 && takeFlag(reader, "persistent");
  if (workspace.restored && !workspace.zeroed)
    reader.fail("restored", "expected false without zeroed, got true");
  if (workspace.restored && workspace.persistent)
    reader.fail("restored", "expected false with persistent, got true");
  reader.finish();
  record.workspaces.push_back(std::move(workspace));
}

void RecordReader::checkSymbols(const SizeExpr &expression, StringRef path) {
  for (const SizeSymbol &symbol : expression.getSymbols()) {
    if (symbol.isDevice() && version == 1) {
      failure.report(path, "expected version 2 for \"sms\" in \"" +
                               expression.getText() + "\", got 1");
      return;
    }
    if (symbol.isDevice())
      continue;
    std::optional<unsigned> tensor = find(symbol.tensor);
    if (!tensor) {
      failure.report(path, "unknown tensor \"" + symbol.tensor + "\" in \"" +
                               expression.getText() + "\"");
      return;
    }
    size_t rank = record.tensors[*tensor].shape.size();
    if (symbol.index >= rank) {
      failure.report(path, "expected a dimension below " + Twine(rank) +
                               " of \"" + symbol.tensor + "\", got " +
                               Twine(symbol.index));
      return;
    }
  }
}

Expected<LaunchRecord> mlir::attn::parseLaunchStep(StringRef text) {
  Expected<json::Value> root = parseJSON(text);
  if (!root)
    return createStringError("launch record: not JSON: " +
                             llvm::toString(root.takeError()));
  return RecordReader(*root).run();
}

Expected<LaunchRecord> mlir::attn::parseLaunchRecord(StringRef text) {
  Expected<LaunchRecord> record = parseLaunchStep(text);
  if (!record)
    return record;
  if (llvm::Error error = checkSteps(*record))
    return createStringError("launch record: " +
                             llvm::toString(std::move(error)));
  return record;
}
