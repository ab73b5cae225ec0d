//===- SyncSkeleton.cpp - What a proof says each warp does ----------------===//

#include "attn/Launch/SyncSkeleton.h"
#include "ObjectReader.h"
#include "attn/Support/JSON.h"

using namespace mlir::attn;
namespace json = llvm::json;

static constexpr NameEntry<SyncStep::Kind> kindNames[] = {
    {SyncStep::Event, "event"},    {SyncStep::Order, "order"},
    {SyncStep::Work, "work"},      {SyncStep::Access, "access"},
    {SyncStep::RareBegin, "rare"}, {SyncStep::RareEnd, "rare_end"}};

static json::Value writeStep(const SyncStep &step) {
  json::Object object{{"kind", getName(kindNames, step.kind)},
                      {"text", step.text},
                      {"site", step.place}};
  if (step.threads != ~0u)
    object["threads"] = step.threads;
  if (step.amount != 0)
    object["amount"] = step.amount;
  json::Array bytes;
  for (auto [begin, end] : step.bytes) {
    bytes.push_back(begin);
    bytes.push_back(end);
  }
  if (!bytes.empty())
    object["bytes"] = std::move(bytes);
  return object;
}

json::Value mlir::attn::toJSON(const SyncSkeleton &skeleton) {
  json::Array runs;
  for (const SyncRun &run : skeleton.runs) {
    json::Array warps;
    for (const std::vector<SyncStep> &steps : run.warps) {
      json::Array list;
      for (const SyncStep &step : steps)
        list.push_back(writeStep(step));
      warps.push_back(std::move(list));
    }
    runs.push_back(json::Object{{"block", json::Array(run.block)},
                                {"warps", std::move(warps)}});
  }
  return json::Object{{"version", SyncSkeleton::version},
                      {"kernel", skeleton.kernel},
                      {"all_tiles", skeleton.runsAllTiles},
                      {"sites", json::Array(skeleton.sites)},
                      {"runs", std::move(runs)}};
}

static SyncStep readStep(ObjectReader &reader, size_t sites) {
  SyncStep step;
  step.kind = reader.takeEnum("kind", kindNames);
  step.text = reader.takeString("text");
  step.place = reader.takeInteger("site", 0, int64_t(sites) - 1);
  if (reader.has("threads"))
    step.threads = reader.takeInteger("threads", 1, UINT32_MAX);
  if (reader.has("amount"))
    step.amount = reader.takeInteger("amount", 0);
  if (reader.has("bytes")) {
    llvm::SmallVector<int64_t, 8> bytes;
    reader.takeIntegers("bytes", bytes, 0);
    if (bytes.size() % 2 != 0)
      reader.fail("bytes", "expected begins and ends, got an odd number");
    for (size_t i = 0; i + 1 < bytes.size(); i += 2)
      step.bytes.push_back({bytes[i], bytes[i + 1]});
  }
  reader.finish();
  return step;
}

llvm::Expected<SyncSkeleton> mlir::attn::parseSkeleton(llvm::StringRef text) {
  llvm::Expected<json::Value> root = parseJSON(text);
  if (!root)
    return llvm::createStringError("skeleton: not JSON: " +
                                   llvm::toString(root.takeError()));
  Failure failure("skeleton");
  SyncSkeleton skeleton;
  ObjectReader reader(*root, "", failure);
  reader.takeInteger("version", SyncSkeleton::version, SyncSkeleton::version);
  skeleton.kernel = reader.takeString("kernel");
  skeleton.runsAllTiles = reader.takeBool("all_tiles");
  reader.takeArray("sites", [&](const json::Value &value, std::string path) {
    if (std::optional<llvm::StringRef> site = value.getAsString())
      skeleton.sites.push_back(site->str());
    else
      failure.report(path, "expected a string, got " + describeValue(value));
  });
  reader.takeArray("runs", [&](const json::Value &value, std::string path) {
    ObjectReader object(value, std::move(path), failure);
    SyncRun run;
    llvm::SmallVector<int64_t, 3> block;
    object.takeIntegers("block", block, 0, 3);
    if (!failure)
      std::copy_n(block.begin(), 3, run.block.begin());
    object.takeArray("warps", [&](const json::Value &list, std::string at) {
      const json::Array *steps = list.getAsArray();
      run.warps.emplace_back();
      if (!steps)
        return failure.report(at,
                              "expected an array, got " + describeValue(list));
      for (auto [index, item] : llvm::enumerate(*steps)) {
        if (failure)
          return;
        ObjectReader step(item, at + "[" + std::to_string(index) + "]",
                          failure);
        run.warps.back().push_back(readStep(step, skeleton.sites.size()));
      }
    });
    object.finish();
    skeleton.runs.push_back(std::move(run));
  });
  reader.finish();
  if (!failure && skeleton.runs.empty())
    reader.fail("runs", "expected at least one run, got none");
  if (failure)
    return failure.takeError();
  return skeleton;
}
