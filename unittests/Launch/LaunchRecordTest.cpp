//===- LaunchRecordTest.cpp - tests of launch records ---------------------===//
#include "attn/Launch/LaunchRecord.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::attn;
using llvm::StringRef;
using testing::HasSubstr;
namespace json = llvm::json;

/// The text of a file under docs/.
static std::string readDocs(StringRef name) {
  auto buffer = llvm::MemoryBuffer::getFile((ATTN_DOCS_DIR "/" + name).str());
  if (!buffer) {
    ADD_FAILURE() << "cannot read " << name.str();
    return "";
  }
  return (*buffer)->getBuffer().str();
}

/// The first JSON block of docs/LaunchRecord.md.
static std::string getDocsExample() {
  std::string text = readDocs("LaunchRecord.md");
  return StringRef(text).split("```json\n").second.split("```").first.str();
}

static LaunchRecord parse(StringRef text) {
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
  if (!record) {
    ADD_FAILURE() << llvm::toString(record.takeError());
    return {};
  }
  return std::move(*record);
}

/// The error for the docs' example after its first `from` became `to`.
static std::string failure(StringRef from, StringRef to) {
  std::string text = getDocsExample();
  size_t at = text.find(from.str());
  if (at == std::string::npos)
    return "the example has no " + from.str();
  text.replace(at, from.size(), to.str());
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
  return record ? "no error" : llvm::toString(record.takeError());
}

/// Checks `value` against the parts of JSON Schema that our schema uses.
/// Returns the path of the first violation, or an empty string.
static std::string validate(const json::Value &value,
                            const json::Object &schema,
                            const json::Object &root, std::string path = "$") {
  if (std::optional<StringRef> reference = schema.getString("$ref")) {
    StringRef name = reference->rsplit('/').second;
    return validate(value, *root.getObject("$defs")->getObject(name), root,
                    path);
  }
  if (const json::Array *choices = schema.getArray("oneOf")) {
    unsigned valid = 0;
    for (const json::Value &choice : *choices)
      valid += validate(value, *choice.getAsObject(), root, path).empty();
    return valid == 1 ? "" : path + ": matches " + std::to_string(valid);
  }
  if (const json::Value *constant = schema.get("const"))
    return value == *constant ? "" : path + ": const";
  if (const json::Array *names = schema.getArray("enum"))
    return llvm::is_contained(*names, value) ? "" : path + ": enum";
  StringRef type = schema.getString("type").value_or("");
  if (type == "string")
    return value.getAsString() ? "" : path + ": string";
  if (type == "boolean")
    return value.getAsBoolean() ? "" : path + ": boolean";
  if (type == "number" || type == "integer") {
    std::optional<double> number = value.getAsNumber();
    bool valid = number && (type == "number" || value.getAsInteger());
    if (auto minimum = schema.getNumber("minimum"))
      valid = valid && *number >= *minimum;
    if (auto maximum = schema.getNumber("maximum"))
      valid = valid && *number <= *maximum;
    return valid ? "" : path + ": " + type.str();
  }
  if (type == "array") {
    const json::Array *array = value.getAsArray();
    if (!array ||
        int64_t(array->size()) < schema.getInteger("minItems").value_or(0) ||
        int64_t(array->size()) > schema.getInteger("maxItems").value_or(1000))
      return path + ": array";
    for (const json::Value &item : *array) {
      std::string error =
          validate(item, *schema.getObject("items"), root, path + "[]");
      if (!error.empty())
        return error;
    }
    return "";
  }
  const json::Object *object = value.getAsObject();
  if (!object || type != "object")
    return path + ": object";
  const json::Object &properties = *schema.getObject("properties");
  for (const json::Value &name : *schema.getArray("required"))
    if (!object->get(*name.getAsString()))
      return path + ": missing " + name.getAsString()->str();
  for (const auto &field : *object) {
    std::string name = StringRef(field.first).str();
    if (!properties.get(name))
      return path + ": unknown " + name;
    std::string error = validate(field.second, *properties.getObject(name),
                                 root, path + "." + name);
    if (!error.empty())
      return error;
  }
  return "";
}

static std::string validate(const json::Value &value) {
  llvm::Expected<json::Value> schema =
      json::parse(readDocs("launch-record.schema.json"));
  if (!schema)
    return llvm::toString(schema.takeError());
  return validate(value, *schema->getAsObject(), *schema->getAsObject());
}

TEST(LaunchRecord, ReadsTheDocumentedExample) {
  LaunchRecord record = parse(getDocsExample());
  EXPECT_EQ(record.steps[0].kernel, "attn_fwd");
  EXPECT_EQ(record.chip, "sm_90a");
  EXPECT_EQ(record.ptxVersion, 80);
  EXPECT_EQ(record.steps[0].grid[0].getText(), "ceildiv(q.dim2, 128)");
  EXPECT_EQ(record.steps[0].block[0], 128);
  EXPECT_EQ(record.steps[0].cluster[2], 1);
  EXPECT_EQ(record.steps[0].sharedBytes, 98304);
  ASSERT_EQ(record.tensors.size(), 6u);
  EXPECT_EQ(record.tensors[0].shape[2], kDynamicSize);
  EXPECT_EQ(record.tensors[3].access, TensorAccess::Write);
  EXPECT_EQ(record.tensors[4].dtype, DType::F32);
  ASSERT_EQ(record.steps[0].args.size(), 10u);
  EXPECT_EQ(record.steps[0].args[1].kind, ArgKind::TensorMap);
  EXPECT_EQ(record.steps[0].args[1].tensor, 1u);
  EXPECT_EQ(record.steps[0].args[1].box[1], 128);
  EXPECT_EQ(record.steps[0].args[1].swizzle, TensorMapSwizzle::B128);
  EXPECT_EQ(record.steps[0].args[7].kind, ArgKind::Stride);
  EXPECT_EQ(record.steps[0].args[7].type, DType::I64);
  EXPECT_DOUBLE_EQ(*record.steps[0].args[8].value, 0.08838834764831845);
  ASSERT_EQ(record.workspaces.size(), 1u);
  EXPECT_FALSE(record.workspaces[0].zeroed);
  ASSERT_TRUE(record.problem);
  EXPECT_EQ(record.problem->mask, MaskKind::Window);
  EXPECT_EQ(record.problem->align, MaskAlign::BottomRight);
  EXPECT_EQ(record.problem->left, 256);
  EXPECT_EQ(record.problem->right, 0);
  EXPECT_EQ(record.problem->softcap, 30.0);
  EXPECT_EQ(record.problem->kvHeads, 2);
  EXPECT_TRUE(record.problem->sinks);
}

TEST(LaunchRecord, ExampleAndWriterFollowTheSchema) {
  llvm::Expected<json::Value> example = json::parse(getDocsExample());
  ASSERT_TRUE(bool(example));
  EXPECT_EQ(validate(*example), "");
  LaunchRecord record = parse(getDocsExample());
  EXPECT_EQ(validate(toJSON(record)), "");
  for (MaskKind kind : {MaskKind::None, MaskKind::Causal}) {
    record.problem->mask = kind;
    EXPECT_EQ(validate(toJSON(record)), "");
  }
  record.problem.reset();
  EXPECT_EQ(validate(toJSON(record)), "");
  (*example->getAsObject())["version"] = 2;
  EXPECT_EQ(validate(*example), "$: matches 0");
}

TEST(LaunchRecord, RoundTrips) {
  llvm::Expected<json::Value> example = json::parse(getDocsExample());
  ASSERT_TRUE(bool(example));
  json::Value written = toJSON(parse(getDocsExample()));
  EXPECT_EQ(written, *example);
  EXPECT_EQ(toJSON(parse(llvm::formatv("{0:2}", written).str())), written);
}

TEST(LaunchRecord, ViewsOfTensorMaps) {
  for (auto [form, view] :
       {std::pair("\"rank\": 4, \"view\": \"transposed\", \"box\": [64, 128, "
                  "1, 1]",
                  TensorMapView::Transposed),
        std::pair("\"rank\": 5, \"view\": \"quads\", \"box\": [64, 2, 32, 1, "
                  "1]",
                  TensorMapView::Quads),
        std::pair("\"rank\": 4, \"view\": \"packed\", \"box\": [64, 128, 1, "
                  "1]",
                  TensorMapView::Packed),
        std::pair("\"rank\": 5, \"view\": \"bounded\", \"box\": [64, 16, 1, "
                  "1, 1]",
                  TensorMapView::Bounded),
        std::pair("\"rank\": 4, \"view\": \"by_row\", \"box\": [64, 4, 16, "
                  "1]",
                  TensorMapView::ByRow),
        std::pair("\"rank\": 4, \"view\": \"packed_by_row\", \"box\": [64, 4, "
                  "16, 1]",
                  TensorMapView::PackedByRow),
        std::pair("\"rank\": 2, \"view\": \"rows\", \"pitch\": 64, "
                  "\"box\": [64, 1]",
                  TensorMapView::Rows)}) {
    std::string text = getDocsExample();
    StringRef whole = "\"rank\": 4, \"box\": [64, 128, 1, 1]";
    size_t at = text.find(whole.str());
    ASSERT_NE(at, std::string::npos);
    text.replace(at, whole.size(), form);
    LaunchRecord record = parse(text);
    EXPECT_EQ(record.steps[0].args[1].view, view);
    json::Value written = toJSON(record);
    EXPECT_EQ(validate(written), "");
    EXPECT_EQ(
        parse(llvm::formatv("{0:2}", written).str()).steps[0].args[1].view,
        view);
  }
}

/// The docs' example with another verdict.
std::string withProof(StringRef proof) {
  std::string text = getDocsExample();
  size_t at = text.find("{\"verdict\"");
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, text.find('}', at) + 1 - at, proof.str());
}

TEST(LaunchRecord, VerdictsRoundTrip) {
  SyncVerdict proved = *parse(getDocsExample()).steps[0].proof;
  EXPECT_EQ(proved.kind, SyncVerdict::Kind::Proved);
  EXPECT_EQ(proved.profile, "isa");
  for (
      StringRef proof :
      {R"({"verdict": "proved", "profile": "hw", "assumptions": ["A1", "A12"]})",
       R"({"verdict": "bounded", "profile": "isa", "assumptions": [], "tiles": 7, "reason": "limit"})",
       R"({"verdict": "unchecked", "reason": "an op"})"}) {
    json::Value written = toJSON(parse(withProof(proof)));
    EXPECT_EQ(validate(written), "");
    EXPECT_EQ(*written.getAsObject()->getObject("proof"),
              *llvm::cantFail(json::parse(proof)).getAsObject());
  }
  EXPECT_EQ(parse(withProof(R"({"verdict": "bounded", "profile": "isa",
      "assumptions": ["A4"], "tiles": 7, "reason": "limit"})"))
                .steps[0]
                .proof->assumptions,
            1u << 4);
}

TEST(LaunchRecord, RejectsWrongVerdicts) {
  auto fail = [](StringRef proof) {
    llvm::Expected<LaunchRecord> record = parseLaunchRecord(withProof(proof));
    return record ? "no error" : llvm::toString(record.takeError());
  };
  EXPECT_EQ(fail(R"({"verdict": "fine"})"),
            "launch record: proof.verdict: expected one of \"proved\", "
            "\"bounded\", \"unchecked\", got \"fine\"");
  EXPECT_EQ(fail(R"({"verdict": "proved", "profile": "isa"})"),
            "launch record: proof.assumptions: missing field");
  EXPECT_EQ(fail(R"({"verdict": "proved", "profile": "isa",
                     "assumptions": ["A4", "A13"]})"),
            "launch record: proof.assumptions[1]: expected \"A1\" to \"A12\", "
            "got \"A13\"");
  EXPECT_EQ(fail(R"({"verdict": "proved", "profile": "isa", "assumptions": [],
                     "tiles": 2})"),
            "launch record: proof.tiles: unknown field");
  EXPECT_EQ(fail(R"({"verdict": "unchecked"})"),
            "launch record: proof.reason: missing field");
}

TEST(LaunchRecord, OptionalFieldsOfTheProblem) {
  std::string text = getDocsExample();
  StringRef tail = ",\n    \"sinks\": true";
  size_t at = text.find(tail.str());
  ASSERT_NE(at, std::string::npos);
  text.erase(at, text.find("\n  }", at) - at);
  LaunchRecord record = parse(text);
  EXPECT_FALSE(record.problem->sinks);
  EXPECT_FALSE(record.problem->varlen);
}

TEST(LaunchRecord, RejectsForeignAndTruncatedRecords) {
  auto fail = [](StringRef text) {
    llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
    return record ? "no error" : llvm::toString(record.takeError());
  };
  EXPECT_THAT(fail(""), HasSubstr("launch record: not JSON: "));
  EXPECT_THAT(fail(getDocsExample().substr(0, 400)),
              HasSubstr("launch record: not JSON: "));
  EXPECT_EQ(fail("[1]"),
            "launch record: the whole: expected an object, got an array");
  EXPECT_EQ(fail(R"({"kernel": "k", "grid": [1, 1, 1]})"),
            "launch record: version: missing field; this is no launch record");
  for (StringRef version : {"0", "3"})
    EXPECT_EQ(
        failure("\"version\": 1", ("\"version\": " + version).str()),
        ("launch record: version: expected 1 to 2, got " + version).str());
  // What only the next version has.
  EXPECT_EQ(failure("\"index\": 0", "\"index\": 0, \"access\": \"read\""),
            "launch record: args[9].access: unknown field");
  EXPECT_EQ(failure("\"zeroed\"", "\"persistent\": true, \"zeroed\""),
            "launch record: workspace[0].persistent: unknown field");
  EXPECT_EQ(failure("\"shared_bytes\"", "\"cooperative\": true, "
                                        "\"shared_bytes\""),
            "launch record: cooperative: unknown field");
  EXPECT_EQ(failure("q.dim0 * 4096", "sms * 4096"),
            "launch record: workspace[0].bytes: expected version 2 for "
            "\"sms\" in \"sms * 4096\", got 1");
  EXPECT_EQ(failure("\"block\": [128, 1, 1],", ""),
            "launch record: block: missing field");
  EXPECT_EQ(failure("\"shared_bytes\"", "\"x\": 1, \"shared_bytes\""),
            "launch record: x: unknown field");
  EXPECT_EQ(failure("\"ptx\": 80", "\"ptx\": 80, \"cc\": 9"),
            "launch record: target.cc: unknown field");
}

TEST(LaunchRecord, NamesThePathOfAWrongField) {
  EXPECT_EQ(failure("\"attn_fwd\"", "\"\""),
            "launch record: kernel: expected a string that is not empty, got "
            "\"\"");
  EXPECT_EQ(failure("[128, 1, 1]", "[128, 1, 1, 1]"),
            "launch record: block: expected 1 to 3 elements, got 4");
  EXPECT_EQ(failure("[128, 1, 1]", "[]"),
            "launch record: block: expected 1 to 3 elements, got 0");
  EXPECT_EQ(failure("[128, 1, 1]", "\"128\""),
            "launch record: block: expected an integer of at least 1, got "
            "\"128\"");
  EXPECT_EQ(failure("[128, 1, 1]", "[0, 1, 1]"),
            "launch record: block[0]: expected an integer of at least 1, got "
            "0");
  EXPECT_EQ(failure("[128, 1, 1]", "[1024, 2, 1]"),
            "launch record: block: expected a product of at most 1024");
  EXPECT_EQ(failure("[128, 1, 1]", "[9007199254740992, 9007199254740992, 1]"),
            "launch record: block: expected a product of at most 1024");
  EXPECT_EQ(failure("98304", "98304.5"),
            "launch record: shared_bytes: expected an integer from 0 to "
            "1048576, got 98304.5");
  EXPECT_EQ(failure("\"name\": \"k\"", "\"name\": \"q\""),
            "launch record: tensors[1].name: expected distinct names, got "
            "\"q\" twice\n"
            "launch record: args[1].tensor: unknown tensor \"k\"");
  EXPECT_EQ(failure("[-1, -1, 128, 1]", "[-1, 128, 1]"),
            "launch record: tensors[0].strides: expected 4 elements, got 3");
  EXPECT_EQ(failure("\"dtype\": \"f16\"", "\"dtype\": \"half\""),
            "launch record: tensors[0].dtype: expected one of \"f16\", "
            "\"bf16\", \"f32\", \"f64\", \"f8E4M3FN\", \"f8E5M2\", "
            "\"f8E8M0FNU\", \"i8\", "
            "\"i16\", \"i32\", \"i64\", \"u8\", \"u16\", \"u32\", \"u64\", "
            "got \"half\"");
  EXPECT_EQ(failure("ceildiv(q.dim2, 128)", "ceildiv(w.dim2, 128)"),
            "launch record: grid[0]: unknown tensor \"w\" in \"ceildiv(w.dim2, "
            "128)\"");
  EXPECT_EQ(failure("ceildiv(q.dim2, 128)", "q.dim4"),
            "launch record: grid[0]: expected a dimension below 4 of \"q\", "
            "got 4");
  EXPECT_THAT(failure("ceildiv(q.dim2, 128)", "ceildiv(q.dim2"),
              HasSubstr("launch record: grid[0]: in \"ceildiv(q.dim2\" at "
                        "column 15: expected ',', got the end"));
  EXPECT_EQ(failure("\"1\"]", "null]"),
            "launch record: grid[2]: expected an expression as a string, got "
            "null");
  EXPECT_EQ(failure("\"shared_bytes\"", "\"tiles\": -1, \"shared_bytes\""),
            "launch record: tiles: expected an integer of at least 0, got -1");
  EXPECT_EQ(
      failure("\"shared_bytes\"", "\"tiles\": \"w.dim2\", \"shared_bytes\""),
      "launch record: tiles: unknown tensor \"w\" in \"w.dim2\"");
  EXPECT_EQ(failure("\"zeroed\": false", "\"zeroed\": 0"),
            "launch record: workspace[0].zeroed: expected true or false, got "
            "0");
  EXPECT_EQ(
      failure("\"zeroed\": false", "\"zeroed\": false, \"restored\": true"),
      "launch record: workspace[0].restored: expected false without "
      "zeroed, got true");
}

TEST(LaunchRecord, ChecksArguments) {
  EXPECT_EQ(failure("{\"kind\": \"pointer\", \"tensor\": \"o\"}",
                    "{\"kind\": \"x\", \"tensor\": \"o\"}"),
            "launch record: args[3].kind: expected one of \"pointer\", "
            "\"size\", \"stride\", \"scalar\", \"tensor_map\", \"workspace\", "
            "got \"x\"");
  EXPECT_EQ(failure("{\"kind\": \"pointer\", \"tensor\": \"o\"}", "7"),
            "launch record: args[3]: expected an object, got 7");
  EXPECT_EQ(failure("\"pointer\", \"tensor\": \"o\"",
                    "\"pointer\", \"tensor\": \"w\""),
            "launch record: args[3].tensor: unknown tensor \"w\"");
  EXPECT_EQ(failure("\"dim\": 2", "\"dim\": 4"),
            "launch record: args[6].dim: expected an integer from 0 to 3, got "
            "4");
  EXPECT_EQ(failure("\"index\": 0", "\"index\": 1"),
            "launch record: args[9].index: expected an integer from 0 to 0, "
            "got 1");
  EXPECT_EQ(failure("\"rank\": 4", "\"rank\": 3"),
            "launch record: args[1].rank: expected the tensor's rank 4, got 3");
  EXPECT_EQ(failure("\"rank\": 4", "\"rank\": 4, \"view\": \"quads\""),
            "launch record: args[1].rank: expected one more than the tensor's "
            "rank, 5, got 4");
  EXPECT_EQ(failure("\"rank\": 4", "\"rank\": 4, \"view\": \"x\""),
            "launch record: args[1].view: expected one of \"whole\", "
            "\"transposed\", \"quads\", \"packed\", \"bounded\", "
            "\"by_row\", \"packed_by_row\", \"rows\", got \"x\"");
  EXPECT_EQ(failure("\"rank\": 4", "\"rank\": 4, \"view\": \"rows\""),
            "launch record: args[1].rank: expected the rank of rows, 2, got 4");
  EXPECT_EQ(failure("\"rank\": 4", "\"rank\": 2, \"view\": \"rows\""),
            "launch record: args[1].pitch: missing field");
  EXPECT_EQ(failure("\"rank\": 4", "\"rank\": 4, \"view\": \"bounded\""),
            "launch record: args[1].rank: expected one more than the tensor's "
            "rank, 5, got 4");
  EXPECT_EQ(failure("\"tensor\": \"k\", \"rank\": 4",
                    "\"tensor\": \"sinks\", \"rank\": 1, \"view\": "
                    "\"packed\""),
            "launch record: args[1].view: expected a tensor of rank 3 or more, "
            "got 1");
  EXPECT_EQ(failure("\"tensor\": \"k\", \"rank\": 4",
                    "\"tensor\": \"sinks\", \"rank\": 1, \"view\": "
                    "\"transposed\""),
            "launch record: args[1].view: expected a tensor of rank 2 or more, "
            "got 1");
  EXPECT_EQ(failure("[64, 128, 1, 1]", "[64, 257, 1, 1]"),
            "launch record: args[1].box: expected extents of at most 256");
  EXPECT_EQ(failure("[64, 128, 1, 1]", "[68, 128, 1, 1]"),
            "launch record: args[1].box: expected an inner extent of a "
            "multiple of 16 bytes, got 136\n"
            "launch record: args[1].box: expected an inner extent of at most "
            "the swizzle's 128 bytes, got 136");
  EXPECT_EQ(failure("[64, 128, 1, 1]", "[128, 128, 1, 1]"),
            "launch record: args[1].box: expected an inner extent of at most "
            "the swizzle's 128 bytes, got 256");
}

TEST(LaunchRecord, ChecksTheProblem) {
  EXPECT_EQ(failure("\"problem\": {\n    \"scale\": 0.08838834764831845",
                    "\"problem\": {\n    \"scale\": 0"),
            "launch record: problem.scale: expected a number other than 0");
  EXPECT_EQ(failure("\"window\"", "\"local\""),
            "launch record: problem.mask.kind: expected one of \"none\", "
            "\"causal\", \"window\", got \"local\"");
  EXPECT_EQ(failure("\"window\"", "\"causal\""),
            "launch record: problem.mask.left: unknown field\n"
            "launch record: problem.mask.right: unknown field");
  EXPECT_EQ(failure("30.0", "-1"),
            "launch record: problem.softcap: expected a number of at least 0");
  EXPECT_EQ(failure("\"kv_heads\": 2", "\"kv_heads\": 3"),
            "launch record: problem.kv_heads: expected a divisor of the 8 "
            "heads, got 3");
  EXPECT_EQ(failure("\"scale\": 0.08838834764831845,\n    \"mask\"",
                    "\"scale\": 1e999,\n    \"mask\"")
                .substr(0, 44),
            "launch record: problem.scale: expected a fin");
}

TEST(LaunchRecord, SurvivesDamage) {
  std::string text = getDocsExample();
  std::mt19937 random(1);
  const StringRef pieces[] = {"-1",        "{",     "]",
                              "\"",        "1e999", "null",
                              "[]",        ",",     "9223372036854775807",
                              "\"q.dim9\""};
  unsigned accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (unsigned j = 0; j <= random() % 3; ++j) {
      size_t at = random() % damaged.size();
      StringRef piece = pieces[random() % std::size(pieces)];
      damaged.replace(at, random() % 8, piece.str());
    }
    llvm::Expected<LaunchRecord> record = parseLaunchRecord(damaged);
    if (record) {
      ++accepted;
      EXPECT_EQ(toJSON(parse(llvm::formatv("{0}", toJSON(*record)).str())),
                toJSON(*record));
    } else {
      EXPECT_THAT(llvm::toString(record.takeError()),
                  testing::StartsWith("launch record: "));
    }
  }
  EXPECT_LT(accepted, 1000u);
}

/// What people write.
static constexpr const char *shortRecord = R"json({
  "version": 1, "kernel": "saxpy", "target": {"chip": "sm_80", "ptx": 80},
  "grid": 3, "block": 128,
  "tensors": [
    {"name": "x", "dtype": "u8", "shape": [4, 6], "access": "read"},
    {"name": "y", "dtype": "i16", "shape": [-1, 6], "access": "update"}],
  "args": [{"kind": "pointer", "tensor": "x"},
           {"kind": "pointer", "tensor": "y"},
           {"kind": "scalar", "name": "n", "type": "u64"}]
})json";

TEST(LaunchRecord, DefaultsOfWhatPeopleWrite) {
  LaunchRecord record = parse(shortRecord);
  const LaunchStep &step = record.steps.front();
  EXPECT_EQ(step.grid[0].getText(), "3");
  EXPECT_EQ(step.grid[2].getText(), "1");
  EXPECT_EQ(step.block, (std::array<int64_t, 3>{128, 1, 1}));
  EXPECT_EQ(step.cluster, (std::array<int64_t, 3>{1, 1, 1}));
  EXPECT_EQ(step.sharedBytes, 0);
  EXPECT_TRUE(record.workspaces.empty());
  EXPECT_THAT(record.tensors[0].strides, testing::ElementsAre(6, 1));
  EXPECT_THAT(record.tensors[1].strides, testing::ElementsAre(-1, -1));
  EXPECT_EQ(record.tensors[0].dtype, DType::U8);
  EXPECT_EQ(record.tensors[1].access, TensorAccess::Update);
  EXPECT_EQ(step.args[2].type, DType::U64);
  // What is written is the long form, which reads as the same.
  json::Value written = toJSON(record);
  EXPECT_EQ(validate(written), "");
  EXPECT_EQ(toJSON(parse(llvm::formatv("{0:2}", written).str())), written);
  EXPECT_EQ(validate(llvm::cantFail(json::parse(shortRecord))), "");
}

TEST(LaunchRecord, GridsOfOneToThree) {
  for (auto [form, grid] :
       {std::pair("[2, \"x.dim0\"]", std::array{"2", "x.dim0", "1"}),
        std::pair("\"x.dim0 * 2\"", std::array{"x.dim0 * 2", "1", "1"}),
        std::pair("[1, 2, 3]", std::array{"1", "2", "3"})}) {
    std::string text = shortRecord;
    text.replace(text.find("3, \"block\""), 1, form);
    LaunchRecord record = parse(text);
    for (unsigned axis : {0, 1, 2})
      EXPECT_EQ(record.steps[0].grid[axis].getText(), grid[axis]);
  }
}

TEST(LaunchRecord, SaysAllThatIsWrong) {
  std::string text = shortRecord;
  auto replace = [&](StringRef from, StringRef to) {
    text.replace(text.find(from.str()), from.size(), to.str());
  };
  replace("\"grid\": 3", "\"grid\": [\"? CTAs\"]");
  replace("128", "0");
  replace("\"u8\"", "\"? f16\"");
  replace("[4, 6]", "[\"? elements\"]");
  replace("\"tensor\": \"y\"", "\"tensor\": \"z\", \"a\": 1, \"b\": 2");
  replace("\"name\": \"n\"", "\"name\": 7");
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
  ASSERT_FALSE(bool(record));
  EXPECT_EQ(
      llvm::toString(record.takeError()),
      "launch record: tensors[0].dtype: expected one of \"f16\", \"bf16\", "
      "\"f32\", \"f64\", \"f8E4M3FN\", \"f8E5M2\", \"f8E8M0FNU\", \"i8\", "
      "\"i16\", \"i32\", "
      "\"i64\", \"u8\", \"u16\", \"u32\", \"u64\", got \"? f16\"\n"
      "launch record: tensors[0].shape[0]: expected an integer of at least -1, "
      "got \"? elements\"\n"
      "launch record: grid[0]: in \"? CTAs\" at column 1: expected an integer, "
      "a size, a function or '(', got \"? CTAs\"\n"
      "launch record: block: expected an integer of at least 1, got 0\n"
      "launch record: args[1].tensor: unknown tensor \"z\"\n"
      "launch record: args[1].a: unknown field\n"
      "launch record: args[1].b: unknown field\n"
      "launch record: args[2].name: expected a string that is not empty, got "
      "7");
}

TEST(LaunchRecord, SaysOfVeryMuchHowMuchItIs) {
  std::string shape;
  for (unsigned i = 0; i < 30; ++i)
    shape += i ? ", -2" : "-2";
  std::string text = shortRecord;
  text.replace(text.find("4, 6"), 4, shape);
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
  ASSERT_FALSE(bool(record));
  std::string message = llvm::toString(record.takeError());
  EXPECT_EQ(StringRef(message).count('\n'), 20u);
  EXPECT_THAT(message, HasSubstr("\nlaunch record: 11 more errors"));
}

/// Each tensor is looked up by name many times.
TEST(LaunchRecord, ReadsVeryManyTensors) {
  std::string tensors, args;
  constexpr unsigned count = 20000;
  for (unsigned i = 0; i < count; ++i) {
    tensors += llvm::formatv("{0}{{\"name\": \"a name that is long {1}\", "
                             "\"dtype\": \"f32\", \"shape\": [1], \"access\": "
                             "\"read\"}",
                             i ? "," : "", i);
    args += llvm::formatv("{0}{{\"kind\": \"size\", \"dim\": 0, \"type\": "
                          "\"i32\", \"tensor\": \"a name that is long {1}\"}",
                          i ? "," : "", count - 1 - i);
  }
  std::string text =
      "{\"version\": 1, \"kernel\": \"k\", \"target\": {\"chip\": \"sm_80\", "
      "\"ptx\": 80}, \"grid\": 1, \"block\": 1, \"tensors\": [" +
      tensors + "], \"args\": [" + args + "]}";
  LaunchRecord record = parse(text);
  ASSERT_EQ(record.steps[0].args.size(), count);
  EXPECT_EQ(record.steps[0].args[0].tensor, count - 1);
}
