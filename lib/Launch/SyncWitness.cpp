//===- SyncWitness.cpp - What is wrong, and an order that shows it --------===//

#include "attn/Launch/SyncWitness.h"
#include "ObjectReader.h"
#include "attn/Support/JSON.h"

using namespace mlir::attn;
namespace json = llvm::json;

static constexpr NameEntry<TurnEnd> endNames[] = {
    {TurnEnd::Mbarrier, "mbarrier"},
    {TurnEnd::Barrier, "barrier"},
    {TurnEnd::ClusterBarrier, "cluster_barrier"},
    {TurnEnd::Exit, "exit"},
    {TurnEnd::Fault, "fault"}};

static bool hasPlace(TurnEnd end) {
  return end == TurnEnd::Mbarrier || end == TurnEnd::Barrier;
}

static json::Value writeSite(const WitnessSite &site) {
  json::Object object{{"text", site.text}, {"op", site.op}};
  if (site.line)
    object["location"] = json::Object{
        {"file", site.file}, {"line", site.line}, {"column", site.column}};
  auto number = [&](llvm::StringRef name, int64_t value) {
    if (value >= 0)
      object[name] = value;
  };
  number("cta", site.cta);
  number("warp", site.warp);
  if (!site.barrier.empty())
    object["barrier"] = site.barrier;
  if (!site.channel.empty())
    object["channel"] = site.channel;
  number("slot", site.slot);
  number("phase", site.phase);
  number("position", site.position);
  return object;
}

json::Value mlir::attn::toJSON(const SyncWitness &witness) {
  json::Array sites, turns;
  for (const WitnessSite &site : witness.sites)
    sites.push_back(writeSite(site));
  for (const ReplayTurn &turn : witness.turns) {
    json::Object object{{"cta", turn.cta},
                        {"warp", turn.warp},
                        {"end", getName(endNames, turn.end)}};
    if (hasPlace(turn.end))
      object["at"] = turn.place;
    turns.push_back(std::move(object));
  }
  json::Object object{
      {"version", SyncWitness::version}, {"kernel", witness.kernel},
      {"fault", witness.fault},          {"profile", witness.profile},
      {"sites", std::move(sites)},       {"turns", std::move(turns)}};
  if (witness.runsAllTiles)
    object["tiles"] = "all";
  else
    object["block"] = json::Array(witness.block);
  return object;
}

static WitnessSite readSite(ObjectReader &reader, Failure &failure) {
  WitnessSite site;
  site.text = reader.takeString("text");
  site.op = reader.takeString("op");
  if (reader.has("location"))
    if (const json::Value *value = reader.take("location")) {
      ObjectReader location(*value, reader.at("location"), failure);
      site.file = location.takeString("file");
      site.line = location.takeInteger("line", 1, UINT32_MAX);
      site.column = location.takeInteger("column", 0, UINT32_MAX);
      location.finish();
    }
  auto number = [&](llvm::StringRef name, int64_t &value) {
    if (reader.has(name))
      value = reader.takeInteger(name, 0);
  };
  number("cta", site.cta);
  number("warp", site.warp);
  if (reader.has("barrier"))
    site.barrier = reader.takeString("barrier");
  if (reader.has("channel"))
    site.channel = reader.takeString("channel");
  number("slot", site.slot);
  number("phase", site.phase);
  number("position", site.position);
  reader.finish();
  return site;
}

llvm::Expected<SyncWitness> mlir::attn::parseWitness(llvm::StringRef text) {
  llvm::Expected<json::Value> root = parseJSON(text);
  if (!root)
    return llvm::createStringError("witness: not JSON: " +
                                   llvm::toString(root.takeError()));
  Failure failure("witness");
  SyncWitness witness;
  ObjectReader reader(*root, "", failure);
  reader.takeInteger("version", SyncWitness::version, SyncWitness::version);
  witness.kernel = reader.takeString("kernel");
  witness.fault = reader.takeString("fault");
  witness.profile = reader.takeString("profile");
  reader.takeArray("sites", [&](const json::Value &value, std::string path) {
    ObjectReader site(value, std::move(path), failure);
    witness.sites.push_back(readSite(site, failure));
  });
  reader.takeArray("turns", [&](const json::Value &value, std::string path) {
    ObjectReader object(value, std::move(path), failure);
    ReplayTurn turn;
    turn.cta = object.takeInteger("cta", 0, 15);
    turn.warp = object.takeInteger("warp", 0, 31);
    turn.end = object.takeEnum("end", endNames);
    if (hasPlace(turn.end))
      turn.place = object.takeInteger("at", 0);
    object.finish();
    witness.turns.push_back(turn);
  });
  if (reader.has("tiles")) {
    constexpr NameEntry<bool> names[] = {{true, "all"}};
    witness.runsAllTiles = reader.takeEnum("tiles", names);
  } else {
    llvm::SmallVector<int64_t, 3> block;
    reader.takeIntegers("block", block, 0, 3);
    if (!failure)
      std::copy_n(block.begin(), 3, witness.block.begin());
  }
  reader.finish();
  if (!failure && witness.sites.empty())
    reader.fail("sites", "expected at least one site, got none");
  if (failure)
    return failure.takeError();
  return witness;
}
